"""Search without an index on disk: a fallback that scans the files, and files as they were at a commit.

The files with the most different words of the query are read into an index in memory, which then answers
lexically: same filters, same ranking, same kind of hits. The files are chosen by the beginnings of words in
their text and name, so that hardly any file is missed that the index would find.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import log

from tacit.embeddings.protocol import EmbedderError
from tacit.errors import StoreError
from tacit.home.categories import category_of
from tacit.home.listing import Stamp
from tacit.search.home_index import embed_chunks, update_index
from tacit.search.hybrid import Engine, find
from tacit.search.index import ChunkLocation, Index, IndexTimeout, SearchParts, StoredChunk
from tacit.search.model import EVERYTHING, Found, Scope
from tacit.search.query import MAX_CHARS, parse_query
from tacit.search.scoring import Calibration, choose_calibration, load_calibrations
from tacit.text.words import clean, find_aliases, fold, prepare_document
from tacit.transcripts.purged import PurgedRecords

_MAX_FILES = 300  # files that are read into the index in memory
_SUFFIX_CHARS = 3  # letters that may differ at the end of a word: reads, reading
_MIN_PREFIX_CHARS = 3
_PIECE = re.compile(r"[^\W_]+")


def fallback_search(
    text: object,
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    *,
    scope: Scope,
    limit: int,
    now: datetime | None,
    index: Index,
    calibration: Calibration,
    narrow: Callable[[Sequence[str]], Iterable[str] | None] = lambda words: None,
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: (),
    purged: Callable[[str], frozenset[int]] = lambda path: frozenset(),
    spreading: float = 0.0,
    is_over: Callable[[], bool] = lambda: False,
) -> Found:
    """`index` is an empty one in memory. `narrow` may quickly find the files with any of the words.
    `is_over` is checked before each file; when it is true, raises IndexTimeout."""

    def read_in_time(path: str) -> bytes:
        if is_over():
            raise IndexTimeout("there was no time to look through all files")
        return read(path)

    words = _word_prefixes(text, now)
    inside = [path for path in listed if _is_inside(path, scope)] if words else []
    candidates = narrow(words) if inside and _are_literal(text) else None
    if candidates is not None:
        candidate_set = frozenset(candidates)
        inside = [path for path in inside if path in candidate_set or _words_in(words, fold(path))]
    best = _best_files(inside, words, read_in_time)
    best_stamps = {path: listed[path] for path in best}
    report = update_index(index, best_stamps, read_in_time, agents_of=agents_of, purged=purged)
    answer = find(Engine(index, None, calibration, spreading=spreading), text, scope, limit, now=now)
    return replace(
        answer, channels=("scan",), trace={**answer.trace, "read": report.read, "files": len(listed)}
    )


def _word_prefixes(text: object, now: datetime | None) -> list[str]:
    """The strings to search in raw text: the beginnings of the words, since there is no stemming here."""
    pieces = [piece for term in parse_query(text, now).terms for piece in _PIECE.findall(fold(term.text))]
    return list(
        dict.fromkeys(piece[: max(_MIN_PREFIX_CHARS, len(piece) - _SUFFIX_CHARS)] for piece in pieces)
    )


def _are_literal(text: object) -> bool:
    """Whether the words can be searched literally. `é` can be written in two ways, and the alias that the
    index stores for `C++` is in no file."""
    question = text[:MAX_CHARS] if isinstance(text, str) else ""
    return question.isascii() and not any(find_aliases(clean(question)))


def _is_inside(path: str, scope: Scope) -> bool:
    """Checks the parts of the scope that need only the path; the rest is checked after reading."""
    return (
        path.startswith(scope.under)
        and (not scope.categories or category_of(path) in scope.categories)
        and (scope.archived is None or scope.archived == path.startswith("archive/"))
    )


def _words_in(words: Sequence[str], text: str) -> list[str]:
    return [word for word in words if word in text]


def _best_files(paths: Iterable[str], words: Sequence[str], read: Callable[[str], bytes]) -> list[str]:
    """The files with the most words, rare ones counting more."""
    words_by_path: dict[str, list[str]] = {}
    for path in paths:
        try:
            text = fold(prepare_document(f"{path}\n{read(path).decode('utf-8', 'replace')}"))
        except (OSError, StoreError):
            continue
        if present := _words_in(words, text):
            words_by_path[path] = present
    files = Counter(word for present in words_by_path.values() for word in present)
    weights = {word: log(1 + len(words_by_path) / count) for word, count in files.items()}
    return sorted(
        words_by_path, key=lambda path: (-sum(weights[word] for word in words_by_path[path]), path)
    )[:_MAX_FILES]


class Snapshot:
    """Searches `files` as `Searcher` does. `moment`: the day of notes without a date. What was purged since
    is left out."""

    def __init__(
        self, files: Mapping[str, bytes], moment: datetime, parts: SearchParts, purged: PurgedRecords
    ) -> None:
        self.notes: list[str] = []
        index = parts.backend().open_in_memory()
        stamp = Stamp(int(moment.timestamp() * 1e9), 0, 0)
        listed = purged.applied(dict.fromkeys(files, stamp))
        update_index(index, listed, files.__getitem__, purged=purged.records)
        try:
            embedder = parts.embedder()
            if embedder is not None:
                embed_chunks(index, embedder)
        except EmbedderError as error:
            embedder = None
            self.notes.append(f"vector: {error}")
        name = embedder.name if embedder else ""
        self._engine = Engine(
            index,
            embedder,
            choose_calibration(
                load_calibrations(), name, reranker=False, unrelated=index.vectors.sample_cosines
            ),
            None,
            parts.lexical_weight,
            parts.vector_weight,
            spreading=parts.spreading,
        )

    def find(
        self, text: object, scope: Scope = EVERYTHING, limit: int = 10, *, now: datetime | None = None
    ) -> Found:
        return find(self._engine, text, scope, limit, now=now, snippets=False)

    def around(
        self, places: Collection[ChunkLocation], before: int = 0, after: int = 0
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        return self._engine.index.around(places, before, after)

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        return self._engine.index.names(scope)
