"""Tell whether a git lock file is in use, or was left by a dead process.

git closes index.lock while an editor is open, so an open file descriptor shows that it is in use, but its
absence shows nothing: any live git process of this repository counts as the owner.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from tacit.git.repository import common_directory

_MAX_LOCK_AGE_S = 60.0  # without /proc, or if the owner is unknown, an older lock counts as dead


def is_git_running(root: Path, command: bytes = b"") -> bool | None:
    """Whether a git process (with this command) runs in this repository; None if the system cannot tell."""
    if not os.path.isdir("/proc/self/fd"):
        return None
    real_root = os.path.realpath(root)
    return any(_works_in(pid, real_root, command) for pid in _list_process_ids())


def _list_process_ids() -> Iterator[str]:
    return (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def _works_in(pid: str, root: str, command: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/comm", "rb") as name:
            if not name.read().startswith(b"git"):
                return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read()
        if command and command not in arguments.split(b"\0"):
            return False
        folder = os.path.realpath(f"/proc/{pid}/cwd")
        return (folder + "/").startswith(root + "/") or os.fsencode(root) in arguments
    except OSError:
        return False  # it ended in the meantime, or belongs to another user


def lock_age(lock: Path) -> float:
    try:
        return time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_dead(lock: Path, root: Path, *, ours: bool = False) -> bool:
    """`ours`: our own git left the lock when it died, so its age does not matter."""
    running = is_git_running(root)
    if running is None:
        return lock_age(lock) > _MAX_LOCK_AGE_S
    return not running and (ours or lock_age(lock) > _MAX_LOCK_AGE_S)


def list_ref_locks(directory: Path) -> list[Path]:
    """Locks that block our commits. The user's index.lock does not: we never need it."""
    common = common_directory(directory)
    names = [directory / "HEAD.lock", common / "packed-refs.lock", common / "config.lock"]
    return [*(name for name in names if name.exists()), *sorted((common / "refs").rglob("*.lock"))]
