"""The repository's hooks: two-line scripts that call tacit, and the checks that tacit then runs."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterable
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.git.attributes import find_blocking_filters
from tacit.git.conflicts import find_markers
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, Home

MEMORY_PATH = "knowledge/memory/MEMORY.md"
HOOK_NAMES = ("pre-commit", "post-commit")
_SHEBANG = "#!/bin/sh\n"


def render_shim(program: str, name: str) -> str:
    """A commit must not fail because tacit was uninstalled, so a missing program only prints a warning."""
    command = shlex.quote(program)
    message = shlex.quote(f"tacit is gone from {program}: checks skipped. Repair with: tacit init")
    return f"{_SHEBANG}if [ -x {command} ]; then exec {command} hook {name}; else echo {message} >&2; fi\n"


def install(git: Git, program: str) -> list[Problem]:
    """Write the shims. A user's own hook stays, and a problem tells how to call ours from it."""
    problems = []
    folder = git.common / "hooks"
    files.make_directories(folder)
    for name in HOOK_NAMES:
        hook = folder / name
        text = render_shim(program, name)
        if (
            hook.exists()
            and (existing := hook.read_text(errors="replace")).strip()
            and not _is_shim(existing, name)
        ):
            if not _calls_tacit(existing, name):
                problems.append(_kept_problem(program, name))
        elif not hook.exists() or hook.read_text(errors="replace") != text:
            files.replace(hook, text.encode(), mode=0o700)
    return problems


def _kept_problem(program: str, name: str) -> Problem:
    advice = f"To have tacit check commits too, add this line to it: {shlex.quote(program)} hook {name}"
    return Problem(f".git/hooks/{name}", "is yours and was kept.", advice, level="warning")


def _is_shim(text: str, name: str) -> bool:
    return text.startswith(f"{_SHEBANG}if [ -x ") and text.count("\n") == 2 and f" hook {name}; else " in text


def _calls_tacit(text: str, name: str) -> bool:
    return "tacit" in text and f"hook {name}" in text


def check_installed(git: Git) -> dict[str, bool]:
    status = {}
    for name in HOOK_NAMES:
        hook = git.common / "hooks" / name
        executable = hook.is_file() and bool(hook.stat().st_mode & stat.S_IXUSR)
        status[name] = executable and _calls_tacit(hook.read_text(errors="replace"), name)
    return status


# ---------------------------------------------------------------- what pre-commit checks


def check_staged(git: Git, warn: int, cap: int, block: int) -> list[Problem]:
    """Problems with what is about to be committed, according to the index."""
    limits = (warn, cap, block)
    entries = list(_list_staged(git))
    filtered = find_blocking_filters(git, {path for _, path in entries})
    return [
        problem
        for status, path in entries
        for problem in (
            _check_filtered(status, path) if path in filtered else _check_file(git, status, path, limits)
        )
    ]


def _check_filtered(status: str, path: str) -> list[Problem]:
    """With a filter, the index has other bytes than the file, for example encrypted ones."""
    if status in "AR" or not path.startswith(f"{CONVERSATIONS}/"):
        return []
    message = "is a sealed transcript with a git filter; whether it changes cannot be told here."
    return [Problem(path, message, level="warning")]


def _check_file(git: Git, status: str, path: str, limits: tuple[int, int, int]) -> list[Problem]:
    if status not in "DR" and (conflict := find_markers(path, _read_staged(git, path))):
        return [Problem(path, f"{conflict.why}.", "Resolve them in the file, then: git add it, and commit.")]
    if not path.endswith(".md"):
        return []
    if path.startswith(f"{CONVERSATIONS}/"):
        return _check_transcript(git, status, path)
    if status in "DR":  # the old name of a renamed file
        return []
    if path == "knowledge/memory/MEMORY.md":
        return check_memory_size(_read_staged(git, path), path, *limits)
    if path.startswith("topics/") and b"triggers:" not in _read_staged(git, path):
        advice = "Add `triggers:` to its frontmatter."
        return [Problem(path, "has no triggers, so nothing will ever activate it.", advice, level="warning")]
    return []


def _list_staged(git: Git) -> Iterable[tuple[str, str]]:
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


def _read_staged(git: Git, path: str) -> bytes:
    return git.run("cat-file", "blob", f":{path}")


def _check_transcript(git: Git, status: str, path: str) -> list[Problem]:
    if status == "D":
        message = "is a sealed transcript and would be deleted; `tacit verify` will name it as missing."
        return [Problem(path, message, level="warning")]
    if status != "A":
        advice = f"Take it back with: git restore --staged --worktree -- {shlex.quote(path)}"
        return [Problem(path, "is a sealed transcript, and those do not change.", advice)]
    if not _read_staged(git, path).startswith(b"---"):
        return [Problem(path, "does not begin with frontmatter (`---`).", "See docs/format.md.")]
    return []


def count_lines(data: bytes) -> int:
    """Lines of a file including frontmatter; a last line without a newline counts."""
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))


def check_memory_size(data: bytes, path: str, warn: int, cap: int, block: int) -> list[Problem]:
    lines = count_lines(data)
    if lines > block:
        advice = "Move what is settled to knowledge/ or archive/, then commit."
        return [
            Problem(path, f"has {lines} lines; more than {block} are not committed (cap: {cap}).", advice)
        ]
    if lines > cap:
        return [Problem(path, f"has {lines} lines, over its cap of {cap}. Prune it soon.", level="warning")]
    if lines > warn:
        return [Problem(path, f"has {lines} lines (cap: {cap}).", "Consider pruning.", level="warning")]
    return []


# ---------------------------------------------------------------- what post-commit records for search


def log_changed_paths(home: Home, git: Git) -> list[str]:
    """Log the paths that HEAD's commit changed (the search index reads and empties the log)."""
    arguments = ("diff-tree", "--root", "-m", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
    out = git.run(*arguments, "HEAD", "--", "knowledge", "topics", "raw/conversations", "archive")
    paths = sorted({os.fsdecode(path) for path in out.split(b"\0") if path})
    if paths and home.private.is_dir():  # linked work trees have no private folder
        line = json.dumps({"commit": git.head(), "paths": paths}) + "\n"
        fd = os.open(
            home.private / "changed.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            files.write_all(fd, line.encode())
        finally:
            os.close(fd)
    return paths


def find_program(argv0: str, executable: str) -> str:
    """The tacit that hooks call: the one next to this interpreter, never a shim that searches for one."""
    beside = Path(executable).with_name("tacit")
    return str(beside if beside.exists() else Path(argv0).resolve())
