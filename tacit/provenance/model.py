"""Where something that a home knows comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

# generated: tacit wrote the line; edited: tacit wrote it and a person edited it; written: a person wrote it;
# said: it is only in a conversation; drafted, proposed: it waits for review.
TraceKind: TypeAlias = Literal["generated", "edited", "written", "said", "drafted", "proposed"]


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """One source turn of a line. If the transcript is gone, only its path is known."""

    transcript: str
    number: int | None  # None: all of the conversation
    role: str = ""
    speaker: str = ""
    at: datetime | None = None
    text: str = ""
    before: str = ""  # the preceding turn, shortened
    state: Literal["", "gone", "purged"] = ""


@dataclass(frozen=True, slots=True)
class FirstCommit:
    """The commit that added something."""

    commit: str
    when: datetime
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One place where a text is found, and how it got there."""

    path: str
    line: int
    text: str
    how: TraceKind
    is_nearest: bool = False  # the text itself was not found; this one is similar
    is_superseded: bool = False
    since: FirstCommit | None = None  # None: not committed
    extractor: str = ""
    trust: str = ""
    words: tuple[SourceTurn, ...] = ()
