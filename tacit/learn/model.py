"""What was said in a conversation, and the lines worth adding to files because of it.

A Change is a proposal: which line belongs in which file, and who said it when. Creating one writes nothing.
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
# Who said it, the most trusted first. other: a guest or a group member; tool: a tool's result, or what an
# agent said after it; web: the same for tools that read what strangers write.
Trust: TypeAlias = Literal["owner", "agent", "other", "tool", "web"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)


def lowest(trusts: Iterable[Trust]) -> Trust:
    """The lowest of these trusts: what is made from several sources has the trust of the least trusted."""
    return max(trusts, key=TRUSTS.index, default="web")


def is_trusted(trust: Trust) -> bool:
    """Only the owner's and the agent's own words become knowledge without a review."""
    return trust in ("owner", "agent")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a history. For tools it is the call or the result."""

    number: int  # of the message, or the position in the history, from 1
    role: SaidBy
    text: str
    speaker: str = ""  # of a tool: its name
    at: datetime | None = None
    trust: Trust = "other"


@dataclass(frozen=True, slots=True)
class Heard:
    """One finalized conversation without what tacit injected, each turn attributed to its speaker."""

    transcript: str  # path in the home
    session_id: str
    session_key: str
    agent: str
    day: str  # on which it began, YYYY-MM-DD in the zone of the transcript
    title: str
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a home knows already."""

    projects: Mapping[str, str] = field(default_factory=dict)  # names of a project → its slug
    people: Mapping[str, str] = field(default_factory=dict)  # names of a person → the note's path
    owners: tuple[str, ...] = ()  # names of the owner: no note is made about them


@dataclass(frozen=True, slots=True)
class Source:
    """Where a line comes from. `at` is empty if unknown: then the day of the change is a guess."""

    session_key: str
    number: int
    role: SaidBy
    speaker: str = ""
    at: str = ""  # ISO 8601
    transcript: str = ""  # path in the home; empty until it is finalized


@dataclass(frozen=True, slots=True)
class Change:
    """One line that may be added to one file."""

    path: str
    section: str | None  # the heading it belongs under; None: directly below the title
    text: str
    day: str  # YYYY-MM-DD, of when it was said
    kind: ChangeKind
    source: Source
    trust: Trust
    extractor: str = ""  # name and version, if different from the set's
    also: tuple[str, ...] = ()  # further sources, as provenance comments name them

    @property
    def line(self) -> str:
        """As written in the file. A journal page is named after its day, so the date is left out there."""
        return f"- {self.text}" if self.path.endswith(f"/{self.day}.md") else f"- {self.day}: {self.text}"

    @property
    def key(self) -> str:
        """The same for the same line from the same words, even if a host numbers its turns again."""
        origin = (self.source.session_key, self.source.role, self.source.speaker, self.source.at)
        return _digest([self.path, self.section, self.text, self.day, self.kind, self.trust, *origin])


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes that one run of one extractor found together."""

    session_key: str
    session_id: str
    made_at: str  # ISO 8601 with offset
    extractor: str  # name and version, such as cues/1
    reason: str  # for people: why the extraction ran
    changes: tuple[Change, ...]
    id: str = field(init=False, default="")  # hash of the changes alone, so the same changes are the same set

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", _digest([change.key for change in self.changes]))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A proposed new text for a whole file. Unless the config says otherwise, it needs approval."""

    path: str
    old: str | None  # the text it was made from; None: there was no such file
    new: str
    category: str  # selects the policy in the config
    reason: str
    sources: tuple[str, ...]  # of the new lines, as provenance comments name them
    trust: Trust  # the lowest of what the new lines were made from


@dataclass(frozen=True, slots=True)
class Move:
    """A proposal to move a file, byte for byte."""

    path: str
    to: str
    category: str
    reason: str


def _digest(values: list[str | None] | list[str]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
