"""What somebody said, and the lines that are worth adding to files because of it.

A Change is a proposal: which line belongs into which file, and who said so when. Nothing is written by
making one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, get_args

SaidBy: TypeAlias = Literal["user", "agent", "system", "tool"]
ChangeKind: TypeAlias = Literal["decision", "lesson", "event", "person", "procedure", "fact"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
# Whose word it is, the most trusted first. other: a guest, somebody in a group; tool: what a tool gave back,
# or what an agent said after it; web: the same of a tool that reads what strangers write.
Trust: TypeAlias = Literal["owner", "agent", "other", "tool", "web"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)


def lowest(trusts: Iterable[Trust]) -> Trust:
    """What is made from several is trusted as little as the least of them."""
    return max(trusts, key=TRUSTS.index, default="web")


def is_trusted(trust: Trust) -> bool:
    """Only the owner's and the agent's own words become knowledge without somebody looking at them."""
    return trust in ("owner", "agent")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a history, whoever kept it. Of tools it is the call or what came back."""

    number: int  # of the record, or the place in the history, from 1
    role: SaidBy
    text: str
    speaker: str = ""  # of a tool: its name
    at: datetime | None = None
    trust: Trust = "other"


@dataclass(frozen=True, slots=True)
class Heard:
    """One sealed conversation as it is learned from: without what tacit itself gave, and each turn with whose
    word it is."""

    transcript: str  # path in the home
    session_id: str
    session_key: str
    agent: str
    day: str  # on which it began, YYYY-MM-DD in the zone of the transcript
    title: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What a home knows already, for who learns more."""

    projects: Mapping[str, str] = field(default_factory=dict)  # names of a project → its slug
    people: Mapping[str, str] = field(default_factory=dict)  # names of a person → the note's path
    owners: tuple[str, ...] = ()  # names of the owner: no note is made about them


@dataclass(frozen=True, slots=True)
class Source:
    """Where a line is from. `at` is empty where nobody knows: then the day of the change is a guess."""

    session_key: str
    number: int
    role: SaidBy
    speaker: str = ""
    at: str = ""  # ISO 8601
    transcript: str = ""  # path in the home; empty where it is not sealed yet


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
    extractor: str = ""  # name and version, where it is another than that of the set
    also: tuple[str, ...] = ()  # further sources, as marks name them

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


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A whole file as it could be. Where the config does not say otherwise, somebody approves it first."""

    path: str
    old: str | None  # the text that it was made from; None: there was no such file
    new: str
    category: str  # by which the config says what becomes of it
    reason: str
    sources: tuple[str, ...]  # of the lines that are new, as marks name them
    trust: Trust  # the lowest of what the new lines were made from


@dataclass(frozen=True, slots=True)
class Move:
    """A file that could lie elsewhere, byte for byte."""

    path: str
    to: str
    category: str
    reason: str


def _digest(values: list[str | None] | list[str]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
