"""What is indexed, what may be seen, and what is found, as values.

`Passage` and `Document` are tuples and not dataclasses: a hundred thousand of them are made in one run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple, TypeAlias, get_args

from tacit.model.links import Pointer
from tacit.model.problems import Problem

Category: TypeAlias = Literal[
    "identity", "memory", "journal", "project", "person", "procedure", "reference", "conversation", "topic"
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

Audience: TypeAlias = Literal["anyone", "group", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)  # from the widest to the narrowest


class Passage(NamedTuple):
    """A piece of a file that can be found and quoted: a turn, or a few paragraphs."""

    text: str
    first_line: int
    last_line: int
    section: tuple[str, ...]  # the headings above, outermost first
    day: str  # ISO date, empty when nobody knows
    speaker: str
    turn: int  # number of the record in a transcript, 0 in a note
    near: tuple[int, int]  # from which passage of its document to which it belongs together, end not included


class Document(NamedTuple):
    """One file, read."""

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
    passages: tuple[Passage, ...]
    problems: tuple[Problem, ...]
    names: tuple[str, ...] = ()  # what a [[link]] may call it, beside its path
    links: tuple[Pointer, ...] = ()  # to other files


class Stamp(NamedTuple):
    """What the disk says of a file without opening it. Equal stamps: nothing changed."""

    mtime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search may see. The default is all of it, which is the owner's view."""

    categories: tuple[Category, ...] = ()  # empty: all
    audience: Audience = "owner"  # who listens: an owner sees all, a group what is for groups or for anyone
    conversation: str = ""  # besides, the transcripts of this session key: a group may see its own
    agents: tuple[str, ...] = ()  # empty: no agent asks; else what is shared or belongs to one of these
    since: date | None = None
    until: date | None = None
    under: str = ""  # a path or the beginning of one
    without: tuple[str, ...] = ()  # paths that are not looked at
    archived: bool | None = None  # None: both

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    @property
    def whose(self) -> Scope:
        """All that who asks may see, whatever else the search is narrowed by."""
        return Scope(audience=self.audience, conversation=self.conversation, agents=self.agents)


EVERYTHING = Scope()


class Scored(NamedTuple):
    id: int
    score: float


@dataclass(frozen=True, slots=True)
class Why:
    """How a hit came to its place. `score` is the sum of the parts, each in units of how far it stands above
    what any passage gets for any question."""

    score: float
    standing: float = 0.0  # what decides the order: the score, or what is left of it after a second reading
    lexical: float = 0.0
    vector: float = 0.0
    boosts: tuple[tuple[str, float], ...] = ()
    bm25: float | None = None  # None: this side did not find it
    cosine: float | None = None
    rerank: float | None = None
    words: tuple[str, ...] = ()  # of the query that stand in the passage
    lexical_rank: int | None = None
    vector_rank: int | None = None
    # Of a turn that asks the same as the query: its relevance if it stood among the others. None: of no such.
    echo: float | None = None
    linked: str = ""  # the file with which it is linked, where that is all that speaks for it


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
    """The answer to one search, and how it was made."""

    hits: tuple[Hit, ...]
    channels: tuple[str, ...]  # which sides answered: lexical, vector, rerank; or scan
    degraded: tuple[str, ...] = ()  # what could not be used, and why
    trace: dict[str, object] = field(default_factory=dict)  # for --explain
