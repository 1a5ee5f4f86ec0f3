"""Activate, drop, or ask the gate: decides on one topic by its activation, priority, trigger and score.

The first matching row decides. `own` is the topic's similarity_threshold, or that of the home.

    activation  trigger             priority   score              verdict
    manual      any                 any        any                drop
    auto        matched or event    any        any                activate
    auto        none                any        ≥ max(0.3, own)    activate, if the topic is by_similarity
    gated       event               any        any                activate: there is no message to judge
    gated       matched             critical   any                activate
    gated       matched             high       ≥ 0.3              activate
    gated       matched             high       < 0.3              gate
    gated       matched             medium     ≥ max(0.2, own)    gate
    gated       matched             low        ≥ max(0.3, own)    gate
    gated       none                any        ≥ max(0.3, own)    gate, if the topic is by_similarity
    anything else                                                 drop

An event is a webhook or a schedule that a trigger of the topic names. The threshold can raise the minimum of
the table but never lower it; where the table asks the gate without a minimum score and no model is
configured, the gate uses the threshold (see model_gate.py).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from tacit.topics.model import Topic

VerdictKind: TypeAlias = Literal["activate", "gate", "drop"]

_MIN_HIGH, _MIN_MEDIUM, _MIN_LOW = 0.3, 0.2, 0.3
_MIN_WITHOUT_TRIGGER = 0.3


class Verdict(NamedTuple):
    what: VerdictKind
    by: str
    reason: str  # for people


def decide(topic: Topic, matched: bool, score: float, threshold: float, *, event: bool = False) -> Verdict:
    """`threshold` is that of the home, for topics that set none."""
    if topic.activation == "manual":
        return Verdict("drop", "manual", "activates only when it is asked for")
    if topic.activation == "auto" and (matched or event):
        return Verdict("activate", "auto", "wakes by itself when a trigger matches")
    if event:
        return Verdict("activate", "event", "an event that it waits for")
    minimum = minimum_score(topic, matched, threshold)
    if minimum is None:
        return Verdict("drop", "table", "no trigger matched, and it does not wake by similarity alone")
    if not score >= minimum:
        return Verdict(
            "drop", "table", f"score {score:.2f} is below {minimum:.2f}, {_describe_kind(topic, matched)}"
        )
    return _decide_by_score(topic, matched, score)


def _decide_by_score(topic: Topic, matched: bool, score: float) -> Verdict:
    """The verdict on a topic that has the required score."""
    if not matched and topic.activation == "auto":
        return Verdict("activate", "auto", f"wakes by itself, and score {score:.2f} is enough")
    if matched and topic.priority == "critical":
        return Verdict("activate", "table", "a trigger matched, and it is critical")
    if matched and topic.priority == "high" and score >= _MIN_HIGH:
        return Verdict("activate", "table", f"a trigger matched, and score {score:.2f} is enough")
    return Verdict("gate", "table", f"score {score:.2f}, {_describe_kind(topic, matched)}")


def minimum_score(topic: Topic, matched: bool, threshold: float) -> float | None:
    """The score below which the topic stays inactive; None: no score is enough."""
    threshold_of_topic = own_threshold(topic, threshold)
    if not matched:
        return max(_MIN_WITHOUT_TRIGGER, threshold_of_topic) if topic.by_similarity else None
    if topic.activation == "auto" or topic.priority in ("critical", "high"):
        return 0.0
    return max(_MIN_MEDIUM if topic.priority == "medium" else _MIN_LOW, threshold_of_topic)


def own_threshold(topic: Topic, threshold: float) -> float:
    return threshold if topic.similarity_threshold is None else topic.similarity_threshold


def _describe_kind(topic: Topic, matched: bool) -> str:
    return f"{topic.priority} priority" if matched else "no trigger matched"
