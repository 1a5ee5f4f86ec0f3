"""`tacit topics try`: what a message would do to the topics, tier by tier."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.cli import output
from tacit.cli.lines import clipped, one_line
from tacit.cli.playbooks import wakes_on
from tacit.context.sources import Listener
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.model.topics import Decision, Match, Similarity, Stimulus, Topic
from tacit.sessions.guard import look
from tacit.watch.patterns import PatternMatcher
from tacit.watch.pipeline import Moment, Watched
from tacit.watch.similarity import SimilarityScorer
from tacit.watch.table import decide

_NEAREST = 5  # topics that stay asleep
_NEAR = 0.02  # their score; what is below has a few letters in common with the message


@dataclass(frozen=True, slots=True)
class _Tried:
    """One topic and what came of it."""

    topic: Topic
    matches: tuple[Match, ...]
    similarity: Similarity
    decision: Decision | None  # None: the message did not even come near
    lacks: str  # empty where it wakes
    verdict: str = ""
    hint: str = ""

    @property
    def is_near(self) -> bool:
        return bool(self.matches) or self.similarity.score >= _NEAR or not self.similarity.channels

    @property
    def nearness(self) -> tuple[bool, float, str]:
        return not self.matches, -self.similarity.score, self.topic.name

    def value(self) -> dict[str, Any]:
        made = self.decision
        return {
            "topic": self.topic.name,
            "matches": [{"type": match.type, "text": match.text} for match in self.matches],
            "score": round(self.similarity.score, 4),
            "channels": {name: round(value, 4) for name, value in self.similarity.channels.items()},
            "verdict": self.verdict,
            "outcome": made.outcome if made else None,
            "by": made.by if made else None,
            "gate_result": made.gate_result if made else None,
            "reason": self.lacks or (made.reason if made else ""),
            "hint": self.hint,
        }


def run(memory: Memory, options: argparse.Namespace) -> int:
    text = _input() if options.message == "-" else options.message
    listener = _listener(memory, options.session_key)
    tried = (_tried_output if options.output else _tried_input)(memory, text, options.path, listener)
    awake = [one for one in tried if not one.lacks]
    asleep = sorted((one for one in tried if one.lacks and one.is_near), key=lambda one: one.nearness)
    del asleep[_NEAREST:]
    skipped = "" if options.output else look(text).reason if look(text).skip else ""
    if options.json:
        values = {"awake": [one.value() for one in awake], "asleep": [one.value() for one in asleep]}
        output.dump({**values, "audience": listener.audience, "agent": listener.agent, "skipped": skipped})
        return 0
    if skipped:
        output.say(f"A turn wakes nothing for it: {skipped} (if it names nobody whom the home knows).")
    output.say(f"{_counted(awake)} for “{output.short(one_line(text), 60)}”.")
    for one in awake:
        output.say()
        output.say(f"{one_line(one.topic.name)}  {one.topic.activation}, {one.topic.priority} priority")
        output.table(_tiers(one))
    if asleep:
        output.say()
        output.say("Asleep, the nearest first:")
        output.table(_asleep(one) for one in asleep)
    return 0


def _input() -> str:
    if sys.stdin is None:
        raise UsageError("Standard input is closed, so there is no message to read.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _counted(awake: Sequence[_Tried]) -> str:
    if not awake:
        return "No topic wakes"
    return "1 topic wakes" if len(awake) == 1 else f"{len(awake)} topics wake"


def _listener(memory: Memory, session_key: str) -> Listener:
    profile = memory.profile_of(session_key, trial=True)
    return Listener(profile.rule.audience, profile.kind.agent)


def _tried_input(memory: Memory, text: str, paths: Sequence[str], listener: Listener) -> list[_Tried]:
    topics, threshold = memory.turns.topics().topics, memory.config.watchers.similarity_threshold
    stimulus = Stimulus(text, "input", tuple(paths))
    watched = memory.turns.watchers().process(
        stimulus, Moment(memory.moment().isoformat()), allowed=lambda topic: not _forbidden(topic, listener)
    )
    decisions = _by_name(watched)
    matches = _matches(topics, stimulus)
    scores = SimilarityScorer(topics, threshold).measure(text)
    found = []
    for topic in topics:
        made, similarity = decisions.get(topic.name), scores[topic.name]
        what = matches.get(topic.name, ())
        verdict = decide(topic, bool(what), similarity.score, threshold)
        lacks = _forbidden(topic, listener) or (
            "" if made and made.outcome == "activated" else made.reason if made else verdict.reason
        )
        found.append(_Tried(topic, what, similarity, made, lacks, _VERDICTS[verdict.what] + verdict.reason))
    return _in_order(found, watched)


_VERDICTS = {"activate": "awake: ", "gate": "ask the gate: ", "drop": "asleep: "}


def _tried_output(memory: Memory, text: str, _paths: Sequence[str], listener: Listener) -> list[_Tried]:
    """As if none of them had corrected the agent before."""
    topics = memory.turns.topics().topics
    watched = memory.turns.watchers().corrections(
        text,
        Moment(memory.moment().isoformat()),
        spoken=dict,
        allowed=lambda topic: not _forbidden(topic, listener),
    )
    decisions, hints = _by_name(watched), {one.topic.name: one.hint for one in watched.activations}
    matches = _matches(topics, Stimulus(text, "output"))
    found = []
    for topic in topics:
        if any(trigger.scope != "input" for trigger in topic.triggers):
            what, made = matches.get(topic.name, ()), decisions.get(topic.name)
            lacks = _forbidden(topic, listener) or ("" if made else _silence(topic, bool(what)))
            hint = hints.get(topic.name, "")
            found.append(_Tried(topic, what, Similarity(0.0), made, lacks, hint=hint))
    return _in_order(found, watched)


def _silence(topic: Topic, matched: bool) -> str:
    if not topic.steering:
        return "corrects nothing: give the trigger a correction_hint, or the topic `steering: true`"
    if topic.activation == "manual":
        return "wakes only when it is asked for"
    return "no trigger matched" if not matched else "stays silent"


def _forbidden(topic: Topic, listener: Listener) -> str:
    code = listener.may_hear(topic.audience, topic.agents)
    if code == "audience":
        return f"not for this session: its audience is {topic.audience}, this is {listener.audience}"
    return f"not for this session: it is for the agent {', '.join(topic.agents)}" if code else ""


def _by_name(watched: Watched) -> dict[str, Decision]:
    return {made.topic_name: made for made in watched.decisions}


def _matches(topics: Sequence[Topic], stimulus: Stimulus) -> dict[str, tuple[Match, ...]]:
    found: dict[str, tuple[Match, ...]] = {}
    for match in PatternMatcher(topics).find(stimulus):
        found[match.topic] = (*found.get(match.topic, ()), match)
    return found


def _in_order(tried: Sequence[_Tried], watched: Watched) -> list[_Tried]:
    """Those that wake in the order in which a prompt gets them."""
    places = {one.topic.name: place for place, one in enumerate(watched.activations)}
    return sorted(tried, key=lambda one: places.get(one.topic.name, len(places)))


def _asleep(one: _Tried) -> tuple[str, ...]:
    wakes = "" if one.matches or one.decision else f"; it wakes on {clipped(wakes_on(one.topic), 80)}"
    score = f"{one.similarity.score:.2f}" if one.similarity.channels else ""
    return one_line(one.topic.name), score, one_line(one.lacks) + wakes


def _tiers(one: _Tried) -> Iterator[tuple[str, str]]:
    yield "triggers", one_line("; ".join(match.text for match in one.matches)) or "none matched"
    if one.similarity.channels:
        channels = ", ".join(f"{name} {value:.2f}" for name, value in one.similarity.channels.items())
        yield "score", f"{one.similarity.score:.2f}: {channels}"
        yield "verdict", one.verdict
    made = one.decision
    if made and made.gate_result is not None:
        # The log repeats the triggers in front of the reason.
        shown = ", ".join(dict.fromkeys(match.text for match in one.matches[:3]))
        reason = one_line(made.reason.removeprefix(f"{shown}; "))
        yield "gate", f"{'yes' if made.gate_result else 'no'}, by {made.by}: {reason}"
    if one.hint:
        yield "says", one_line(one.hint)
