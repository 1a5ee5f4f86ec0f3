"""Awake, asleep, or ask the gate: what activation, priority, trigger and score say about one topic.

The first row that fits decides. `own` is the topic's similarity_threshold, or that of the home.

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

An event is a webhook or a schedule that a trigger of the topic names. The threshold can ask for more than
the table and never for less; where the table asks the gate without a score of its own and no model is
configured, the threshold is what the gate goes by (see gate.py).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from tacit.model.topics import Topic

What: TypeAlias = Literal["activate", "gate", "drop"]

_HIGH, _MEDIUM, _LOW = 0.3, 0.2, 0.3
_WITHOUT_TRIGGER = 0.3


class Verdict(NamedTuple):
    what: What
    by: str
    reason: str  # for people


def decide(topic: Topic, matched: bool, score: float, threshold: float, *, event: bool = False) -> Verdict:
    """`threshold` is that of the home, for topics that set none."""
    if topic.activation == "manual":
        return Verdict("drop", "manual", "wakes only when it is asked for")
    if topic.activation == "auto" and (matched or event):
        return Verdict("activate", "auto", "wakes by itself when a trigger matches")
    if event:
        return Verdict("activate", "event", "an event that it waits for")
    needs = needed(topic, matched, threshold)
    if needs is None:
        return Verdict("drop", "table", "no trigger matched, and it does not wake by similarity alone")
    if not score >= needs:
        return Verdict("drop", "table", f"score {score:.2f} is below {needs:.2f}, {_kind(topic, matched)}")
    return _near(topic, matched, score)


def _near(topic: Topic, matched: bool, score: float) -> Verdict:
    """Of a topic that has the score it needs."""
    if not matched and topic.activation == "auto":
        return Verdict("activate", "auto", f"wakes by itself, and score {score:.2f} is enough")
    if matched and topic.priority == "critical":
        return Verdict("activate", "table", "a trigger matched, and it is critical")
    if matched and topic.priority == "high" and score >= _HIGH:
        return Verdict("activate", "table", f"a trigger matched, and score {score:.2f} is enough")
    return Verdict("gate", "table", f"score {score:.2f}, {_kind(topic, matched)}")


def needed(topic: Topic, matched: bool, threshold: float) -> float | None:
    """The score below which the topic stays asleep; None: no score would do."""
    own = own_threshold(topic, threshold)
    if not matched:
        return max(_WITHOUT_TRIGGER, own) if topic.by_similarity else None
    if topic.activation == "auto" or topic.priority in ("critical", "high"):
        return 0.0
    return max(_MEDIUM if topic.priority == "medium" else _LOW, own)


def own_threshold(topic: Topic, threshold: float) -> float:
    return threshold if topic.similarity_threshold is None else topic.similarity_threshold


def _kind(topic: Topic, matched: bool) -> str:
    return f"{topic.priority} priority" if matched else "no trigger matched"
