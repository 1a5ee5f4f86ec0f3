"""The workspaces that a home adopted: folders of agents whose files are read in place and never written.

What must stay true:
- a path `workspace/NAME/…` leads to a plain file below the folder of that name, by no link, or nowhere;
- a file belongs to one workspace: where one lies inside another, the outer one stops there, and the files of
  the home are the home's alone;
- of a workspace that is not there now (a disk that is not mounted), what was read before is still known, and
  whoever asks is told. It goes when the config no longer names it, or the index is built anew.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from tacit.config import Workspace
from tacit.config.workspaces import adopted
from tacit.errors import StoreError
from tacit.model.search import Stamp
from tacit.store import files
from tacit.store.home import Home
from tacit.store.listing import ENDINGS, walk
from tacit.text.workspaces import WORKSPACE, has, has_file, has_folder, is_of_one, path_in, split

LARGEST = 1024 * 1024  # bytes of a file: what is longer is a log or a dump, and no memory
_INODE = 0xFFFFFFFF


class Seen(NamedTuple):
    """One workspace, looked at."""

    workspace: Workspace
    files: int
    left_out: tuple[tuple[str, str], ...]  # paths, and why
    trouble: str  # why it is not read; empty where it is
    missing: bool  # it may come back: what was read before still counts


class Workspaces:
    def __init__(self, home: Home, workspaces: Sequence[Workspace] = ()) -> None:
        self._tree = files.Tree(home.root)
        self.all = adopted(workspaces)
        self._by_name = {one.name: one for one in self.all}

    def __bool__(self) -> bool:
        return bool(self.all)

    # ------------------------------------------------------------ one file

    def read(self, path: str, most: int = -1) -> bytes:
        """Of the home, or of a workspace. Raises what `files.Tree.read` does."""
        if not is_of_one(path):
            return self._tree.read(path, most)
        one, inside = self._place(path)
        inside = "/".join(files.parts_of(inside)) if inside else ""
        if one is None or self._refusal(one) or not self._is_own(one, inside):
            raise FileNotFoundError(path)
        return files.Tree(Path(one.path)).read(inside, LARGEST if most < 0 else min(most, LARGEST))

    def agents_of(self, path: str) -> tuple[str, ...]:
        """Whose a file is because of where it stands; none where it may say so itself."""
        one, _ = self._place(path)
        return (one.agent,) if one is not None and one.agent else ()

    def file_of(self, path: str) -> str:
        """Where it really is; empty where that is nowhere."""
        if not is_of_one(path):
            return str(self._tree.root / path)
        one, inside = self._place(path)
        return "" if one is None else f"{one.path}/{inside}"

    def path_of(self, file: str) -> str:
        """How paths name a file or a folder of a workspace; empty for what is in none, or is left out."""
        tops = {top: one for one in self.all for top in (one.path, os.path.realpath(one.path))}
        inner = max((top for top in tops if file == top or file.startswith(f"{top}/")), key=len, default="")
        if not inner or self._is_in_home(file):
            return ""
        inside = file[len(inner) + 1 :]
        return path_in(tops[inner].name, inside) if not inside or has(inside) else ""

    def _place(self, path: str) -> tuple[Workspace | None, str]:
        name, inside = split(path)
        return (self._by_name.get(name) if inside else None), inside

    # ------------------------------------------------------------ all files

    def stamps(self, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """Of every file that search looks through. `known`: what the index holds, for workspaces that are not
        there now."""
        found: dict[str, Stamp] = {}
        for one in self.all:
            if self._refusal(one):
                continue
            there = {path_in(one.name, inside): _stamp(one, info) for inside, info in self._files(one)}
            found |= there if there or not _absence(one) else _kept(one, known)
        return found

    def some(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """As `listing.some`, for paths of workspaces."""
        found: dict[str, Stamp | None] = {}
        for path in paths:
            one, inside = self._place(path)
            if one is None or self._refusal(one):
                return None
            try:
                info = os.lstat(f"{one.path}/{inside}")
            except (OSError, ValueError):
                if not path.endswith(ENDINGS) or _absence(one):
                    return None
                found[path] = None
                continue
            if stat.S_ISDIR(info.st_mode):
                return None
            if path.endswith(ENDINGS):
                found[path] = _stamp(one, info) if self._is_reached(one, inside, info) else None
        return found

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file that search looks through and that can be read now."""
        for path in self.stamps({}):
            with suppress(StoreError, OSError):
                yield path, self.read(path)

    def _is_reached(self, one: Workspace, inside: str, info: os.stat_result) -> bool:
        """Whether a look at all files would come to it."""
        return (
            stat.S_ISREG(info.st_mode)
            and not _unfit(info)
            and self._is_own(one, inside)
            and not any(os.path.islink(f"{one.path}/{folder}") for folder in _above(inside))
        )

    def _is_own(self, one: Workspace, inside: str) -> bool:
        """By its path alone."""
        return inside.endswith(ENDINGS) and has(inside) and self._others(one).isdisjoint(_above(inside))

    def _files(self, one: Workspace) -> Iterator[tuple[str, os.stat_result]]:
        return ((inside, info) for inside, info in self._candidates(one) if not _unfit(info))

    def _candidates(self, one: Workspace) -> Iterator[tuple[str, os.stat_result]]:
        above, name = os.path.split(one.path)
        others, skip = self._others(one), len(name) + 1

        def enters(folder: str) -> bool:
            return has_folder(folder[skip:]) and folder[skip:] not in others

        for path, info in walk(above, name, ENDINGS, enters):
            if has_file(path[skip:]):
                yield path[skip:], info

    def _others(self, one: Workspace) -> frozenset[str]:
        """Folders inside it that are not its own: the home, and other workspaces."""
        top = f"{os.path.realpath(one.path)}/"
        places = [str(self._tree.root), *(other.path for other in self.all if other is not one)]
        real = (os.path.realpath(place) for place in places)
        return frozenset(place[len(top) :] for place in real if place.startswith(top))

    # ------------------------------------------------------------ whether they are there

    def folders(self) -> list[str]:
        """Those to follow."""
        return [one.path for one in self.all if not self._refusal(one)]

    def missing(self) -> tuple[str, ...]:
        """What an answer should say of those that are not there."""
        return tuple(
            f"{one.name} {why} ({one.path}); what is found of it is as it was when last read"
            for one in self.all
            if not self._refusal(one) and (why := _absence(one))
        )

    def look(self) -> list[Seen]:
        return [self._seen(one) for one in self.all]

    def _seen(self, one: Workspace) -> Seen:
        if refusal := self._refusal(one):
            return Seen(one, 0, (), refusal, missing=False)
        if absence := _absence(one):
            return Seen(one, 0, (), absence, missing=True)
        found = [(inside, _unfit(info)) for inside, info in self._candidates(one)]
        left_out = tuple(sorted((inside, why) for inside, why in found if why))
        return Seen(one, len(found) - len(left_out), left_out, "", missing=False)

    def _refusal(self, one: Workspace) -> str:
        if one.path.strip("/") == "":
            return "is the whole disk"
        return "is inside the home, whose files are found already" if self._is_in_home(one.path) else ""

    def _is_in_home(self, place: str) -> bool:
        home, real = os.path.realpath(self._tree.root), os.path.realpath(place)
        return real == home or real.startswith(f"{home}/")


def _above(inside: str) -> list[str]:
    parts = inside.split("/")
    return ["/".join(parts[:at]) for at in range(1, len(parts))]


def _absence(one: Workspace) -> str:
    """Why it is not there; empty where it is. One without any file is taken for a place where a disk is
    mounted when it is there: no workspace of an agent is empty."""
    try:
        with os.scandir(one.path) as entries:
            return "" if next(entries, None) is not None else "is empty"
    except FileNotFoundError:
        return "is missing"
    except NotADirectoryError:
        return "is no folder"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _unfit(info: os.stat_result) -> str:
    if info.st_size > LARGEST:
        return f"it is larger than {LARGEST // 2**20} MB"
    return "the same file has another name elsewhere (a hard link)" if info.st_nlink != 1 else ""


def _stamp(one: Workspace, info: os.stat_result) -> Stamp:
    """Changes as well with whose the file is: what was read for another agent is read anew."""
    return Stamp(info.st_mtime_ns, info.st_size, _sign(one) | (info.st_ino & _INODE))


def _sign(one: Workspace) -> int:
    return crc32(f"{one.path}\0{one.agent}".encode()) >> 1 << 32


def _kept(one: Workspace, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """What the index holds of it, if it was read for whom it would be now."""
    start, sign = f"{WORKSPACE}/{one.name}/", _sign(one)
    return {
        path: stamp
        for path, stamp in known.items()
        if path.startswith(start) and stamp.inode >= 0 and stamp.inode & ~_INODE == sign
    }
