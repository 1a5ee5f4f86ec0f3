"""The source that a turn is compiled from: the home as it is, or as it was at a commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tacit.git.conflicts import find_markers, list_unmerged_below
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.home.listing import (
    ENDINGS,
    INDEXED,
    Stamp,
    is_listed,
    list_projects,
    make_stamp,
    name_folders,
    walk,
)
from tacit.search.fallback import Snapshot
from tacit.search.index import ChunkLocation, SearchParts, StoredChunk
from tacit.search.model import Found, Scope
from tacit.topics.parser import TopicLoader
from tacit.transcripts.purged import PurgedRecords
from tacit.workspaces.folders import Workspaces

if TYPE_CHECKING:
    from tacit.search.searcher import Searcher

_MAX_FILE_BYTES = 2 * 1024 * 1024  # a file that is loaded whole: more than any budget holds
_CATCH_UP_S = 2.0  # for indexing changed files, if the home is not watched
_CATCH_UP_SHARE = 0.4  # of the remaining time: the search itself needs some too


class HomeView(Protocol):
    @property
    def past(self) -> str:
        """The commit; empty for the live home."""

    def read(self, path: str) -> bytes:
        """The beginning of a file. Raises the same errors as `files.Tree.read`."""

    def agents_of(self, path: str) -> tuple[str, ...]:
        """The agents that a file belongs to by its location."""

    def path_of(self, file: str) -> str:
        """The path of a file that a host names by its location on disk; empty if it is not ours."""

    def shelf(self) -> TopicLoader: ...

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found: ...

    def around(
        self, places: Collection[ChunkLocation], before: int, after: int
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        """The messages before and after each hit; a hit is a path and a first line."""

    def names(self, scope: Scope, deadline: float | None) -> tuple[str, ...]:
        """People and projects that have a file."""

    def generation(self) -> object:
        """A value that differs whenever searchable content has changed; None if unknown."""

    def projects(self) -> Mapping[str, str]:
        """The folders of projects, by the names that people use for them."""


class LiveHome:
    """The home as it is on disk."""

    past = ""

    def __init__(self, home: Home, searcher: Callable[[], Searcher], workspaces: Workspaces) -> None:
        self._root = str(home.root)
        self._workspaces = workspaces
        self._searcher = searcher
        self._shelf = TopicLoader()
        self._watched_inode: int | None = None  # of the index that a watcher keeps up to date
        self._is_current = False  # nothing changed since this turn began

    @property
    def is_watched(self) -> bool:
        """Whether a watcher notices changes, so that a turn need not look for them. After the index was
        deleted or rebuilt, the watcher must say so again. Beginning or ending a merge is noticed later."""
        if self._watched_inode is None or self._watched_inode != self._searcher().inode():
            return False
        return not self._searcher().is_merged_anew()

    @is_watched.setter
    def is_watched(self, is_watched: bool) -> None:
        self._watched_inode = self._searcher().inode() if is_watched else None

    def read(self, path: str) -> bytes:
        return self._workspaces.read(path, _MAX_FILE_BYTES)

    def agents_of(self, path: str) -> tuple[str, ...]:
        return self._workspaces.agents_of(path)

    def path_of(self, file: str) -> str:
        return self._workspaces.path_of(file)

    def shelf(self) -> TopicLoader:
        if not self.is_watched or not self._shelf.generation:
            self.refresh()
        return self._shelf

    def refresh(self) -> None:
        """Check which topics have changed."""
        listed = {
            path: make_stamp(info)
            for path, info in walk(self._root, "topics", ENDINGS)
            if path not in list_unmerged_below(self._root)
        }
        self._shelf.refresh(listed, self.read)

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found:
        wait = 0.0 if self._is_current or self.is_watched else _catch_up_seconds(deadline)
        self._is_current = False
        searcher = self._searcher()
        return searcher.find(text, scope, limit, now=now, deadline=deadline, catch_up=wait, snippets=False)

    def around(
        self, places: Collection[ChunkLocation], before: int, after: int
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        return self._searcher().around(places, before, after)

    def names(self, scope: Scope, deadline: float | None) -> tuple[str, ...]:
        """The first query of a turn, so changed files are indexed here."""
        searcher = self._searcher()
        self._is_current = not self.is_watched and searcher.catch_up(_catch_up_seconds(deadline))
        return searcher.names(scope)

    def generation(self) -> object:
        generation = self._searcher().generation()
        return None if generation is None else (generation, self.shelf().generation)

    def projects(self) -> Mapping[str, str]:
        return list_projects(self._root)


class CommitSnapshot:
    """The home at a commit. Does not touch the disk."""

    def __init__(
        self, git: Git, commit: str, at: datetime, parts: SearchParts, purged: PurgedRecords
    ) -> None:
        self.past = commit
        self._purged = purged
        tree = git.tree(commit, *INDEXED)
        blob_names = {path: blob.name for path, blob in tree.items() if is_listed(path)}
        data = git.blobs(dict.fromkeys(blob_names.values()))
        self._files = {path: data[name] for path, name in blob_names.items() if name in data}
        self._conflicts = {
            path: error for path, text in self._files.items() if (error := find_markers(path, text))
        }
        self._files = {path: text for path, text in self._files.items() if path not in self._conflicts}
        self._at, self._parts = at, parts
        self._shelf = TopicLoader()

    def read(self, path: str) -> bytes:
        name = "/".join(files.split_safe_path(path))
        if name in self._conflicts:
            raise self._conflicts[name]
        if name not in self._files:
            raise FileNotFoundError(path)
        return self._files[name][:_MAX_FILE_BYTES]

    def agents_of(self, _path: str) -> tuple[str, ...]:
        return ()  # a commit holds no workspace

    def path_of(self, _file: str) -> str:
        return ""

    def shelf(self) -> TopicLoader:
        stamp = Stamp(0, 0, 0)
        self._shelf.refresh({path: stamp for path in self._files if path.startswith("topics/")}, self.read)
        return self._shelf

    def find(self, text: str, scope: Scope, limit: int, now: datetime, _deadline: float | None) -> Found:
        return self._snapshot.find(text, scope, limit, now=now)

    def around(
        self, places: Collection[ChunkLocation], before: int, after: int
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        return self._snapshot.around(places, before, after)

    def names(self, scope: Scope, _deadline: float | None) -> tuple[str, ...]:
        return self._snapshot.names(scope)

    def generation(self) -> object:
        return self.past

    def projects(self) -> Mapping[str, str]:
        paths = (path.split("/") for path in self._files if path.startswith("knowledge/projects/"))
        return name_folders({parts[2] for parts in paths if len(parts) > 3})

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot(self._files, self._at, self._parts, self._purged)


def _catch_up_seconds(deadline: float | None) -> float:
    """Seconds to spend on indexing changed files."""
    if deadline is None:
        return _CATCH_UP_S
    return min(_CATCH_UP_S, max(0.001, (deadline - time.monotonic()) * _CATCH_UP_SHARE))
