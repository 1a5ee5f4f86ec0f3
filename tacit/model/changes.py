"""What somebody said, and the lines that are worth adding to files because of it.

A Change is a proposal: which line belongs into which file, and who said so when. Nothing is written by
making one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, get_args

SaidBy: TypeAlias = Literal["user", "agent", "system", "tool"]
ChangeKind: TypeAlias = Literal["decision", "lesson", "event", "person", "procedure", "fact"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
Trust: TypeAlias = Literal["owner", "agent", "other"]  # other: a guest, somebody in a group, a web page
TRUSTS: tuple[Trust, ...] = get_args(Trust)


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a history, whoever kept it. Of tools it is the call or what came back."""

    number: int  # of the record, or the place in the history, from 1
    role: SaidBy
    text: str
    speaker: str = ""  # of a tool: its name
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a line is from. `at` is empty where nobody knows: then the day of the change is a guess."""

    session_key: str
    number: int
    role: SaidBy
    speaker: str = ""
    at: str = ""  # ISO 8601


@dataclass(frozen=True, slots=True)
class Change:
    """One line that may be added to one file."""

    path: str
    section: str | None  # the heading it belongs under; None: wherever the file has room
    text: str
    day: str  # YYYY-MM-DD, of when it was said
    kind: ChangeKind
    source: Source
    trust: Trust

    @property
    def line(self) -> str:
        """As it stands in the file. A journal's day is its name."""
        return f"- {self.text}" if self.path.endswith(f"/{self.day}.md") else f"- {self.day}: {self.text}"

    @property
    def key(self) -> str:
        """The same for the same line from the same words, also where a host counts its turns anew."""
        origin = (self.source.session_key, self.source.role, self.source.speaker, self.source.at)
        return _digest([self.path, self.section, self.text, self.day, self.kind, self.trust, *origin])


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes that one run of one extractor found together."""

    session_key: str
    session_id: str
    made_at: str  # ISO 8601 with offset
    extractor: str  # name and version, such as cues/1
    reason: str  # for people: why it was looked for just then
    changes: tuple[Change, ...]
    id: str = field(init=False, default="")  # of the changes alone: found again, they are the same set

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _digest([change.key for change in self.changes]))


def _digest(values: list[str | None] | list[str]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
