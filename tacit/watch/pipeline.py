"""From a message to the topics that it wakes: patterns, similarity, the gate, each narrower than the last.

    find       which triggers match, over all topics in one pass
    measure    how much the message is about each topic
    decide     by activation, priority and score: awake, not, or ask the gate
    ask        the gate about those in doubt, all at once, within the time there is

Every topic that a message came near leaves a decision for the gate log, also those that stayed asleep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tacit.model.problems import Problem
from tacit.model.topics import (
    PRIORITIES,
    Activation,
    Decision,
    Match,
    Outcome,
    Similarity,
    Stimulus,
    Topic,
)
from tacit.watch.gate import GatedActivator, Question
from tacit.watch.patterns import PatternMatcher
from tacit.watch.similarity import SimilarityScorer
from tacit.watch.table import Verdict, decide

_MOOD = 0.5  # how much of the mood that a topic asks for a message must have
_NEAR = 0.3  # a score from which a topic that stays asleep for lack of a trigger is worth a note


@dataclass(frozen=True, slots=True)
class Watched:
    """What one message did to the topics."""

    activations: tuple[Activation, ...] = ()
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """When and within which time a message is looked at. `deadline` is a monotonic time."""

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
    ) -> Watched:
        """`allowed`: which topics this session may see at all; `woken`: names that somebody asked for."""
        topics = {name: topic for name, topic in self._topics.items() if allowed(topic)}
        scheduled = stimulus.event is not None and stimulus.event.type == "cron"
        matches = _by_topic(
            match
            for match in self._matcher.find(stimulus)
            if match.topic in topics and (match.type == "cron" or not scheduled)
        )
        if scheduled:  # nobody speaks: what the prompt of a schedule is about wakes nothing else
            topics = {name: topics[name] for name in topics if name in matches or name in woken}
        scores = self._scorer.measure(stimulus.text, topics)
        matches |= {
            name: (*matches.get(name, ()), Match(name, "sentiment", "the mood of the message"))
            for name, topic in topics.items()
            if _asks_for_mood(topic) and scores[name].channels.get("mood", 0.0) >= _MOOD
        }
        near = [
            _Candidate(topic, matches.get(name, ()), scores[name], self._threshold)
            for name, topic in sorted(topics.items())
            if name in matches or name in woken or scores[name].score >= _NEAR
        ]
        return self._decided(stimulus, moment, near, woken)

    def _decided(
        self, stimulus: Stimulus, moment: Moment, near: Sequence[_Candidate], woken: Collection[str]
    ) -> Watched:
        digest = sha256(stimulus.text.encode("utf-8", "surrogatepass")).hexdigest()
        verdicts = {one.topic.name: one.verdict(woken) for one in near}
        asked = [one for one in near if verdicts[one.topic.name].what == "gate"]
        answers = self._gate.ask_all(
            stimulus.text,
            [Question(one.topic, one.score, bool(one.matches)) for one in asked],
            deadline=moment.deadline,
        )
        gated = {one.topic.name: answer for one, answer in zip(asked, answers, strict=True)}
        found = []
        for one in near:
            verdict, answer = verdicts[one.topic.name], gated.get(one.topic.name)
            outcome: Outcome
            if answer is not None:
                outcome = "activated" if answer.yes else "rejected"
                result = None if answer.by == "error" else answer.yes
                decision = one.decision(moment.at, digest, outcome, answer.by, answer.reason, result)
            else:
                outcome = "activated" if verdict.what == "activate" else "dropped"
                decision = one.decision(moment.at, digest, outcome, verdict.by, verdict.reason, None)
            found.append((one, decision))
        awake = [
            Activation(one.topic, made, one.matches) for one, made in found if made.outcome == "activated"
        ]
        return Watched(tuple(sorted(awake, key=_importance)), tuple(made for _, made in found))

    # The agent's own words

    def corrections(
        self,
        output: str,
        moment: Moment,
        *,
        spoken: Callable[[], Mapping[str, int]],
        allowed: Callable[[Topic], bool] = lambda topic: True,
    ) -> Watched:
        """Topics that ask to correct what the agent said. `spoken`: how many turns ago each did so last."""
        if not output:
            return Watched()
        matches = _by_topic(self._matcher.find(Stimulus(output, "output")))
        digest = sha256(output.encode("utf-8", "surrogatepass")).hexdigest()
        asking = [(self._topics[name], found) for name, found in sorted(matches.items())]
        asking = [(topic, found) for topic, found in asking if _corrects(topic) and allowed(topic)]
        before = spoken() if asking else {}
        awake, decisions = [], []
        for topic, found in asking:
            ago = before.get(topic.name, topic.steering_pause + 1)
            silent = ago <= topic.steering_pause
            reason = f"corrected {ago} turns ago" if silent else f"the agent said: {found[0].text}"
            one = _Candidate(topic, found, Similarity(0.0), self._threshold)
            outcome: Outcome = "dropped" if silent else "activated"
            decision = one.decision(moment.at, digest, outcome, "steering", reason, None)
            decisions.append(decision)
            if not silent:
                hint = next((match.hint for match in found if match.hint), "")
                awake.append(Activation(topic, decision, found, hint))
        return Watched(tuple(sorted(awake, key=_importance)), tuple(decisions))


@dataclass(frozen=True, slots=True)
class _Candidate:
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
        event = any(match.type in ("webhook", "cron") for match in self.matches)
        return decide(self.topic, bool(self.matches), self.score, self.threshold, event=event)

    def decision(
        self, at: str, digest: str, outcome: Outcome, by: str, reason: str, gate_result: bool | None
    ) -> Decision:
        what = ", ".join(dict.fromkeys(match.text for match in self.matches[:3]))
        return Decision(
            timestamp=at,
            message_hash=digest,
            topic_name=self.topic.name,
            tier1_matched=bool(self.matches),
            tier2_score=round(self.score, 4),
            outcome=outcome,
            by=by,
            reason=f"{what}; {reason}" if what else reason,
            gate_result=gate_result,
            channels=dict(self.similarity.channels),
        )


def _by_topic(matches: Iterable[Match]) -> dict[str, tuple[Match, ...]]:
    found: dict[str, tuple[Match, ...]] = {}
    for match in matches:
        found[match.topic] = (*found.get(match.topic, ()), match)
    return found


def _asks_for_mood(topic: Topic) -> bool:
    return any(trigger.type == "sentiment" and trigger.scope != "output" for trigger in topic.triggers)


def _corrects(topic: Topic) -> bool:
    return topic.steering and topic.activation != "manual"


def _importance(awake: Activation) -> tuple[int, float, str]:
    return (-PRIORITIES.index(awake.topic.priority), -awake.decision.tier2_score, awake.topic.name)
