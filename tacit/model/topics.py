"""Topics as values: playbooks, what wakes them, and what was decided about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from tacit.model.search import Audience

TriggerType: TypeAlias = Literal[
    "pattern", "glob", "keywords", "code", "language", "mention", "url", "urgency", "sentiment", "webhook",
    "cron",
]  # fmt: skip
TRIGGER_TYPES: tuple[TriggerType, ...] = get_args(TriggerType)

Side: TypeAlias = Literal["input", "output"]  # what the user said, what the agent said
ScopeName: TypeAlias = Literal["input", "output", "both"]
WakeMode: TypeAlias = Literal["auto", "gated", "manual"]
WAKE_MODES: tuple[WakeMode, ...] = get_args(WakeMode)
Priority: TypeAlias = Literal["low", "medium", "high", "critical"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)  # from the last to the first


@dataclass(frozen=True, slots=True)
class Trigger:
    """One thing that wakes a topic. Which fields count depends on the type."""

    type: TriggerType
    match: str = ""  # pattern: a regular expression; glob: over the paths in tool calls; url: a glob
    scope: ScopeName = "input"
    words: tuple[str, ...] = ()  # keywords, languages, names, moods; programming languages for code
    source: str = ""  # webhook
    event: str = ""
    schedule: str = ""  # cron
    correction_hint: str = ""  # what to tell the agent when its own output matched


@dataclass(frozen=True, slots=True)
class Topic:
    name: str  # the file's name without its ending
    path: str
    title: str
    description: str
    body: str  # the playbook, without frontmatter
    triggers: tuple[Trigger, ...] = ()
    subscriptions: tuple[str, ...] = ()
    activation: WakeMode = "gated"
    priority: Priority = "medium"
    max_context_kb: float = 4
    similarity_threshold: float | None = None  # None: the one of the home
    by_similarity: bool = False  # may wake without a trigger, for what it is about alone
    keywords: tuple[str, ...] = ()  # what else to look for when it is awake
    steering: bool = False  # its output triggers correct the agent
    steering_pause: int = 10  # turns before it may correct again
    audience: Audience = "group"
    agents: tuple[str, ...] = ()  # empty: all agents of this home
    day: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """What else can begin a turn than a message: a webhook, or a schedule that came due."""

    type: Literal["webhook", "cron"]
    source: str = ""
    event: str = ""
    topic: str = ""  # cron: whose schedule


@dataclass(frozen=True, slots=True)
class Stimulus:
    """All that can wake topics in one turn."""

    text: str
    side: Side = "input"
    paths: tuple[str, ...] = ()  # in tool calls since the last turn
    event: Event | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """That a trigger matched, and on what."""

    topic: str
    type: TriggerType
    text: str  # a few words: what in the message it was, or which rule
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Similarity:
    """How much a message is about a topic, 0 to 1, and what each measure says."""

    score: float
    channels: Mapping[str, float] = field(default_factory=dict)


Outcome: TypeAlias = Literal["activated", "rejected", "dropped"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one topic that a message came near, as the gate log keeps it.

    `by` says who decided: asked (by name), auto, manual, table (the rules by priority), event, steering, rule
    (no model is configured), model:NAME, reranker:NAME, cache, or error. `gate_result` is None where no
    gate was asked.
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
    """A topic that is awake in this turn."""

    topic: Topic
    decision: Decision
    matches: tuple[Match, ...] = ()
    hint: str = ""
