"""A change to notes that waits for somebody's word, as a value and as a file in drafts/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.config import Policy
from tacit.model.changes import Trust

Form: TypeAlias = Literal["lines", "text", "move"]
Decided: TypeAlias = Literal["proposed", "approved", "rejected", "edited", "rebased"]


@dataclass(frozen=True, slots=True)
class Draft:
    """`lines` are added to the notes that its headings name, as those are when somebody approves them. `text`
    replaces its target, and `move` brings it elsewhere, only while the target is what the draft was made for.
    """

    id: str
    form: Form
    category: str  # which policy of `review` it is about
    policy: Policy
    reason: str
    made: str  # ISO 8601
    trust: Trust
    sources: tuple[str, ...] = ()  # as marks name them
    target: str = ""  # empty: its headings say it
    to: str = ""  # of a move
    base: str | None = None  # SHA-256 of the target that it was made for; None: there was no such file
    blob: str = ""  # the same as git names it
    body: str = ""
    notes: tuple[str, ...] = ()  # for who reviews it


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of the record of reviews."""

    at: str
    what: Decided
    draft: str
    by: str = ""
    sha256: str = ""  # of the draft as it was decided on
    why: str = ""
    commit: str = ""
    key: str = ""  # the same for the same proposal, whenever it is made
