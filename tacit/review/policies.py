"""Decide whether a change to notes is applied automatically or waits for review."""

from __future__ import annotations

from tacit.config import Config, Policy
from tacit.home.categories import category_of
from tacit.learn.model import Change, is_trusted

_CONDENSE_CATEGORIES = {
    "day": "journal",
    "week": "memory",
}  # condensing steps and the category whose policy they follow
_GUIDING_CATEGORIES = ("identity", "topic")  # instructions to agents, which only people may change


def policy_for_change(config: Config, change: Change) -> Policy:
    """The policy for a change, by its extractor, trust and path."""
    return find_policy(
        config, change.extractor.partition("/")[0], is_own=is_trusted(change.trust), path=change.path
    )


def find_policy(config: Config, category: str, *, is_own: bool, path: str = "") -> Policy:
    configured: Policy = getattr(
        config.review, _CONDENSE_CATEGORIES.get(category, category), config.review.others
    )
    if path and category_of(path) in _GUIDING_CATEGORIES:
        return "owner"
    if configured == "auto" and not (is_own and config.lifecycle.auto_apply):
        return "review"
    return configured


def waiting_policy(said: Policy) -> Policy:
    """The policy of a waiting change, whatever made it wait."""
    return "review" if said == "auto" else said
