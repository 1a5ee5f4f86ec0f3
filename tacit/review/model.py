"""A change request for notes, as a value and as a file in drafts/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.config import Policy
from tacit.markdown.comment import Trust

DraftForm: TypeAlias = Literal["lines", "text", "move"]
DecisionKind: TypeAlias = Literal["proposed", "approved", "rejected", "edited", "rebased"]


@dataclass(frozen=True, slots=True)
class Draft:
    """`lines` are added to the notes that its headings name, as they are at approval. `text` replaces its
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
class ReviewDecision:
    """One line of the review log."""

    at: str
    what: DecisionKind
    draft: str
    by: str = ""
    sha256: str = ""  # of the draft as it was decided on
    why: str = ""
    commit: str = ""
    key: str = ""  # the same for the same proposal, whenever it is made
