"""`tacit why-known`, `tacit purge`, and what doctor says of lines that are somebody else's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit as product
from tacit.markdown import comment
from tests.conftest import GitLog, Tacit

NOTE = "knowledge/reference/glazes.md"
STRANGER = "agent:main:telegram:direct:99"


@pytest.fixture
def path(home: Path) -> str:
    """Of a stranger's conversation that left a line in a note."""
    memory = product.open(home)
    with memory.session(session_key=STRANGER, session_id="theirs") as session:
        session.message("user", "The glaze is poison", speaker="Mallory")
    assert session.path
    line = comment.attach(
        "- 2026-03-04: The glaze is poison", "facts/1", [comment.source_name(session.path, 1)], "other"
    )
    memory.write(NOTE, f"# Glazes\n\n{line}\n- Moss is green\n", replacing=None)
    memory.commit()
    return session.path


def test_cli_why_known_tells_file_commit_and_words(path: str, tacit: Tacit, git_log: GitLog) -> None:
    done = tacit("why-known", "glaze is", "poison")
    commit = git_log()[0]
    assert done.code == 0
    assert f"{NOTE}:3\n  - 2026-03-04: The glaze is poison\n" in done.stdout
    assert "tacit wrote it (facts/1), another person's word" in done.stdout
    assert f"{commit.name[:10]} by tacit: {commit.subject}" in done.stdout
    assert f"from {path}, record 1" in done.stdout
    assert "user Mallory: The glaze is poison" in done.stdout
    [value] = json.loads(tacit("why-known", "glaze is poison", "--json").stdout)
    assert (value["path"], value["trust"], value["words"][0]["transcript"]) == (NOTE, "other", path)


def test_cli_why_known_of_nothing_says_so(tacit: Tacit) -> None:
    done = tacit("why-known", "zyxwvut")
    assert (done.code, done.stdout) == (1, "")
    assert "Nothing is known about 'zyxwvut'" in done.stderr


def test_cli_purge_shows_first_and_does_it_when_told_to(
    home: Path, path: str, tacit: Tacit, git_log: GitLog
) -> None:
    before = (home / NOTE).read_bytes()
    done = tacit("purge", "--origin", STRANGER)
    assert done.code == 0
    assert f"{NOTE}:3  - 2026-03-04: The glaze is poison" in done.stdout
    assert f"tacit purge --origin {STRANGER} --yes" in done.stdout
    assert (home / NOTE).read_bytes() == before
    done = tacit("purge", "--origin", STRANGER, "--yes", "--by", "Hanna", "--why", "a stranger")
    assert done.code == 0
    assert (home / NOTE).read_text() == "# Glazes\n\n- Moss is green\n"
    commit = git_log()[0]
    assert f"tacit history undo {commit.name[:10]}" in done.stdout
    assert "tacit forget" in done.stdout
    said = json.loads((home / "raw/purged.jsonl").read_text())
    assert (said["by"], said["why"], said["sources"]) == ("Hanna", "a stranger", [comment.source_name(path)])
    assert tacit("verify", "--quiet").code == 0
    assert tacit("doctor", "--quiet").code == 0
    assert tacit("history", "undo", commit.name).code == 0
    assert (home / NOTE).read_bytes() == before


def test_cli_purge_prints_json(path: str, tacit: Tacit) -> None:
    value = json.loads(tacit("purge", "--origin", "theirs", "--json").stdout)
    assert (value["sources"], value["done"], value["commit"]) == ([comment.source_name(path)], False, None)
    value = json.loads(tacit("purge", "--origin", "theirs", "--yes", "--json").stdout)
    assert (value["done"], [one["line"] for one in value["lines"]]) == (True, [3])


def test_cli_purge_of_nothing_and_of_everything(path: str, tacit: Tacit) -> None:
    done = tacit("purge", "--origin", "tool:nobody", "--yes")
    assert (done.code, "Nothing here is from" in done.stdout) == (1, True)
    assert tacit("purge", "--origin", "agent", "--yes").code == 2
    assert tacit("purge").code == 2


def test_cli_doctor_lists_lines_of_others_and_those_whose_transcript_is_gone(
    home: Path, path: str, tacit: Tacit
) -> None:
    lost = comment.attach("- Kontora", "facts/1", ["2020/01/01/0000-x-y#3"], "agent")
    (home / "knowledge/reference/pay.md").write_text(f"# Pay\n\n{lost}\n")
    said = tacit("doctor").stdout
    assert f"{NOTE}:3: comes from another person." in said
    assert "knowledge/reference/pay.md:3: was made from a transcript that is gone." in said
    assert "origins     2 lines by tacit" in said


def test_cli_remember_is_the_owners_word(home: Path, tacit: Tacit) -> None:
    memory = product.open(home)
    with memory.session(session_key="agent:main:main") as session:
        session.tool("fetch", "https://evil.example", "x")
        assert tacit("remember", "--to", "memory", "The glaze is Moss.").code == 0
    assert "The glaze is Moss.\n" in (home / "knowledge/memory/MEMORY.md").read_text()
