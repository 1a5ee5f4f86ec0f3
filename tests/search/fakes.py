"""Embedders and rerankers of a few words, and indexes made of texts that stand in the test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tacit.embeddings.protocol import Embedder, EmbedderError, Reranker, scale_to_bytes
from tacit.home.listing import Stamp
from tacit.search.home_index import embed_chunks, update_index
from tacit.search.hybrid import Engine
from tacit.search.index import Index, IndexUnavailable, SearchParts
from tacit.search.scoring import Calibration
from tacit.search.sqlite.index import SQLITE, SqliteIndex, open_memory_index

LONG_AGO = 1_770_000_000_000_000_000  # 2 February 2026, in nanoseconds
CALIBRATION = Calibration(mean=0.1, spread=0.2, trust=1.0, bias=-2.0, words=2.0, meaning=1.0)

_WORD = re.compile(r"\w+")
_SIZE = 32

# Words of one line mean the same.
SENSES = (
    "car automobile vehicle",
    "doctor physician",
    "kiln furnace oven",
    "money invoice payment",
    "cat kitten",
    "sea ocean",
)


def parts(
    embedder: Callable[[], Embedder | None] = lambda: None,
    reranker: Callable[[], Reranker | None] = lambda: None,
) -> SearchParts:
    return SearchParts(lambda: SQLITE, embedder, reranker)


def unreadable_parts() -> SearchParts:
    """An index that cannot be opened now."""

    def refuse(_: Path) -> Index:
        raise IndexUnavailable("the index cannot be used now (disk I/O error)")

    return SearchParts(lambda: SQLITE._replace(open=refuse))


@dataclass
class Meaning:
    """An embedder that knows a few senses, and keeps everything it was asked for."""

    name: str = "senses/1"
    dimensions: int = _SIZE
    senses: Sequence[str] = SENSES
    embedded: list[str] = field(default_factory=list)
    asked: list[tuple[str, float | None]] = field(default_factory=list)
    broken: str = ""

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        self._answers()
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        self.asked.append((text, seconds))
        self._answers()
        return self._vector(text)

    def _answers(self) -> None:
        if self.broken:
            raise EmbedderError(self.broken)

    def _vector(self, text: str) -> bytes | None:
        numbers = [0.0] * self.dimensions
        for word in _WORD.findall(text.casefold()):
            for place, sense in enumerate(self.senses):
                if word in sense.split():
                    numbers[place] += 1.0
        return scale_to_bytes(numbers)


@dataclass
class Reader:
    """A reranker that likes texts with certain words, and reads only so many."""

    likes: Mapping[str, float]
    most: int = 10_000
    name: str = "reader"
    read: list[str] = field(default_factory=list)
    deadlines: list[float | None] = field(default_factory=list)

    def scores(self, query: str, texts: Sequence[str], deadline: float | None) -> list[float | None]:
        self.read += texts
        self.deadlines.append(deadline)
        found = [sum(size for word, size in self.likes.items() if word in text) for text in texts]
        return [score if place < self.most else None for place, score in enumerate(found)]


def index_of(texts: Mapping[str, str], embedder: Meaning | None = None) -> SqliteIndex:
    """A real index in memory, of files that are only here."""
    index = open_memory_index()
    listed = {path: Stamp(LONG_AGO, len(text), number) for number, (path, text) in enumerate(texts.items())}
    update_index(index, listed, lambda path: texts[path].encode("utf-8", "surrogateescape"))
    if embedder is not None:
        embed_chunks(index, embedder)
    return index


def engine_of(
    texts: Mapping[str, str], embedder: Meaning | None = None, reader: Reader | None = None
) -> Engine:
    return Engine(index_of(texts, embedder), embedder, CALIBRATION, reader)
