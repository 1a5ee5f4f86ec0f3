"""Try a message on the topics: which ones it would activate, and why the others would stay inactive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.context.loaded_files import Listener
from tacit.topics.activation import decide
from tacit.topics.model import Match, Similarity, Stimulus, Topic, TopicDecision
from tacit.topics.patterns import PatternMatcher
from tacit.topics.pipeline import Moment, WatcherPipeline, WatchResult
from tacit.topics.similarity import SimilarityScorer

MIN_NEAR_SCORE = 0.02  # below it a topic only shares a few letters with the message
_VERDICTS = {"activate": "awake: ", "gate": "ask the gate: ", "drop": "asleep: "}


@dataclass(frozen=True, slots=True)
class TrialResult:
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
        return bool(self.matches) or self.similarity.score >= MIN_NEAR_SCORE or not self.similarity.channels

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


class TopicTrial:
    """Nothing is logged."""

    def __init__(
        self,
        topics: Sequence[Topic],
        watchers: WatcherPipeline,
        listener: Listener,
        *,
        threshold: float,
        moment: Moment,
    ) -> None:
        self._topics, self._watchers, self._listener = topics, watchers, listener
        self._threshold, self._moment = threshold, moment

    def try_input(self, text: str, paths: Sequence[str]) -> list[TrialResult]:
        """Try a message, with the files that tools touched. Active topics come first."""
        stimulus = Stimulus(text, "input", tuple(paths))
        watched = self._watchers.process(stimulus, self._moment, allowed=self._is_allowed)
        decisions = _decisions_by_topic(watched)
        matches = _matches_by_topic(self._topics, stimulus)
        scores = SimilarityScorer(self._topics, self._threshold).measure(text)
        results = []
        for topic in self._topics:
            decision, similarity = decisions.get(topic.name), scores[topic.name]
            matched = matches.get(topic.name, ())
            verdict = decide(topic, bool(matched), similarity.score, self._threshold)
            lacks = self._forbidden_reason(topic)
            if not lacks and not (decision and decision.outcome == "activated"):
                lacks = decision.reason if decision else verdict.reason
            summary = _VERDICTS[verdict.what] + verdict.reason
            results.append(TrialResult(topic, matched, similarity, decision, lacks, summary))
        return _sort_as_in_prompt(results, watched)

    def try_output(self, text: str) -> list[TrialResult]:
        """Try the agent's own words, as if no topic had corrected it before."""
        watched = self._watchers.corrections(text, self._moment, spoken=dict, allowed=self._is_allowed)
        decisions = _decisions_by_topic(watched)
        hints = {activation.topic.name: activation.hint for activation in watched.activations}
        matches = _matches_by_topic(self._topics, Stimulus(text, "output"))
        results = []
        for topic in self._topics:
            if any(trigger.scope != "input" for trigger in topic.triggers):
                matched, decision = matches.get(topic.name, ()), decisions.get(topic.name)
                lacks = self._forbidden_reason(topic)
                if not lacks and not decision:
                    lacks = _explain_silence(topic, bool(matched))
                hint = hints.get(topic.name, "")
                results.append(TrialResult(topic, matched, Similarity(0.0), decision, lacks, hint=hint))
        return _sort_as_in_prompt(results, watched)

    def _is_allowed(self, topic: Topic) -> bool:
        return not self._forbidden_reason(topic)

    def _forbidden_reason(self, topic: Topic) -> str:
        code = self._listener.may_hear(topic.audience, topic.agents)
        if code == "audience":
            audience = self._listener.audience
            return f"not for this session: its audience is {topic.audience}, this is {audience}"
        return f"not for this session: it is for the agent {', '.join(topic.agents)}" if code else ""


def _explain_silence(topic: Topic, matched: bool) -> str:
    if not topic.steering:
        return "corrects nothing: give the trigger a correction_hint, or the topic `steering: true`"
    if topic.activation == "manual":
        return "activates only when it is asked for"
    return "no trigger matched" if not matched else "stays silent"


def _decisions_by_topic(watched: WatchResult) -> dict[str, TopicDecision]:
    return {decision.topic_name: decision for decision in watched.decisions}


def _matches_by_topic(topics: Sequence[Topic], stimulus: Stimulus) -> dict[str, tuple[Match, ...]]:
    matches: dict[str, tuple[Match, ...]] = {}
    for match in PatternMatcher(topics).find(stimulus):
        matches[match.topic] = (*matches.get(match.topic, ()), match)
    return matches


def _sort_as_in_prompt(results: Sequence[TrialResult], watched: WatchResult) -> list[TrialResult]:
    """Active topics first, in the order in which a prompt gets them."""
    places = {activation.topic.name: place for place, activation in enumerate(watched.activations)}
    return sorted(results, key=lambda result: places.get(result.topic.name, len(places)))
