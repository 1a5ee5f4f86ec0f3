"""Erase what is to be forgotten from the files of a work tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from tacit.erase.target import RESERVED_FOLDERS, Erasure, group_by_folder, iterate_numbered
from tacit.errors import UnsafePath
from tacit.home import files
from tacit.markdown import notes

_EXCERPT_CHARS = 30  # shown before and after the match


@dataclass(frozen=True, slots=True)
class ErasurePlace:
    """One file that changes, or one line of it."""

    path: str
    line: int  # 0: the whole file
    excerpt: str
    becomes: str  # changed, removed, or its new path


class WorkTree:
    def __init__(self, root: Path, what: Erasure) -> None:
        self.root, self._erasure = root, what
        self._tree = files.Tree(root)
        self.unreadable: list[str] = []
        self.foreign: list[str] = []  # other repositories inside ours
        self.similar: list[str] = []  # files with the same content in another form, which stays

    def learn(self) -> None:
        paths, copies = [], set()
        for path, data, is_link in self._read_contents():
            paths.append(path)
            if not is_link and self._erasure.may_change(path):
                copies.add(self._find_copy(path, data))
                if self._erasure.holds(data):
                    self._erasure.learn(path, data)
        for folder, names in group_by_folder(path for path in paths if path not in copies).items():
            self._erasure.learn_names(folder, names)

    def _find_copy(self, path: str, data: bytes) -> str | None:
        """The new file, if a kill came after it was written and before the old one was removed."""
        new_path = self._erasure.path(path)
        if new_path == path:
            return None
        existing = list(takewhile(lambda name: (self.root / name).is_file(), iterate_numbered(new_path)))
        if not existing:
            return None
        new = self._erasure.file(path, data)
        return next((name for name in existing if (self.root / name).read_bytes() == new), None)

    def look(self) -> list[ErasurePlace]:
        """Also fills `similar`."""
        self.similar = []
        places: list[ErasurePlace] = []
        for path, data, is_link in self._read_contents():
            places += self._find_places(path, data)
            new = self._erasure.file(path, data)
            if not is_link and new is not None and self._erasure.is_like(self._erasure.path(path), new):
                self.similar.append(path)
        return places

    def _find_places(self, path: str, data: bytes) -> Iterator[ErasurePlace]:
        if not self._erasure.may_change(path):
            return
        new, new_path = self._erasure.file(path, data), self._erasure.path(path)
        if new is None:
            yield ErasurePlace(path, 0, "", "removed")
        elif new_path != path:
            yield ErasurePlace(path, 0, "", new_path)
        if new is not None and new != data:
            yield from _find_lines(path, data, self._erasure)

    def change(self) -> None:
        for path, data, is_link in list(self._read_contents(only_affected=True)):
            new, new_path = self._erasure.file(path, data), self._erasure.path(path)
            if is_link:
                self._replace_link(path, new_path, new)
            elif new is None:
                self._tree.remove(path, files.digest(data))
                self._remove_empty_folders(path)
            else:
                self._replace(path, new_path, data, new)

    def _read_contents(self, only_affected: bool = False) -> Iterator[tuple[str, bytes, bool]]:
        self.unreadable, self.foreign = [], []
        for path in self._walk_paths(""):
            try:
                is_link = os.path.islink(self.root / path)
                data = os.fsencode(os.readlink(self.root / path)) if is_link else self._tree.read(path)
            except FileNotFoundError:
                continue
            except (OSError, UnsafePath) as error:
                self.unreadable.append(f"{path} ({getattr(error, 'why', None) or error})")
                continue
            if not only_affected or next(self._find_places(path, data), None):
                yield path, data, is_link

    def _walk_paths(self, folder: str) -> Iterator[str]:
        entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        if folder and any(entry.name == ".git" for entry in entries):
            self.foreign.append(folder)
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in (".git", ".tacit"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk_paths(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield path

    def _replace(self, path: str, new_path: str, data: bytes, new: bytes) -> None:
        info = os.lstat(self.root / path)
        mode = stat.S_IMODE(info.st_mode)
        if new_path == path:
            self._tree.write(path, new, files.digest(data), mode)
        else:
            self._tree.put(new_path, new, mode)
            self._tree.remove(path, files.digest(data))
            self._remove_empty_folders(path)
        # Keep the time of the file: newer notes come first.
        os.utime(self.root / new_path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _replace_link(self, path: str, new_path: str, target: bytes | None) -> None:
        (self.root / path).unlink()
        if target is not None:
            (self.root / new_path).symlink_to(os.fsdecode(target))

    def _remove_empty_folders(self, path: str) -> None:
        """Remove parent folders that are empty now."""
        for folder in PurePosixPath(path).parents:
            if str(folder) in RESERVED_FOLDERS:
                return
            with suppress(OSError):
                os.rmdir(self.root / folder)


def _find_lines(path: str, data: bytes, erasure: Erasure) -> Iterator[ErasurePlace]:
    places = [
        ErasurePlace(path, data.count(b"\n", 0, start) + 1, _excerpt(data, start, end), "changed")
        for start, end in erasure.spans(data)
    ]
    yield from places or [ErasurePlace(path, 0, "", "changed")]  # it mentions a renamed file


def _excerpt(data: bytes, start: int, end: int) -> str:
    before = notes.decode(data[max(0, start - 4 * _EXCERPT_CHARS) : start]).rpartition("\n")[2]
    after = notes.decode(data[end : end + 4 * _EXCERPT_CHARS]).partition("\n")[0]
    text = " ".join(notes.decode(data[start:end]).split())
    return (before[-_EXCERPT_CHARS:] + text + after[:_EXCERPT_CHARS]).strip()
