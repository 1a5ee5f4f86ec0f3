"""A proposal for a file that people curate, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

What = Literal["drafted", "approved", "refused", "promoting", "promoted", "undone", "changed"]
State = Literal["none", "waiting", "approved", "changed", "stale", "not allowed", "promoted"]


@dataclass(frozen=True, slots=True)
class Artefact:
    """What a draft is for. Both paths are relative to the folder that the draft belongs to."""

    name: str  # as people call it: wisdom, soul, tools
    draft: str
    target: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the record. Texts are named by their SHA-256; None is a file that was not there."""

    at: str
    what: What
    artefact: str
    by: str = ""
    draft: str | None = None
    base: str | None = None  # the target before
    result: str | None = None  # the target after
    backup: str = ""  # where the target before is kept
    why: str = ""  # it was refused, or changed
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    state: State
    why: str = ""
    todo: str = ""
    drafted: Event | None = None
    approved: Event | None = None
    promoted: Event | None = None
