"""Documents and vectors by hand, for the tests of every index."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from tacit.home.listing import Stamp
from tacit.markdown.links import Pointer
from tacit.search.documents import embedded_text
from tacit.search.index import Index
from tacit.search.model import EVERYTHING, Chunk, Document, Scope, Scored
from tacit.search.query import parse_query

STAMP = Stamp(1_760_000_000_000_000_000, 100, 7)
DAY = "2026-01-02"

Place = tuple[str, int]  # the file, and which of its chunks, from 0


def document(path: str, chunks: Sequence[Chunk] = (), **fields: Any) -> Document:
    given: dict[str, Any] = {
        "category": "reference", "audience": "owner", "agents": (), "conversation": "", "archived": False,
        "title": "", "day": DAY, "tags": (), "lines": len(chunks), "problems": (),
    }  # fmt: skip
    return Document(path=path, chunks=tuple(chunks), **given | fields)


def note(
    path: str, *texts: str, reach: int = 0, section: tuple[str, ...] = (), day: str = DAY, **fields: Any
) -> Document:
    """One chunk for each text, on a line each. `reach`: how many neighbours to each side belong to it."""
    return document(path, _chunks([("", text) for text in texts], reach, section, day), day=day, **fields)


def talk(path: str, *said: tuple[str, str], reach: int = 2, day: str = DAY, **fields: Any) -> Document:
    """Turns: who, and what."""
    fields = {"category": "conversation", "conversation": "agent:main:main", **fields}
    return document(path, _chunks(said, reach, (), day), day=day, **fields)


def _chunks(said: Sequence[tuple[str, str]], reach: int, section: tuple[str, ...], day: str) -> list[Chunk]:
    return [
        Chunk(
            text=text,
            first_line=at + 1,
            last_line=at + 1,
            section=section,
            day=day,
            speaker=speaker,
            turn=at + 1 if speaker else 0,
            near=(max(0, at - reach), min(len(said), at + reach + 1)),
        )
        for at, (speaker, text) in enumerate(said)
    ]


def points(*targets: str) -> tuple[Pointer, ...]:
    return tuple(Pointer(target, target, 1) for target in targets)


def put(index: Index, *documents: Document, gone: Sequence[str] = ()) -> None:
    index.replace([(one, STAMP) for one in documents], gone)


def places(index: Index, found: Sequence[Scored]) -> list[Place]:
    """Where they stand, in the same order; documents of these helpers have a chunk on each line."""
    stored = index.read_chunks([one.id for one in found])
    return [(stored[one.id].path, stored[one.id].chunk.first_line - 1) for one in found]


def by_words(index: Index, *terms: str, scope: Scope = EVERYTHING, limit: int = 100) -> list[Place]:
    return places(index, index.words.search(terms, scope, limit))


def by_question(index: Index, question: str) -> list[Place]:
    return by_words(index, *(term.text for term in parse_query(question).terms))


def by_vector(index: Index, asked: bytes, scope: Scope = EVERYTHING, limit: int = 100) -> list[Place]:
    return places(index, index.vectors.nearest(asked, scope, limit))


# Vectors


def vector(*values: int) -> bytes:
    return array("b", values).tobytes()


def embed(index: Index, given: Mapping[str, bytes | None], name: str = "by hand") -> list[str]:
    """Vectors for all texts that wait, by what the text holds. Returns the texts."""
    index.vectors.use_embedder(name)
    waiting = index.vectors.list_unembedded(10_000)
    index.vectors.store({digest: _held(text, given) for digest, text in waiting})
    return [text for _, text in waiting]


def _held(text: str, given: Mapping[str, bytes | None]) -> bytes | None:
    return next(held for key, held in given.items() if key in text)


class Hashing:
    """An embedder for tests: each word pushes the vector into a direction of its own. Counts what it is
    given, and knows no words in texts of digits."""

    def __init__(self, name: str = "hashing", dimensions: int = 64) -> None:
        self.name, self.dimensions = name, dimensions
        self.texts: list[str] = []

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        self.texts += texts
        return [self._of(text) for text in texts]

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        return self._of(text)

    def _of(self, text: str) -> bytes | None:
        words = re.findall(r"[^\W\d_]+", text.casefold())
        if not words:
            return None
        sums = [0] * self.dimensions
        for word in words:
            digest = blake2b(word.encode("utf-8", "replace"), digest_size=self.dimensions).digest()
            sums = [held + byte - 128 for held, byte in zip(sums, digest, strict=True)]
        largest = max(map(abs, sums)) or 1
        return vector(*(round(held / largest * 127) for held in sums))


def text_of(one: Document, at: int = 0) -> str:
    """What an embedder gets to read of a chunk."""
    chunk = one.chunks[at]
    return embedded_text(one.title, chunk.section, chunk.speaker, chunk.text)
