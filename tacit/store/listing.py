"""The files of a home that hold text, with what the disk knows of each. Nothing is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator

from tacit.store.home import CONVERSATIONS, MIRROR

# Drafts are proposals, not knowledge; attachments are not text.
INDEXED = ("knowledge", "topics", "archive", CONVERSATIONS)
ENDINGS = (".md", ".markdown", ".txt")


def is_listed(path: str, endings: tuple[str, ...] = ENDINGS) -> bool:
    """By its name. What one session was given is nothing that another may find."""
    return path.endswith(endings) and path.rpartition("/")[2] != MIRROR


def walk(
    root: str,
    folder: str,
    endings: tuple[str, ...] = (".md",),
    enters: Callable[[str], bool] = lambda folder: True,
) -> Iterator[tuple[str, os.stat_result]]:
    """Plain files below a folder. Links are not followed, and what cannot be looked at is passed over, as is
    what stands in a folder that it does not enter."""
    stack = [folder]
    while stack:
        here = stack.pop()
        try:
            entries = list(os.scandir(f"{root}/{here}"))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    below = f"{here}/{entry.name}"
                    if entry.name.lower() != ".git" and enters(below):  # what git keeps is no text of ours
                        stack.append(below)
                elif is_listed(entry.name, endings) and entry.is_file(follow_symlinks=False):
                    yield f"{here}/{entry.name}", entry.stat(follow_symlinks=False)
            except OSError:  # gone since it was listed
                continue


def indexed(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """What search looks through."""
    for folder in INDEXED:
        yield from walk(root, folder, ENDINGS)


def some(root: str, paths: Collection[str]) -> dict[str, os.stat_result | None] | None:
    """Those of `paths` that `indexed` may hold, None for one that is gone. None for all of it where a folder
    came or went: then only a look at everything can tell."""
    found: dict[str, os.stat_result | None] = {}
    for path in paths:
        try:
            info = os.lstat(f"{root}/{path}")
        except (OSError, ValueError):
            if not path.endswith(ENDINGS):  # it may have been a folder
                return None
            found[path] = None
            continue
        if stat.S_ISDIR(info.st_mode):
            return None
        if is_listed(path):
            found[path] = info if stat.S_ISREG(info.st_mode) and _is_reached(root, path) else None
    return found


def _is_reached(root: str, path: str) -> bool:
    """Whether `indexed` would come to it: below its folders, by no link, and not in what git keeps."""
    parts = path.split("/")[:-1]
    if not path.startswith(tuple(f"{folder}/" for folder in INDEXED)) or ".git" in map(str.lower, parts):
        return False
    return not any(os.path.islink("/".join((root, *parts[: at + 1]))) for at in range(len(parts)))


def folders(root: str, folder: str) -> list[str]:
    """The names of the folders right below one."""
    try:
        entries = list(os.scandir(f"{root}/{folder}"))
    except OSError:
        return []
    return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
