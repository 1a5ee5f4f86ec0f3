"""The files of a work tree without what is to be forgotten."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from tacit.errors import UnsafePath
from tacit.store import files
from tacit.store.forgetting.what import Forgetting, folders_of, numbered
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
        self.similar: list[str] = []  # files that say it in another way, and keep it

    def learn(self) -> None:
        paths, copies = [], set()
        for path, data, is_link in self._contents():
            paths.append(path)
            if not is_link and self._what.may_change(path):
                copies.add(self._copy_of(path, data))
                if self._what.holds(data):
                    self._what.learn(path, data)
        for folder, names in folders_of(path for path in paths if path not in copies).items():
            self._what.learn_names(folder, names)

    def _copy_of(self, path: str, data: bytes) -> str | None:
        """A kill may have come after a file got its new name, and before it lost the old one."""
        place = self._what.path(path)
        if place == path:
            return None
        new = self._what.file(path, data)
        there = takewhile(lambda name: (self.root / name).is_file(), numbered(place))
        return next((name for name in there if (self.root / name).read_bytes() == new), None)

    def look(self) -> list[Place]:
        """Also fills `similar`."""
        self.similar = []
        found: list[Place] = []
        for path, data, is_link in self._contents():
            found += self._places(path, data)
            new = self._what.file(path, data)
            if not is_link and new is not None and self._what.is_like(self._what.path(path), new):
                self.similar.append(path)
        return found

    def _places(self, path: str, data: bytes) -> Iterator[Place]:
        if not self._what.may_change(path):
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
            self._tree.put(place, new, mode)
            self._tree.remove(path, files.digest(data))
            self._tidy(path)
        # When it was written is part of what it says: newer notes come first.
        os.utime(self.root / place, ns=(info.st_atime_ns, info.st_mtime_ns))

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
    found = [
        Place(path, data.count(b"\n", 0, start) + 1, _excerpt(data, start, end), "changed")
        for start, end in what.spans(data)
    ]
    yield from found or [Place(path, 0, "", "changed")]  # it names a file that is called otherwise then


def _excerpt(data: bytes, start: int, end: int) -> str:
    before = notes.decode(data[max(0, start - 4 * _AROUND) : start]).rpartition("\n")[2]
    after = notes.decode(data[end : end + 4 * _AROUND]).partition("\n")[0]
    text = " ".join(notes.decode(data[start:end]).split())
    return (before[-_AROUND:] + text + after[:_AROUND]).strip()
