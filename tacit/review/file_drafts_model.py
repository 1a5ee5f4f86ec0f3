"""A change request for a file that people curate, and its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DraftEventKind = Literal["drafted", "approved", "refused", "promoting", "promoted", "undone", "changed"]
DraftState = Literal["none", "waiting", "approved", "changed", "stale", "not allowed", "promoted"]


@dataclass(frozen=True, slots=True)
class Artefact:
    """The file that a draft is for. Both paths are relative to the folder of the drafts."""

    name: str  # as people call it: wisdom, soul, tools
    draft: str
    target: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log. Texts are given by their SHA-256; None means that the file did not exist."""

    at: str
    what: DraftEventKind
    artefact: str
    by: str = ""
    draft: str | None = None
    base: str | None = None  # the target before
    result: str | None = None  # the target after
    backup: str = ""  # where the previous target is backed up
    why: str = ""  # it was refused or changed
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DraftStatus:
    state: DraftState
    why: str = ""
    todo: str = ""
    drafted: Event | None = None
    approved: Event | None = None
    promoted: Event | None = None
