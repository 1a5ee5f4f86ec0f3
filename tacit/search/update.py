"""Bringing an index up to date with the files, and giving its passages vectors.

A file costs a stat unless it changed. Words come first, in transactions of many files each; vectors follow by
themselves, so that a slow embedder never delays what was written, and a killed run loses one batch at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from tacit.embed.protocol import Embedder
from tacit.errors import StoreError
from tacit.index.protocol import Index
from tacit.model.problems import Problem
from tacit.model.search import Document, Stamp
from tacit.text.notes import decode
from tacit.text.passages import document

_BATCH = 2_000  # passages in a transaction: memory stays flat, and others get their turn
_TEXTS = 512  # texts given to an embedder at a time
_RACY = 50_000_000  # nanoseconds: a file this fresh may change again without a new time


@dataclass(frozen=True, slots=True)
class Report:
    """What one update did. `left`: files for which there was no time."""

    read: int = 0
    gone: int = 0
    unchanged: int = 0
    passages: int = 0
    left: int = 0
    failed: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()  # of the files themselves: they are indexed all the same


def update(
    index: Index,
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    *,
    known: Mapping[str, Stamp] | None = None,
    until: float | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: (),
    purged: Callable[[str], frozenset[int]] = lambda path: frozenset(),
) -> Report:
    """Make the index hold just the files that are `listed`. `until`: the monotonic time to stop at. `known`:
    the stamps that the index holds, for who has them. `agents_of`: whose a file is because of where it
    stands. `purged`: which records of a transcript count no more."""
    known = index.stamps() if known is None else known
    changed = [path for path, stamp in listed.items() if known.get(path) != stamp]
    gone = [path for path in known if path not in listed]
    if gone:
        index.replace((), gone)
    done = passages = 0
    failed: list[Problem] = []
    problems: list[Problem] = []

    def made(path: str, data: bytes) -> Document:
        return document(path, decode(data), _day(listed[path]), agents_of(path), purged(path))

    for batch in _batches(_documents(changed, listed, read, failed, made)):
        index.replace(batch)
        done += len(batch)
        passages += sum(len(found.passages) for found, _ in batch)
        problems += [problem for found, _ in batch for problem in found.problems]
        tick(done + len(failed), len(changed))
        if until is not None and time.monotonic() > until:
            break
    _forget(index, known, failed)
    return Report(
        read=done,
        gone=len(gone),
        unchanged=len(listed) - len(changed),
        passages=passages,
        left=len(changed) - done - len(failed),
        failed=tuple(failed),
        problems=tuple(problems),
    )


def _forget(index: Index, known: Mapping[str, Stamp], failed: Iterable[Problem]) -> None:
    """What can no longer be read must not be found with its old text."""
    stale = [problem.where for problem in failed if problem.where in known]
    if stale:
        index.replace((), stale)


def _documents(
    paths: Iterable[str],
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    failed: list[Problem],
    made: Callable[[str, bytes], Document],
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
        yield made(path, data), _trusted(listed[path], now)


def _trusted(stamp: Stamp, now: int) -> Stamp:
    """A stamp that will not be equal next time if the file may still change without a new time."""
    return stamp if abs(now - stamp.mtime_ns) > _RACY else stamp._replace(inode=-1)


def _day(stamp: Stamp) -> date:
    try:
        return datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC).date()
    except (ValueError, OverflowError, OSError):
        return date(1970, 1, 1)


def _batches(found: Iterable[tuple[Document, Stamp]]) -> Iterator[list[tuple[Document, Stamp]]]:
    held: list[tuple[Document, Stamp]] = []
    size = 0
    for one in found:
        held.append(one)
        size += len(one[0].passages) + 1
        if size >= _BATCH:
            yield held
            held, size = [], 0
    if held:
        yield held


def embed(
    index: Index,
    embedder: Embedder,
    *,
    until: float | None = None,
    tick: Callable[[int], None] = lambda done: None,
) -> int:
    """Give vectors to passages that have none, as many as there is time for. Returns how many."""
    index.use_embedder(embedder.name)
    done = 0
    while until is None or time.monotonic() < until:
        waiting = index.unembedded(_TEXTS * 8)
        if not waiting:
            break
        for start in range(0, len(waiting), _TEXTS):
            some = waiting[start : start + _TEXTS]
            seconds = None if until is None else max(0.1, until - time.monotonic())
            vectors = embedder.documents([text for _, text in some], seconds)
            index.keep({digest: vector for (digest, _), vector in zip(some, vectors, strict=True)})
            done += len(some)
            tick(done)
            if until is not None and time.monotonic() > until:
                break
    return done
