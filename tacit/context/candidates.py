"""Candidates for a prompt that are loaded whole: the files of the session, and active topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tacit.config import ContextCompilerSettings
from tacit.context.injection_log import InjectionLog
from tacit.context.loaded_files import FileLoader, LoadedBlock, block_label, identity_files
from tacit.context.model import Block, Dropped
from tacit.context.request import sanitize
from tacit.context.situation import Situation
from tacit.context.stage import StepResult
from tacit.diagnostics import Notice
from tacit.topics.model import Activation, Stimulus, Topic, TopicDecision
from tacit.topics.pipeline import Moment, WatcherPipeline, WatchResult
from tacit.transcripts.attribution import Utterance

_PATH_PATTERN = re.compile(r"[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@~+-]+\.[A-Za-z]\w{0,7}\b")
_MAX_PATHS = 100


@dataclass(frozen=True, slots=True)
class TopicSelection:
    activations: tuple[Activation, ...] = ()
    decisions: tuple[TopicDecision, ...] = ()  # for the gate log


NO_BLOCKS: tuple[Block, ...] = ()
NO_TOPICS = TopicSelection()


def load_fixed_files(
    situation: Situation, config: ContextCompilerSettings, loader: FileLoader
) -> StepResult[tuple[Block, ...]]:
    """Identity, and the files that the session always has."""
    names: Sequence[str] = ()
    if situation.is_runtime and "bootstrap" in situation.delivery_modes:  # the host loads its files itself
        config = replace(config, projects="retrieve")
    else:
        rule = situation.profile.rule
        names = identity_files(rule.files, config.profile, rule.audience)
    return _separate((*loader.identity(names), *loader.session(config, situation.now.date())))


def load_topics(loader: FileLoader, topics: TopicSelection) -> StepResult[tuple[Block, ...]]:
    return _separate(tuple(loader.topics(topics.activations)))


def _separate(loaded: Sequence[LoadedBlock]) -> StepResult[tuple[Block, ...]]:
    return StepResult(
        tuple(block for block in loaded if isinstance(block, Block)),
        dropped=tuple(block for block in loaded if isinstance(block, Dropped)),
    )


# ---------------------------------------------------------------- topics


def may_activate_topics(situation: Situation) -> bool:
    """Not if the session gets nothing, and not for tacit's own tools, whose calls are no turns of the
    conversation."""
    return not situation.blocked and situation.skip != "own-tool"


def activate_topics(
    situation: Situation, pipeline: WatcherPipeline, injections: InjectionLog, gate_deadline: float | None
) -> StepResult[TopicSelection]:
    """Topics that correct the agent's last message, and topics that the message activates."""
    request, moment = situation.request, Moment(situation.now.isoformat(), gate_deadline)

    def is_allowed(topic: Topic) -> bool:
        return not situation.listener.may_hear(topic.audience, topic.agents)

    corrected = pipeline.corrections(
        next((sanitize(turn.text) for turn in reversed(situation.history) if turn.role == "agent"), ""),
        moment,
        spoken=lambda: _recent_corrections(situation, injections),
        allowed=is_allowed,
    )
    watched = WatchResult()
    if not situation.skip or request.event or request.wake:
        paths = (*request.paths, *_tool_paths(situation.history))
        stimulus = Stimulus(situation.query, "input", paths, request.event)
        watched = pipeline.process(stimulus, moment, allowed=is_allowed, woken=request.wake)
    decisions = (*corrected.decisions, *watched.decisions)
    unknown = [name for name in request.wake if not pipeline.knows(name, is_allowed)]
    return StepResult(
        TopicSelection((*corrected.activations, *watched.activations), decisions),
        tuple(_topic_notices(situation, pipeline, decisions)),
        (*map(_drop_unknown, unknown), *_drop_inactive(pipeline, decisions)),
    )


def _topic_notices(
    situation: Situation, pipeline: WatcherPipeline, decisions: Iterable[TopicDecision]
) -> Iterator[Notice]:
    if situation.listener.audience == "owner":  # the problem text may reveal what the topic says
        for problem in pipeline.problems:
            yield Notice("topic", str(problem))
    for decision in decisions:
        if decision.by == "error":
            yield Notice("gate-error", f"{decision.topic_name} stayed asleep: {decision.reason}")


def _drop_unknown(name: str) -> Dropped:
    return Dropped(block_label("topic", name), "topics", "", "missing", "there is no such topic")


def _drop_inactive(pipeline: WatcherPipeline, decisions: Iterable[TopicDecision]) -> Iterator[Dropped]:
    for decision in decisions:
        if decision.outcome != "activated":
            yield Dropped(
                block_label("topic", decision.topic_name),
                "topics",
                pipeline.topic(decision.topic_name).path,
                "gate" if decision.outcome == "rejected" else "asleep",
                decision.reason,
                score=decision.tier2_score,
                channels=decision.channels,
            )


def _recent_corrections(situation: Situation, injections: InjectionLog) -> Mapping[str, int]:
    """How many turns ago each topic corrected the agent in this session."""
    labels = injections.labels(situation.key, situation.session_id, situation.since)
    return {label.partition(":")[2]: ago for label, ago in labels.items() if label.startswith("correction:")}


def _tool_paths(history: Sequence[Utterance]) -> list[str]:
    """File paths in tool calls since the user's last message."""
    paths: dict[str, None] = {}
    for turn in reversed(history):
        if turn.role == "user" or len(paths) >= _MAX_PATHS:
            break
        if turn.role == "tool":
            paths |= dict.fromkeys(_PATH_PATTERN.findall(sanitize(turn.text[:4000])[:2000]))
    return list(paths)[:_MAX_PATHS]
