"""class Searcher: keeps the index of one home up to date and answers queries from it.

Every query gets an answer. If the index is missing, broken, locked or not complete yet, the files are scanned
instead, and the answer says so. A broken index is quarantined and rebuilt.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from tacit.deadline import DEADLINE, is_over
from tacit.embeddings.protocol import Embedder, EmbedderError
from tacit.errors import Busy, StoreError
from tacit.git.conflicts import NoteTree, list_unmerged_below, record_conflicts
from tacit.home import files
from tacit.home.layout import Home
from tacit.home.listing import INDEXED, Stamp, make_stamp, stat_listed, walk_indexed
from tacit.home.workspace_files import is_workspace_path
from tacit.search import calibration
from tacit.search.fallback import fallback_search
from tacit.search.hybrid import Engine, find
from tacit.search.index import (
    ChunkLocation,
    IndexBroken,
    IndexStats,
    IndexTimeout,
    IndexUnavailable,
    StoredChunk,
)
from tacit.search.link_expansion import links_of_note, summarize_links
from tacit.search.model import EVERYTHING, Found, LinkSummary, NoteLinks, Scope
from tacit.search.models import Reranker, SearchModels
from tacit.search.open_index import open_index, open_memory_index, quarantine_index
from tacit.search.ripgrep import find_files_with
from tacit.search.sqlite.index import SqliteIndex
from tacit.search.updater import UpdateReport, embed_chunks, update_index
from tacit.transcripts import purged as purges
from tacit.transcripts.purged import PurgedRecords
from tacit.workspaces.folders import Workspaces

_Result = TypeVar("_Result")

_CATCH_UP_S = 2.0  # that a query may spend on files that changed
_LOCK_TIMEOUT_S = 0.5  # to wait for another process that is indexing
_FILES_SCANNED_PER_S = 2000.0  # files that can be scanned in a second, by a careful guess
_BYTES_SCANNED_PER_S = 4 << 20  # bytes that can be scanned in a second, by the same guess
_MAX_SCAN_S = 1.0  # by these guesses, when there is a deadline: other queries wait meanwhile
_BYTES_INDEXED_PER_S = 1 << 20  # bytes that can be indexed in a second
_LOCK_POLL_S = 0.05  # how often a waiting query checks whether it still has time


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The result of an update of the index."""

    report: UpdateReport
    embedded: int = 0
    notes: tuple[str, ...] = ()  # warnings, in words
    facts: IndexStats | None = None


class Searcher:
    """Safe to use from several threads; serves one at a time."""

    def __init__(self, home: Home, parts: SearchModels, workspaces: Workspaces | None = None) -> None:
        self._home, self._parts = home, parts
        self.workspaces = workspaces or Workspaces(home)
        self.file = home.private / "memory.db"
        self._tree: files.Tree = NoteTree(home.root)
        self._mutex = threading.RLock()
        self._sqlite: SqliteIndex | None = None
        self._inode = -1
        self._updated_inode = -1  # inode of the index that was updated last
        self._notes: list[str] = []
        self._unavailable: list[str] = []  # models that are not available, and why
        self._purged_read: tuple[Stamp | None, PurgedRecords] = (
            None,
            PurgedRecords(),
        )  # raw/purged.jsonl as last read
        self._purged_when_listed: Stamp | None = None  # its stamp when all files were last checked
        self._unmerged_when_listed: frozenset[str] = (
            frozenset()
        )  # unmerged files when all files were last checked
        self._calibration_by_state: dict[tuple[str, int], calibration.Calibration] = {}

    # ------------------------------------------------------------ asking

    def find(
        self,
        text: object,
        scope: Scope = EVERYTHING,
        limit: int = 10,
        *,
        now: datetime | None = None,
        deadline: float | None = None,
        catch_up: float = _CATCH_UP_S,
        snippets: bool = True,
    ) -> Found:
        """`catch_up`: seconds to spend on changed files first; 0 if a watcher already follows them. Without
        `snippets`, hits carry neither snippets nor matched words, which saves much work for many hits. In a
        server, `deadline` defaults to the server's own."""
        deadline = DEADLINE.get() if deadline is None else deadline
        if not self._acquire(deadline):
            return Found((), (), ("deadline: the index was busy with other questions",))
        try:
            self._notes = [f"workspace: {missing}" for missing in self.workspaces.missing()]
            try:
                current = not catch_up or self._bring_up_to_date(catch_up)
                if not current and self._may_scan(deadline):
                    return self._scan(text, scope, limit, now, deadline)
                with self._index().until(deadline):
                    answer = find(
                        self._make_engine(), text, scope, limit, now=now, deadline=deadline, snippets=snippets
                    )
                if catch_up and self._inode != self._updated_inode:
                    self._notes.append("another process is building the index anew")
                    return self._scan_if_time(text, scope, limit, now, deadline)
            except IndexTimeout as late:
                return self._late_answer(late)
            except IndexBroken as broken:
                self._quarantine(broken)
                return self._scan_if_time(text, scope, limit, now, deadline)
            except (IndexUnavailable, StoreError, OSError) as unavailable:
                self._notes.append(str(unavailable))
                return self._scan_if_time(text, scope, limit, now, deadline)
            return replace(answer, degraded=(*self._notes, *self._unavailable, *answer.degraded))
        finally:
            self._mutex.release()

    def _acquire(self, deadline: float | None) -> bool:
        """Whether we get the lock before the deadline, after which the caller answers without us: waiting
        longer would hold a worker of the daemon for nothing."""
        while True:
            timeout = (
                _LOCK_POLL_S if deadline is None else min(_LOCK_POLL_S, max(0.0, deadline - time.monotonic()))
            )
            if self._mutex.acquire(timeout=timeout):
                return True
            if is_over(deadline):
                return False

    def _may_scan(self, deadline: float | None) -> bool:
        """Whether there is time to scan the files. If not, the query uses what is indexed already."""
        if deadline is None:
            return True
        listed = self._list_files()
        seconds_needed = (
            len(listed) / _FILES_SCANNED_PER_S
            + sum(stamp.size for stamp in listed.values()) / _BYTES_SCANNED_PER_S
        )
        return seconds_needed < min(_MAX_SCAN_S, deadline - time.monotonic())

    def around(
        self, places: Collection[ChunkLocation], before: int = 0, after: int = 0
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        """For hits, given as (path, first line), the chunks of the events before and after them in their
        files; 0 and 0 gives the whole of a long message. Leaves out what the index does not hold."""
        return self._query(lambda index: index.around(places, before, after), {})

    def catch_up(self, seconds: float) -> bool:
        """Spend up to `seconds` on files that changed. Returns whether the index is now complete."""
        if not self._mutex.acquire(timeout=seconds):
            return False
        try:
            return self._bring_up_to_date(seconds)
        except IndexBroken as broken:
            self._quarantine(broken)
        except (IndexUnavailable, StoreError, OSError):  # the next query reports it
            pass
        finally:
            self._mutex.release()
        return False

    def generation(self) -> tuple[int, int] | None:
        """Changes whenever the index changes; None if the index cannot answer."""
        return self._query(lambda index: (self._inode, index.generation()), None)

    def inode(self) -> int:
        """Inode of the index on disk, -1 if there is none: it may be deleted or rebuilt at any time."""
        return self._read_inode()

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        """People and projects that have a file; empty if the index cannot answer."""
        return self._query(lambda index: index.names(scope), ())

    def links(self, path: str, scope: Scope = EVERYTHING) -> NoteLinks:
        """The links from a note and to it."""
        self.catch_up(_CATCH_UP_S)
        return links_of_note(path, self._query(lambda index: index.links(scope, path), []))

    def called(self, name: str, scope: Scope = EVERYTHING) -> list[str]:
        """The files that a link with this path or name leads to."""
        return self._query(lambda index: index.called(name, scope), [])

    def all_links(self, scope: Scope = EVERYTHING) -> LinkSummary:
        """All links between notes, with the broken and ambiguous ones."""
        self.catch_up(_CATCH_UP_S)
        return self._query(
            lambda index: summarize_links(index.notes(scope), index.links(scope)), summarize_links([], [])
        )

    def _query(self, query: Callable[[SqliteIndex], _Result], fallback: _Result) -> _Result:
        deadline = DEADLINE.get()
        if not self._acquire(deadline):
            return fallback
        try:
            with self._index().until(deadline):
                return query(self._index())
        except (IndexBroken, IndexUnavailable, OSError):  # the next query quarantines a broken one
            return fallback
        finally:
            self._mutex.release()

    def is_purged_anew(self) -> bool:
        """Whether raw/purged.jsonl changed since all files were last checked."""
        return purges.file_stamp(self._home.root) != self._purged_when_listed

    def is_merged_anew(self) -> bool:
        """Whether git's list of unmerged files changed since all files were last checked. The files may still
        be the same."""
        return self._list_unmerged() != self._unmerged_when_listed

    def _list_unmerged(self) -> frozenset[str]:
        return list_unmerged_below(self._home.root)

    def _read_purged(self) -> PurgedRecords:
        stamp = purges.file_stamp(self._home.root)
        if stamp != self._purged_read[0] or self._purged_read[1].trouble:
            self._purged_read = stamp, purges.load_purged(self._home.root)
        trouble = self._purged_read[1].trouble
        if trouble and trouble not in self._notes:
            self._notes.append(trouble)
        return self._purged_read[1]

    def _bring_up_to_date(self, seconds: float) -> bool:
        """Update the index. Returns whether it is now complete."""
        deadline = time.monotonic() + seconds
        self._index()
        self._updated_inode = self._inode
        try:
            report = self._update(deadline, wait=min(_LOCK_TIMEOUT_S, seconds / 2))
        except Busy:
            self._notes.append("another process is indexing")
            known = self._index().stamps()
            return known == self._list_files(known)
        self._embed(deadline)
        if report.left:
            total = report.left + report.read + report.unchanged
            self._notes.append(f"the index is not complete yet: {report.left} of {total} files are missing")
        return not report.left

    def _make_engine(self) -> Engine:
        index, reranker = self._index(), self._reranker
        embedder = self._embedder
        if embedder and index.vectors_of() != embedder.name:
            self._notes.append(f"vector: there are no vectors of {embedder.name} yet")
            embedder = None
        elif embedder and not index.has_all_vectors():
            self._notes.append("vector: some passages have no vector yet")
        return Engine(
            index,
            embedder,
            self._choose_calibration(embedder.name if embedder else "", index),
            reranker,
            self._parts.lexical_weight,
            self._parts.vector_weight,
            calibration.choose_calibration(self._calibrations, "", reranker is not None),
            self._parts.spreading,
        )

    def _choose_calibration(self, embedder: str, index: SqliteIndex) -> calibration.Calibration:
        state = (embedder, index.generation())
        if state not in self._calibration_by_state:
            with_reranker = self._reranker is not None
            self._calibration_by_state = {
                state: calibration.choose_calibration(
                    self._calibrations, embedder, with_reranker, index.background
                )
            }
        return self._calibration_by_state[state]

    @cached_property
    def _calibrations(self) -> dict[str, calibration.Calibration]:
        return calibration.load_calibrations()

    @cached_property
    def _embedder(self) -> Embedder | None:
        return self._load(self._parts.embedder, "vector")

    @cached_property
    def _reranker(self) -> Reranker | None:
        return self._load(self._parts.reranker, "rerank")

    def _load(self, load: Callable[[], _Result | None], channel: str) -> _Result | None:
        try:
            return load()
        except EmbedderError as error:
            self._unavailable.append(f"{channel}: {error}")
            return None

    def _late_answer(self, reason: object) -> Found:
        return Found((), (), (*self._notes, f"deadline: {reason}"))

    def _scan_if_time(
        self, text: object, scope: Scope, limit: int, now: datetime | None, deadline: float | None
    ) -> Found:
        if not self._may_scan(deadline):
            return self._late_answer("there was no time to look through the files")
        return self._scan(text, scope, limit, now, deadline)

    def _scan(
        self,
        text: object,
        scope: Scope,
        limit: int,
        now: datetime | None,
        deadline: float | None = None,
    ) -> Found:
        root, listed = str(self._home.root), self._list_files()
        adopted = [path for path in listed if is_workspace_path(path)]
        try:
            answer = fallback_search(
                text,
                listed,
                self._read,
                scope=scope,
                limit=limit,
                now=now,
                index=open_memory_index(),
                calibration=calibration.choose_calibration(self._calibrations, "", reranker=False),
                narrowed=lambda words: _extend(
                    find_files_with(root, _existing_folders(root), words), adopted
                ),
                agents_of=self.workspaces.agents_of,
                purged=self._read_purged().records,
                spreading=self._parts.spreading,
                is_over=lambda: is_over(deadline),
            )
        except IndexTimeout as late:
            return self._late_answer(late)
        return replace(answer, degraded=(*self._notes, *answer.degraded))

    # ------------------------------------------------------------ indexing

    def update(
        self,
        *,
        rebuild: bool = False,
        paths: Collection[str] | None = None,
        until: float | None = None,
        tick: Callable[[int, int], None] = lambda done, total: None,
        embed_tick: Callable[[int], None] = lambda done: None,
    ) -> IndexResult:
        """Index changed files and embed them. `rebuild`: start from an empty index. `paths`: a watcher knows
        that only these changed, so the others are not checked."""
        with self._mutex:
            self._notes = [f"workspace: {missing}" for missing in self.workspaces.missing()]
            if rebuild:
                self.close()
                quarantine_index(self.file)
            try:
                return self._update_and_embed(until, tick, embed_tick, paths)
            except IndexBroken as broken:
                self._quarantine(broken)
                return self._update_and_embed(until, tick, embed_tick)

    def _update_and_embed(
        self,
        until: float | None,
        tick: Callable[[int, int], None],
        embed_tick: Callable[[int], None],
        paths: Collection[str] | None = None,
    ) -> IndexResult:
        report = self._update(until, wait=30.0, tick=tick, paths=paths)
        embedded = self._embed(until, embed_tick)
        return IndexResult(report, embedded, (*self._notes, *self._unavailable), self._index().facts())

    def _update(
        self,
        until: float | None,
        *,
        wait: float,
        tick: Callable[[int, int], None] = lambda done, total: None,
        paths: Collection[str] | None = None,
    ) -> UpdateReport:
        index = self._index()
        before, known = index.generation(), index.stamps()
        listed = self._list_files(known, paths)
        if not index.writable:
            behind = known != listed
            self._notes.append("the index is read-only" + (" and not up to date" if behind else ""))
            return UpdateReport(left=len(listed) if behind else 0, unchanged=0 if behind else len(listed))
        if known == listed:
            self._purged_when_listed = self._purged_read[0]
            return UpdateReport(unchanged=len(listed))
        with files.hold_lock(self._home.private / "index.lock", wait):
            if index.generation() != before:  # the process that held the lock has done some of it
                known = index.stamps()
                listed = self._list_files(known, paths)
            report = update_index(
                index,
                listed,
                self._read,
                known=known,
                until=until,
                largest=_largest(until),
                tick=tick,
                agents_of=self.workspaces.agents_of,
                purged=self._read_purged().records,
            )
        if not report.left:
            self._purged_when_listed = self._purged_read[0]
        record_conflicts(self._home, {problem.where for problem in report.failed}, is_all=paths is None)
        with suppress(OSError):  # notes of git hooks: all files have been checked
            os.truncate(self._home.private / "changed.jsonl", 0)
        return report

    def _embed(self, until: float | None, tick: Callable[[int], None] = lambda done: None) -> int:
        embedder = self._embedder
        if embedder is None:
            return 0
        try:
            return embed_chunks(self._index(), embedder, until=until, tick=tick)
        except EmbedderError as error:
            self._notes.append(f"vector: {error}")
            return 0

    def _list_files(
        self, known: Mapping[str, Stamp] | None = None, paths: Collection[str] | None = None
    ) -> dict[str, Stamp]:
        """All files. If only `paths` changed since `known`, those are read again and the rest is kept."""
        purged = self._read_purged()
        if known and paths is not None and not self.is_purged_anew() and not self.is_merged_anew():
            doubtful = (path for path, stamp in known.items() if stamp.inode < 0)
            stamps = self._stamp_files({*paths, *doubtful})
            if stamps is not None:
                changed = purged.applied(
                    {
                        path: stamp
                        for path, stamp in stamps.items()
                        if stamp and path not in self._unmerged_when_listed
                    }
                )
                return {**{path: stamp for path, stamp in known.items() if path not in stamps}, **changed}
        merging = self._unmerged_when_listed = self._list_unmerged()
        listed = purged.applied(
            {
                path: make_stamp(info)
                for path, info in walk_indexed(str(self._home.root))
                if path not in merging
            }
        )
        return listed | self.workspaces.stamps(known or {}) if self.workspaces else listed

    def _stamp_files(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """Their current stamps; None if only a check of all files can tell."""
        own = stat_listed(str(self._home.root), [path for path in paths if not is_workspace_path(path)])
        adopted = self.workspaces.some([path for path in paths if is_workspace_path(path)])
        if own is None or adopted is None:
            return None
        return {path: None if info is None else make_stamp(info) for path, info in own.items()} | adopted

    def _read(self, path: str) -> bytes:
        return self.workspaces.read(path) if is_workspace_path(path) else self._tree.read(path)

    # ------------------------------------------------------------ the file

    def _index(self) -> SqliteIndex:
        if self._sqlite is not None and self._inode != self._read_inode():
            self.close()  # another process has quarantined it and made a new one
        if self._sqlite is None:
            try:
                self._sqlite = open_index(self.file)
            except IndexBroken as broken:
                self._quarantine(broken)
                self._sqlite = open_index(self.file)
            self._inode = self._read_inode()
        return self._sqlite

    def _read_inode(self) -> int:
        try:
            return self.file.stat().st_ino
        except OSError:
            return -1

    def _quarantine(self, error: IndexBroken) -> None:
        self.close()
        try:
            quarantined = quarantine_index(self.file)
        except IndexUnavailable as unavailable:
            self._notes.append(f"{error}, and {unavailable}")
        else:
            self._notes.append(
                f"{error}; it was set aside as {quarantined.name} and is built anew from the files"
            )

    def close(self) -> None:
        with self._mutex:
            if self._sqlite is not None:
                self._sqlite.close()
            self._sqlite = None


def _largest(until: float | None) -> int | None:
    """The largest file, in bytes, that there is time for. In a server the watcher reads larger ones;
    elsewhere the first query must read them, or nothing ever would."""
    if until is None or DEADLINE.get() is None:
        return None
    return int(max(0.0, until - time.monotonic()) * _BYTES_INDEXED_PER_S)


def _extend(paths: list[str] | None, others: list[str]) -> list[str] | None:
    return None if paths is None else paths + others


def _existing_folders(root: str) -> list[str]:
    return [folder for folder in INDEXED if os.path.isdir(f"{root}/{folder}")]
