"""Change requests as values: for notes, and for the files of a workspace that people curate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tacit.config import Policy
from tacit.markdown.comment import Trust

DraftForm: TypeAlias = Literal["lines", "text", "move"]
DecisionKind: TypeAlias = Literal[
    "proposed", "approved", "rejected", "edited", "rebased",  # notes
    "drafted", "refused", "promoting", "promoted", "undone", "changed",  # files of a workspace, and approved
]  # fmt: skip
FileState: TypeAlias = Literal["none", "waiting", "approved", "changed", "stale", "not allowed", "promoted"]


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change of notes that waits for a decision.

    `lines` are added to the notes that its headings name, as they are at approval. `text` replaces its
    target and `move` moves it, but only while the target is unchanged since the draft was made.
    """

    id: str
    form: DraftForm
    category: str  # selects the policy in `review`
    policy: Policy
    reason: str
    made: str  # ISO 8601
    trust: Trust
    sources: tuple[str, ...] = ()  # as provenance comments name them
    target: str = ""  # empty: named in its headings
    to: str = ""  # of a move
    base: str | None = None  # SHA-256 of the target it was made for; None: there was no such file
    blob: str = ""  # the git object name of the same
    body: str = ""
    notes: tuple[str, ...] = ()  # for the reviewer


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A file of a workspace that changes only by an approved draft. Both paths are relative to the
    workspace."""

    name: str  # as people call it: wisdom, soul, tools
    draft: str
    target: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of a log of decisions. Texts are given by their SHA-256; None means that there was no file."""

    at: str
    what: DecisionKind
    request: str  # the id of a change request, or the name of a curated file
    by: str = ""
    sha256: str | None = None  # of the draft as it was decided on
    base: str | None = None  # of the target before
    result: str | None = None  # of the target after
    backup: str = ""  # where the previous target is backed up
    why: str = ""
    commit: str = ""
    key: str = ""  # the same for the same proposal, whenever it is made
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """Where the last draft of a curated file stands, and what is missing to promote it."""

    state: FileState
    why: str = ""
    todo: str = ""
    drafted: Decision | None = None
    approved: Decision | None = None
    promoted: Decision | None = None
