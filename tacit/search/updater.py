"""Updates an index from the files and embeds its chunks.

An unchanged file costs one stat. Words come first, in transactions of many files each; vectors follow
separately, so that a slow embedder never delays new text, and a killed run loses at most one batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from tacit.diagnostics import Problem
from tacit.embeddings.protocol import Embedder
from tacit.errors import StoreError
from tacit.home.listing import Stamp
from tacit.markdown.notes import decode
from tacit.search.documents import read_document
from tacit.search.index import Index
from tacit.search.model import Document

_CHUNKS_PER_BATCH = 2_000  # chunks in a transaction: memory stays flat, and other writers get their turn
_TEXTS_PER_CALL = 512  # texts per call of the embedder
_RACY_NS = 50_000_000  # a file this fresh may change again without a new time


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
    """Embed chunks that have no vector, as many as there is time for. Returns their number."""
    index.vectors.use_embedder(embedder.name)
    done = 0
    while until is None or time.monotonic() < until:
        waiting = index.vectors.list_unembedded(_TEXTS_PER_CALL * 8)
        if not waiting:
            break
        for start in range(0, len(waiting), _TEXTS_PER_CALL):
            batch = waiting[start : start + _TEXTS_PER_CALL]
            seconds = None if until is None else max(0.1, until - time.monotonic())
            vectors = embedder.documents([text for _, text in batch], seconds)
            index.vectors.store({digest: vector for (digest, _), vector in zip(batch, vectors, strict=True)})
            done += len(batch)
            tick(done)
            if until is not None and time.monotonic() > until:
                break
    return done
