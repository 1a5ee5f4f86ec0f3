"""The index of one home: opens its file, brings it up to date, and replaces it when it is broken.

The files are those of the home and of its workspaces, without purged and unmerged ones. An unchanged file
costs one stat. Words come first, in transactions of many files each; vectors follow separately, so that a
slow embedder never delays new text, and a killed run loses at most one batch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TypeVar

from tacit.deadline import DEADLINE
from tacit.diagnostics import Problem
from tacit.embeddings.protocol import Embedder, EmbedderError, Reranker
from tacit.errors import Busy, StoreError
from tacit.git.conflicts import NoteTree, list_unmerged_below, record_conflicts
from tacit.home import files
from tacit.home.files import Tree
from tacit.home.layout import Home
from tacit.home.listing import INDEXED, Stamp, make_stamp, stat_listed, walk_indexed
from tacit.home.workspace_files import is_workspace_path
from tacit.markdown.notes import decode
from tacit.search.documents import read_document
from tacit.search.index import Index, IndexBroken, IndexStats, IndexUnavailable, SearchParts
from tacit.search.model import Document
from tacit.transcripts.purged import PurgedRecords, file_stamp, load_purged
from tacit.workspaces.folders import Workspaces

_Model = TypeVar("_Model")

_LOCK_TIMEOUT_S = 0.5  # to wait for another process that is indexing
_UPDATE_LOCK_TIMEOUT_S = 30.0  # the same, if the update itself was asked for
_BYTES_INDEXED_PER_S = 1 << 20  # bytes that can be indexed in a second
_RIPGREP_TIMEOUT_S = 10.0
_CHUNKS_PER_BATCH = 2_000  # chunks in a transaction: memory stays flat, and other writers get their turn
_TEXTS_PER_CALL = 512  # texts per call of the embedder
_FIRST_TEXTS = 16  # texts of the first call if time is limited
_RACY_NS = 50_000_000  # a file this fresh may change again without a new time


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
        """Spend at most `seconds` on updating the index. Returns whether it is now complete."""
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
        """Index changed files. `paths`: a watcher knows that no others changed."""
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


# ---------------------------------------------------------------- which files


class Warnings:
    """The warnings of one query or update. A separate object: if the parts of a searcher held the searcher
    itself, that would be a cycle, and a searcher that is dropped would keep its index open."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)


@dataclass(slots=True)
class _LastCheck:
    """What the last check of all files saw."""

    purged: Stamp | None = None
    unmerged: frozenset[str] = frozenset()


@dataclass(slots=True)
class IndexedFiles:
    home: Home
    workspaces: Workspaces
    warnings: Warnings
    tree: Tree = field(init=False)
    _purged: tuple[Stamp | None, PurgedRecords] = (None, PurgedRecords())  # raw/purged.jsonl as last read
    _last_check: _LastCheck = field(default_factory=_LastCheck)

    def __post_init__(self) -> None:
        self.tree = NoteTree(self.home.root)

    def list(
        self, known: Mapping[str, Stamp] | None = None, paths: Collection[str] | None = None
    ) -> dict[str, Stamp]:
        """All files. If only `paths` changed since `known`, those are read again and the rest is kept."""
        purged = self.purged()
        if known and paths is not None and not self.is_purged_anew() and not self.is_merged_anew():
            doubtful = (path for path, stamp in known.items() if stamp.inode < 0)
            stamps = self._stamp_files({*paths, *doubtful})
            if stamps is not None:
                changed = purged.applied(
                    {
                        path: stamp
                        for path, stamp in stamps.items()
                        if stamp and path not in self._last_check.unmerged
                    }
                )
                return {**{path: stamp for path, stamp in known.items() if path not in stamps}, **changed}
        unmerged = self._last_check.unmerged = list_unmerged_below(self.home.root)
        listed = purged.applied(
            {
                path: make_stamp(info)
                for path, info in walk_indexed(str(self.home.root))
                if path not in unmerged
            }
        )
        return listed | self.workspaces.stamps(known or {}) if self.workspaces else listed

    def _stamp_files(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """Their current stamps; None if only a check of all files can tell."""
        own = stat_listed(str(self.home.root), [path for path in paths if not is_workspace_path(path)])
        attached = self.workspaces.some([path for path in paths if is_workspace_path(path)])
        if own is None or attached is None:
            return None
        return {path: None if info is None else make_stamp(info) for path, info in own.items()} | attached

    def read(self, path: str) -> bytes:
        return self.workspaces.read(path) if is_workspace_path(path) else self.tree.read(path)

    def purged(self) -> PurgedRecords:
        stamp = file_stamp(self.home.root)
        if stamp != self._purged[0] or self._purged[1].trouble:
            self._purged = stamp, load_purged(self.home.root)
        if self._purged[1].trouble:
            self.warnings.add(self._purged[1].trouble)
        return self._purged[1]

    def mark_checked(self) -> None:
        """Note that all files have been checked against the purged origins as they were last read."""
        self._last_check.purged = self._purged[0]

    def is_purged_anew(self) -> bool:
        """Whether raw/purged.jsonl changed since all files were last checked."""
        return file_stamp(self.home.root) != self._last_check.purged

    def is_merged_anew(self) -> bool:
        """Whether git's list of unmerged files changed since all files were last checked. The files may still
        be the same."""
        return list_unmerged_below(self.home.root) != self._last_check.unmerged

    def find_with(self, words: Sequence[str], listed: Collection[str]) -> Sequence[str] | None:
        """Which of the listed files contain any of the words, with all of the workspaces; None if ripgrep is
        missing or fails."""
        root = str(self.home.root)
        folders = [folder for folder in INDEXED if os.path.isdir(f"{root}/{folder}")]
        paths = run_ripgrep(root, folders, words)
        return None if paths is None else [*paths, *filter(is_workspace_path, listed)]


def run_ripgrep(root: str, folders: Sequence[str], words: Sequence[str]) -> Sequence[str] | None:
    """Paths inside the root; None if ripgrep is missing or fails. Words are literal, never patterns or
    options."""
    program = shutil.which("rg")
    if program is None or not words:
        return None
    terms = [part for word in words for part in ("-e", word)]
    options = ["--no-config", "--no-ignore", "--hidden", "--files-with-matches", "--null", "-i", "-F", "-a"]
    try:
        result = subprocess.run(
            [program, *options, *terms, "--", *folders],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RIPGREP_TIMEOUT_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if result.returncode not in (0, 1):  # 1: nothing found
        return None
    return [path for path in result.stdout.decode("utf-8", "surrogateescape").split("\0") if path]


# ---------------------------------------------------------------- from files to chunks


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """The result of one update. `left`: files for which there was no time."""

    read: int = 0
    gone: int = 0
    unchanged: int = 0
    chunks: int = 0
    left: int = 0
    failed: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()  # in the files themselves: they are indexed anyway


def update_index(
    index: Index,
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    *,
    known: Mapping[str, Stamp] | None = None,
    until: float | None = None,
    largest: int | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: (),
    purged: Callable[[str], frozenset[int]] = lambda path: frozenset(),
) -> UpdateReport:
    """Make the index hold exactly the files in `listed`. `until`: the monotonic time to stop at. `largest`:
    maximum bytes of a file; larger ones are left for later. `known`: the stamps in the index, if the caller
    has them. `agents_of`: the agents that own a file by its path. `purged`: events of a transcript to leave
    out."""
    known = index.stamps() if known is None else known
    changed = [path for path, stamp in listed.items() if known.get(path) != stamp]
    gone = [path for path in known if path not in listed]
    if gone:
        index.replace((), gone)
    done = chunks = 0
    failed: list[Problem] = []
    problems: list[Problem] = []

    def make_document(path: str, data: bytes) -> Document:
        return read_document(path, decode(data), _modified_day(listed[path]), agents_of(path), purged(path))

    small_enough = [path for path in changed if largest is None or listed[path].size <= largest]
    for batch in _split_batches(_read_documents(small_enough, listed, read, failed, make_document)):
        index.replace(batch)
        done += len(batch)
        chunks += sum(len(item.chunks) for item, _ in batch)
        problems += [problem for item, _ in batch for problem in item.problems]
        tick(done + len(failed), len(changed))
        if until is not None and time.monotonic() > until:
            break
    _remove_unreadable(index, known, failed)
    return UpdateReport(
        read=done,
        gone=len(gone),
        unchanged=len(listed) - len(changed),
        chunks=chunks,
        left=len(changed) - done - len(failed),
        failed=tuple(failed),
        problems=tuple(problems),
    )


def _remove_unreadable(index: Index, known: Mapping[str, Stamp], failed: Iterable[Problem]) -> None:
    """Remove files that can no longer be read, so that they are not found with their old text."""
    stale = [problem.where for problem in failed if problem.where in known]
    if stale:
        index.replace((), stale)


def _read_documents(
    paths: Iterable[str],
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    failed: list[Problem],
    make_document: Callable[[str, bytes], Document],
) -> Iterator[tuple[Document, Stamp]]:
    now = time.time_ns()
    for path in paths:
        try:
            path.encode()
            data = read(path)
        except UnicodeEncodeError:
            failed.append(Problem(path, "has a name that is not UTF-8, so it is not indexed.", "Rename it."))
            continue
        except (OSError, StoreError) as error:
            failed.append(Problem(path, f"could not be read: {error}", "Mend it and run: tacit index"))
            continue
        yield make_document(path, data), _mark_racy(listed[path], now)


def _mark_racy(stamp: Stamp, now: int) -> Stamp:
    """Make the stamp differ next time if the file may still change without a new time."""
    return stamp if abs(now - stamp.mtime_ns) > _RACY_NS else stamp._replace(inode=-1)


def _modified_day(stamp: Stamp) -> date:
    try:
        return datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC).date()
    except (ValueError, OverflowError, OSError):
        return date(1970, 1, 1)


def _split_batches(documents: Iterable[tuple[Document, Stamp]]) -> Iterator[list[tuple[Document, Stamp]]]:
    batch: list[tuple[Document, Stamp]] = []
    size = 0
    for item in documents:
        batch.append(item)
        size += len(item[0].chunks) + 1
        if size >= _CHUNKS_PER_BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def embed_chunks(
    index: Index,
    embedder: Embedder,
    *,
    until: float | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> int:
    """Embed chunks that have no vector, as many as there is time for. Returns their number.

    With a time limit the first call is small, and its time decides how many texts the next ones get: one call
    with many long texts would outlast the turn that waits for it."""
    index.vectors.use_embedder(embedder.name)
    done, size = 0, _TEXTS_PER_CALL if until is None else _FIRST_TEXTS
    waiting: list[tuple[bytes, str]] = []
    while until is None or time.monotonic() < until:
        waiting = waiting or index.vectors.list_unembedded(_TEXTS_PER_CALL * 8)
        if not waiting:
            break
        batch, waiting = waiting[:size], waiting[size:]
        began = time.monotonic()
        seconds = None if until is None else max(0.1, until - began)
        vectors = embedder.documents([text for _, text in batch], seconds)
        index.vectors.store({digest: vector for (digest, _), vector in zip(batch, vectors, strict=True)})
        done += len(batch)
        tick(done)
        if until is not None:
            size = _count_texts_in_time(len(batch), time.monotonic() - began, until - time.monotonic())
    return done


def _count_texts_in_time(count: int, seconds: float, seconds_left: float) -> int:
    """How many texts fit into the time that is left, if these took so long. It grows in steps."""
    in_time = int(count * seconds_left / seconds) if seconds > 0 else _TEXTS_PER_CALL
    return max(1, min(in_time, 4 * count, _TEXTS_PER_CALL))
