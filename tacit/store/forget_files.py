"""The files of a work tree without what is to be forgotten."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tacit.errors import UnsafePath
from tacit.store import files
from tacit.store.forget_what import Forgetting, Passage
from tacit.store.setup import FOLDERS
from tacit.text import notes

_KEPT = {
    str(place) for folder in FOLDERS for place in (PurePosixPath(folder), *PurePosixPath(folder).parents)
}
_AROUND = 30  # characters that are shown before and behind


@dataclass(frozen=True, slots=True)
class Place:
    """One file that changes, or one line of it."""

    path: str
    line: int  # 0: the file as a whole
    excerpt: str
    becomes: str  # changed, removed, or where it is then


class WorkTree:
    def __init__(self, root: Path, what: Forgetting) -> None:
        self.root, self._what = root, what
        self._tree = files.Tree(root)
        self.unreadable: list[str] = []
        self.foreign: list[str] = []  # repositories of somebody else inside ours

    def learn(self) -> None:
        for path, data, is_link in self._contents():
            if not is_link and self._what.is_limited_to(path) and self._what.holds(data):
                self._what.learn(path, data)

    def look(self) -> list[Place]:
        return [place for path, data, _ in self._contents() for place in self._places(path, data)]

    def similar(self) -> list[str]:
        """Files that say it with other capitals, or are named after it: they stay."""
        if not isinstance(self._what, Passage):
            return []
        words = self._what.words
        return [
            path
            for path, data, _ in self._contents()
            if words.are_like(path, data) and not words.are_in(data) and self._what.path(path) == path
        ]

    def _places(self, path: str, data: bytes) -> Iterator[Place]:
        if not self._what.is_limited_to(path):
            return
        new, place = self._what.file(path, data), self._what.path(path)
        if new is None:
            yield Place(path, 0, "", "removed")
        elif place != path:
            yield Place(path, 0, "", place)
        if new is not None and new != data:
            yield from _lines(path, data, self._what)

    def change(self) -> None:
        for path, data, is_link in list(self._contents(only_affected=True)):
            new, place = self._what.file(path, data), self._what.path(path)
            if is_link:
                self._relink(path, place, new)
            elif new is None:
                self._tree.remove(path, files.digest(data))
                self._tidy(path)
            else:
                self._replace(path, place, data, new)

    def _contents(self, only_affected: bool = False) -> Iterator[tuple[str, bytes, bool]]:
        self.unreadable, self.foreign = [], []
        for path in self._paths(""):
            try:
                is_link = os.path.islink(self.root / path)
                data = os.fsencode(os.readlink(self.root / path)) if is_link else self._tree.read(path)
            except FileNotFoundError:
                continue
            except (OSError, UnsafePath) as error:
                self.unreadable.append(f"{path} ({getattr(error, 'why', None) or error})")
                continue
            if not only_affected or next(self._places(path, data), None):
                yield path, data, is_link

    def _paths(self, folder: str) -> Iterator[str]:
        entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        if folder and any(entry.name == ".git" for entry in entries):
            self.foreign.append(folder)
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in (".git", ".tacit"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._paths(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield path

    def _replace(self, path: str, place: str, data: bytes, new: bytes) -> None:
        info = os.lstat(self.root / path)
        mode = stat.S_IMODE(info.st_mode)
        if place == path:
            self._tree.write(path, new, files.digest(data), mode)
        else:
            place = self._free(place, new)
            self._tree.put(place, new, mode)
            self._tree.remove(path, files.digest(data))
            self._tidy(path)
        # When it was written is part of what it says: newer notes come first.
        os.utime(self.root / place, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _free(self, place: str, data: bytes) -> str:
        free, number = place, 1
        while os.path.lexists(self.root / free) and self._tree.read(free) != data:
            number += 1
            free = f"{place}-{number}"
        return free

    def _relink(self, path: str, place: str, target: bytes | None) -> None:
        (self.root / path).unlink()
        if target is not None:
            (self.root / place).symlink_to(os.fsdecode(target))

    def _tidy(self, path: str) -> None:
        """Folders that nobody needs any more."""
        for folder in PurePosixPath(path).parents:
            if str(folder) in _KEPT:
                return
            with suppress(OSError):
                os.rmdir(self.root / folder)


def _lines(path: str, data: bytes, what: Forgetting) -> Iterator[Place]:
    if not isinstance(what, Passage):
        yield Place(path, 0, "", "changed")
        return
    shown = False
    for start, end in what.words.spans(data):
        shown = True
        line = data.count(b"\n", 0, start) + 1
        yield Place(path, line, _excerpt(data, start, end), "changed")
    if not shown:  # it names a file that is called otherwise then
        yield Place(path, 0, "", "changed")


def _excerpt(data: bytes, start: int, end: int) -> str:
    before = notes.decode(data[max(0, start - 4 * _AROUND) : start]).rpartition("\n")[2]
    after = notes.decode(data[end : end + 4 * _AROUND]).partition("\n")[0]
    text = " ".join(notes.decode(data[start:end]).split())
    return before[-_AROUND:] + text + after[:_AROUND]
