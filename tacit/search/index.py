"""The protocol of an index, which tests/search/sqlite/contract.py tests for any backend.

An index holds documents as chunks and finds them by words, by vectors and along links, each behind a protocol
of its own. Ranking across them and the query language are in other modules of tacit.search. What a scope
excludes is never read by any of them. The services choose the backend (`tacit/services.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from tacit.embeddings.protocol import Embedder, Reranker
from tacit.errors import TacitError
from tacit.home.categories import Category
from tacit.home.listing import Stamp
from tacit.privacy.audience import Audience
from tacit.search.model import EVERYTHING, Chunk, Document, Link, Neighbour, Scope, Scored
from tacit.search.weights import LEXICAL_WEIGHT, LINK_SHARE, VECTOR_WEIGHT

MAX_NEIGHBOURS = 60  # maximum number of chunks that `around` gives on each side


class IndexUnavailable(TacitError):
    """The index cannot answer now (locked, read-only, full disk). It is not damaged: try again later."""


class IndexTimeout(IndexUnavailable):
    """The query was given up: the deadline has passed, or the caller has gone."""


class IndexBroken(TacitError):
    """The index is damaged, foreign, or of another version. Quarantine it and build a new one."""


ChunkLocation: TypeAlias = tuple[str, int]  # of a chunk: its file and its first line


class StoredChunk(NamedTuple):
    """A chunk as the index returns it, with fields of its file."""

    id: int
    path: str
    title: str
    category: Category
    audience: Audience
    archived: bool
    chunk: Chunk  # without its surroundings


class IndexStats(NamedTuple):
    files: int
    chunks: int
    embedded: int  # chunks that have a vector
    generation: int  # grows with every change
    embedder: str  # the embedder of the stored vectors; empty: none


class WordIndex(Protocol):
    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Scored]:
        """The chunks that hold at least one of the terms, best BM25 first. A term of several words matches
        as a phrase."""

    def frequency(self, term: str, scope: Scope = EVERYTHING) -> float:
        """The share of chunks that contain a term, 0 to 1. For others than the owner only chunks in the
        scope count: the rarity of a word would reveal that a hidden file contains it."""

    def matches(self, terms: Sequence[str], text: str) -> list[tuple[int, int, str]]:
        """The matches of terms in a text, by the rules of this index: start, end and the term."""


class VectorIndex(Protocol):
    def nearest(self, vector: bytes, scope: Scope, limit: int) -> list[Scored]:
        """The chunks with the highest cosine to `vector`, best first."""

    def cosines(self, vector: bytes, ids: Collection[int]) -> dict[int, float]:
        """Cosines to `vector`, of those chunks that have a vector."""

    def sample_cosines(self) -> list[float]:
        """Cosines between randomly chosen texts: what unrelated texts have with this embedder."""

    def embedder_name(self) -> str:
        """The name of the embedder of the stored vectors; empty if there are none."""

    def is_complete(self) -> bool:
        """Whether every chunk has been embedded."""

    def use_embedder(self, name: str) -> None:
        """Store vectors of this embedder from now on. Those of another one are deleted."""

    def list_unembedded(self, limit: int) -> list[tuple[bytes, str]]:
        """Texts that have no vector yet, each with the digest that `store` needs. Equal texts come once."""

    def store(self, vectors: Mapping[bytes, bytes | None]) -> None:
        """Store vectors by the digest of their text; None: the text has no vector, do not embed it again."""


class LinkIndex(Protocol):
    def count_references(self, paths: Collection[str], scope: Scope = EVERYTHING) -> dict[str, int]:
        """How many other notes link to each of these; notes without such links are left out. Only notes that
        the caller may see are counted: otherwise the order would reveal the others."""

    def neighbours(self, paths: Collection[str], scope: Scope) -> Sequence[Neighbour]:
        """Notes in the scope that these link to, and those that link to them."""

    def list(self, scope: Scope = EVERYTHING, path: str | None = None) -> Sequence[Link]:
        """All links between notes in the scope, in the order of files and lines, with their targets in the
        scope; or those from and to the file at this path. Links of a note to itself are left out."""

    def resolve(self, name: str, scope: Scope = EVERYTHING) -> Sequence[str]:
        """The files in the scope that a link with this path or name leads to."""


class Index(Protocol):
    @property
    def words(self) -> WordIndex: ...

    @property
    def vectors(self) -> VectorIndex: ...

    @property
    def links(self) -> LinkIndex: ...

    @property
    def writable(self) -> bool: ...

    @property
    def unmoving(self) -> Callable[[], AbstractContextManager[None]]:
        """All queries inside see one state, even if another process writes meanwhile. They are also faster,
        since none of them checks again for changes. Nothing may be written inside."""

    @property
    def until(self) -> Callable[[float | None], AbstractContextManager[None]]:
        """Queries inside are given up at this monotonic time, and raise IndexTimeout. In a server the
        server's own deadline applies too, inside or outside of this."""

    @property
    def close(self) -> Callable[[], None]: ...

    def stamps(self) -> dict[str, Stamp]:
        """The files in the index, with their stamps when they were read."""

    def replace(self, documents: Sequence[tuple[Document, Stamp]], gone: Collection[str] = ()) -> None:
        """Replace these documents by their paths and remove the paths in `gone`, all or nothing."""

    def read_chunks(self, ids: Collection[int]) -> dict[int, StoredChunk]: ...

    def windows(self, ids: Collection[int]) -> dict[int, str]:
        """The text of those chunks that are turns, with two turns before, one after, and speakers."""

    def around(
        self, places: Collection[ChunkLocation], before: int = 0, after: int = 0
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        """The chunks at these places with their neighbours in the file, in its order. An event is returned
        whole, even if it is several chunks; a chunk of a note counts as one event. So 0 and 0 give a
        complete message. Very long ones are limited to MAX_NEIGHBOURS chunks; if they are on a single line,
        to those at both of its ends."""

    def chunks_of(self, paths: Collection[str], scope: Scope, most: int) -> dict[str, list[int]]:
        """The first chunks of each of these files, within the scope."""

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        """People and projects that have a file in the scope."""

    def notes(self, scope: Scope = EVERYTHING) -> list[str]:
        """The paths of notes in the scope."""

    def generation(self) -> int:
        """Grows with every change."""

    def stats(self) -> IndexStats: ...


class IndexBackend(NamedTuple):
    """Where indexes are kept. Opening raises IndexBroken or IndexUnavailable."""

    open: Callable[[Path], Index]  # makes an empty index if there is none
    open_in_memory: Callable[[], Index]
    quarantine: Callable[[Path], Path]  # moves a broken index out of the way; returns its new place


@dataclass(frozen=True, slots=True)
class SearchParts:
    """Where the index is kept, and the models and weights that the config chose. They are imported and made
    only when they are needed."""

    backend: Callable[[], IndexBackend]
    embedder: Callable[[], Embedder | None] = lambda: None
    reranker: Callable[[], Reranker | None] = lambda: None
    lexical_weight: float = LEXICAL_WEIGHT
    vector_weight: float = VECTOR_WEIGHT
    spreading: float = LINK_SHARE
