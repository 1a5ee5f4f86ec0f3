"""Values of search: what is indexed, what may be seen, and results.

`Chunk` and `Document` are tuples and not dataclasses: one run creates a hundred thousand of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.home.categories import Category
from tacit.markdown.links import Pointer
from tacit.privacy.audience import Audience


class Chunk(NamedTuple):
    """A piece of a file that can be found and quoted: a turn, or a few paragraphs."""

    text: str
    first_line: int
    last_line: int
    section: tuple[str, ...]  # the headings above, outermost first
    day: str  # ISO date, empty if unknown
    speaker: str
    turn: int  # number of the event in a transcript, 0 in a note
    near: tuple[int, int]  # range of chunks of its document that are indexed with it, end excluded


class Document(NamedTuple):
    """One file with its chunks."""

    path: str
    category: Category
    audience: Audience
    agents: tuple[str, ...]  # empty: all agents of this home
    conversation: str  # the session key of a transcript
    archived: bool
    title: str
    day: str
    tags: tuple[str, ...]
    lines: int
    chunks: tuple[Chunk, ...]
    problems: tuple[Problem, ...]
    names: tuple[str, ...] = ()  # names that a [[link]] may use, besides its path
    links: tuple[Pointer, ...] = ()  # to other files


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search may see. The default is everything, the owner's view."""

    categories: tuple[Category, ...] = ()  # empty: all
    audience: Audience = "owner"  # an owner sees all, a group what is for groups or for anyone
    conversation: str = ""  # also the transcripts of this session key: a group may see its own
    agents: tuple[str, ...] = ()  # empty: no restriction; else what is shared or belongs to one of these
    since: date | None = None
    until: date | None = None
    under: str = ""  # a path or a prefix of one
    without: tuple[str, ...] = ()  # paths to exclude
    archived: bool | None = None  # None: both


EVERYTHING = Scope()


class Scored(NamedTuple):
    id: int
    score: float


@dataclass(frozen=True, slots=True)
class Why:
    """How a hit got its rank. `score` is the sum of the parts, each in standard deviations above what any
    chunk gets for any query."""

    score: float
    standing: float = 0.0  # decides the order: the score, or the blend with the reranker's
    lexical: float = 0.0
    vector: float = 0.0
    boosts: tuple[tuple[str, float], ...] = ()
    bm25: float | None = None  # None: not found by this channel
    cosine: float | None = None
    rerank: float | None = None
    words: tuple[str, ...] = ()  # of the query that are in the chunk
    lexical_rank: int | None = None
    vector_rank: int | None = None
    # For a turn that repeats the query: its relevance among the other hits. None for all other hits.
    echo: float | None = None
    linked: str = ""  # the file it is linked with, if that is the only reason for the hit


@dataclass(frozen=True, slots=True)
class Hit:
    path: str
    text: str
    snippet: str  # around the match, in the original case, matched words between ** **
    score: float  # calibrated relevance: 0 to 1, comparable between embedders
    category: Category
    lines: tuple[int, int]
    day: str
    speaker: str
    turn: int
    title: str
    section: tuple[str, ...]
    audience: Audience
    archived: bool
    why: Why


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one search, and how it was made."""

    hits: tuple[Hit, ...]
    channels: tuple[str, ...]  # the channels that answered: lexical, vector, rerank; or scan
    degraded: tuple[str, ...] = ()  # what was not available, and why
    trace: dict[str, object] = field(default_factory=dict)  # for --explain


class Link(NamedTuple):
    """A resolved link: no targets if it is broken, several if its name is ambiguous."""

    source: str
    line: int
    written: str
    targets: tuple[str, ...]


class Neighbour(NamedTuple):
    """One note that another links to, or is linked from."""

    path: str
    other: str
    forward: bool  # `path` links to `other`


@dataclass(frozen=True, slots=True)
class NoteLinks:
    """The links from and to one note."""

    path: str
    to: tuple[Link, ...]
    by: tuple[Link, ...]

    @property
    def broken(self) -> tuple[Link, ...]:
        return tuple(link for link in self.to if not link.targets)


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """The links of all notes."""

    notes: int
    links: int
    most: tuple[tuple[str, int], ...]  # notes with the number of links to each, most linked first
    broken: tuple[Link, ...]
    ambiguous: tuple[Link, ...]
    orphans: tuple[str, ...]  # notes without links in either direction
