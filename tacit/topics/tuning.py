"""Statistics of the gate log for each topic, and proposals for better thresholds.

A mark says of one decision whether the topic was useful for that message, or would have been. So there are
two kinds of mistakes: false activations (active and useless) and missed ones (inactive, but useful).

A proposal is the threshold with the fewest mistakes on the marks. Its expected mistakes are not that count,
which any threshold fitted to few marks would reach, but come from leave-one-out: each mark is judged by the
threshold that the others alone would choose.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from tacit.topics.activation import decide, decide_by_rule, minimum_score, own_threshold
from tacit.topics.model import Topic, TopicDecision

_BARS = "·▁▂▃▄▅▆▇█"
_NEAR_MISS = 0.05
_MIN_ACTIVATIONS = 3  # to know the usual score of an activation
_MIN_MARKS = 5
_MAX_MARKS = 200  # the newest are used
_HUNDREDTHS = tuple(number / 100 for number in range(101))
_MAX_DISTANCE = 0.05  # from a mark: a threshold close to one would be wrong about similar messages
_INDEPENDENT_OF_SCORE = ("manual", "event", "steering", "asked")
_JUDGES = ("model:", "reranker:", "cache")


# The report


class ScoreSpread(NamedTuple):
    low: float  # one in ten is below
    middle: float
    high: float  # one in ten is above
    histogram: str  # from 0 to 1 in ten steps


@dataclass(frozen=True, slots=True)
class TopicStats:
    """One topic."""

    topic: str
    activated: int
    rejected: int
    dropped: int
    by: Mapping[str, int]
    scores: ScoreSpread
    useful: int  # active and useful
    useless: int  # active and useless
    missed: int  # inactive, but would have been useful
    suspects: tuple[TopicDecision, ...]  # perhaps missed activations, newest last


def summarize_decisions(
    decisions: Iterable[TopicDecision], topics: Sequence[Topic] = (), threshold: float = 0.15
) -> list[TopicStats]:
    """A row per topic, most often activated first. `threshold` is that of the home."""
    topics_by_name = {topic.name: topic for topic in topics}
    rows = [
        _make_row(name, topic_decisions, topics_by_name.get(name), threshold)
        for name, topic_decisions in _group_by_topic(decisions).items()
    ]
    return sorted(rows, key=lambda row: (-row.activated, row.topic))


def _group_by_topic(decisions: Iterable[TopicDecision]) -> dict[str, list[TopicDecision]]:
    by_topic: dict[str, list[TopicDecision]] = defaultdict(list)
    for decision in decisions:
        by_topic[decision.topic_name].append(decision)
    return by_topic


def _make_row(
    name: str, decisions: Sequence[TopicDecision], topic: Topic | None, threshold: float
) -> TopicStats:
    outcomes = Counter(decision.outcome for decision in decisions)
    marks = Counter((decision.outcome == "activated", decision.was_useful) for decision in decisions)
    return TopicStats(
        topic=name,
        activated=outcomes["activated"],
        rejected=outcomes["rejected"],
        dropped=outcomes["dropped"],
        by=dict(sorted(Counter(decision.by for decision in decisions).items())),
        scores=score_spread([decision.tier2_score for decision in decisions]),
        useful=marks[True, True],
        useless=marks[True, False],
        missed=marks[False, True],
        suspects=_find_suspects(decisions, topic, threshold),
    )


def score_spread(scores: Sequence[float]) -> ScoreSpread:
    ordered = sorted(scores)
    return ScoreSpread(
        _quantile(ordered, 0.1), _quantile(ordered, 0.5), _quantile(ordered, 0.9), _histogram(ordered)
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _histogram(scores: Sequence[float]) -> str:
    counts = Counter(min(9, max(0, int(score * 10))) for score in scores)
    highest = max(counts.values(), default=1)
    return "".join(_BARS[-(-counts[step] * (len(_BARS) - 1) // highest)] for step in range(10))


def _find_suspects(
    decisions: Sequence[TopicDecision], topic: Topic | None, threshold: float
) -> tuple[TopicDecision, ...]:
    usual = _usual_score(decisions)
    return tuple(
        decision
        for decision in decisions
        if decision.outcome != "activated"
        and decision.was_useful is None
        and decision.by not in _INDEPENDENT_OF_SCORE
        and (decision.tier2_score >= usual or _is_just_below(decision, topic, threshold))
    )


def _usual_score(decisions: Sequence[TopicDecision]) -> float:
    """The score that three of four useful activations reach; without marks, three of four unmarked ones.
    Infinite if there are too few."""
    activated = [
        decision
        for decision in decisions
        if decision.outcome == "activated" and decision.by not in _INDEPENDENT_OF_SCORE
    ]
    useful_scores = [decision.tier2_score for decision in activated if decision.was_useful]
    scores = useful_scores or [decision.tier2_score for decision in activated if decision.was_useful is None]
    return _quantile(sorted(scores), 0.25) if len(scores) >= _MIN_ACTIVATIONS else inf


def _is_just_below(decision: TopicDecision, topic: Topic | None, threshold: float) -> bool:
    minimum = minimum_score(topic, True, threshold) if topic is not None and decision.tier1_matched else None
    return minimum is not None and minimum - _NEAR_MISS <= decision.tier2_score < minimum


# Thresholds


class Mistakes(NamedTuple):
    false: int
    missed: int

    @property
    def all(self) -> int:
        return self.false + self.missed


@dataclass(frozen=True, slots=True)
class ThresholdProposal:
    topic: Topic
    current: float
    proposed: float
    marks: int
    before: Mistakes
    after: Mistakes  # expected

    def __str__(self) -> str:
        return (
            f"false {self.before.false}→{self.after.false}, missed {self.before.missed}→{self.after.missed} "
            f"of {self.marks} marks"
        )


def propose_thresholds(
    decisions: Iterable[TopicDecision], topics: Sequence[Topic], threshold: float = 0.15
) -> list[ThresholdProposal]:
    """Proposals for topics with enough marks of both kinds that would improve, in the order of the topics."""
    marked = _group_by_topic(
        decision
        for decision in decisions
        if decision.was_useful is not None and decision.by not in _INDEPENDENT_OF_SCORE
    )
    proposals = (
        _make_proposal(topic, marked.get(topic.name, [])[-_MAX_MARKS:], threshold) for topic in topics
    )
    return [proposal for proposal in proposals if proposal is not None]


def _make_proposal(
    topic: Topic, marked: Sequence[TopicDecision], threshold: float
) -> ThresholdProposal | None:
    if len(marked) < _MIN_MARKS or len({decision.was_useful for decision in marked}) < 2:
        return None
    current = own_threshold(topic, threshold)
    wrong = {
        value: [_is_wrong(topic, decision, value) for decision in marked] for value in (current, *_HUNDREDTHS)
    }
    best = _best_threshold(marked, wrong, current)
    before = _count_mistakes(marked, wrong[current])
    after = _count_mistakes(marked, _leave_one_out(marked, wrong, current))
    if best == current or after.all >= before.all:
        return None
    return ThresholdProposal(topic, current, best, len(marked), before, after)


def _best_threshold(
    marked: Sequence[TopicDecision],
    wrong: Mapping[float, Sequence[bool]],
    current: float,
    without: int | None = None,
) -> float:
    """The threshold with the fewest mistakes. Of equals the current one, else one far from any mark and near
    the current one."""
    counts = {
        value: sum(flags) - (0 if without is None else flags[without]) for value, flags in wrong.items()
    }
    fewest = min(counts.values())
    if counts[current] == fewest:
        return current
    scores = sorted(decision.tier2_score for position, decision in enumerate(marked) if position != without)
    equals = [value for value, count in counts.items() if count == fewest]
    return min(equals, key=lambda value: (-_distance(value, scores), abs(value - current), value))


def _distance(value: float, scores: Sequence[float]) -> float:
    """The distance to the nearest score, capped at the distance that matters."""
    position = bisect_left(scores, value)
    return round(
        min(_MAX_DISTANCE, *(abs(value - score) for score in scores[max(0, position - 1) : position + 1])), 4
    )


def _is_wrong(topic: Topic, decision: TopicDecision, threshold: float) -> bool:
    return _would_wake(replace(topic, similarity_threshold=threshold), decision) != decision.was_useful


def _would_wake(topic: Topic, decision: TopicDecision) -> bool:
    """Whether it would activate with the topic's threshold. Judges that were asked are assumed to repeat
    their answer."""
    verdict = decide(topic, decision.tier1_matched, decision.tier2_score, 0.0).what
    if verdict != "gate":
        return verdict == "activate"
    if decision.gate_result is not None and decision.by.startswith(_JUDGES):
        return decision.gate_result
    return decide_by_rule(topic, decision.tier2_score, decision.tier1_matched, 0.0).yes


def _leave_one_out(
    marked: Sequence[TopicDecision], wrong: Mapping[float, Sequence[bool]], current: float
) -> list[bool]:
    """For each mark, whether the threshold chosen from the others is wrong about it."""
    return [
        wrong[_best_threshold(marked, wrong, current, position)][position] for position in range(len(marked))
    ]


def _count_mistakes(marked: Sequence[TopicDecision], wrong: Sequence[bool]) -> Mistakes:
    mistakes = Counter(
        decision.was_useful for decision, is_wrong in zip(marked, wrong, strict=True) if is_wrong
    )
    return Mistakes(false=mistakes[False], missed=mistakes[True])
