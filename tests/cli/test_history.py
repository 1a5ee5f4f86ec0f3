"""`tacit history`: the answers as a person reads them, the JSON, the exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.config import Config
from tacit.home.layout import Home
from tacit.memory import Memory

if TYPE_CHECKING:
    from tests.conftest import Tacit

NOTE = "knowledge/projects/kiln.md"


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return os.fsdecode(subprocess.run(command, cwd=root, capture_output=True, check=True).stdout)


class Story:
    def __init__(self, home: Path) -> None:
        self.home = home
        # Three moments that are all in the past and later than the home's first commit.
        first = datetime.now().astimezone().replace(microsecond=0)
        self.times = [first + timedelta(minutes=minutes) for minutes in (1, 2, 3)]
        self.first = self._write(0, "# Kiln\n\nFire at 1200.\n")
        self.second = self._write(1, "# Kiln\n\nFire at 1220.\nSlowly.\n")
        self.third = self._write(2, "# Kiln\n\nFire at 1220.\nSlowly and long.\n")

    def _write(self, number: int, text: str) -> str:
        when = self.times[number]
        memory = Memory(Home(self.home), Config(), zone=when.tzinfo, now=lambda: when)
        (self.home / NOTE).write_text(text)
        (commit,) = memory.commit().commits
        return commit

    def shown(self, number: int) -> str:
        return f"{self.times[number]:%Y-%m-%d %H:%M}"


@pytest.fixture
def story(home: Path) -> Story:
    return Story(home)


# ---------------------------------------------------------------- what a person reads


def test_when_reads_like_an_answer(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "when", "Slowly.")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        f"First on {story.shown(1)}, in {NOTE}:",
        f"  {story.shown(1)}  {story.second[:10]}  + {NOTE}",
        "      Slowly.",
        f"  {story.shown(2)}  {story.third[:10]}  − {NOTE}",
        "      Slowly.",
    ]


def test_when_nothing_is_found_it_says_so_and_exits_with_one(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "when", "unicorn")
    assert (ran.code, ran.stdout) == (1, "Nothing in the history ever contained 'unicorn'.\n")
    ran = tacit("history", "when", "unicorn", "--json")
    assert (ran.code, json.loads(ran.stdout)) == (1, [])


def test_long_lines_are_cut(home: Path, tacit: Tacit, memory: Memory) -> None:
    (home / NOTE).write_text("needle " + "x" * 500 + "\n")
    memory.commit()
    line = tacit("history", "when", "needle").stdout.splitlines()[2]
    assert (len(line), line[-1]) == (6 + 160, "…")


def test_blame_reads_like_a_page_with_margins(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "blame", NOTE)
    assert ran.code == 0
    assert [line.rstrip() for line in ran.stdout.splitlines()] == [
        f"{story.shown(0)}  {story.first[:10]}  memory: add projects/kiln",
        "      1  # Kiln",
        "      2",
        f"{story.shown(1)}  {story.second[:10]}  memory: update projects/kiln",
        "      3  Fire at 1220.",
        f"{story.shown(2)}  {story.third[:10]}  memory: update projects/kiln",
        "      4  Slowly and long.",
    ]


def test_diff_tells_what_changed_file_by_file(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "diff", story.first, story.second[:12])
    assert ran.code == 0
    assert ran.stdout.splitlines() == [
        f"{NOTE}  (changed, +2 −1)",
        "  − Fire at 1200.",
        "  + Fire at 1220.",
        "  + Slowly.",
    ]
    ran = tacit("history", "diff", story.third)
    assert (ran.code, ran.stdout) == (0, f"Nothing changed in knowledge/ since {story.third}.\n")


def test_diff_from_before_the_beginning_is_everything(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "diff", "1970-01-01")
    assert f"{NOTE}  (added, +4 −0)" in ran.stdout.splitlines()


def test_today_tells_what_was_learned(home: Path, memory: Memory, tacit: Tacit) -> None:
    (home / NOTE).write_text("Fire at 1240.\n")
    memory.commit()
    ran = tacit("history", "today")
    assert ran.code == 0
    assert f"{NOTE}  (added, +1 −0)\n  + Fire at 1240.\n" in ran.stdout


def test_recall_prints_the_file_as_it_was(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "recall", NOTE, story.first)
    assert (ran.code, ran.stdout) == (0, "# Kiln\n\nFire at 1200.\n")
    moment = story.times[1].isoformat()
    assert tacit("history", "recall", NOTE, moment).stdout == "# Kiln\n\nFire at 1220.\nSlowly.\n"


def test_undo_tells_how_to_take_it_back(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "undo", story.third)
    assert ran.code == 0
    found = re.fullmatch(
        r"Undone with commit (\w{10}); take that back with: tacit history undo (\w{10})\n", ran.stdout
    )
    assert found is not None
    assert found[1] == found[2] == user(story.home, "rev-parse", "HEAD")[:10]
    assert (story.home / NOTE).read_text() == "# Kiln\n\nFire at 1220.\nSlowly.\n"
    assert tacit("history", "undo", found[1]).code == 0
    assert (story.home / NOTE).read_text() == "# Kiln\n\nFire at 1220.\nSlowly and long.\n"
    assert user(story.home, "status", "--porcelain") == ""


def test_undo_that_is_in_the_way_of_later_edits_says_what_to_do_and_exits_with_two(
    story: Story, tacit: Tacit
) -> None:
    ran = tacit("history", "undo", story.second)
    assert ran.code == 2
    assert ran.stderr == (
        f"tacit: {NOTE} was edited in the same place since then, so nothing was undone. "
        f"Look at it with: tacit history recall {NOTE}, and edit it by hand.\n"
    )
    assert user(story.home, "rev-parse", "HEAD").strip() == story.third


def test_snapshot_and_tags(story: Story, tacit: Tacit) -> None:
    ran = tacit("history", "snapshot", "the-move", "--kind", "before")
    assert ran.code == 0
    assert ran.stdout == (
        "memory/before/the-move names the present state. "
        "See a file as it is now: tacit history recall PATH memory/before/the-move\n"
    )
    assert tacit("history", "recall", NOTE, "memory/before/the-move").code == 0
    lines = tacit("history", "tags").stdout.splitlines()
    (line,) = [line for line in lines if "the-move" in line]
    named = f"{story.third[:10]} memory/before/the-move memory: update projects/kiln"
    assert " ".join(line.split()) == f"{story.shown(2)} {named}"
    ran = tacit("history", "snapshot", "the-move", "--kind", "before")
    assert (ran.code, ran.stdout) == (2, "")
    assert "exists already" in ran.stderr
    assert tacit("history", "snapshot", "x", "--kind", "daily").code == 2
    assert tacit("history", "snapshot", "two words").code == 2


def test_without_tags_it_says_how_they_come(home: Path, tacit: Tacit) -> None:
    ran = tacit("history", "tags")
    assert ran.code == 0
    assert ran.stdout.startswith("No tags yet. `tacit run commit` tags each day")


# ---------------------------------------------------------------- JSON


def ask(tacit: Tacit, *arguments: str) -> object:
    ran = tacit("history", *arguments, "--json")
    assert ran.code == 0, ran.stderr
    assert ran.stdout.isascii()
    return json.loads(ran.stdout)


def test_json_has_the_same_answers(story: Story, tacit: Tacit) -> None:
    at = [when.isoformat() for when in story.times]
    assert ask(tacit, "when", "1200") == [
        {
            "when": when, "commit": commit, "subject": subject, "session": None, "path": NOTE,
            "line": "Fire at 1200.", "appeared": appeared,
        }
        for when, commit, subject, appeared in [
            (at[0], story.first, "memory: add projects/kiln", True),
            (at[1], story.second, "memory: update projects/kiln", False),
        ]
    ]  # fmt: skip
    origins = ask(tacit, "blame", NOTE)
    assert isinstance(origins, list)
    assert origins[-1] == {
        "when": at[2], "commit": story.third, "subject": "memory: update projects/kiln", "first_line": 4,
        "lines": ["Slowly and long."],
    }  # fmt: skip
    assert ask(tacit, "diff", story.second) == [
        {"path": NOTE, "what": "changed", "added": ["Slowly and long."], "removed": ["Slowly."]}
    ]
    assert ask(tacit, "recall", NOTE, story.first) == {
        "path": NOTE, "at": story.first, "text": "# Kiln\n\nFire at 1200.\n",
    }  # fmt: skip
    assert ask(tacit, "snapshot", "v1") == {"tag": "memory/milestone/v1", "not_in_it": []}
    tags = ask(tacit, "tags")
    assert isinstance(tags, list)
    assert {"tag": "memory/milestone/v1", "commit": story.third, "when": at[2]} in tags
    undone = ask(tacit, "undo", story.third)
    assert undone == {"commit": user(story.home, "rev-parse", "HEAD").strip()}


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["when", " "], 2, "Say what to look for"),
        (["blame", "knowledge/none.md"], 2, "is not in the history"),
        (["blame", "/etc/passwd"], 2, "is not relative to the home"),
        (["blame", "../x"], 2, "it leaves the home"),
        (["blame", "knowledge/../../x"], 2, "it leaves the home"),
        (["blame", ""], 2, "The path is empty"),
        (["diff", "someday"], 2, "is not a moment in the history. Give a date"),
        (["recall", "knowledge/none.md", "HEAD"], 2, "did not exist at HEAD"),
        (["recall", ".git/config", "HEAD"], 2, "not places for notes"),
        (["undo", "0123456789"], 2, "is not a commit, and only commits are undone"),
        (["undo", "1970-01-01"], 2, "is not a commit"),
        (["undo", "yesterday"], 2, "is not a commit"),
        (["snapshot", ".."], 2, "cannot be the name of a snapshot"),
        (["snapshot", "x" * 300], 2, "cannot be the name of a snapshot. Use at most 200"),
        (["snapshot", "x/y"], 2, "cannot be the name of a snapshot"),
        (["snapshot", "--", "-d"], 2, "cannot be the name of a snapshot"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(
    tacit: Tacit, arguments: list[str], code: int, said: str
) -> None:
    ran = tacit("history", *arguments)
    assert (ran.code, ran.stdout) == (code, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_asking_the_past_changes_nothing(story: Story, tacit: Tacit) -> None:
    before = user(story.home, "status", "--porcelain"), user(story.home, "for-each-ref")
    for arguments in (["when", "Fire"], ["blame", NOTE], ["diff", "1 day"], ["today"], ["tags"]):
        assert tacit("history", *arguments).code == 0
    assert (user(story.home, "status", "--porcelain"), user(story.home, "for-each-ref")) == before


def test_a_file_may_be_named_as_the_home_the_machine_or_the_current_folder_has_it(
    story: Story, tacit: Tacit, tmp_path: Path
) -> None:
    expected = tacit("history", "blame", NOTE).stdout
    (tmp_path / "link").symlink_to(story.home)
    for path, here in (
        (str(story.home / NOTE), tmp_path),
        (str(tmp_path / "link" / NOTE), tmp_path),
        ("kiln.md", story.home / "knowledge/projects"),
        ("../projects/kiln.md", story.home / "knowledge/projects"),
        (NOTE, story.home / "knowledge/projects"),
        (NOTE, tmp_path),
        ("./knowledge/memory/../projects/kiln.md", tmp_path),
    ):
        ran = tacit("history", "blame", path, cwd=here)
        assert (ran.code, ran.stdout) == (0, expected), path
        assert tacit("history", "recall", path, "HEAD", cwd=here).code == 0


def test_a_snapshot_tells_which_edits_are_not_in_it(story: Story, tacit: Tacit) -> None:
    (story.home / NOTE).write_text("edited\n")
    ran = tacit("history", "snapshot", "v1")
    assert ran.code == 0
    assert ran.stderr == (
        f"warning: 1 edited note is not in it: {NOTE}\n"
        "To have such edits in a snapshot, run `tacit run commit` before it.\n"
    )
    assert ask(tacit, "snapshot", "v2") == {"tag": "memory/milestone/v2", "not_in_it": [NOTE]}
