"""The table: every row of it, and what the threshold may and may not do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.topics.activation import decide, minimum_score
from tacit.topics.model import PRIORITIES, WAKE_MODES, Priority, Topic

TOPIC = Topic("mail", "topics/mail.md", "Mail", "Sorting the inbox", "")
HOME = 0.15

scores = st.floats(0, 1)
topics = st.builds(
    lambda mode, priority, own, alone: replace(
        TOPIC, activation=mode, priority=priority, similarity_threshold=own, by_similarity=alone
    ),
    st.sampled_from(WAKE_MODES),
    st.sampled_from(PRIORITIES),
    st.none() | scores,
    st.booleans(),
)


@pytest.mark.parametrize(("priority", "score", "what"), [
    ("critical", 0.0, "activate"),
    ("critical", 0.9, "activate"),
    ("high", 0.3, "activate"),
    ("high", 0.29, "gate"),
    ("high", 0.0, "gate"),
    ("medium", 0.2, "gate"),
    ("medium", 0.9, "gate"),
    ("medium", 0.19, "drop"),
    ("low", 0.3, "gate"),
    ("low", 0.29, "drop"),
])  # fmt: skip
def test_a_gated_topic_whose_trigger_matched_goes_by_priority(
    priority: Priority, score: float, what: str
) -> None:
    assert decide(replace(TOPIC, priority=priority), True, score, HOME)[:2] == (what, "table")


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize(("score", "what"), [(0.3, "gate"), (0.29, "drop"), (1.0, "gate")])
def test_without_a_trigger_only_similarity_can_bring_a_topic_to_the_gate(
    priority: Priority, score: float, what: str
) -> None:
    topic = replace(TOPIC, priority=priority, by_similarity=True)
    assert decide(topic, False, score, HOME).what == what
    assert decide(replace(topic, by_similarity=False), False, score, HOME).what == "drop"


@given(topics, st.booleans(), scores, st.booleans())
def test_manual_topics_never_wake_by_themselves(
    topic: Topic, matched: bool, score: float, event: bool
) -> None:
    manual = replace(topic, activation="manual")
    assert decide(manual, matched, score, HOME, event=event)[:2] == ("drop", "manual")


@given(topics, scores)
def test_auto_topics_wake_when_a_trigger_matches_whatever_the_score(topic: Topic, score: float) -> None:
    assert decide(replace(topic, activation="auto"), True, score, HOME)[:2] == ("activate", "auto")


def test_auto_topics_without_a_trigger_need_similarity_and_leave_to_use_it() -> None:
    auto = replace(TOPIC, activation="auto", by_similarity=True)
    assert decide(auto, False, 0.3, HOME)[:2] == ("activate", "auto")
    assert decide(auto, False, 0.29, HOME).what == "drop"
    assert decide(auto, False, 0.4, 0.5).what == "drop"
    assert decide(replace(auto, by_similarity=False), False, 0.9, HOME).what == "drop"


@given(topics, st.booleans(), scores)
def test_an_event_wakes_every_topic_that_is_not_manual(topic: Topic, matched: bool, score: float) -> None:
    verdict = decide(topic, matched, score, HOME, event=True)
    expected = {"manual": ("drop", "manual"), "auto": ("activate", "auto"), "gated": ("activate", "event")}
    assert verdict[:2] == expected[topic.activation]


@pytest.mark.parametrize(("priority", "own", "needs"), [
    ("medium", 0.1, 0.2), ("medium", 0.5, 0.5), ("low", 0.1, 0.3), ("low", 0.5, 0.5),
])  # fmt: skip
def test_a_topics_own_threshold_can_ask_for_more_than_the_table_and_not_for_less(
    priority: Priority, own: float, needs: float
) -> None:
    topic = replace(TOPIC, priority=priority, similarity_threshold=own)
    assert decide(topic, True, needs, HOME).what == "gate"
    assert decide(topic, True, needs - 0.01, HOME).what == "drop"


def test_the_threshold_of_the_home_counts_for_topics_that_set_none() -> None:
    assert decide(TOPIC, True, 0.4, 0.5).what == "drop"
    assert decide(replace(TOPIC, similarity_threshold=0.2), True, 0.4, 0.5).what == "gate"


@given(topics, st.booleans(), scores, scores, scores)
def test_a_higher_score_never_puts_a_topic_to_sleep(
    topic: Topic, matched: bool, one: float, other: float, threshold: float
) -> None:
    order = ["drop", "gate", "activate"]
    low, high = sorted((one, other))
    less, more = (decide(topic, matched, score, threshold).what for score in (low, high))
    assert order.index(less) <= order.index(more)


@given(topics, st.booleans(), scores, scores)
def test_what_is_needed_is_where_a_topic_is_no_longer_dropped(
    topic: Topic, matched: bool, score: float, threshold: float
) -> None:
    needs = minimum_score(topic, matched, threshold)
    is_dropped = decide(topic, matched, score, threshold).what == "drop"
    assert is_dropped == (topic.activation == "manual" or needs is None or score < needs)


def test_a_score_that_is_no_number_wakes_nothing_that_needs_one() -> None:
    assert decide(TOPIC, True, float("nan"), HOME).what == "drop"
