"""`tacit demo --week`: conversations, knowledge, review, archive, and all of it again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Tacit


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("week") / "home"
    done = Tacit(root)("demo", "--week", "--home", str(root), cwd=root.parent, timeout=300)
    assert done.code == 0, done.stderr
    return root, done.stdout


def test_cli_demo_week_goes_from_talk_to_an_adopted_rebuild(week: tuple[Path, str]) -> None:
    root, out = week
    words = ("talked", "learned", "waits", "by hand", "condensed", "archived", "proposed", "approved")
    assert all(f"   {word}" in out for word in (*words, "rebuilt", "compared", "adopted"))
    memory = (root / "knowledge/memory/MEMORY.md").read_text()
    assert "<!-- decisions/1 2026/10/05/" in memory
    assert "<!-- week/1 knowledge/journal/2026-10-07 owner " in memory
    assert "<!-- day/1 " in (root / "knowledge/journal/2026-10-09.md").read_text()
    assert (root / "archive/journal/2026-07-12.md").is_file()
    assert "parcels leave on Tuesdays" in (root / "knowledge/journal/2026-10-07.md").read_text()
    assert any("facts/1" in file.read_text() for file in root.glob("knowledge/reference/*.md"))
    refs = subprocess.run(["git", "-C", root, "show-ref"], capture_output=True, text=True, check=True).stdout
    assert "refs/tags/memory/extract/v2" in refs
    assert "refs/heads/extract/" not in refs


def test_cli_demo_week_measures_that_the_rebuild_holds_more(week: tuple[Path, str]) -> None:
    lines = [line for line in week[1].split("\n") if "evidence in" in line]
    assert lines
    for line in lines:
        before, after = (int(part.rsplit(" ", 1)[1]) for part in line.split(" %")[:2])
        assert after > before


def test_cli_demo_week_leaves_a_home_without_problems_and_nothing_to_do(week: tuple[Path, str]) -> None:
    root, _ = week
    tacit = Tacit(root)
    assert tacit("verify").code == 0
    checks = json.loads(tacit("doctor", "--json").stdout)
    found = [problem for check in checks for problem in check["problems"]]
    assert {problem["level"] for problem in found} == {"warning"}
    # What was approved though others had said it, and what topics of the sample want of later weeks.
    assert all("another person" in one["what"] or "no such file" in one["what"] for one in found)
    assert tacit("status").code == 0
    done = json.loads(tacit("rebuild", "--name", "again", "--json").stdout)
    changed = ["git", "-C", str(root), "diff", "--name-only", "main", "extract/again"]
    assert done["conversations"] == 8
    assert subprocess.run(changed, capture_output=True, text=True, check=True).stdout == ""
