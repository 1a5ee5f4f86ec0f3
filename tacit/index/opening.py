"""Opening the index of a home; setting aside one that cannot be trusted.

An index is never repaired: it is made from the files in seconds. The old file is kept under another name
until the next time, for whoever wants to know what happened to it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.index.protocol import IndexBroken, IndexUnavailable
from tacit.index.sqlite import SqliteIndex

_BESIDE = ("", "-wal", "-shm")
_PATIENCE = 5.0  # seconds


def open_index(file: Path) -> SqliteIndex:
    """An empty one is made if there is none. Raises IndexBroken or IndexUnavailable."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with _held(file.parent, fcntl.LOCK_SH):
            if os.path.lexists(file):
                return _opened(file)
        with _held(file.parent, fcntl.LOCK_EX):
            if not os.path.lexists(file):
                _make(file)
            return _opened(file)
    except OSError as error:
        raise IndexUnavailable(f"the index cannot be used now ({error.strerror})") from error


def _opened(file: Path) -> SqliteIndex:
    if file.is_symlink() or not file.is_file():
        raise IndexBroken("something that is not a plain file is in the place of the index")
    return SqliteIndex(file)


def _make(file: Path) -> None:
    for ending in _BESIDE[1:]:  # of a file that somebody deleted: not ours
        Path(f"{file}{ending}").unlink(missing_ok=True)
    # What it holds is as private as the files themselves.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    """Who makes or moves an index does so alone, while nobody opens it: it is three files, and a process must
    not get one of them from before and another from after."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _flocked(fd, how):
            if time.monotonic() > deadline:
                raise IndexUnavailable("another process has been opening the index for too long")
            time.sleep(0.002)
        yield
    finally:
        os.close(fd)


def _flocked(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def memory_index() -> SqliteIndex:
    return SqliteIndex(Path(":memory:"))


def set_aside(file: Path) -> Path:
    """Out of the way, under a name that says so. Others that have it open keep what they have."""
    aside = file.with_name(f"{file.name}.aside")
    try:
        with _held(file.parent, fcntl.LOCK_EX):
            for ending in _BESIDE:
                Path(f"{aside}{ending}").unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    os.replace(f"{file}{ending}", f"{aside}{ending}")
    except OSError as error:
        raise IndexUnavailable(f"the broken index cannot be moved away ({error.strerror})") from error
    return aside
