"""What the log tells about a topic, and thresholds that the marks ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.topics.model import Outcome, Priority, Topic, TopicDecision
from tacit.topics.tuning import Mistakes, propose_thresholds, score_spread, summarize_decisions

MAIL = Topic("mail", "topics/mail.md", "Mail", "Sorting the inbox", "", priority="high")


def made(
    score: float,
    useful: bool | None = None,
    outcome: Outcome = "activated",
    by: str = "rule",
    matched: bool = True,
    gate_result: bool | None = None,
    topic: str = "mail",
) -> TopicDecision:
    return TopicDecision("t", "h", topic, matched, score, outcome, by, "", gate_result, {}, useful)


def marks(useful: list[float], useless: list[float]) -> list[TopicDecision]:
    return [*(made(score, True) for score in useful), *(made(score, False) for score in useless)]


# ---------------------------------------------------------------- the report


def test_a_row_counts_what_was_decided_and_by_whom() -> None:
    (row,) = summarize_decisions(
        [
            made(0.1, outcome="dropped", by="table"),
            made(0.5, True, by="model:m"),
            made(0.4, False, by="model:m"),
            made(0.2, True, outcome="rejected", by="model:m"),
            made(0.2, outcome="rejected", by="error"),
        ]
    )
    assert (row.topic, row.activated, row.rejected, row.dropped) == ("mail", 2, 2, 1)
    assert row.by == {"error": 1, "model:m": 3, "table": 1}
    assert (row.useful, row.useless, row.missed) == (1, 1, 1)


def test_topics_that_wake_most_stand_first() -> None:
    rows = summarize_decisions(
        [made(0.5, topic="b"), made(0.5, topic="a"), made(0.5, topic="c"), made(0.5, topic="c")]
    )
    assert [row.topic for row in rows] == ["c", "a", "b"]


def test_a_spread_shows_where_the_scores_are() -> None:
    assert score_spread([0.05] * 8 + [0.35] * 4 + [0.95]) == (0.05, 0.05, 0.35, "█··▄·····▁")
    assert score_spread([1.0, 0.0]).histogram == "█········█"


@given(st.lists(st.floats(0, 1), min_size=1))
def test_a_spread_is_in_order_and_has_ten_steps(scores: list[float]) -> None:
    low, middle, high, histogram = score_spread(scores)
    assert min(scores) <= low <= middle <= high <= max(scores)
    assert len(histogram) == 10
    assert histogram.count("·") == 10 - len({min(9, int(score * 10)) for score in scores})


def test_asleep_with_a_score_that_usually_wakes_it_is_a_suspected_miss() -> None:
    awake = [made(score, True) for score in (0.3, 0.4, 0.5, 0.6, 0.7)]
    near = made(0.4, outcome="rejected")
    (row,) = summarize_decisions(
        [*awake, near, made(0.39, outcome="rejected"), made(0.9, False, outcome="rejected")]
    )
    assert row.suspects == (near,)


def test_without_marks_all_activations_say_what_is_usual() -> None:
    (row,) = summarize_decisions([made(0.3), made(0.3), made(0.3), made(0.35, outcome="dropped", by="table")])
    assert len(row.suspects) == 1
    (row,) = summarize_decisions([made(0.3), made(0.3), made(0.35, outcome="dropped", by="table")])
    assert row.suspects == ()


@pytest.mark.parametrize("by", ["manual", "steering"])
def test_what_stays_asleep_by_design_is_no_miss(by: str) -> None:
    (row,) = summarize_decisions([*(made(0.3) for _ in range(3)), made(0.9, outcome="dropped", by=by)])
    assert row.suspects == ()


@pytest.mark.parametrize(("score", "matched", "priority", "is_suspect"), [
    (0.16, True, "medium", True), (0.14, True, "medium", False), (0.16, False, "medium", False),
    (0.26, True, "low", True), (0.16, True, "low", False),
])  # fmt: skip
def test_a_match_just_below_what_it_needs_is_a_suspected_miss(
    score: float, matched: bool, priority: Priority, is_suspect: bool
) -> None:
    topic = replace(MAIL, priority=priority)
    (row,) = summarize_decisions([made(score, outcome="dropped", by="table", matched=matched)], [topic])
    assert bool(row.suspects) == is_suspect


# ---------------------------------------------------------------- thresholds


def test_a_threshold_that_tells_useful_from_useless_is_proposed() -> None:
    (found,) = propose_thresholds(marks([0.26, 0.27, 0.28, 0.29], [0.16, 0.17, 0.18, 0.19]), [MAIL])
    assert found.current == 0.15
    assert 0.19 < found.proposed <= 0.26
    assert (found.before, found.after) == (Mistakes(4, 0), Mistakes(0, 0))
    assert str(found) == "false 4→0, missed 0→0 of 8 marks"


def test_missed_ones_ask_for_a_lower_threshold() -> None:
    strict = replace(MAIL, similarity_threshold=0.28)
    missed = [made(score, True, outcome="rejected") for score in (0.2, 0.21, 0.22, 0.23)]
    (found,) = propose_thresholds([*missed, *marks([], [0.05, 0.06])], [strict])
    assert 0.06 < found.proposed <= 0.2
    assert (found.before, found.after) == (Mistakes(0, 4), Mistakes(0, 0))


@pytest.mark.parametrize("given_marks", [
    marks([0.28] * 2, [0.2] * 2),  # too few
    marks([0.28] * 9, []),  # one kind
    marks([], [0.2] * 9),
    marks([0.28] * 5, [0.1] * 5),  # as good as it gets
    marks([0.29], [0.2, 0.21, 0.22, 0.29]),  # what one mark says, the others contradict
])  # fmt: skip
def test_no_threshold_is_proposed_without_need(given_marks: list[TopicDecision]) -> None:
    assert all(found.after.all < found.before.all for found in propose_thresholds(given_marks, [MAIL]))
    assert propose_thresholds(given_marks[:4], [MAIL]) == []
    if len(given_marks) != 5:
        assert propose_thresholds(given_marks, [MAIL]) == []


def test_what_fits_the_marks_only_by_heart_is_not_promised() -> None:
    """Useful and useless ones without any order: each threshold that looks better does so by chance."""
    scores = [0.151, 0.17, 0.19, 0.21, 0.23, 0.25, 0.27, 0.29]
    mixed = [made(score, at % 2 == 0) for at, score in enumerate(scores)]
    for found in propose_thresholds(mixed, [MAIL]):
        by_heart = sum((one.tier2_score >= found.proposed) != one.was_useful for one in mixed)
        assert found.after.all >= by_heart


@pytest.mark.parametrize("by", ["event", "steering", "manual", "asked"])
def test_decisions_that_no_score_made_do_not_count(by: str) -> None:
    good = marks([0.26, 0.27, 0.28, 0.29], [0.16, 0.17, 0.18, 0.19])
    assert propose_thresholds([replace(one, by=by) for one in good], [MAIL]) == []


def test_a_threshold_that_would_change_nothing_is_not_proposed() -> None:
    """An auto topic wakes with any score when its trigger matches."""
    auto = replace(MAIL, activation="auto")
    assert propose_thresholds(marks([0.26, 0.27, 0.28, 0.29], [0.16, 0.17, 0.18, 0.19]), [auto]) == []


def test_what_a_model_said_no_to_stays_asleep_whatever_the_threshold() -> None:
    said_no = [made(score, True, "rejected", "model:m", gate_result=False) for score in (0.25, 0.26, 0.27)]
    said_yes = [made(score, False, "activated", "cache", gate_result=True) for score in (0.2, 0.21, 0.22)]
    medium = replace(MAIL, priority="medium")
    (found,) = propose_thresholds([*said_no, *said_yes], [medium])
    assert found.proposed > 0.22
    assert (found.before, found.after) == (Mistakes(3, 3), Mistakes(0, 3))


def test_each_topic_goes_by_its_own_marks() -> None:
    other = replace(MAIL, name="kiln")
    good = marks([0.26, 0.27, 0.28, 0.29], [0.16, 0.17, 0.18, 0.19])
    assert [found.topic.name for found in propose_thresholds(good, [other, MAIL])] == ["mail"]


mark = st.tuples(st.integers(0, 100).map(lambda n: n / 100), st.booleans(), st.booleans())


@given(st.lists(mark, max_size=30), st.sampled_from(["low", "medium", "high", "critical"]), st.booleans())
def test_a_proposal_always_promises_fewer_mistakes_and_a_threshold_that_can_be_written(
    given_marks: list[tuple[float, bool, bool]], priority: Priority, alone: bool
) -> None:
    topic = replace(MAIL, priority=priority, by_similarity=alone)
    decisions = [made(score, useful, matched=matched) for score, useful, matched in given_marks]
    for found in propose_thresholds(decisions, [topic]):
        assert found.after.all < found.before.all <= found.marks == len(decisions)
        assert 0 <= found.proposed <= 1
        assert found.proposed == round(found.proposed, 2)
        assert propose_thresholds(decisions, [topic]) == [found]
