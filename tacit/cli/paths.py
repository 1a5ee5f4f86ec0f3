"""Which file of the home somebody means: as it is in the home, as it is on this machine, or from here."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import UnsafePath, UsageError
from tacit.store import files


def within(root: Path, given: str) -> str:
    """The path relative to the home. `a/../b` is taken by its names: the history has no folders to walk."""
    if not given:
        raise UsageError("The path is empty. Name a file of the home.")
    path = given if "\0" in given else _relative(root, given)
    try:
        return "/".join(files.parts_of(path))
    except UnsafePath as error:
        raise UsageError(str(error)) from error


def _relative(root: Path, given: str) -> str:
    if os.path.isabs(given):
        return _below(root, given) or given
    from_here = _below(root, os.path.join(_here(), given))
    if from_here and not os.path.lexists(root / given) and os.path.lexists(root / from_here):
        return from_here
    return os.path.normpath(given)


def _below(root: Path, path: str) -> str | None:
    """What is left of an absolute path inside the home, also where a link led to the home."""
    plain = os.path.normpath(path)
    real = os.path.join(os.path.realpath(os.path.dirname(plain)), os.path.basename(plain))
    for top, inside in ((str(root), plain), (os.path.realpath(root), real)):
        if inside.startswith(f"{top}/"):
            return inside[len(top) + 1 :]
    return None


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the current folder was deleted
        return "/"
