"""Is a git lock file somebody's, or left by a dead process?

git closes index.lock while an editor is open, so an open file descriptor proves life but its absence proves
nothing: any live git process of this repository counts as the owner.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tacit.store.git import common_directory

_AGE = 60.0  # without /proc to ask, or for a lock we cannot place, this many seconds mean dead


def git_runs_in(root: Path, command: bytes = b"") -> bool | None:
    """Whether a git process (of this command) works in this repository; None where the system cannot tell."""
    if not os.path.isdir("/proc/self/fd"):
        return None
    place = os.path.realpath(root)
    return any(_works_in(pid, place, command) for pid in _processes())


def _processes() -> Iterator[str]:
    return (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def _works_in(pid: str, root: str, command: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/comm", "rb") as name:
            if not name.read().startswith(b"git"):
                return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            called = file.read()
        if command and command not in called.split(b"\0"):
            return False
        here = os.path.realpath(f"/proc/{pid}/cwd")
        return (here + "/").startswith(root + "/") or os.fsencode(root) in called
    except OSError:
        return False  # it ended while we looked, or it is another user's


def age(lock: Path) -> float:
    try:
        return time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_dead(lock: Path, root: Path, *, ours: bool = False) -> bool:
    """`ours`: our own git was running when its process died, so age is no argument for waiting."""
    running = git_runs_in(root)
    if running is None:
        return age(lock) > _AGE
    return not running and (ours or age(lock) > _AGE)


def ref_locks(directory: Path) -> list[Path]:
    """Locks that stop a commit of ours. The user's index.lock is not among them: we never need it."""
    common = common_directory(directory)
    names = [directory / "HEAD.lock", common / "packed-refs.lock", common / "config.lock"]
    return [*(name for name in names if name.exists()), *sorted((common / "refs").rglob("*.lock"))]
