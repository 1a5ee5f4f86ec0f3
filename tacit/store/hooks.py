"""The repository's hooks: two lines each that call tacit, and what tacit then checks."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path

from tacit.model.problems import Problem
from tacit.store import files
from tacit.store.git import Git
from tacit.store.home import CONVERSATIONS, Home

MEMORY = "knowledge/memory/MEMORY.md"
NAMES = ("pre-commit", "post-commit")
_SHELL = "#!/bin/sh\n"


def shim(program: str, name: str) -> str:
    """A commit must not fail because tacit was uninstalled, so a missing program only says so."""
    called = shlex.quote(program)
    said = shlex.quote(f"tacit is gone from {program}: checks skipped. Repair with: tacit init")
    return f"{_SHELL}if [ -x {called} ]; then exec {called} hook {name}; else echo {said} >&2; fi\n"


def install(git: Git, program: str) -> list[Problem]:
    """Write the shims; a hook of the user's own stays, and how to call ours from it is said."""
    problems = []
    folder = git.common / "hooks"
    files.make_directories(folder, 0o755)
    for name in NAMES:
        hook = folder / name
        text = shim(program, name)
        if (
            hook.exists()
            and (there := hook.read_text(errors="replace")).strip()
            and not _is_shim(there, name)
        ):
            if not _calls(there, name):
                problems.append(_kept(program, name))
        elif not hook.exists() or hook.read_text(errors="replace") != text:
            files.replace(hook, text.encode(), mode=0o755)
    return problems


def _kept(program: str, name: str) -> Problem:
    todo = f"To have tacit check commits too, add this line to it: {shlex.quote(program)} hook {name}"
    return Problem(f".git/hooks/{name}", "is yours and was kept.", todo, level="warning")


def _is_shim(text: str, name: str) -> bool:
    return text.startswith(f"{_SHELL}if [ -x ") and text.count("\n") == 2 and f" hook {name}; else " in text


def _calls(text: str, name: str) -> bool:
    return "tacit" in text and f"hook {name}" in text


def installed(git: Git) -> dict[str, bool]:
    found = {}
    for name in NAMES:
        hook = git.common / "hooks" / name
        executable = hook.is_file() and bool(hook.stat().st_mode & stat.S_IXUSR)
        found[name] = executable and _calls(hook.read_text(errors="replace"), name)
    return found


# ---------------------------------------------------------------- what pre-commit checks


def check_staged(git: Git, warn: int, cap: int, block: int) -> list[Problem]:
    """Problems with what is about to be committed: the index is looked at, not the work tree."""
    limits = (warn, cap, block)
    return [problem for status, path in _staged(git) for problem in _check(git, status, path, limits)]


def _check(git: Git, status: str, path: str, limits: tuple[int, int, int]) -> list[Problem]:
    if not path.endswith(".md"):
        return []
    if path.startswith(f"{CONVERSATIONS}/"):
        return _transcript(git, status, path)
    if status in "DR":  # of a rename this is the old name
        return []
    if path == "knowledge/memory/MEMORY.md":
        return memory_size(_staged_text(git, path), path, *limits)
    if path.startswith("topics/") and b"triggers:" not in _staged_text(git, path):
        todo = "Add `triggers:` to its frontmatter."
        return [Problem(path, "has no triggers, so nothing will ever wake it.", todo, level="warning")]
    return []


def _staged(git: Git) -> Iterable[tuple[str, str]]:
    """Status letter and path of everything the index changes."""
    if git.head() is None:
        return [
            ("A", os.fsdecode(path)) for path in git.run("ls-files", "-z", "--cached").split(b"\0") if path
        ]
    out = git.run("diff-index", "--cached", "-M90%", "--raw", "--no-abbrev", "-z", "HEAD", "--")
    pieces = iter(out.split(b"\0")[:-1])
    rows = []
    for meta in pieces:
        status, path = meta.split()[4][:1].decode(), os.fsdecode(next(pieces))
        rows.append((status, path))
        if status == "R":
            rows.append(("A", os.fsdecode(next(pieces))))
    return rows


def _staged_text(git: Git, path: str) -> bytes:
    return git.run("cat-file", "blob", f":{path}")


def _transcript(git: Git, status: str, path: str) -> list[Problem]:
    if status == "D":
        what = "is a sealed transcript and would be deleted; `tacit verify` will name it as missing."
        return [Problem(path, what, level="warning")]
    if status != "A":
        todo = f"Take it back with: git restore --staged --worktree -- {shlex.quote(path)}"
        return [Problem(path, "is a sealed transcript, and those do not change.", todo)]
    if not _staged_text(git, path).startswith(b"---"):
        return [Problem(path, "does not begin with frontmatter (`---`).", "See docs/format.md.")]
    return []


def count_lines(data: bytes) -> int:
    """Lines of a file, frontmatter included; a last line without its newline counts."""
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))


def memory_size(data: bytes, path: str, warn: int, cap: int, block: int) -> list[Problem]:
    lines = count_lines(data)
    if lines > block:
        todo = "Move what is settled to knowledge/ or archive/, then commit."
        return [Problem(path, f"has {lines} lines; more than {block} are not committed (cap: {cap}).", todo)]
    if lines > cap:
        return [Problem(path, f"has {lines} lines, over its cap of {cap}. Prune it soon.", level="warning")]
    if lines > warn:
        return [Problem(path, f"has {lines} lines (cap: {cap}).", "Consider pruning.", level="warning")]
    return []


# ---------------------------------------------------------------- what post-commit leaves for the index


def note_changed(home: Home, git: Git) -> list[str]:
    """List what HEAD's commit changed, for whoever follows (the index reads and empties the list)."""
    arguments = ("diff-tree", "--root", "-m", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
    out = git.run(*arguments, "HEAD", "--", "knowledge", "topics", "raw/conversations", "archive")
    paths = sorted({os.fsdecode(path) for path in out.split(b"\0") if path})
    if paths and home.private.is_dir():  # a linked work tree has none
        line = json.dumps({"commit": git.head(), "paths": paths}) + "\n"
        fd = os.open(
            home.private / "changed.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            files.write_all(fd, line.encode())
        finally:
            os.close(fd)
    return paths


def program_path(argv0: str, executable: str) -> str:
    """The tacit that hooks call: the one beside this interpreter, never a shim that searches for one."""
    beside = Path(executable).with_name("tacit")
    return str(beside if beside.exists() else Path(argv0).resolve())
