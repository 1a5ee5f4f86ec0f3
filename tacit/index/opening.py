"""Opening the index of a home; setting aside one that cannot be trusted.

An index is never repaired: it is made from the files in seconds. The old file is kept under another name
until the next time, for whoever wants to know what happened to it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tacit.index.protocol import IndexUnavailable
from tacit.index.sqlite import SqliteIndex

_BESIDE = ("", "-wal", "-shm")


def open_index(file: Path) -> SqliteIndex:
    """An empty one is made if there is none. Raises IndexBroken or IndexUnavailable."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if not file.exists():  # what it holds is as private as the files themselves
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with suppress(FileNotFoundError):  # of a file that somebody deleted: not ours
                for ending in _BESIDE[1:]:
                    Path(f"{file}{ending}").unlink()
    except OSError as error:
        raise IndexUnavailable(f"the index cannot be used now ({error.strerror})") from error
    return SqliteIndex(file)


def memory_index() -> SqliteIndex:
    return SqliteIndex(Path(":memory:"))


def set_aside(file: Path) -> Path:
    """Out of the way, under a name that says so. Others that have it open keep what they have."""
    aside = file.with_name(f"{file.name}.aside")
    try:
        for ending in _BESIDE:
            Path(f"{aside}{ending}").unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                os.replace(f"{file}{ending}", f"{aside}{ending}")
    except OSError as error:
        raise IndexUnavailable(f"the broken index cannot be moved away ({error.strerror})") from error
    return aside
