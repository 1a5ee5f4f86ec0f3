"""From a message to the topics it activates: patterns, similarity, the gate, each narrower than the last.

    find       the triggers that match, over all topics in one pass
    measure    how much the message is about each topic
    decide     by activation, priority and score: activate, drop, or ask the gate
    ask        the gate about those in doubt, all together, within the deadline

Every topic that a message comes near leaves a decision for the gate log, including those that stay inactive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tacit.diagnostics import Problem
from tacit.topics.activation import GatedActivator, GateQuestion, Verdict, decide
from tacit.topics.model import (
    PRIORITIES,
    Activation,
    Match,
    Outcome,
    Similarity,
    Stimulus,
    Topic,
    TopicDecision,
)
from tacit.topics.patterns import PatternMatcher
from tacit.topics.similarity import SimilarityScorer
from tacit.topics.triggers import TRIGGER_TYPES, SentimentTrigger

_MIN_MOOD = 0.5  # minimum agreement of the message with the mood of a trigger
_MIN_LOGGED_SCORE = 0.3  # minimum score to log a topic that stays inactive for lack of a trigger


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The topics that one message activated, and all decisions."""

    activations: tuple[Activation, ...] = ()
    decisions: tuple[TopicDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a message and the deadline for its processing. `deadline` is a monotonic time."""

    at: str
    deadline: float | None = None


class WatcherPipeline:
    def __init__(self, topics: Sequence[Topic], gate: GatedActivator, threshold: float = 0.15) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self._matcher = PatternMatcher(topics)
        self._scorer = SimilarityScorer(topics, threshold)
        self._gate, self._threshold = gate, threshold

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Patterns that cannot be used, and why."""
        return tuple(self._matcher.problems)

    def topic(self, name: str) -> Topic:
        return self._topics[name]

    def knows(self, name: str, allowed: Callable[[Topic], bool]) -> bool:
        return name in self._topics and allowed(self._topics[name])

    def process(
        self,
        stimulus: Stimulus,
        moment: Moment,
        *,
        allowed: Callable[[Topic], bool] = lambda topic: True,
        woken: Collection[str] = (),
    ) -> WatchResult:
        """`allowed`: whether this session may see a topic; `woken`: names of topics asked for by name."""
        topics = {name: topic for name, topic in self._topics.items() if allowed(topic)}
        is_scheduled = stimulus.event is not None and stimulus.event.type == "cron"
        matches = _group_by_topic(
            match
            for match in self._matcher.find(stimulus)
            if match.topic in topics and (match.type == "cron" or not is_scheduled)
        )
        if is_scheduled:  # there is no user message, so the prompt of a schedule activates no other topic
            topics = {name: topics[name] for name in topics if name in matches or name in woken}
        scores = self._scorer.measure(stimulus.text, topics)
        matches |= {
            name: (*matches.get(name, ()), Match(name, SentimentTrigger.name, "the mood of the message"))
            for name, topic in topics.items()
            if _asks_for_mood(topic) and scores[name].channels.get("mood", 0.0) >= _MIN_MOOD
        }
        candidates = [
            _TopicCandidate(topic, matches.get(name, ()), scores[name], self._threshold)
            for name, topic in sorted(topics.items())
            if name in matches or name in woken or scores[name].score >= _MIN_LOGGED_SCORE
        ]
        return self._decide_all(stimulus, moment, candidates, woken)

    def _decide_all(
        self,
        stimulus: Stimulus,
        moment: Moment,
        candidates: Sequence[_TopicCandidate],
        woken: Collection[str],
    ) -> WatchResult:
        digest = sha256(stimulus.text.encode("utf-8", "surrogatepass")).hexdigest()
        verdicts = {candidate.topic.name: candidate.verdict(woken) for candidate in candidates}
        in_doubt = [candidate for candidate in candidates if verdicts[candidate.topic.name].what == "gate"]
        answers = self._gate.ask_all(
            stimulus.text,
            [
                GateQuestion(candidate.topic, candidate.score, bool(candidate.matches))
                for candidate in in_doubt
            ],
            deadline=moment.deadline,
        )
        answer_by_topic = {
            candidate.topic.name: answer for candidate, answer in zip(in_doubt, answers, strict=True)
        }
        decided = []
        for candidate in candidates:
            verdict, answer = verdicts[candidate.topic.name], answer_by_topic.get(candidate.topic.name)
            outcome: Outcome
            if answer is not None:
                outcome = "activated" if answer.yes else "rejected"
                result = None if answer.by == "error" else answer.yes
                decision = candidate.decision(moment.at, digest, outcome, answer.by, answer.reason, result)
            else:
                outcome = "activated" if verdict.what == "activate" else "dropped"
                decision = candidate.decision(moment.at, digest, outcome, verdict.by, verdict.reason, None)
            decided.append((candidate, decision))
        activations = [
            Activation(candidate.topic, decision_made, candidate.matches)
            for candidate, decision_made in decided
            if decision_made.outcome == "activated"
        ]
        return WatchResult(
            tuple(sorted(activations, key=_importance)), tuple(decision_made for _, decision_made in decided)
        )

    # The agent's output

    def corrections(
        self,
        output: str,
        moment: Moment,
        *,
        spoken: Callable[[], Mapping[str, int]],
        allowed: Callable[[Topic], bool] = lambda topic: True,
    ) -> WatchResult:
        """Topics that correct the agent's output. `spoken`: how many turns ago each one last did."""
        if not output:
            return WatchResult()
        matches = _group_by_topic(self._matcher.find(Stimulus(output, "output")))
        digest = sha256(output.encode("utf-8", "surrogatepass")).hexdigest()
        candidates = [(self._topics[name], topic_matches) for name, topic_matches in sorted(matches.items())]
        candidates = [
            (topic, topic_matches)
            for topic, topic_matches in candidates
            if _can_correct(topic) and allowed(topic)
        ]
        turns_since = spoken() if candidates else {}
        activations, decisions = [], []
        for topic, topic_matches in candidates:
            turns_ago = turns_since.get(topic.name, topic.steering_pause + 1)
            is_silent = turns_ago <= topic.steering_pause
            reason = (
                f"corrected {turns_ago} turns ago"
                if is_silent
                else f"the agent said: {topic_matches[0].text}"
            )
            candidate = _TopicCandidate(topic, topic_matches, Similarity(0.0), self._threshold)
            outcome: Outcome = "dropped" if is_silent else "activated"
            decision = candidate.decision(moment.at, digest, outcome, "steering", reason, None)
            decisions.append(decision)
            if not is_silent:
                hint = next((match.hint for match in topic_matches if match.hint), "")
                activations.append(Activation(topic, decision, topic_matches, hint))
        return WatchResult(tuple(sorted(activations, key=_importance)), tuple(decisions))


@dataclass(frozen=True, slots=True)
class _TopicCandidate:
    topic: Topic
    matches: tuple[Match, ...]
    similarity: Similarity
    threshold: float

    @property
    def score(self) -> float:
        return self.similarity.score

    def verdict(self, woken: Collection[str]) -> Verdict:
        if self.topic.name in woken:
            return Verdict("activate", "asked", "asked for by name")
        event = any(TRIGGER_TYPES[match.type].is_event for match in self.matches)
        return decide(self.topic, bool(self.matches), self.score, self.threshold, event=event)

    def decision(
        self, timestamp: str, digest: str, outcome: Outcome, judge: str, reason: str, gate_result: bool | None
    ) -> TopicDecision:
        matched = ", ".join(dict.fromkeys(match.text for match in self.matches[:3]))
        return TopicDecision(
            timestamp=timestamp,
            message_hash=digest,
            topic_name=self.topic.name,
            tier1_matched=bool(self.matches),
            tier2_score=round(self.score, 4),
            outcome=outcome,
            by=judge,
            reason=f"{matched}; {reason}" if matched else reason,
            gate_result=gate_result,
            channels=dict(self.similarity.channels),
        )


def _group_by_topic(matches: Iterable[Match]) -> dict[str, tuple[Match, ...]]:
    by_topic: dict[str, tuple[Match, ...]] = {}
    for match in matches:
        by_topic[match.topic] = (*by_topic.get(match.topic, ()), match)
    return by_topic


def _asks_for_mood(topic: Topic) -> bool:
    return any(
        trigger.type == SentimentTrigger.name and trigger.scope != "output" for trigger in topic.triggers
    )


def _can_correct(topic: Topic) -> bool:
    return topic.steering and topic.activation != "manual"


def _importance(activation: Activation) -> tuple[int, float, str]:
    return (
        -PRIORITIES.index(activation.topic.priority),
        -activation.decision.tier2_score,
        activation.topic.name,
    )
