"""`tacit topics try`: what a message would do to the topics, tier by tier."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.cli.playbooks import describe_triggers
from tacit.context.loaded_files import Listener
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.search.query_filter import filter_query
from tacit.terminal import output
from tacit.terminal.lines import clip, one_line
from tacit.topics.model import Match, Similarity, Stimulus, Topic, TopicDecision
from tacit.topics.patterns import PatternMatcher
from tacit.topics.pipeline import Moment, WatchResult
from tacit.topics.policy import decide
from tacit.topics.similarity import SimilarityScorer

_MAX_ASLEEP_SHOWN = 5  # inactive topics
_MIN_NEAR_SCORE = 0.02  # below it a topic only shares a few letters with the message


@dataclass(frozen=True, slots=True)
class _TrialResult:
    """What a message did to one topic."""

    topic: Topic
    matches: tuple[Match, ...]
    similarity: Similarity
    decision: TopicDecision | None  # None: the message came nowhere near
    lacks: str  # why it stays inactive; empty if it activates
    verdict: str = ""
    hint: str = ""

    @property
    def is_near(self) -> bool:
        return bool(self.matches) or self.similarity.score >= _MIN_NEAR_SCORE or not self.similarity.channels

    @property
    def nearness(self) -> tuple[bool, float, str]:
        return not self.matches, -self.similarity.score, self.topic.name

    def value(self) -> dict[str, Any]:
        decision = self.decision
        return {
            "topic": self.topic.name,
            "matches": [{"type": match.type, "text": match.text} for match in self.matches],
            "score": round(self.similarity.score, 4),
            "channels": {name: round(value, 4) for name, value in self.similarity.channels.items()},
            "verdict": self.verdict,
            "outcome": decision.outcome if decision else None,
            "by": decision.by if decision else None,
            "gate_result": decision.gate_result if decision else None,
            "reason": self.lacks or (decision.reason if decision else ""),
            "hint": self.hint,
        }


def run(memory: Memory, options: argparse.Namespace) -> int:
    text = _read_stdin() if options.message == "-" else options.message
    listener = _listener(memory, options.session_key)
    results = (_try_output if options.output else _try_input)(memory, text, options.path, listener)
    awake = [result for result in results if not result.lacks]
    asleep = sorted(
        (result for result in results if result.lacks and result.is_near), key=lambda result: result.nearness
    )
    del asleep[_MAX_ASLEEP_SHOWN:]
    skipped = "" if options.output else filter_query(text).reason if filter_query(text).skip else ""
    if options.json:
        values = {
            "awake": [result.value() for result in awake],
            "asleep": [result.value() for result in asleep],
        }
        output.dump({**values, "audience": listener.audience, "agent": listener.agent, "skipped": skipped})
        return 0
    if skipped:
        output.say(f"A turn wakes nothing for it: {skipped} (if it names nobody whom the home knows).")
    output.say(f"{_count_awake(awake)} for “{output.shorten(one_line(text), 60)}”.")
    for result in awake:
        output.say()
        output.say(
            f"{one_line(result.topic.name)}  {result.topic.activation}, {result.topic.priority} priority"
        )
        output.print_table(_tier_rows(result))
    if asleep:
        output.say()
        output.say("Asleep, the nearest first:")
        output.print_table(_asleep_row(result) for result in asleep)
    return 0


def _read_stdin() -> str:
    if sys.stdin is None:
        raise UsageError("Standard input is closed, so there is no message to read.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _count_awake(awake: Sequence[_TrialResult]) -> str:
    if not awake:
        return "No topic wakes"
    return "1 topic wakes" if len(awake) == 1 else f"{len(awake)} topics wake"


def _listener(memory: Memory, session_key: str) -> Listener:
    profile = memory.profile_of(session_key, trial=True)
    return Listener(profile.rule.audience, profile.kind.agent)


def _try_input(memory: Memory, text: str, paths: Sequence[str], listener: Listener) -> list[_TrialResult]:
    topics, threshold = memory.turns.topics().topics, memory.config.watchers.similarity_threshold
    stimulus = Stimulus(text, "input", tuple(paths))
    watched = memory.turns.watchers().process(
        stimulus,
        Moment(memory.moment().isoformat()),
        allowed=lambda topic: not _forbidden_reason(topic, listener),
    )
    decisions = _decisions_by_topic(watched)
    matches = _matches_by_topic(topics, stimulus)
    scores = SimilarityScorer(topics, threshold).measure(text)
    results = []
    for topic in topics:
        decision, similarity = decisions.get(topic.name), scores[topic.name]
        matched = matches.get(topic.name, ())
        verdict = decide(topic, bool(matched), similarity.score, threshold)
        lacks = _forbidden_reason(topic, listener) or (
            ""
            if decision and decision.outcome == "activated"
            else decision.reason
            if decision
            else verdict.reason
        )
        results.append(
            _TrialResult(
                topic, matched, similarity, decision, lacks, _VERDICTS[verdict.what] + verdict.reason
            )
        )
    return _sort_as_in_prompt(results, watched)


_VERDICTS = {"activate": "awake: ", "gate": "ask the gate: ", "drop": "asleep: "}


def _try_output(memory: Memory, text: str, _paths: Sequence[str], listener: Listener) -> list[_TrialResult]:
    """Try the agent's own words, as if no topic had corrected it before."""
    topics = memory.turns.topics().topics
    watched = memory.turns.watchers().corrections(
        text,
        Moment(memory.moment().isoformat()),
        spoken=dict,
        allowed=lambda topic: not _forbidden_reason(topic, listener),
    )
    decisions, hints = (
        _decisions_by_topic(watched),
        {activation.topic.name: activation.hint for activation in watched.activations},
    )
    matches = _matches_by_topic(topics, Stimulus(text, "output"))
    results = []
    for topic in topics:
        if any(trigger.scope != "input" for trigger in topic.triggers):
            matched, decision = matches.get(topic.name, ()), decisions.get(topic.name)
            lacks = _forbidden_reason(topic, listener) or (
                "" if decision else _explain_silence(topic, bool(matched))
            )
            hint = hints.get(topic.name, "")
            results.append(_TrialResult(topic, matched, Similarity(0.0), decision, lacks, hint=hint))
    return _sort_as_in_prompt(results, watched)


def _explain_silence(topic: Topic, matched: bool) -> str:
    if not topic.steering:
        return "corrects nothing: give the trigger a correction_hint, or the topic `steering: true`"
    if topic.activation == "manual":
        return "wakes only when it is asked for"
    return "no trigger matched" if not matched else "stays silent"


def _forbidden_reason(topic: Topic, listener: Listener) -> str:
    code = listener.may_hear(topic.audience, topic.agents)
    if code == "audience":
        return f"not for this session: its audience is {topic.audience}, this is {listener.audience}"
    return f"not for this session: it is for the agent {', '.join(topic.agents)}" if code else ""


def _decisions_by_topic(watched: WatchResult) -> dict[str, TopicDecision]:
    return {decision.topic_name: decision for decision in watched.decisions}


def _matches_by_topic(topics: Sequence[Topic], stimulus: Stimulus) -> dict[str, tuple[Match, ...]]:
    matches: dict[str, tuple[Match, ...]] = {}
    for match in PatternMatcher(topics).find(stimulus):
        matches[match.topic] = (*matches.get(match.topic, ()), match)
    return matches


def _sort_as_in_prompt(results: Sequence[_TrialResult], watched: WatchResult) -> list[_TrialResult]:
    """Active topics first, in the order in which a prompt gets them."""
    places = {activation.topic.name: place for place, activation in enumerate(watched.activations)}
    return sorted(results, key=lambda result: places.get(result.topic.name, len(places)))


def _asleep_row(result: _TrialResult) -> tuple[str, ...]:
    wakes = (
        ""
        if result.matches or result.decision
        else f"; it wakes on {clip(describe_triggers(result.topic), 80)}"
    )
    score = f"{result.similarity.score:.2f}" if result.similarity.channels else ""
    return one_line(result.topic.name), score, one_line(result.lacks) + wakes


def _tier_rows(result: _TrialResult) -> Iterator[tuple[str, str]]:
    yield "triggers", one_line("; ".join(match.text for match in result.matches)) or "none matched"
    if result.similarity.channels:
        channels = ", ".join(f"{name} {value:.2f}" for name, value in result.similarity.channels.items())
        yield "score", f"{result.similarity.score:.2f}: {channels}"
        yield "verdict", result.verdict
    decision = result.decision
    if decision and decision.gate_result is not None:
        # The log repeats the triggers in front of the reason.
        shown = ", ".join(dict.fromkeys(match.text for match in result.matches[:3]))
        reason = one_line(decision.reason.removeprefix(f"{shown}; "))
        yield "gate", f"{'yes' if decision.gate_result else 'no'}, by {decision.by}: {reason}"
    if result.hint:
        yield "says", one_line(result.hint)
