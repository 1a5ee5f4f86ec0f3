"""What becomes of a change to notes: it happens, or it waits for somebody."""

from __future__ import annotations

from tacit.config import Config, Policy
from tacit.model.changes import Change, is_trusted
from tacit.text.passages import category_of

_WRITES = {"day": "journal", "week": "memory"}  # what condensing adds to, and so whose policy it has
_GUIDING = ("identity", "topic")  # what agents are told to do: nobody adds to it but people


def policy_of(config: Config, change: Change) -> Policy:
    """By what found it, whose word it is, and where it would stand."""
    return policy(
        config, change.extractor.partition("/")[0], is_own=is_trusted(change.trust), path=change.path
    )


def policy(config: Config, category: str, *, is_own: bool, path: str = "") -> Policy:
    said: Policy = getattr(config.review, _WRITES.get(category, category), config.review.others)
    if path and category_of(path) in _GUIDING:
        return "owner"
    if said == "auto" and not (is_own and config.lifecycle.auto_apply):
        return "review"
    return said


def reviewed(said: Policy) -> Policy:
    """The policy of something that waits, whatever made it wait."""
    return "review" if said == "auto" else said
