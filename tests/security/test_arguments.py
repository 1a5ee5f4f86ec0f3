"""Text from people is never an option of git: every field, every trick, no file and no process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.config import parse
from tacit.errors import TacitError
from tacit.git.commits import CommitPlan, FileChange, import_commits
from tacit.git.refs import create_snapshot, prune_explore_branches, push_branch
from tacit.git.repository import Git
from tacit.memory import Memory

if TYPE_CHECKING:
    from tests.conftest import Tacit

TRICKS = [
    "--output=PWNED",
    "--output PWNED",
    "-oPWNED",
    "--open-files-in-pager=touch PWNED;:",
    "--upload-pack=touch PWNED",
    "--exec=touch PWNED",
    "--receive-pack=touch PWNED",
    "--config-env=core.pager=X",
    "-c core.pager=touch PWNED",
    "--git-dir=PWNED",
    "--help",
    "--version",
    "-h",
    "--",
    "-",
    "--all",
    "--not",
    "--stdin",
    "--end-of-options",
    "--textconv",
    "--ext-diff",
    "--contents=/etc/passwd",
    "--ignore-revs-file=/etc/passwd",
    "-S/etc/passwd",
    ":(glob)**",
    ":(exclude)*",
    ":!knowledge",
    ":/",
    "@{0}",
    "@{upstream}",
    "@{-1}",
    "HEAD@{now}",
    "^HEAD",
    "HEAD^{/x}",
    "..",
    "$(touch PWNED)",
    "`touch PWNED`",
    "; touch PWNED",
    "| touch PWNED",
    "a\nb",
    "\n--output=PWNED",
    "a\x00--output=PWNED",
    "ext::sh -c touch% PWNED",
]

FIELDS: dict[str, Callable[[Memory, str], object]] = {
    "when": lambda memory, text: memory.history.when(text),
    "blame": lambda memory, text: memory.history.blame(text),
    "diff since": lambda memory, text: memory.history.diff(text),
    "diff until": lambda memory, text: memory.history.diff("1 day", text),
    "recall path": lambda memory, text: memory.history.recall(text, "HEAD"),
    "recall moment": lambda memory, text: memory.history.recall("knowledge/people/_index.md", text),
    "undo": lambda memory, text: memory.history.undo(text),
    "snapshot": lambda memory, text: create_snapshot(memory.git, text),
    "snapshot kind": lambda memory, text: create_snapshot(memory.git, "x", text),
    "main branch": lambda memory, text: prune_explore_branches(
        memory.git, text, 7, memory.services.clock.now()
    ),
    "resolve": lambda memory, text: memory.git.resolve(text),
    "read": lambda memory, text: memory.git.read("HEAD", text),
    "remote": lambda memory, text: push_branch(memory.git, _remote(text)),
}


def _remote(text: str) -> str:
    """As it arrives from the config, which is the only way to name one."""
    source = f"git: {{remote: {json.dumps(text)}}}"
    return str(parse(source, where="f", environ={}, trusted=True).config.git.remote)


def user(root: Path, *arguments: str) -> str:
    return os.fsdecode(subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True).stdout)


def world(home: Path) -> set[str]:
    """Every file around, but for objects, logs and tags, which an honest answer may add."""
    inside = (str(path.relative_to(home.parent)) for path in home.parent.rglob("*"))
    honest = ("home/.git/objects", "home/.git/logs", "home/.git/refs/tags", "home/.tacit")
    return {path for path in inside if not path.startswith(honest)}


def _watch_programs(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which programs that git could be talked into leave a line in the file that comes back."""
    folder = home.parent / "bin"
    folder.mkdir()
    for name in ("touch", "sh", "less", "more", "ssh", "man", "vi", "cat"):
        (folder / name).write_text(f"#!/bin/bash\necho {name} >> {folder}/started\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "started"


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_lets_text_become_an_option_a_path_or_a_command(
    home: Path, memory: Memory, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    started = _watch_programs(home, monkeypatch)
    before = world(home)
    head, status = user(home, "rev-parse", "HEAD"), user(home, "status", "--porcelain")
    for trick in TRICKS:
        pwned = str(home.parent / "PWNED")
        try:
            FIELDS[field](memory, trick.replace("PWNED", pwned))
        except TacitError:
            continue
    assert world(home) == before
    assert not started.exists(), started.read_text()
    assert (user(home, "rev-parse", "HEAD"), user(home, "status", "--porcelain")) == (head, status)


@pytest.mark.parametrize("trick", [t for t in TRICKS if "\0" not in t and "/" not in t and t != ".."])
def test_a_note_with_such_a_name_is_a_note(home: Path, memory: Memory, trick: str) -> None:
    file = home / "knowledge" / trick
    file.write_text("harmless\n")
    before = world(home)
    (commit,) = memory.commit().commits
    path = f"knowledge/{trick}"
    assert set(memory.git.tree("HEAD", "knowledge")) >= {path}
    assert memory.history.recall(path, "HEAD") == "harmless\n"
    assert [origin.commit.name for origin in memory.history.blame(path)] == [commit]
    assert [diff.path for diff in memory.history.diff("1 hour") if diff.added == ("harmless",)] == [path]
    memory.history.undo(commit)
    assert not file.exists()
    assert world(home) == before - {f"home/{path}"}
    assert user(home, "status", "--porcelain") == ""


@pytest.mark.parametrize("trick", [trick for trick in TRICKS if "\0" not in trick])
def test_a_conversation_about_it_is_a_conversation(home: Path, memory: Memory, trick: str) -> None:
    with memory.session(session_id=trick, channel=trick, model=trick) as session:
        session.message("user", trick)
        session.knowledge("updated", trick, trick)
    sealed = session.end()
    assert sealed is not None
    assert sealed.commit == user(home, "rev-parse", "HEAD").strip()
    assert [item.state for item in memory.verify()] == ["proved"]
    assert not list(home.parent.rglob("PWNED"))


def test_a_message_is_not_a_command_of_the_stream(home: Path) -> None:
    text = "x\n\nM 100644 inline evil.md\ndata 4\nevil\nreset refs/heads/evil\nfrom refs/heads/main\n\ndone\n"
    git = Git(home)
    import_commits(
        git, [CommitPlan(text, [FileChange("knowledge/a.md", text.encode())], datetime.now().astimezone())]
    )
    assert "evil.md" not in git.tree("HEAD")
    assert git.resolve("refs/heads/evil") is None
    assert git.read("HEAD", "knowledge/a.md") == text.encode()


def test_a_path_is_not_a_command_of_the_stream(home: Path) -> None:
    git = Git(home)
    path = 'knowledge/a"\nM 100644 inline evil.md\ndata 4\nevil'
    import_commits(git, [CommitPlan("x\n", [FileChange(path, b"1")], datetime.now().astimezone())])
    assert "evil.md" not in git.tree("HEAD")
    assert path in git.tree("HEAD")


@pytest.mark.parametrize(
    "arguments",
    [
        ("when", "--output={}"),
        ("blame", "--output={}"),
        ("diff", "--output={}"),
        ("diff", "1 day", "--output={}"),
        ("recall", "--output={}", "HEAD"),
        ("undo", "--output={}"),
        ("snapshot", "--output={}"),
        ("when", "--", "--output={}"),
        ("blame", "--", "--output={}"),
        ("diff", "--", "--output={}", "-p"),
        ("undo", "--", "--output={}"),
        ("recall", "--", "--textconv", "--output={}"),
    ],
)
def test_the_command_line_refuses_or_ignores_options_that_are_not_its_own(
    home: Path, tacit: Tacit, arguments: tuple[str, ...]
) -> None:
    pwned = home.parent / "PWNED"
    ran = tacit("history", *(part.format(pwned) for part in arguments))
    assert ran.code in (1, 2)
    assert not pwned.exists()
