"""The index of one home: opens its file, brings it up to date, and replaces it when it is broken."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from tacit.deadline import DEADLINE
from tacit.embeddings.protocol import Embedder, EmbedderError, Reranker
from tacit.errors import Busy
from tacit.git.conflicts import record_conflicts
from tacit.home import files
from tacit.home.layout import Home
from tacit.search.index import Index, IndexBroken, IndexStats, IndexUnavailable, SearchParts
from tacit.search.indexed_files import IndexedFiles, Warnings
from tacit.search.updater import UpdateReport, embed_chunks, update_index

_Model = TypeVar("_Model")

_LOCK_TIMEOUT_S = 0.5  # to wait for another process that is indexing
_UPDATE_LOCK_TIMEOUT_S = 30.0  # the same, if the update itself was asked for
_BYTES_INDEXED_PER_S = 1 << 20  # bytes that can be indexed in a second


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The result of an update of the index."""

    report: UpdateReport
    embedded: int = 0
    notes: tuple[str, ...] = ()  # warnings, in words
    facts: IndexStats | None = None


class LoadedModels:
    """The embedder and the reranker, loaded when they are first used."""

    def __init__(self, parts: SearchParts) -> None:
        self._parts = parts
        self.unavailable: list[str] = []  # models that are not available, and why

    @cached_property
    def embedder(self) -> Embedder | None:
        return self._load(self._parts.embedder, "vector")

    @cached_property
    def reranker(self) -> Reranker | None:
        return self._load(self._parts.reranker, "rerank")

    def _load(self, load: Callable[[], _Model | None], channel: str) -> _Model | None:
        try:
            return load()
        except EmbedderError as error:
            self.unavailable.append(f"{channel}: {error}")
            return None


class HomeIndex:
    """Not safe to use from several threads."""

    def __init__(
        self,
        home: Home,
        parts: SearchParts,
        indexed: IndexedFiles,
        models: LoadedModels,
        warnings: Warnings,
    ) -> None:
        self.file = home.private / "memory.db"
        self.inode = -1  # of the open index
        self.updated_inode = -1  # of the index that was updated last
        self._home, self._parts, self._files, self._models = home, parts, indexed, models
        self._warnings = warnings
        self._open: Index | None = None

    # ------------------------------------------------------------ the file

    def open(self) -> Index:
        if self._open is not None and self.inode != self.read_inode():
            self.close()  # another process has quarantined it and made a new one
        if self._open is None:
            backend = self._parts.backend()
            try:
                self._open = backend.open(self.file)
            except IndexBroken as broken:
                self.quarantine(broken)
                self._open = backend.open(self.file)
            self.inode = self.read_inode()
        return self._open

    def read_inode(self) -> int:
        """Inode of the index on disk, -1 if there is none: it may be deleted or rebuilt at any time."""
        try:
            return self.file.stat().st_ino
        except OSError:
            return -1

    def quarantine(self, error: IndexBroken) -> None:
        self.close()
        try:
            quarantined = self._parts.backend().quarantine(self.file)
        except IndexUnavailable as unavailable:
            self._warnings.add(f"{error}, and {unavailable}")
        else:
            self._warnings.add(
                f"{error}; it was set aside as {quarantined.name} and is built anew from the files"
            )

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    # ------------------------------------------------------------ updating

    def rebuild(self) -> None:
        """Start from an empty index."""
        self.close()
        self._parts.backend().quarantine(self.file)

    def catch_up(self, seconds: float) -> bool:
        """Update the index for at most so long. Returns whether it is now complete."""
        deadline = time.monotonic() + seconds
        self.open()
        self.updated_inode = self.inode
        try:
            report = self.update(deadline, wait=min(_LOCK_TIMEOUT_S, seconds / 2))
        except Busy:
            self._warnings.add("another process is indexing")
            known = self.open().stamps()
            return known == self._files.list(known)
        self.embed(deadline)
        if report.left:
            total = report.left + report.read + report.unchanged
            self._warnings.add(f"the index is not complete yet: {report.left} of {total} files are missing")
        return not report.left

    def update(
        self,
        until: float | None,
        *,
        wait: float = _UPDATE_LOCK_TIMEOUT_S,
        tick: Callable[[int, int], None] = lambda done, total: None,
        paths: Collection[str] | None = None,
    ) -> UpdateReport:
        """Index changed files; only `paths` are checked if a watcher knows that no others changed."""
        index = self.open()
        before, known = index.generation(), index.stamps()
        listed = self._files.list(known, paths)
        if not index.writable:
            behind = known != listed
            self._warnings.add("the index is read-only" + (" and not up to date" if behind else ""))
            return UpdateReport(left=len(listed) if behind else 0, unchanged=0 if behind else len(listed))
        if known == listed:
            self._files.mark_checked()
            return UpdateReport(unchanged=len(listed))
        with files.hold_lock(self._home.private / "index.lock", wait):
            if index.generation() != before:  # the process that held the lock has done some of it
                known = index.stamps()
                listed = self._files.list(known, paths)
            report = update_index(
                index,
                listed,
                self._files.read,
                known=known,
                until=until,
                largest=_largest(until),
                tick=tick,
                agents_of=self._files.workspaces.agents_of,
                purged=self._files.purged().records,
            )
        if not report.left:
            self._files.mark_checked()
        record_conflicts(self._home, {problem.where for problem in report.failed}, is_all=paths is None)
        with suppress(OSError):  # notes of git hooks: all files have been checked
            os.truncate(self._home.private / "changed.jsonl", 0)
        return report

    def embed(self, until: float | None, tick: Callable[[int], None] = lambda done: None) -> int:
        """Embed the chunks that have no vector yet. Returns their number."""
        embedder = self._models.embedder
        if embedder is None:
            return 0
        try:
            return embed_chunks(self.open(), embedder, until=until, tick=tick)
        except EmbedderError as error:
            self._warnings.add(f"vector: {error}")
            return 0


def _largest(until: float | None) -> int | None:
    """The largest file, in bytes, that there is time for. In a server the watcher reads larger ones;
    elsewhere the first query must read them, or nothing ever would."""
    if until is None or DEADLINE.get() is None:
        return None
    return int(max(0.0, until - time.monotonic()) * _BYTES_INDEXED_PER_S)
