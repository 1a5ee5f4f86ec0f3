"""`tacit review` and `tacit run`: what waits, what becomes of it, what is due."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit as product
from tests.conftest import Tacit

GROUP = "agent:main:telegram:group:-100"


@pytest.fixture
def draft(home: Path, tacit: Tacit) -> str:
    """A guest's word that waits."""
    with product.open(home).session(GROUP, session_id="guest") as session:
        session.message("user", "We decided to open the shop at nine.", speaker="Guest")
    assert tacit("run", "extract").code == 0
    (found,) = json.loads(tacit("review", "list", "--json").stdout)
    return str(found["id"])


def test_cli_review_shows_why_from_which_words_and_what_would_change(tacit: Tacit, draft: str) -> None:
    shown = tacit("review", "show", draft)
    assert shown.code == 0
    assert "not the owner" in shown.stdout
    assert "“We decided to open the shop at nine.”" in shown.stdout
    assert "+++ b/knowledge/memory/MEMORY.md" in shown.stdout
    assert f"tacit review approve {draft}" in shown.stdout


def test_cli_review_approves_by_the_beginning_of_a_name_and_tells_how_to_take_it_back(
    home: Path, tacit: Tacit, draft: str
) -> None:
    done = tacit("review", "approve", draft[:13], "--by", "Ines")
    assert done.code == 0
    assert "nine" in (home / "knowledge/memory/MEMORY.md").read_text()
    undo = done.stdout.rsplit("tacit ", 1)[1].split()
    assert tacit(*undo).code == 0
    assert "nine" not in (home / "knowledge/memory/MEMORY.md").read_text()


def test_cli_review_rejects_for_good(home: Path, tacit: Tacit, draft: str) -> None:
    assert tacit("review", "reject", draft, "--by", "Ines", "--why", "no").code == 0
    assert tacit("review", "list").stdout == "Nothing waits for a review.\n"
    assert "nine" not in (home / "knowledge/memory/MEMORY.md").read_text()
    log = json.loads(tacit("review", "list", "--log", "--json").stdout)
    assert [one["what"] for one in log] == ["proposed", "rejected"]
    assert log[1]["why"] == "no"


def test_cli_review_edits_from_a_file_or_in_the_editor(
    home: Path, tacit: Tacit, draft: str, tmp_path: Path
) -> None:
    file = home / f"drafts/{draft}.md"
    assert (
        tacit("review", "edit", draft, "--file", "-", stdin=file.read_text().replace("nine", "ten")).code == 0
    )
    assert "ten" in file.read_text()
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/ten/eleven/ "$1"\n')
    editor.chmod(0o755)
    assert tacit("review", "edit", draft, env={"EDITOR": str(editor)}).code == 0
    assert "eleven" in file.read_text()
    without = tacit("review", "edit", draft)
    assert without.code == 2
    assert "$EDITOR" in without.stderr


def test_cli_review_says_what_to_do_about_a_name_that_is_none(tacit: Tacit, draft: str) -> None:
    for name in ("nothing", "../../etc/passwd", ""):
        done = tacit("review", "approve", name, "--by", "Ines")
        assert done.code == 2
        assert "tacit review list" in done.stderr


def test_cli_status_tells_what_waits(home: Path, tacit: Tacit, draft: str) -> None:
    with product.open(home).session(session_id="mine") as session:
        session.message("user", "Hello.")
    told = tacit("status").stdout
    assert "to review    1 draft" in told
    assert "to learn     1 conversation" in told


def test_cli_run_tells_before_it_does_and_does_what_it_told(home: Path, tacit: Tacit) -> None:
    with product.open(home).session(session_id="mine") as session:
        session.message("user", "We decided to fire the big plates at 1,215 degrees.")
    told = tacit("run", "all", "--dry-run")
    assert "would add" in told.stdout
    assert "1,215" not in (home / "knowledge/memory/MEMORY.md").read_text()
    done = json.loads(tacit("run", "all", "--json").stdout)
    assert [one["path"] for one in done["learned"]["added"]] == ["knowledge/memory/MEMORY.md"]
    assert "1,215" in (home / "knowledge/memory/MEMORY.md").read_text()
    assert tacit("run", "all").stdout == "Nothing to do.\n"


@pytest.mark.parametrize("what", ["extract", "condense", "prune", "archive"])
def test_cli_run_of_one_step_with_nothing_to_do_changes_nothing(home: Path, tacit: Tacit, what: str) -> None:
    before = {file: file.read_bytes() for file in home.rglob("*.md")}
    assert tacit("run", what).stdout == "Nothing to do.\n"
    assert {file: file.read_bytes() for file in home.rglob("*.md")} == before
