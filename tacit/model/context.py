"""What is compiled for one turn: blocks that want in, what became of each, and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Slot: TypeAlias = Literal[
    "system", "identity", "memory", "journal", "projects", "topics", "subscriptions", "knowledge", "history",
    "message",
]  # fmt: skip
SLOTS: tuple[Slot, ...] = get_args(Slot)  # in the order in which they stand in a prompt


@dataclass(frozen=True, slots=True)
class Section:
    """One block that stands in the prompt."""

    label: (
        str  # identity:SOUL.md, topic:firing, knowledge:knowledge/people/deniz-kaya.md:12, history, message
    )
    slot: Slot
    source: str  # the file it is from, with a line where there is one; empty for what is no file
    tokens: int  # what it costs, with its label and fence
    score: float | None  # relevance, for what was retrieved
    reason: str  # why it is here, for people
    day: str = ""
    channels: Mapping[str, float] = field(default_factory=dict)
    shortened: str = ""  # what is left out of it, for people; empty: it is whole
    digest: str = ""  # of its text: the same block is not given twice in a session


@dataclass(frozen=True, slots=True)
class Dropped:
    """One block that is not in the prompt, and why: `code` for programs, `reason` for people."""

    label: str
    slot: Slot
    source: str
    code: str  # budget | slot | gate | weak | repeated | duplicate | missing | audience | agent | unsafe | …
    reason: str
    tokens: int | None = None
    score: float | None = None
    channels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the turn went on without, or a step that was skipped."""

    code: str  # deadline | index | vector | gate-error | identity-shortened | empty | heartbeat | …
    text: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one turn was given and why. One line of the receipt log."""

    id: str
    at: str  # ISO 8601 with offset
    session_key: str
    session_id: str
    session_type: str
    agent: str
    message_hash: str
    message: str  # its beginning, so that people know which turn it was
    budget: int
    tokens: int
    characters: int
    sections: tuple[Section, ...]
    dropped: tuple[Dropped, ...]
    skipped: str = ""  # code of the rule by which nothing was retrieved; empty: it was
    notices: tuple[Notice, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    slots: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # tokens used and most allowed
    had_history: bool = False
    trial: bool = False  # asked for by hand, no turn of a session: it does not count as given
    past: str = ""  # the commit, where the past was compiled
    audience: str = ""  # as who the session might see: owner, group or anyone
    unlisted: Mapping[str, int] = field(default_factory=dict)  # dropped and not listed above, by code
    lane: str = "prompt"  # prompt: the whole of it; runtime: what the host lacks; bootstrap: its files
    rule: str = ""  # of the session: where in the config it stands
    host_tokens: int | None = None  # bootstrap: what the host would have loaded by itself


@dataclass(frozen=True, slots=True)
class Quote:
    """One retrieved passage as it was given, for lanes with a form of their own."""

    text: str
    source: str
    day: str
    score: float


@dataclass(frozen=True, slots=True)
class Compiled:
    """A prompt within its budget; in the runtime lane only what the host lacks, and `text` may be empty."""

    text: str
    tokens: int
    sections: tuple[Section, ...]
    dropped: tuple[Dropped, ...]
    receipt: Receipt
    standing: str = ""  # runtime: what stays the same from turn to turn, for the host's system prompt
    given: tuple[Quote, ...] = ()
