"""Where something that a home knows is from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

# generated: tacit wrote the line; edited: it did, and somebody changed it since; written: a person did;
# said: it stands in a conversation only; drafted, proposed: it waits for somebody to look at it.
How: TypeAlias = Literal["generated", "edited", "written", "said", "drafted", "proposed"]


@dataclass(frozen=True, slots=True)
class Words:
    """One turn that a line is from. Of a transcript that is gone only its place is known."""

    transcript: str
    number: int | None  # None: all of the conversation
    role: str = ""
    speaker: str = ""
    at: datetime | None = None
    text: str = ""
    before: str = ""  # the turn before it, in short
    state: Literal["", "gone", "purged"] = ""


@dataclass(frozen=True, slots=True)
class Since:
    """The commit that something came with."""

    commit: str
    when: datetime
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One place where a text stands, and how it got there."""

    path: str
    line: int
    text: str
    how: How
    is_nearest: bool = False  # the text itself stands nowhere; these words are like it
    is_superseded: bool = False
    since: Since | None = None  # None: not committed
    extractor: str = ""
    trust: str = ""
    words: tuple[Words, ...] = ()
