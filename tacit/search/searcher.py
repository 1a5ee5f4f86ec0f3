"""Answers queries from the index of one home, which is brought up to date first.

Every query gets an answer. If the index is missing, broken, locked or not complete yet, the files are scanned
instead, and the answer says so. A broken index is quarantined and rebuilt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from tacit.deadline import DEADLINE, is_over
from tacit.errors import StoreError
from tacit.home.layout import Home
from tacit.search.fallback import fallback_search
from tacit.search.home_index import HomeIndex, IndexedFiles, IndexResult, LoadedModels, Warnings
from tacit.search.hybrid import Engine, find
from tacit.search.index import (
    ChunkLocation,
    Index,
    IndexBroken,
    IndexTimeout,
    IndexUnavailable,
    SearchParts,
    StoredChunk,
)
from tacit.search.link_expansion import links_of_note, summarize_links
from tacit.search.model import EVERYTHING, Found, LinkSummary, NoteLinks, Scope
from tacit.search.scoring import Calibration, choose_calibration, load_calibrations
from tacit.workspaces.folders import Workspaces

_Result = TypeVar("_Result")

_CATCH_UP_S = 2.0  # that a query may spend on files that changed
_FILES_SCANNED_PER_S = 2000.0  # files that can be scanned in a second, by a careful guess
_BYTES_SCANNED_PER_S = 4 << 20  # bytes that can be scanned in a second, by the same guess
_MAX_SCAN_S = 1.0  # by these guesses, when there is a deadline: other queries wait meanwhile
_LOCK_POLL_S = 0.05  # how often a waiting query checks whether it still has time


class Searcher:
    """Safe to use from several threads; serves one at a time."""

    def __init__(self, home: Home, parts: SearchParts, workspaces: Workspaces | None = None) -> None:
        self._parts = parts
        self.workspaces = workspaces or Workspaces(home)
        self._mutex = threading.RLock()
        self._warnings = Warnings()
        self._models = LoadedModels(parts)
        self._files = IndexedFiles(home, self.workspaces, self._warnings)
        self._index = HomeIndex(home, parts, self._files, self._models, self._warnings)
        self.file = self._index.file
        self.inode = self._index.read_inode
        self.is_purged_anew, self.is_merged_anew = self._files.is_purged_anew, self._files.is_merged_anew
        self._calibration_by_state: dict[tuple[str, int], Calibration] = {}

    def close(self) -> None:
        with self._mutex:
            self._index.close()

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

        def scan() -> Found:
            return self._scan(text, scope, limit, now, deadline)

        try:
            self._begin()
            try:
                is_current = not catch_up or self._index.catch_up(catch_up)
                if not is_current and self._may_scan(deadline):
                    return scan()
                with self._index.open().until(deadline):
                    answer = find(
                        self._make_engine(), text, scope, limit, now=now, deadline=deadline, snippets=snippets
                    )
                if catch_up and self._index.inode != self._index.updated_inode:
                    self._warnings.add("another process is building the index anew")
                    return self._scan_if_time(scan, deadline)
            except IndexTimeout as late:
                return self._late_answer(late)
            except IndexBroken as broken:
                self._index.quarantine(broken)
                return self._scan_if_time(scan, deadline)
            except (IndexUnavailable, StoreError, OSError) as unavailable:
                self._warnings.add(str(unavailable))
                return self._scan_if_time(scan, deadline)
            return replace(
                answer, degraded=(*self._warnings.texts, *self._models.unavailable, *answer.degraded)
            )
        finally:
            self._mutex.release()

    def _begin(self) -> None:
        self._warnings.texts = [f"workspace: {missing}" for missing in self.workspaces.missing()]

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
            return self._index.catch_up(seconds)
        except IndexBroken as broken:
            self._index.quarantine(broken)
        except (IndexUnavailable, StoreError, OSError):  # the next query reports it
            pass
        finally:
            self._mutex.release()
        return False

    def generation(self) -> tuple[int, int] | None:
        """Changes whenever the index changes; None if the index cannot answer."""
        return self._query(lambda index: (self._index.inode, index.generation()), None)

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        """People and projects that have a file; empty if the index cannot answer."""
        return self._query(lambda index: index.names(scope), ())

    def links(self, path: str, scope: Scope = EVERYTHING) -> NoteLinks:
        """The links from a note and to it."""
        self.catch_up(_CATCH_UP_S)
        return links_of_note(path, self._query(lambda index: index.links.list(scope, path), []))

    def resolve_link(self, name: str, scope: Scope = EVERYTHING) -> Sequence[str]:
        """The files that a link with this path or name leads to."""
        return self._query(lambda index: index.links.resolve(name, scope), [])

    def all_links(self, scope: Scope = EVERYTHING) -> LinkSummary:
        """All links between notes, with the broken and ambiguous ones."""
        self.catch_up(_CATCH_UP_S)
        return self._query(
            lambda index: summarize_links(index.notes(scope), index.links.list(scope)),
            summarize_links([], []),
        )

    def _query(self, query: Callable[[Index], _Result], fallback: _Result) -> _Result:
        deadline = DEADLINE.get()
        if not self._acquire(deadline):
            return fallback
        try:
            with self._index.open().until(deadline):
                return query(self._index.open())
        except (IndexBroken, IndexUnavailable, OSError):  # the next query quarantines a broken one
            return fallback
        finally:
            self._mutex.release()

    @contextmanager
    def reading(self) -> Iterator[Index]:
        """The index itself, for measurements. Other threads wait meanwhile."""
        with self._mutex:
            yield self._index.open()

    # ------------------------------------------------------------ the parts of a query

    def _make_engine(self) -> Engine:
        index, reranker, embedder = self._index.open(), self._models.reranker, self._models.embedder
        if embedder and index.vectors.embedder_name() != embedder.name:
            self._warnings.add(f"vector: there are no vectors of {embedder.name} yet")
            embedder = None
        elif embedder and not index.vectors.is_complete():
            self._warnings.add("vector: some passages have no vector yet")
        return Engine(
            index,
            embedder,
            self._choose_calibration(embedder.name if embedder else "", index),
            reranker,
            self._parts.lexical_weight,
            self._parts.vector_weight,
            choose_calibration(self._calibrations, "", reranker is not None),
            self._parts.spreading,
        )

    def _choose_calibration(self, embedder: str, index: Index) -> Calibration:
        state = (embedder, index.generation())
        if state not in self._calibration_by_state:
            with_reranker = self._models.reranker is not None
            self._calibration_by_state = {
                state: choose_calibration(
                    self._calibrations, embedder, with_reranker, index.vectors.sample_cosines
                )
            }
        return self._calibration_by_state[state]

    @cached_property
    def _calibrations(self) -> dict[str, Calibration]:
        return load_calibrations()

    # ------------------------------------------------------------ without an index

    def _may_scan(self, deadline: float | None) -> bool:
        """Whether there is time to scan the files. If not, the query uses what is indexed already."""
        if deadline is None:
            return True
        listed = self._files.list()
        seconds_needed = (
            len(listed) / _FILES_SCANNED_PER_S
            + sum(stamp.size for stamp in listed.values()) / _BYTES_SCANNED_PER_S
        )
        return seconds_needed < min(_MAX_SCAN_S, deadline - time.monotonic())

    def _scan_if_time(self, scan: Callable[[], Found], deadline: float | None) -> Found:
        if not self._may_scan(deadline):
            return self._late_answer("there was no time to look through the files")
        return scan()

    def _late_answer(self, reason: object) -> Found:
        return Found((), (), (*self._warnings.texts, f"deadline: {reason}"))

    def _scan(
        self, text: object, scope: Scope, limit: int, now: datetime | None, deadline: float | None
    ) -> Found:
        listed = self._files.list()
        try:
            answer = fallback_search(
                text,
                listed,
                self._files.read,
                scope=scope,
                limit=limit,
                now=now,
                index=self._parts.backend().open_in_memory(),
                calibration=choose_calibration(self._calibrations, "", reranker=False),
                narrow=lambda words: self._files.find_with(words, listed),
                agents_of=self.workspaces.agents_of,
                purged=self._files.purged().records,
                spreading=self._parts.spreading,
                is_over=lambda: is_over(deadline),
            )
        except IndexTimeout as late:
            return self._late_answer(late)
        return replace(answer, degraded=(*self._warnings.texts, *answer.degraded))

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
            self._begin()
            if rebuild:
                self._index.rebuild()
            try:
                return self._update_and_embed(until, tick, embed_tick, paths)
            except IndexBroken as broken:
                self._index.quarantine(broken)
                return self._update_and_embed(until, tick, embed_tick, None)

    def _update_and_embed(
        self,
        until: float | None,
        tick: Callable[[int, int], None],
        embed_tick: Callable[[int], None],
        paths: Collection[str] | None,
    ) -> IndexResult:
        report = self._index.update(until, tick=tick, paths=paths)
        embedded = self._index.embed(until, embed_tick)
        warnings = (*self._warnings.texts, *self._models.unavailable)
        return IndexResult(report, embedded, warnings, self._index.open().stats())
