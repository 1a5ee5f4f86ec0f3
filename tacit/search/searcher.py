"""class Searcher: the index of one home, kept true, and questions to it.

Every question is answered. If the index is missing, broken, locked or not complete yet, the files are looked
through instead, and the answer says so. A broken index is set aside and built anew.
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

from tacit.embed.protocol import Embedder, EmbedderError
from tacit.errors import Busy, StoreError
from tacit.index.opening import memory_index, open_index, set_aside
from tacit.index.protocol import Facts, IndexBroken, IndexUnavailable, Place, Stored
from tacit.index.sqlite import SqliteIndex
from tacit.model.links import Linked, Web
from tacit.model.search import EVERYTHING, Found, Scope, Stamp
from tacit.search import calibration
from tacit.search.find import Engine, find
from tacit.search.links import of_note, web
from tacit.search.parts import Parts, Reranker
from tacit.search.scan import scan
from tacit.search.update import Report, embed, update
from tacit.store import files
from tacit.store import purged as purges
from tacit.store.home import Home
from tacit.store.listing import INDEXED, indexed, some
from tacit.store.purged import Purged
from tacit.store.ripgrep import files_with
from tacit.store.workspaces import Workspaces
from tacit.text.workspaces import is_of_one

_Part = TypeVar("_Part")

_CATCH_UP = 2.0  # seconds that a question may spend on files that changed
_PATIENCE = 0.5  # seconds to wait for another process that is indexing
_SCANNED = 2000.0  # files that can be looked through in a second, by a careful guess


@dataclass(frozen=True, slots=True)
class Indexed:
    """What bringing the index up to date did."""

    report: Report
    embedded: int = 0
    notes: tuple[str, ...] = ()  # what was out of the ordinary, in words
    facts: Facts | None = None


class Searcher:
    """Safe to use from several threads; one at a time is served."""

    def __init__(self, home: Home, parts: Parts, workspaces: Workspaces | None = None) -> None:
        self._home, self._parts = home, parts
        self.workspaces = workspaces or Workspaces(home)
        self.file = home.private / "memory.db"
        self._tree = files.Tree(home.root)
        self._mutex = threading.RLock()
        self._open: SqliteIndex | None = None
        self._inode = -1
        self._current = -1  # the one that was brought up to date last
        self._notes: list[str] = []
        self._lacking: list[str] = []  # models that cannot be had, and why
        self._named: tuple[Stamp | None, Purged] = (None, Purged())  # what raw/purged.jsonl names, as it was
        self._left_out: Stamp | None = None  # that file, when all files were last looked at
        self._chosen: dict[tuple[str, int], calibration.Calibration] = {}

    # ------------------------------------------------------------ asking

    def find(
        self,
        text: object,
        scope: Scope = EVERYTHING,
        limit: int = 10,
        *,
        now: datetime | None = None,
        deadline: float | None = None,
        catch_up: float = _CATCH_UP,
        snippets: bool = True,
    ) -> Found:
        """`catch_up`: seconds to spend on changed files first; 0 when somebody follows them already. Without
        `snippets` hits need have neither those nor the words that matched: for many that is much work."""
        if not self._entered(deadline):
            return Found((), (), ("deadline: the index was busy with other questions",))
        try:
            self._notes = [f"workspace: {missing}" for missing in self.workspaces.missing()]
            try:
                current = not catch_up or self._is_current(catch_up)
                if not current and self._may_scan(deadline):
                    return self._scanned(text, scope, limit, now)
                found = find(
                    self._engine(), text, scope, limit, now=now, deadline=deadline, snippets=snippets
                )
                if catch_up and self._inode != self._current:
                    self._notes.append("another process is building the index anew")
                    return self._scanned(text, scope, limit, now, deadline)
            except IndexBroken as broken:
                self._give_up(broken)
                return self._scanned(text, scope, limit, now, deadline)
            except (IndexUnavailable, StoreError, OSError) as unavailable:
                self._notes.append(str(unavailable))
                return self._scanned(text, scope, limit, now, deadline)
            return replace(found, degraded=(*self._notes, *self._lacking, *found.degraded))
        finally:
            self._mutex.release()

    def _entered(self, deadline: float | None) -> bool:
        """Whether it is our turn before the time is over."""
        if deadline is None:
            return self._mutex.acquire()
        return self._mutex.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def _may_scan(self, deadline: float | None) -> bool:
        """Whether there is time to look through the files. If not, what is indexed already has to do."""
        if deadline is None:
            return True
        return len(self._listed()) / _SCANNED < deadline - time.monotonic()

    def around(self, places: Collection[Place], before: int = 0, after: int = 0) -> dict[Place, list[Stored]]:
        """Hits, as (path, first line), among the records before and after them in their files; 0 and 0: a
        long message complete. Left out is what the index does not hold, or cannot say now."""
        return self._asked(lambda index: index.around(places, before, after), {})

    def catch_up(self, seconds: float) -> bool:
        """Spend so many seconds on files that changed; whether the index can answer for all files now."""
        if not self._mutex.acquire(timeout=seconds):
            return False
        try:
            return self._is_current(seconds)
        except IndexBroken as broken:
            self._give_up(broken)
        except (IndexUnavailable, StoreError, OSError):  # the next question says so
            pass
        finally:
            self._mutex.release()
        return False

    def generation(self) -> tuple[int, int] | None:
        """Differs whenever the index changed; None where it cannot say."""
        return self._asked(lambda index: (self._inode, index.generation()), None)

    def inode(self) -> int:
        """Of the index on disk, -1 where there is none: it may be deleted or made anew at any time."""
        return self._inode_now()

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        """People and projects that have a file; none where the index cannot say."""
        return self._asked(lambda index: index.names(scope), ())

    def links(self, path: str, scope: Scope = EVERYTHING) -> Linked:
        """What a note points to, and which point to it."""
        self.catch_up(_CATCH_UP)
        return of_note(path, self._asked(lambda index: index.links(scope, path), []))

    def called(self, name: str, scope: Scope = EVERYTHING) -> list[str]:
        """The files that a link with this path or name leads to."""
        return self._asked(lambda index: index.called(name, scope), [])

    def all_links(self, scope: Scope = EVERYTHING) -> Web:
        """All links between notes, and what is wrong with them."""
        self.catch_up(_CATCH_UP)
        return self._asked(lambda index: web(index.notes(scope), index.links(scope)), web([], []))

    def _asked(self, ask: Callable[[SqliteIndex], _Part], otherwise: _Part) -> _Part:
        with self._mutex:
            try:
                return ask(self._index())
            except (IndexBroken, IndexUnavailable, OSError):  # the next question sets a broken one aside
                return otherwise

    def is_purged_anew(self) -> bool:
        """Whether raw/purged.jsonl changed since all files were looked at."""
        return purges.stamp(self._home.root) != self._left_out

    def _purged(self) -> Purged:
        stamp = purges.stamp(self._home.root)
        if stamp != self._named[0] or self._named[1].trouble:
            self._named = stamp, purges.purged(self._home.root)
        trouble = self._named[1].trouble
        if trouble and trouble not in self._notes:
            self._notes.append(trouble)
        return self._named[1]

    def _is_current(self, seconds: float) -> bool:
        """Bring the index up to date; whether it can answer for all files now."""
        until = time.monotonic() + seconds
        self._index()
        self._current = self._inode
        try:
            done = self._update(until, wait=min(_PATIENCE, seconds / 2))
        except Busy:
            self._notes.append("another process is indexing")
            known = self._index().stamps()
            return known == self._listed(known)
        self._embed(until)
        if done.left:
            total = done.left + done.read + done.unchanged
            self._notes.append(f"the index is not complete yet: {done.left} of {total} files are missing")
        return not done.left

    def _engine(self) -> Engine:
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
            self._calibration(embedder.name if embedder else "", index),
            reranker,
            self._parts.lexical_weight,
            self._parts.vector_weight,
            calibration.choose(self._calibrations, "", reranker is not None),
            self._parts.spreading,
        )

    def _calibration(self, embedder: str, index: SqliteIndex) -> calibration.Calibration:
        state = (embedder, index.generation())
        if state not in self._chosen:
            with_reranker = self._reranker is not None
            self._chosen = {
                state: calibration.choose(self._calibrations, embedder, with_reranker, index.background)
            }
        return self._chosen[state]

    @cached_property
    def _calibrations(self) -> dict[str, calibration.Calibration]:
        return calibration.read()

    @cached_property
    def _embedder(self) -> Embedder | None:
        return self._made(self._parts.embedder, "vector")

    @cached_property
    def _reranker(self) -> Reranker | None:
        return self._made(self._parts.reranker, "rerank")

    def _made(self, make: Callable[[], _Part | None], channel: str) -> _Part | None:
        try:
            return make()
        except EmbedderError as error:
            self._lacking.append(f"{channel}: {error}")
            return None

    def _scanned(
        self,
        text: object,
        scope: Scope,
        limit: int,
        now: datetime | None,
        deadline: float | None = None,
    ) -> Found:
        if not self._may_scan(deadline):
            return Found((), (), (*self._notes, "deadline: there was no time to look through the files"))
        root, listed = str(self._home.root), self._listed()
        adopted = [path for path in listed if is_of_one(path)]
        found = scan(
            text,
            listed,
            self._read,
            scope=scope,
            limit=limit,
            now=now,
            index=memory_index(),
            calibration=calibration.choose(self._calibrations, "", reranker=False),
            narrowed=lambda words: _and(files_with(root, _present(root), words), adopted),
            agents_of=self.workspaces.agents_of,
            purged=self._purged().records,
            spreading=self._parts.spreading,
        )
        return replace(found, degraded=(*self._notes, *found.degraded))

    # ------------------------------------------------------------ indexing

    def update(
        self,
        *,
        rebuild: bool = False,
        paths: Collection[str] | None = None,
        until: float | None = None,
        tick: Callable[[int, int], None] = lambda done, total: None,
        embed_tick: Callable[[int], None] = lambda done: None,
    ) -> Indexed:
        """Read what changed and give it vectors. `rebuild`: from nothing. `paths`: who follows changes knows
        that only these did; then the others are not looked at."""
        with self._mutex:
            self._notes = [f"workspace: {missing}" for missing in self.workspaces.missing()]
            if rebuild:
                self.close()
                set_aside(self.file)
            try:
                return self._indexed(until, tick, embed_tick, paths)
            except IndexBroken as broken:
                self._give_up(broken)
                return self._indexed(until, tick, embed_tick)

    def _indexed(
        self,
        until: float | None,
        tick: Callable[[int, int], None],
        embed_tick: Callable[[int], None],
        paths: Collection[str] | None = None,
    ) -> Indexed:
        report = self._update(until, wait=30.0, tick=tick, paths=paths)
        embedded = self._embed(until, embed_tick)
        return Indexed(report, embedded, (*self._notes, *self._lacking), self._index().facts())

    def _update(
        self,
        until: float | None,
        *,
        wait: float,
        tick: Callable[[int, int], None] = lambda done, total: None,
        paths: Collection[str] | None = None,
    ) -> Report:
        index = self._index()
        before, known = index.generation(), index.stamps()
        listed = self._listed(known, paths)
        if not index.writable:
            behind = known != listed
            self._notes.append("the index is read-only" + (" and not up to date" if behind else ""))
            return Report(left=len(listed) if behind else 0, unchanged=0 if behind else len(listed))
        if known == listed:
            self._left_out = self._named[0]
            return Report(unchanged=len(listed))
        with files.locked(self._home.private / "index.lock", wait):
            if index.generation() != before:  # who held the lock has done some of it
                known = index.stamps()
                listed = self._listed(known, paths)
            report = update(
                index,
                listed,
                self._read,
                known=known,
                until=until,
                tick=tick,
                agents_of=self.workspaces.agents_of,
                purged=self._purged().records,
            )
        if not report.left:
            self._left_out = self._named[0]
        with suppress(OSError):  # what git hooks noted: we looked at all files ourselves
            os.truncate(self._home.private / "changed.jsonl", 0)
        return report

    def _embed(self, until: float | None, tick: Callable[[int], None] = lambda done: None) -> int:
        embedder = self._embedder
        if embedder is None:
            return 0
        try:
            return embed(self._index(), embedder, until=until, tick=tick)
        except EmbedderError as error:
            self._notes.append(f"vector: {error}")
            return 0

    def _listed(
        self, known: Mapping[str, Stamp] | None = None, paths: Collection[str] | None = None
    ) -> dict[str, Stamp]:
        """All files; or, where only `paths` changed since the index knew all, what it knew and these anew."""
        purged = self._purged()
        if known and paths is not None and not self.is_purged_anew():
            doubtful = (path for path, stamp in known.items() if stamp.inode < 0)
            looked_at = self._looked_at({*paths, *doubtful})
            if looked_at is not None:
                found = purged.applied({path: at for path, at in looked_at.items() if at is not None})
                return {**{path: stamp for path, stamp in known.items() if path not in looked_at}, **found}
        listed = purged.applied({path: _stamped(info) for path, info in indexed(str(self._home.root))})
        return listed | self.workspaces.stamps(known or {}) if self.workspaces else listed

    def _looked_at(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """Their stamps now; None where only a look at everything can tell."""
        own = some(str(self._home.root), [path for path in paths if not is_of_one(path)])
        adopted = self.workspaces.some([path for path in paths if is_of_one(path)])
        if own is None or adopted is None:
            return None
        return {path: None if info is None else _stamped(info) for path, info in own.items()} | adopted

    def _read(self, path: str) -> bytes:
        return self.workspaces.read(path) if is_of_one(path) else self._tree.read(path)

    # ------------------------------------------------------------ the file

    def _index(self) -> SqliteIndex:
        if self._open is not None and self._inode != self._inode_now():
            self.close()  # another process set it aside and made a new one
        if self._open is None:
            try:
                self._open = open_index(self.file)
            except IndexBroken as broken:
                self._give_up(broken)
                self._open = open_index(self.file)
            self._inode = self._inode_now()
        return self._open

    def _inode_now(self) -> int:
        try:
            return self.file.stat().st_ino
        except OSError:
            return -1

    def _give_up(self, broken: IndexBroken) -> None:
        self.close()
        try:
            aside = set_aside(self.file)
        except IndexUnavailable as unavailable:
            self._notes.append(f"{broken}, and {unavailable}")
        else:
            self._notes.append(f"{broken}; it was set aside as {aside.name} and is built anew from the files")

    def close(self) -> None:
        with self._mutex:
            if self._open is not None:
                self._open.close()
            self._open = None


def _stamped(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


def _and(found: list[str] | None, more: list[str]) -> list[str] | None:
    return None if found is None else found + more


def _present(root: str) -> list[str]:
    return [folder for folder in INDEXED if os.path.isdir(f"{root}/{folder}")]
