"""Remove half-written files that killed processes left: those that still have a temporary name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tacit.git.repository import Git
from tacit.home.files import is_temporary
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS, Home

_MIN_AGE_S = 600.0  # a live writer finishes long before that


def sweep(home: Home, git: Git) -> list[str]:
    """Remove the leftovers; returns the removed paths."""
    removed = []
    for file in [*_find_home_leftovers(home), *_find_git_leftovers(git)]:
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _MIN_AGE_S:
                file.unlink()
                removed.append(str(file))
    return removed


def _find_home_leftovers(home: Home) -> Iterator[Path]:
    for folder in (home.root, home.private, home.sessions):
        yield from (file for file in folder.iterdir() if is_temporary(file.name)) if folder.is_dir() else ()
    for name in (CONVERSATIONS, *NOTE_FOLDERS):
        for directory, _, names in os.walk(home.root / name):
            yield from (Path(directory, name) for name in names if is_temporary(name))


def _find_git_leftovers(git: Git) -> Iterator[Path]:
    objects = git.common / "objects"
    yield from objects.glob("pack/tmp_*")
    yield from objects.glob("??/tmp_obj_*")
    yield from git.directory.glob("fast_import_crash_*")
