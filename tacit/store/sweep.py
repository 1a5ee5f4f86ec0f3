"""Remove what killed processes left half-written: files that only ever had a temporary name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tacit.store.files import is_temporary
from tacit.store.git import Git
from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS, Home

_OLD = 600.0  # seconds; a writer at work is long done by then


def sweep(home: Home, git: Git) -> list[str]:
    """Returns what was removed."""
    gone = []
    for file in [*_ours(home), *_gits(git)]:
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _OLD:
                file.unlink()
                gone.append(str(file))
    return gone


def _ours(home: Home) -> Iterator[Path]:
    for folder in (home.root, home.private, home.sessions):
        yield from (file for file in folder.iterdir() if is_temporary(file.name)) if folder.is_dir() else ()
    for name in (CONVERSATIONS, *NOTE_FOLDERS):
        for here, _, names in os.walk(home.root / name):
            yield from (Path(here, name) for name in names if is_temporary(name))


def _gits(git: Git) -> Iterator[Path]:
    objects = git.common / "objects"
    yield from objects.glob("pack/tmp_*")
    yield from objects.glob("??/tmp_obj_*")
    yield from git.directory.glob("fast_import_crash_*")
