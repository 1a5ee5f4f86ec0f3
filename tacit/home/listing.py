"""List the text files of a home with their stat results, without opening them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tacit.home.layout import CONTEXT_FILE, CONVERSATIONS

# Drafts are proposals, not knowledge; attachments are not text.
INDEXED = ("knowledge", "topics", "archive", CONVERSATIONS)
ENDINGS = (".md", ".markdown", ".txt")
TEXT_ENDINGS = (*ENDINGS, ".jsonl", ".yaml", ".yml")  # everything that people and tacit write as text


class Stamp(NamedTuple):
    """Metadata of a file on disk. Equal stamps mean that the file has not changed."""

    mtime_ns: int
    size: int
    inode: int


def make_stamp(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


def is_listed(path: str, endings: tuple[str, ...] = ENDINGS) -> bool:
    """Whether search includes a file, by its name. A context file of one session must not be found by
    another."""
    return path.endswith(endings) and path.rpartition("/")[2] != CONTEXT_FILE


def walk(
    root: str,
    folder: str,
    endings: tuple[str, ...] = (".md",),
    enters: Callable[[str], bool] = lambda folder: True,
) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files below a folder. Links are not followed, not even if the folder itself is one. Skips
    unreadable entries, and folders for which `enters` is false."""
    stack = [] if _is_linked(root, folder) else [folder]
    while stack:
        current = stack.pop()
        try:
            entries = list(os.scandir(f"{root}/{current}"))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    path = f"{current}/{entry.name}"
                    if entry.name.lower() != ".git" and enters(path):  # skip git's own files
                        stack.append(path)
                elif is_listed(entry.name, endings) and entry.is_file(follow_symlinks=False):
                    yield f"{current}/{entry.name}", entry.stat(follow_symlinks=False)
            except OSError:  # removed since it was listed
                continue


def walk_indexed(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """All searchable files."""
    for folder in INDEXED:
        yield from walk(root, folder, ENDINGS)


def stat_listed(root: str, paths: Collection[str]) -> dict[str, os.stat_result | None] | None:
    """The stat results of `paths` that `indexed` could list; None for a removed file. Returns None if a
    folder may have been added or removed: then everything must be listed again."""
    stats: dict[str, os.stat_result | None] = {}
    for path in paths:
        try:
            info = os.lstat(f"{root}/{path}")
        except (OSError, ValueError):
            if not path.endswith(ENDINGS):  # it may have been a folder
                return None
            stats[path] = None
            continue
        if stat.S_ISDIR(info.st_mode):
            return None
        if is_listed(path):
            stats[path] = info if stat.S_ISREG(info.st_mode) and _is_reached(root, path) else None
    return stats


def _is_reached(root: str, path: str) -> bool:
    """Whether `indexed` would list the path: in its folders, not through a link, and not in .git."""
    parts = path.split("/")[:-1]
    if not path.startswith(tuple(f"{folder}/" for folder in INDEXED)) or ".git" in map(str.lower, parts):
        return False
    return not _is_linked(root, "/".join(parts))


def _is_linked(root: str, folder: str) -> bool:
    """Whether the folder, or one of its parents below the root, is a link."""
    parts = folder.split("/")
    return any(os.path.islink("/".join((root, *parts[: index + 1]))) for index in range(len(parts)))


def list_projects(root: str) -> dict[str, str]:
    """The folders of projects, by the names that people use for them."""
    return name_folders(list_folders(root, "knowledge/projects"))


def name_folders(slugs: Collection[str]) -> dict[str, str]:
    return {name: slug for slug in sorted(slugs) for name in (slug, slug.replace("-", " "))}


def list_folders(root: str, folder: str) -> list[str]:
    """The names of a folder's direct subfolders."""
    if _is_linked(root, folder):
        return []
    try:
        entries = list(os.scandir(f"{root}/{folder}"))
    except OSError:
        return []
    return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
