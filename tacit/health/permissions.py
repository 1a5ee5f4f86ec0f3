"""Make a home accessible to its owner only, by removing permissions of group and others.

The permissions of the home's folder keep others out. Files of git and tacit are closed too; notes are not
checked one by one as long as that folder is closed, because editors create them with the user's umask.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tacit.git.repository import Git
from tacit.home.layout import Home

_OTHERS_MASK = 0o077
_PRIVATE_FOLDERS = (".git", ".tacit")


def close_to_others(home: Home, *, notes: bool = False) -> list[str]:
    """Remove the permissions of others; returns the changed paths. `notes`: also of each file of a home that
    was open. Files of another user stay as they are."""
    closed = []
    for path in list_open_paths(home, notes=notes):
        with suppress(OSError):
            os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & ~_OTHERS_MASK)
            closed.append(path)
    return closed


def list_open_paths(home: Home, *, notes: bool = False) -> list[str]:
    """Files and folders of the home, including itself, that others may read, write or enter."""
    root = os.path.realpath(home.root)  # the home may be named by a link; the folder's permissions count
    tops = [f"{root}/{name}" for name in _PRIVATE_FOLDERS]
    if not _is_open(root):
        tops = [top for top in tops if _is_open(top)]
    elif notes:
        tops = [root]
    if (external := _find_external_repository(root)) and _is_open(external):
        tops.append(external)
    paths = [root] if _is_open(root) else []
    return paths + [path for top in tops for path in _walk_all(top) if path != root and _is_open(path)]


def _find_external_repository(root: str) -> str:
    """The target of .git, if it is a link or was made with --separate-git-dir: the home's folder does not
    protect it. The repository of a linked work tree belongs to another folder."""
    try:
        directory = os.path.realpath(Git(Path(root)).directory)
    except (OSError, ValueError):  # unreadable; other checks report it
        return ""
    is_ours = os.path.isdir(directory) and not os.path.exists(f"{directory}/commondir")
    return directory if is_ours and not directory.startswith(f"{root}/") else ""


def _walk_all(top: str) -> Iterator[str]:
    yield top
    for folder, folders, names in os.walk(top):
        yield from (f"{folder}/{name}" for name in (*folders, *names))


def _is_open(path: str) -> bool:
    """Ignores links and hard-linked files, which also belong to another folder: git hard-links objects when
    it clones on the same disk."""
    try:
        info = os.lstat(path)
    except OSError:  # missing, or removed in the meantime
        return False
    is_own = stat.S_ISREG(info.st_mode) and info.st_nlink == 1
    return (stat.S_ISDIR(info.st_mode) or is_own) and bool(info.st_mode & _OTHERS_MASK)
