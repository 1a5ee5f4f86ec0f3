"""Which setting decides on a change, and that a draft names that one."""

from __future__ import annotations

import pytest

from tacit.config import Config
from tacit.learn.drafts import DraftMaker
from tacit.learn.model import Change, Source
from tacit.memory import Memory
from tacit.review.policies import find_policy, find_setting


@pytest.mark.parametrize(
    ("category", "setting"),
    [
        ("facts", "facts"),
        ("day", "journal"),
        ("week", "memory"),
        ("teapots", "others"),
        ("approvers", "others"),  # a key of `review`, but no policy
        ("", "others"),
    ],
)
def test_a_category_follows_its_own_setting_or_others(category: str, setting: str) -> None:
    assert find_setting(category) == setting
    assert find_policy(Config(), category, is_own=True) == getattr(Config().review, setting)


@pytest.mark.parametrize(
    ("extractor", "reason"),
    [("procedures/1", "review.procedures is review"), ("teapots/2", "review.others is review")],
)
def test_a_draft_names_the_setting_that_makes_it_wait(memory: Memory, extractor: str, reason: str) -> None:
    services = memory.services
    drafts = DraftMaker(services.home, services.config, services.git, services.clock)
    path = "knowledge/reference/teapots.md"
    change = Change(
        path, None, "The pot is blue.", "2026-11-02", "fact", Source("", 1, "user"), "owner", extractor
    )
    [draft] = drafts.draft_changes([change])
    assert draft.reason == reason
