"""Resolve a file of the home: from a path in the home, an absolute path, or one from the current folder."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import UnsafePath, UsageError
from tacit.home import files


def path_in_home(root: Path, given: str) -> str:
    """The path relative to the home. `a/../b` is normalized as text: the history has no folders to walk."""
    if not given:
        raise UsageError("The path is empty. Name a file of the home.")
    path = given if "\0" in given else _relative(root, given)
    try:
        return "/".join(files.split_safe_path(path))
    except UnsafePath as error:
        raise UsageError(str(error)) from error


def _relative(root: Path, path: str) -> str:
    if os.path.isabs(path):
        return _path_below(root, path) or path
    from_here = _path_below(root, os.path.join(_current_folder(), path))
    if from_here and not os.path.lexists(root / path) and os.path.lexists(root / from_here):
        return from_here
    return os.path.normpath(path)


def _path_below(root: Path, path: str) -> str | None:
    """The part of an absolute path below the home, also when a link leads to the home."""
    plain = os.path.normpath(path)
    real = os.path.join(os.path.realpath(os.path.dirname(plain)), os.path.basename(plain))
    for top, inside in ((str(root), plain), (os.path.realpath(root), real)):
        if inside.startswith(f"{top}/"):
            return inside[len(top) + 1 :]
    return None


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the current folder was deleted
        return "/"
