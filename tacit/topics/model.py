"""Values for topics: playbooks, their triggers, and decisions about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from tacit.privacy.audience import Audience

Side: TypeAlias = Literal["input", "output"]  # of the user, of the agent
ScopeName: TypeAlias = Literal["input", "output", "both"]
WakeMode: TypeAlias = Literal["auto", "gated", "manual"]
WAKE_MODES: tuple[WakeMode, ...] = get_args(WakeMode)
Priority: TypeAlias = Literal["low", "medium", "high", "critical"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # from the lowest to the highest


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger of a topic. Which fields count depends on the type."""

    type: str  # a name in topics.triggers.TRIGGER_TYPES
    match: str = ""  # pattern: a regular expression; glob: over the paths in tool calls; url: a glob
    scope: ScopeName = "input"
    words: tuple[str, ...] = ()  # keywords, languages, names, moods; programming languages for code
    source: str = ""  # webhook
    event: str = ""
    schedule: str = ""  # cron
    correction_hint: str = ""  # what to tell the agent if its output matches


@dataclass(frozen=True, slots=True)
class Topic:
    name: str  # the file name without its extension
    path: str
    title: str
    description: str
    body: str  # the playbook, without frontmatter
    triggers: tuple[Trigger, ...] = ()
    subscriptions: tuple[str, ...] = ()
    activation: WakeMode = "gated"
    priority: Priority = "medium"
    max_context_kb: float = 4
    similarity_threshold: float | None = None  # None: that of the home
    by_similarity: bool = False  # may activate by its subject alone, without a trigger
    keywords: tuple[str, ...] = ()  # additional search terms while it is active
    steering: bool = False  # its output triggers correct the agent
    steering_pause: int = 10  # turns before it may correct again
    audience: Audience = "group"
    agents: tuple[str, ...] = ()  # empty: all agents of this home
    day: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """What can start a turn instead of a message: a webhook, or a schedule that came due."""

    type: Literal["webhook", "cron"]
    source: str = ""
    event: str = ""
    topic: str = ""  # cron: whose schedule


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Everything that can activate topics in one turn."""

    text: str
    side: Side = "input"
    paths: tuple[str, ...] = ()  # in tool calls since the last turn
    event: Event | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A trigger that matched, and the text it matched."""

    topic: str
    type: str
    text: str  # a few words: the part of the message, or the rule
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Similarity:
    """How much a message is about a topic, 0 to 1, with the value of each measure."""

    score: float
    channels: Mapping[str, float] = field(default_factory=dict)


Outcome: TypeAlias = Literal["activated", "rejected", "dropped"]


@dataclass(frozen=True, slots=True)
class TopicDecision:
    """The decision about one topic that a message came near, as in the gate log.

    `by` says who decided: asked (by name), auto, manual, table (the rules by priority), event, steering, rule
    (no model is configured), model:NAME, reranker:NAME, cache, or error. `gate_result` is None if the gate
    was not asked.
    """

    timestamp: str  # ISO 8601 with offset
    message_hash: str  # SHA-256 of the whole text
    topic_name: str
    tier1_matched: bool
    tier2_score: float
    outcome: Outcome
    by: str
    reason: str  # for people
    gate_result: bool | None = None
    channels: Mapping[str, float] = field(default_factory=dict)
    was_useful: bool | None = None


@dataclass(frozen=True, slots=True)
class Activation:
    """A topic that is active in this turn."""

    topic: Topic
    decision: TopicDecision
    matches: tuple[Match, ...] = ()
    hint: str = ""
