"""What every index does. tests/index/contract.py says it as tests, for any backend.

An index holds documents as passages with two ways to find them: by words and by vectors. It ranks nothing
across the two and knows no query language; that is for tacit.search. What a scope excludes is never read, on
either side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias

from tacit.errors import TacitError
from tacit.model.links import Link, Neighbour
from tacit.model.search import EVERYTHING, Audience, Category, Document, Passage, Scope, Scored, Stamp

NEIGHBOURS = 60  # passages to each side that `around` gives at most


class IndexUnavailable(TacitError):
    """It cannot answer now (locked, read-only, full disk). Nothing is wrong with it: ask again later."""


class IndexBroken(TacitError):
    """It cannot be trusted: damaged, foreign, or of another version. Set it aside and build a new one."""


Place: TypeAlias = tuple[str, int]  # of a passage: its file and its first line


class Stored(NamedTuple):
    """A passage as the index gives it back, with what it needs to know of its file."""

    id: int
    path: str
    title: str
    category: Category
    audience: Audience
    archived: bool
    passage: Passage  # without its surroundings


class Facts(NamedTuple):
    files: int
    passages: int
    embedded: int  # passages that have a vector
    generation: int  # grows with every change
    embedder: str  # whose vectors are held; empty: none


class Index(Protocol):
    def unmoving(self) -> AbstractContextManager[None]:
        """All questions inside are answered from one state, whatever others write meanwhile; and sooner,
        since none of them asks again whether something changed. Nothing may be written inside."""

    def stamps(self) -> dict[str, Stamp]:
        """The files it holds and what they were like when they were read."""

    def replace(self, documents: Sequence[tuple[Document, Stamp]], gone: Collection[str] = ()) -> None:
        """All of these changes or none: each document in place of what was there under its path."""

    def lexical(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Scored]:
        """The passages that hold one of the terms at least, best BM25 first. A term of several words is found
        where they stand together."""

    def frequency(self, term: str, scope: Scope = EVERYTHING) -> float:
        """The share of passages in which a term is found, 0 to 1. Who is not the owner learns of those in the
        scope alone: how rare a word is would tell that it stands in a hidden file."""

    def nearest(self, vector: bytes, scope: Scope, limit: int) -> list[Scored]:
        """The passages with the highest cosine to `vector`, best first."""

    def cosines(self, vector: bytes, ids: Collection[int]) -> dict[int, float]:
        """For those of the passages that have a vector."""

    def background(self) -> list[float]:
        """Cosines between texts taken at random: what unrelated texts have for this embedder."""

    def stored(self, ids: Collection[int]) -> dict[int, Stored]: ...

    def windows(self, ids: Collection[int]) -> dict[int, str]:
        """Those that are turns, with the two turns before, the one after, and who spoke."""

    def around(self, places: Collection[Place], before: int = 0, after: int = 0) -> dict[Place, list[Stored]]:
        """The passages at these places among their neighbours in the file, in its order. A record is taken
        as a whole, in however many passages it is; a passage of a note counts as one record. So with 0 and 0
        a message comes complete. Of a book only so many passages as NEIGHBOURS says."""

    def matched(self, terms: Sequence[str], text: str) -> list[tuple[int, int, str]]:
        """Where terms stand in a text, by the rules of this index: start, end and the term."""

    def vectors_of(self) -> str:
        """The name of the embedder whose vectors are held; empty: there are none."""

    def has_all_vectors(self) -> bool:
        """Whether every passage was given to the embedder."""

    def use_embedder(self, name: str) -> None:
        """Hold vectors of this embedder from now on. Those of another one are let go."""

    def unembedded(self, limit: int) -> list[tuple[bytes, str]]:
        """Texts that have no vector yet, under the digest to give with it. Equal texts come once."""

    def keep(self, vectors: Mapping[bytes, bytes | None]) -> None:
        """Vectors by the digest of their text; None: it has none, do not ask again."""

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        """People and projects that have a file in the scope."""

    def references(self, paths: Collection[str], scope: Scope = EVERYTHING) -> dict[str, int]:
        """How many other notes point to each of these; those to which none does are left out. Only notes that
        who asks may see are counted: else the order would tell of the others."""

    def neighbours(self, paths: Collection[str], scope: Scope) -> list[Neighbour]:
        """Notes in the scope that these point to, and those that point to them."""

    def passages_of(self, paths: Collection[str], scope: Scope, most: int) -> dict[str, list[int]]:
        """The first passages, in the scope, of each of these files."""

    def links(self, scope: Scope = EVERYTHING, path: str | None = None) -> list[Link]:
        """All links between notes in the scope, in the order of files and lines, each with where it leads in
        the scope; or those from and to the file at this path. One that leads to itself alone is left out."""

    def called(self, name: str, scope: Scope = EVERYTHING) -> list[str]:
        """The files in the scope that a link with this path or name leads to."""

    def notes(self, scope: Scope = EVERYTHING) -> list[str]:
        """The paths of notes in the scope."""

    def facts(self) -> Facts: ...

    def close(self) -> None: ...
