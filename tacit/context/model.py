"""The values of one turn: candidate blocks, sections of the prompt, dropped blocks, and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from tacit.diagnostics import Notice

Slot: TypeAlias = Literal[
    "system", "identity", "memory", "journal", "projects", "topics", "subscriptions", "knowledge", "history",
    "message",
]  # fmt: skip
SLOTS: tuple[Slot, ...] = get_args(Slot)  # in the order of the prompt
TOKENS_PER_KB = 256  # tokens in a kilobyte of ordinary text


@dataclass(frozen=True, slots=True)
class Block:
    """A candidate text for the prompt."""

    slot: Slot
    label: str
    source: str
    text: str
    reason: str
    path: str = ""  # of its file; blocks of one file are rendered together
    place: int = 0  # the first line in the file, and the last
    end: int = 0
    turn: int = 0  # of a transcript
    day: str = ""
    speaker: str = ""
    score: float | None = None
    channels: Mapping[str, float] = field(default_factory=dict)
    group: str = ""  # the topic that it belongs to
    max_tokens: int | None = None  # of its group
    digest: str = ""
    left_out: str = ""  # describes what was cut from it already, for people
    value: float = 0.0  # of retrieved chunks: the highest is tried first
    pieces: tuple[Block, ...] = ()  # used instead if the whole is too long


@dataclass(frozen=True, slots=True)
class Section:
    """One block of the prompt."""

    label: (
        str  # identity:SOUL.md, topic:firing, knowledge:knowledge/people/deniz-kaya.md:12, history, message
    )
    slot: Slot
    source: str  # its file, with a line number if there is one; empty if it has no file
    tokens: int  # its cost, with label and fence
    score: float | None  # of retrieved chunks
    reason: str  # why it is here, for people
    day: str = ""
    channels: Mapping[str, float] = field(default_factory=dict)
    shortened: str = ""  # describes what was cut, for people; empty: nothing
    digest: str = ""  # of its text: a session does not get the same block twice


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


def drop_block(block: Block, code: str, reason: str, tokens: int | None = None) -> Dropped:
    return Dropped(block.label, block.slot, block.source, code, reason, tokens, block.score, block.channels)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one turn got and why. One line of the receipt log."""

    id: str
    at: str  # ISO 8601 with offset
    session_key: str
    session_id: str
    session_type: str
    agent: str
    message_hash: str
    message: str  # its beginning, so that people recognize the turn
    budget: int
    tokens: int
    characters: int
    sections: tuple[Section, ...]
    dropped: tuple[Dropped, ...]
    skipped: str = ""  # code of the reason why nothing was retrieved; empty: it was searched
    notices: tuple[Notice, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    slots: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # tokens used, and the limit
    had_history: bool = False
    trial: bool = False  # a dry run: it does not count as a turn of the session
    past: str = ""  # the commit, if it was compiled from one
    audience: str = ""  # whose knowledge the session may see: owner, group or anyone
    unlisted: Mapping[str, int] = field(default_factory=dict)  # number of dropped blocks not listed, by code
    lane: str = "prompt"  # prompt: all of it; runtime: what the host lacks; bootstrap: the host's files
    rule: str = ""  # the session's rule: its place in the config
    host_tokens: int | None = None  # bootstrap: tokens of the files that the host would have loaded itself


@dataclass(frozen=True, slots=True)
class Quote:
    """One retrieved chunk as returned, for lanes with a format of their own."""

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
    standing: str = ""  # runtime: the static prefix, for the host's system prompt
    given: tuple[Quote, ...] = ()
