"""What the gate log says about each topic, and which threshold would have done better.

A mark says of one decision whether the topic was of use to that message, or would have been. So there are two
mistakes: a false activation (awake and useless) and a missed one (asleep, and it would have been useful).

A proposal is the threshold with the fewest mistakes on the marks. What it promises is not that count, which
any threshold fitted to few marks would reach, but what is left when each mark in turn is judged by the
threshold that the others alone would have chosen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tacit.model.topics import Decision, Topic
from tacit.watch.gate import by_rule
from tacit.watch.table import decide, needed, own_threshold

_BINS = "·▁▂▃▄▅▆▇█"
_JUST_BELOW = 0.05
_ENOUGH_ACTIVATIONS = 3  # to know what score a topic usually wakes with
_ENOUGH_MARKS = 5
_MOST_MARKS = 200  # the newest ones
_HUNDREDTHS = tuple(number / 100 for number in range(101))
_FAR = 0.05  # from a mark: a threshold next to one would be wrong about the next that is like it
_NO_MATTER_OF_SCORE = ("manual", "event", "steering", "asked")
_JUDGES = ("model:", "reranker:", "cache")


# The report


class Spread(NamedTuple):
    low: float  # one in ten is below
    middle: float
    high: float  # one in ten is above
    histogram: str  # from 0 to 1 in ten steps


@dataclass(frozen=True, slots=True)
class Row:
    """One topic."""

    topic: str
    activated: int
    rejected: int
    dropped: int
    by: Mapping[str, int]
    scores: Spread
    useful: int  # awake, and of use
    useless: int  # awake for nothing
    missed: int  # asleep, and would have been of use
    suspects: tuple[Decision, ...]  # asleep, and perhaps should not have been; the newest last


def report(decisions: Iterable[Decision], topics: Sequence[Topic] = (), threshold: float = 0.15) -> list[Row]:
    """Those that woke most often first. `threshold` is that of the home."""
    known = {topic.name: topic for topic in topics}
    rows = [_row(name, made, known.get(name), threshold) for name, made in _by_topic(decisions).items()]
    return sorted(rows, key=lambda row: (-row.activated, row.topic))


def _by_topic(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    found: dict[str, list[Decision]] = {}
    for one in decisions:
        found.setdefault(one.topic_name, []).append(one)
    return found


def _row(name: str, made: Sequence[Decision], topic: Topic | None, threshold: float) -> Row:
    outcomes = Counter(one.outcome for one in made)
    marks = Counter((one.outcome == "activated", one.was_useful) for one in made)
    return Row(
        topic=name,
        activated=outcomes["activated"],
        rejected=outcomes["rejected"],
        dropped=outcomes["dropped"],
        by=dict(sorted(Counter(one.by for one in made).items())),
        scores=spread([one.tier2_score for one in made]),
        useful=marks[True, True],
        useless=marks[True, False],
        missed=marks[False, True],
        suspects=_suspects(made, topic, threshold),
    )


def spread(scores: Sequence[float]) -> Spread:
    ordered = sorted(scores)
    return Spread(_part(ordered, 0.1), _part(ordered, 0.5), _part(ordered, 0.9), _histogram(ordered))


def _part(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]


def _histogram(scores: Sequence[float]) -> str:
    counts = Counter(min(9, max(0, int(score * 10))) for score in scores)
    most = max(counts.values(), default=1)
    return "".join(_BINS[-(-counts[step] * (len(_BINS) - 1) // most)] for step in range(10))


def _suspects(made: Sequence[Decision], topic: Topic | None, threshold: float) -> tuple[Decision, ...]:
    usual = _usual_score(made)
    asleep = [
        one
        for one in made
        if one.outcome != "activated" and one.was_useful is None and one.by not in _NO_MATTER_OF_SCORE
    ]
    return tuple(
        one
        for one in asleep
        if (usual is not None and one.tier2_score >= usual) or _is_just_below(one, topic, threshold)
    )


def _usual_score(made: Sequence[Decision]) -> float | None:
    """What three of four activations that were of use reach; without marks, of all that were not useless."""
    awake = [one for one in made if one.outcome == "activated" and one.by not in _NO_MATTER_OF_SCORE]
    marked = [one.tier2_score for one in awake if one.was_useful]
    scores = marked or [one.tier2_score for one in awake if one.was_useful is None]
    return _part(sorted(scores), 0.25) if len(scores) >= _ENOUGH_ACTIVATIONS else None


def _is_just_below(one: Decision, topic: Topic | None, threshold: float) -> bool:
    needs = needed(topic, True, threshold) if topic is not None and one.tier1_matched else None
    return needs is not None and needs - _JUST_BELOW <= one.tier2_score < needs


# Thresholds


class Mistakes(NamedTuple):
    false: int
    missed: int

    @property
    def all(self) -> int:
        return self.false + self.missed


@dataclass(frozen=True, slots=True)
class Proposal:
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


def propose(
    decisions: Iterable[Decision], topics: Sequence[Topic], threshold: float = 0.15
) -> list[Proposal]:
    """For each topic that has enough marks of both kinds and would do better, in the order of the topics."""
    marked = _by_topic(
        one for one in decisions if one.was_useful is not None and one.by not in _NO_MATTER_OF_SCORE
    )
    found = (_proposal(topic, marked.get(topic.name, [])[-_MOST_MARKS:], threshold) for topic in topics)
    return [proposal for proposal in found if proposal is not None]


def _proposal(topic: Topic, marked: Sequence[Decision], threshold: float) -> Proposal | None:
    if len(marked) < _ENOUGH_MARKS or len({one.was_useful for one in marked}) < 2:
        return None
    current = own_threshold(topic, threshold)
    wrong = {value: [_is_wrong(topic, one, value) for one in marked] for value in (current, *_HUNDREDTHS)}
    best = _best(marked, wrong, current)
    before = _counted(marked, wrong[current])
    after = _counted(marked, _left_out(marked, wrong, current))
    if best == current or after.all >= before.all:
        return None
    return Proposal(topic, current, best, len(marked), before, after)


def _best(
    marked: Sequence[Decision],
    wrong: Mapping[float, Sequence[bool]],
    current: float,
    without: int | None = None,
) -> float:
    """The fewest mistakes. Of equals the current one, else not close to a mark, and near to the current."""
    counts = {
        value: sum(flags) - (0 if without is None else flags[without]) for value, flags in wrong.items()
    }
    fewest = min(counts.values())
    if counts[current] == fewest:
        return current
    scores = sorted(one.tier2_score for at, one in enumerate(marked) if at != without)
    equals = [value for value, count in counts.items() if count == fewest]
    return min(equals, key=lambda value: (-_distance(value, scores), abs(value - current), value))


def _distance(value: float, scores: Sequence[float]) -> float:
    """To the nearest score, as far as it matters."""
    at = bisect_left(scores, value)
    return round(min(_FAR, *(abs(value - score) for score in scores[max(0, at - 1) : at + 1])), 4)


def _is_wrong(topic: Topic, one: Decision, threshold: float) -> bool:
    return _would_wake(replace(topic, similarity_threshold=threshold), one) != one.was_useful


def _would_wake(topic: Topic, one: Decision) -> bool:
    """What would be decided now. A judge that was asked then would say the same again."""
    what = decide(topic, one.tier1_matched, one.tier2_score, 0.0).what
    if what != "gate":
        return what == "activate"
    if one.gate_result is not None and one.by.startswith(_JUDGES):
        return one.gate_result
    return by_rule(topic, one.tier2_score, one.tier1_matched, 0.0).yes


def _left_out(
    marked: Sequence[Decision], wrong: Mapping[float, Sequence[bool]], current: float
) -> list[bool]:
    """For each mark, whether the threshold that the others choose is wrong about it."""
    return [wrong[_best(marked, wrong, current, at)][at] for at in range(len(marked))]


def _counted(marked: Sequence[Decision], wrong: Sequence[bool]) -> Mistakes:
    mistakes = Counter(one.was_useful for one, is_wrong in zip(marked, wrong, strict=True) if is_wrong)
    return Mistakes(false=mistakes[False], missed=mistakes[True])
