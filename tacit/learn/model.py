"""What was said in a conversation, and the lines worth adding to files because of it.

A Change is a proposal: which line belongs in which file, and who said it when. Creating one writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from tacit.markdown.comment import Trust
from tacit.transcripts.attribution import SpeakerRole

ChangeKind: TypeAlias = Literal["decision", "lesson", "event", "person", "procedure", "fact"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)


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
    role: SpeakerRole
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
