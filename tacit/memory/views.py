"""What a turn is compiled from: the home as it is, or as it was at a commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tacit.index.protocol import Place, Stored
from tacit.model.search import Found, Scope, Stamp
from tacit.store import files
from tacit.store.git import Git
from tacit.store.home import Home
from tacit.store.listing import ENDINGS, INDEXED, folders, is_listed, walk
from tacit.store.purged import Purged
from tacit.store.workspaces import Workspaces
from tacit.watch.shelf import Shelf

if TYPE_CHECKING:
    from tacit.search.parts import Parts
    from tacit.search.searcher import Searcher
    from tacit.search.snapshot import Snapshot

_LARGEST = 2 * 1024 * 1024  # bytes of a file that is loaded whole: more than any budget holds
_CATCH_UP = 2.0  # seconds for files that changed, where nobody follows them
_SHARE = 0.4  # of the time that is left: the question itself needs some as well


class View(Protocol):
    @property
    def past(self) -> str:
        """The commit, where it is the past."""

    def read(self, path: str) -> bytes:
        """The beginning of a file. Raises what `files.Tree.read` does."""

    def agents_of(self, path: str) -> tuple[str, ...]:
        """Whose a file is because of where it stands."""

    def path_of(self, file: str) -> str:
        """How paths name a file that a host names by where it is; empty for one that is not ours."""

    def shelf(self) -> Shelf: ...

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found: ...

    def around(self, places: Collection[Place], before: int, after: int) -> dict[Place, list[Stored]]:
        """Hits, as path and first line, among the records before and after them."""

    def names(self, scope: Scope, deadline: float | None) -> tuple[str, ...]:
        """People and projects that have a file."""

    def generation(self) -> object:
        """Differs whenever something that can be found has changed; None where nobody knows."""

    def projects(self) -> Mapping[str, str]:
        """The folders of projects, by how people call them."""


class Present:
    """The home as it is on disk."""

    past = ""

    def __init__(self, home: Home, searcher: Callable[[], Searcher], workspaces: Workspaces) -> None:
        self._root = str(home.root)
        self._workspaces = workspaces
        self._searcher = searcher
        self._shelf = Shelf()
        self._followed: int | None = None  # the inode of the index that somebody keeps up to date
        self._is_current = False  # nothing changed since this turn began

    @property
    def followed(self) -> bool:
        """Somebody notices changes, so that a turn need not look. An index that was deleted or made anew
        since is followed only when that somebody says so again."""
        return self._followed is not None and self._followed == self._searcher().inode()

    @followed.setter
    def followed(self, is_followed: bool) -> None:
        self._followed = self._searcher().inode() if is_followed else None

    def read(self, path: str) -> bytes:
        return self._workspaces.read(path, _LARGEST)

    def agents_of(self, path: str) -> tuple[str, ...]:
        return self._workspaces.agents_of(path)

    def path_of(self, file: str) -> str:
        return self._workspaces.path_of(file)

    def shelf(self) -> Shelf:
        if not self.followed or not self._shelf.generation:
            self.refresh()
        return self._shelf

    def refresh(self) -> None:
        """Look which topics changed."""
        listed = {
            path: Stamp(info.st_mtime_ns, info.st_size, info.st_ino)
            for path, info in walk(self._root, "topics", ENDINGS)
        }
        self._shelf.refresh(listed, self.read)

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found:
        wait = 0.0 if self._is_current or self.followed else _patience(deadline)
        self._is_current = False
        searcher = self._searcher()
        return searcher.find(text, scope, limit, now=now, deadline=deadline, catch_up=wait, snippets=False)

    def around(self, places: Collection[Place], before: int, after: int) -> dict[Place, list[Stored]]:
        return self._searcher().around(places, before, after)

    def names(self, scope: Scope, deadline: float | None) -> tuple[str, ...]:
        """The first question of a turn, so files that changed are looked at here."""
        searcher = self._searcher()
        self._is_current = not self.followed and searcher.catch_up(_patience(deadline))
        return searcher.names(scope)

    def generation(self) -> object:
        found = self._searcher().generation()
        return None if found is None else (found, self.shelf().generation)

    def projects(self) -> Mapping[str, str]:
        return _called(folders(self._root, "knowledge/projects"))


class Past:
    """The home as a commit has it. Nothing on disk is touched."""

    def __init__(self, git: Git, commit: str, at: datetime, parts: Parts, purged: Purged) -> None:
        self.past = commit
        self._purged = purged
        tree = git.tree(commit, *INDEXED)
        wanted = {path: blob.name for path, blob in tree.items() if is_listed(path)}
        data = git.blobs(dict.fromkeys(wanted.values()))
        self._files = {path: data[name] for path, name in wanted.items() if name in data}
        self._at, self._parts = at, parts
        self._shelf = Shelf()

    def read(self, path: str) -> bytes:
        name = "/".join(files.parts_of(path))
        if name not in self._files:
            raise FileNotFoundError(path)
        return self._files[name][:_LARGEST]

    def agents_of(self, _path: str) -> tuple[str, ...]:
        return ()  # a commit holds no workspace

    def path_of(self, _file: str) -> str:
        return ""

    def shelf(self) -> Shelf:
        then = Stamp(0, 0, 0)
        self._shelf.refresh({path: then for path in self._files if path.startswith("topics/")}, self.read)
        return self._shelf

    def find(self, text: str, scope: Scope, limit: int, now: datetime, _deadline: float | None) -> Found:
        return self._snapshot.find(text, scope, limit, now=now)

    def around(self, places: Collection[Place], before: int, after: int) -> dict[Place, list[Stored]]:
        return self._snapshot.around(places, before, after)

    def names(self, scope: Scope, _deadline: float | None) -> tuple[str, ...]:
        return self._snapshot.names(scope)

    def generation(self) -> object:
        return self.past

    def projects(self) -> Mapping[str, str]:
        paths = (path.split("/") for path in self._files if path.startswith("knowledge/projects/"))
        return _called({parts[2] for parts in paths if len(parts) > 3})

    @cached_property
    def _snapshot(self) -> Snapshot:
        from tacit.search.snapshot import Snapshot

        return Snapshot(self._files, self._at, self._parts, self._purged)


def _patience(deadline: float | None) -> float:
    """Seconds to spend on files that changed."""
    if deadline is None:
        return _CATCH_UP
    return min(_CATCH_UP, max(0.001, (deadline - time.monotonic()) * _SHARE))


def _called(slugs: Collection[str]) -> dict[str, str]:
    return {name: slug for slug in sorted(slugs) for name in (slug, slug.replace("-", " "))}
