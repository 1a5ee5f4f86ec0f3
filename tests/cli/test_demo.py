"""`tacit demo`: four weeks, a live conversation, and a home that stands up to every other command."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Tacit


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("demo") / "home"
    done = Tacit(root)("demo", "--home", str(root), cwd=root.parent)
    assert done.code == 0, done.stderr
    return root, done.stdout


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_cli_demo_shows_the_conversation_its_seal_and_what_the_home_can_say(shown: tuple[Path, str]) -> None:
    _, out = shown
    assert "user: Morning Kiesel." in out
    assert "[tool:calendar] today →" in out
    assert "sealed     raw/conversations/2026/11/02/0814-ses_a94c17f8-" in out
    assert "26 of 26 transcripts proved" in out
    assert "first on 2026-10-14" in out


def test_cli_demo_leaves_a_home_without_problems(shown: tuple[Path, str]) -> None:
    root, _ = shown
    assert Tacit(root)("verify").code == 0
    checks = json.loads(Tacit(root)("doctor", "--json").stdout)
    assert [problem for check in checks for problem in check["problems"]] == []
    assert git(root, "status", "--porcelain") == ""
    assert Tacit(root)("run", "commit", "--dry-run").stdout == "Nothing to commit.\n"


def test_cli_demo_has_the_history_of_its_story(shown: tuple[Path, str]) -> None:
    root, _ = shown
    subjects = git(root, "log", "--format=%s").splitlines()
    assert sum(subject.startswith("conversation: ") for subject in subjects) == 26
    assert {subject.split(":")[0] for subject in subjects} >= {
        "conversation",
        "memory",
        "identity",
        "maintenance",
    }
    dates = git(root, "log", "--reverse", "--format=%cI").splitlines()
    assert dates[0].startswith("2026-10-05")
    tags = git(root, "tag").splitlines()
    assert "memory/daily/2026-10-05" in tags
    assert "memory/weekly/2026-W42" in tags


def test_cli_demo_keeps_what_the_sample_quotes_from_a_transcript_as_words(shown: tuple[Path, str]) -> None:
    root, _ = shown
    (quoted,) = root.glob("raw/conversations/2026/10/*/*ses_37c2d8b6*.md")
    text = quoted.read_text()
    assert "\n\\## 18:45 — agent\n" in text
    assert "\n## 18:45 — agent\n" not in text


def test_cli_demo_recalls_a_note_as_it_was(shown: tuple[Path, str]) -> None:
    root, _ = shown
    then = Tacit(root)("history", "recall", "knowledge/memory/MEMORY.md", "2026-10-05")
    assert then.code == 0
    assert "Kontora" not in then.stdout
    assert "Kontora" in (root / "knowledge/memory/MEMORY.md").read_text()


def test_cli_demo_without_a_home_leaves_nothing_behind(tmp_path: Path) -> None:
    done = Tacit(tmp_path)("demo", "--quiet", env={"TMPDIR": str(tmp_path)}, cwd=tmp_path)
    assert done.code == 0
    assert "This home was temporary and is gone." in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_cli_demo_does_not_touch_a_folder_that_holds_something(
    shown: tuple[Path, str], tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    done = Tacit(tmp_path)("demo", "--home", str(tmp_path))
    assert done.code == 2
    assert "is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_cli_demo_home_can_be_cloned_and_verified(shown: tuple[Path, str], tmp_path: Path) -> None:
    root, _ = shown
    subprocess.run(["git", "clone", "-q", root, tmp_path / "clone"], check=True)
    assert Tacit(tmp_path / "clone")("verify").code == 0
    shutil.rmtree(tmp_path / "clone")
