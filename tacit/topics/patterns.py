"""Tier 1: matches a message against the triggers of topics, without a model.

Triggers of one type are matched together, each type only if a topic needs it. A trigger that cannot be used
becomes a problem to show; the others work. Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from tacit.diagnostics import Problem
from tacit.topics.model import Match, Side, Stimulus, Topic
from tacit.topics.triggers import TRIGGER_TYPES
from tacit.topics.triggers.base import MatchInput, Rule

_MAX_TEXTS = 5  # of one trigger that are shown


class PatternMatcher:
    """Matches the triggers of all topics. Each side is compiled on first use."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = sorted(topics, key=lambda topic: topic.name)
        self._rules_by_side: dict[Side, _RuleSet] = {}

    def match(self, text: str) -> set[str]:
        """The names of the topics with a trigger that matches the message."""
        return {hit.topic for hit in self.find(Stimulus(text))}

    def find(self, stimulus: Stimulus) -> list[Match]:
        """All matches, by topic and by the order of its triggers; one for each trigger."""
        return self._rules_of_side(stimulus.side).find(stimulus)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Triggers that cannot be used, and why."""
        both = (*self._rules_of_side("input").problems(), *self._rules_of_side("output").problems())
        return tuple(dict.fromkeys(both))

    def _rules_of_side(self, side: Side) -> _RuleSet:
        if side not in self._rules_by_side:
            triggers = [
                (number, topic, trigger)
                for topic in self._topics
                for number, trigger in enumerate(topic.triggers)
                if trigger.scope in (side, "both")
            ]
            self._rules_by_side[side] = _RuleSet([Rule(index, *rule) for index, rule in enumerate(triggers)])
        return self._rules_by_side[side]


class _RuleSet:
    """The compiled rules of one side."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        by_type = {
            name: [rule for rule in rules if rule.trigger.type == name]
            for name in {rule.trigger.type for rule in rules}
        }
        self._types = [TRIGGER_TYPES[name](by_type[name]) for name in TRIGGER_TYPES if name in by_type]

    def find(self, stimulus: Stimulus) -> list[Match]:
        source = MatchInput(stimulus)
        texts_by_rule: dict[int, list[str]] = {}
        for trigger_type in self._types:
            for position, text in trigger_type.find(source):
                texts = texts_by_rule.setdefault(position, [])
                if text not in texts and len(texts) < _MAX_TEXTS:
                    texts.append(text)
        return [_make_match(self._rules[index], texts_by_rule[index]) for index in sorted(texts_by_rule)]

    def problems(self) -> list[Problem]:
        return [problem for trigger_type in self._types for problem in trigger_type.problems()]


def _make_match(rule: Rule, texts: Sequence[str]) -> Match:
    """Says `keyword "deploy"`, followed by other matches without the repeated kind."""
    kind = texts[0].split(" ", 1)[0]
    text = ", ".join((texts[0], *(other.removeprefix(f"{kind} ") for other in texts[1:])))
    return Match(rule.topic.name, rule.trigger.type, text, rule.trigger.correction_hint)
