"""Decide whether a change to notes is applied automatically or waits for review, and who may approve it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

from tacit.config import Config, Policy
from tacit.config.schema import ReviewSettings
from tacit.home.categories import category_of
from tacit.text.words import fold

_CONDENSE_CATEGORIES = {
    "day": "journal",
    "week": "memory",
}  # condensing steps and the category whose policy they follow
_CATEGORIES_WITH_POLICY = frozenset(setting.name for setting in fields(ReviewSettings)) - {"approvers"}
_GUIDING_CATEGORIES = ("identity", "topic")  # instructions to agents, which only people may change


def find_setting(category: str) -> str:
    """The setting of `review` that a category follows."""
    setting = _CONDENSE_CATEGORIES.get(category, category)
    return setting if setting in _CATEGORIES_WITH_POLICY else "others"


def find_policy(config: Config, category: str, *, is_own: bool, path: str = "") -> Policy:
    configured: Policy = getattr(config.review, find_setting(category))
    if path and category_of(path) in _GUIDING_CATEGORIES:
        return "owner"
    if configured == "auto" and not (is_own and config.lifecycle.auto_apply):
        return "review"
    return configured


def waiting_policy(configured: Policy) -> Policy:
    """The policy of a change that waits although the config would apply it."""
    return "review" if configured == "auto" else configured


def is_allowed(name: str, allowed: Collection[str]) -> bool:
    """Whether a name is among the allowed ones, however its letters are written."""
    return bool(name.strip()) and fold(name.strip()) in {fold(other) for other in allowed}
