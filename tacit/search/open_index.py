"""Opens the index of a home and quarantines a broken one.

An index is never repaired: it is rebuilt from the files in seconds. The broken file is kept under another
name, until the next one breaks, so that it can be examined.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.search.index import IndexBroken, IndexUnavailable
from tacit.search.sqlite.index import SqliteIndex

_SUFFIXES = ("", "-wal", "-shm")
_LOCK_TIMEOUT_S = 5.0  # seconds


def open_index(file: Path) -> SqliteIndex:
    """Open the index, or make an empty one. Raises IndexBroken or IndexUnavailable."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with _lock(file.parent, fcntl.LOCK_SH):
            if os.path.lexists(file):
                return _open(file)
        with _lock(file.parent, fcntl.LOCK_EX):
            if not os.path.lexists(file):
                _create(file)
            return _open(file)
    except OSError as error:
        raise IndexUnavailable(f"the index cannot be used now ({error.strerror})") from error


def _open(file: Path) -> SqliteIndex:
    if file.is_symlink() or not file.is_file():
        raise IndexBroken("something that is not a plain file is in the place of the index")
    return SqliteIndex(file)


def _create(file: Path) -> None:
    for ending in _SUFFIXES[1:]:  # left over from a deleted index
        Path(f"{file}{ending}").unlink(missing_ok=True)
    # The index is as private as the files.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def _lock(folder: Path, mode: int) -> Iterator[None]:
    """Lock out others while the index is made or moved: it consists of three files, and a process must not
    open old and new ones together."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while not _try_lock(fd, mode):
            if time.monotonic() > deadline:
                raise IndexUnavailable("another process has been opening the index for too long")
            time.sleep(0.002)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_memory_index() -> SqliteIndex:
    return SqliteIndex(Path(":memory:"))


def quarantine_index(file: Path) -> Path:
    """Move the index out of the way, to `.aside`. Processes that have it open keep using it."""
    quarantined = file.with_name(f"{file.name}.aside")
    try:
        with _lock(file.parent, fcntl.LOCK_EX):
            for ending in _SUFFIXES:
                Path(f"{quarantined}{ending}").unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    os.replace(f"{file}{ending}", f"{quarantined}{ending}")
    except OSError as error:
        raise IndexUnavailable(f"the broken index cannot be moved away ({error.strerror})") from error
    return quarantined
