"""Tier 1: matches a message against the triggers of topics, without a model.

The patterns of all topics run together on RE2, keywords and names in one pass over the words, other checks
only if a topic needs them. A trigger that cannot be used becomes a problem to show; the others work. Nothing
here raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple, TypeAlias

from tacit.diagnostics import Problem
from tacit.text import globs, signals
from tacit.text.language import detect_language, parse_language_code
from tacit.text.words import space_marks
from tacit.topics import regex
from tacit.topics.keywords import Keywords, normalize_text
from tacit.topics.model import Event, Match, Side, Stimulus, Topic, Trigger, TriggerType
from tacit.topics.regex import Expressions
from tacit.topics.word_boundary import BoundedPattern, add_boundaries

MAX_START_CHARS = 20_000  # characters of a long text that are checked, from its start and its end
MAX_END_CHARS = 4_000
_MAX_PREVIEW_CHARS = 60
_MAX_PATHS = 200


class PatternMatcher:
    """Matches the triggers of all topics. Each side is compiled on first use."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = sorted(topics, key=lambda topic: topic.name)
        self._rules_by_side: dict[Side, _CompiledRules] = {}

    def match(self, text: str) -> set[str]:
        """The names of the topics with a trigger that matches the message."""
        return {hit.topic for hit in self.find(Stimulus(text))}

    def find(self, stimulus: Stimulus) -> list[Match]:
        """All matches, by topic and by the order of its triggers; one for each trigger."""
        return self._rules_of_side(stimulus.side).find(stimulus)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Triggers that cannot be used, and why."""
        all_problems = (*self._rules_of_side("input").problems(), *self._rules_of_side("output").problems())
        return tuple(dict.fromkeys(all_problems))

    def _rules_of_side(self, side: Side) -> _CompiledRules:
        if side not in self._rules_by_side:
            rules = [
                _Rule(topic, number, trigger)
                for topic in self._topics
                for number, trigger in enumerate(topic.triggers)
                if trigger.scope in (side, "both")
            ]
            self._rules_by_side[side] = _CompiledRules(rules)
        return self._rules_by_side[side]


def text_to_match(text: str) -> str:
    """The part of the text that is checked: the start and the end of a long one."""
    return (
        text
        if len(text) <= MAX_START_CHARS + MAX_END_CHARS
        else f"{text[:MAX_START_CHARS]}\n{text[-MAX_END_CHARS:]}"
    )


class _Rule(NamedTuple):
    topic: Topic
    number: int
    trigger: Trigger

    def to_match(self, text: str) -> Match:
        return Match(self.topic.name, self.trigger.type, text, self.trigger.correction_hint)


class _RuleText(NamedTuple):
    """A text to search for, and the index of its rule."""

    rule: int
    text: str


_MatchedTexts: TypeAlias = dict[int, list[str]]  # what matched, by the index of the rule


class _CompiledRules:
    """The compiled rules of one side."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules
        self._by_type: dict[TriggerType, list[int]] = {}
        for index, rule in enumerate(rules):
            self._by_type.setdefault(rule.trigger.type, []).append(index)
        self._detectors = {
            trigger_type: detector([rules[index] for index in self._rules_of_type(trigger_type)])
            for trigger_type, detector in _DETECTORS.items()
            if self._rules_of_type(trigger_type)
        }
        self._phrases = [*self._rule_words("keywords"), *self._rule_words("mention"), *self._listed_words()]
        self._keywords = Keywords(rule_text.text for rule_text in self._phrases)
        self._patterns = [
            rule_text for rule_text in self._rule_matches("pattern") if not pattern_words(rule_text.text)
        ]
        self._paths = self._rule_matches("glob")
        self._urls = [*self._rule_matches("url"), *self._rule_words("url")]
        self._pattern_set = Expressions([_compile_edges(rule_text.text) for rule_text in self._patterns])
        self._path_set = _whole_expressions(
            map(globs.translate_path_glob, (rule_text.text for rule_text in self._paths))
        )
        self._url_set = _whole_expressions(
            map(globs.translate_url_glob, (rule_text.text for rule_text in self._urls))
        )
        self._is_engine_missing = (
            bool(self._patterns or self._paths or self._urls) and not regex.is_available()
        )

    def find(self, stimulus: Stimulus) -> list[Match]:
        matched: _MatchedTexts = {}
        text = text_to_match(stimulus.text)
        if text:
            self._match_text(text, matched)
        if stimulus.paths:
            self._match_paths(stimulus.paths[:_MAX_PATHS], matched)
        if stimulus.event:
            self._match_event(stimulus.event, matched)
        return [self._rules[index].to_match(_summarize(matched[index])) for index in sorted(matched)]

    def problems(self) -> Iterator[Problem]:
        if self._is_engine_missing and self._patterns:
            message = "RE2 cannot be loaded, so patterns that are more than a list of words match nothing."
            yield Problem("topics", message, "Install google-re2, or use keywords.", level="warning")
        for owned, expressions in (
            (self._patterns, self._pattern_set),
            (self._paths, self._path_set),
            (self._urls, self._url_set),
        ):
            for refused in expressions.refused:
                yield self._problem(owned[refused.number], refused.reason)

    def _problem(self, rule_text: _RuleText, reason: str) -> Problem:
        rule = self._rules[rule_text.rule]
        trigger_type = rule.trigger.type
        message = (
            f'Trigger {rule.number + 1}: the {trigger_type} "{_preview(rule_text.text)}" '
            f"cannot be used: {reason}."
        )
        return Problem(rule.topic.path, message, "The topic's other triggers work.")

    # Collecting what to search for

    def _rules_of_type(self, trigger_type: TriggerType) -> Sequence[int]:
        return self._by_type.get(trigger_type, ())

    def _rule_words(self, trigger_type: TriggerType) -> Iterator[_RuleText]:
        for index in self._rules_of_type(trigger_type):
            for word in self._rules[index].trigger.words:
                yield _RuleText(index, word.removeprefix("@") if trigger_type == "mention" else word)

    def _rule_matches(self, trigger_type: TriggerType) -> list[_RuleText]:
        rule_texts = [
            _RuleText(index, self._rules[index].trigger.match) for index in self._rules_of_type(trigger_type)
        ]
        return [rule_text for rule_text in rule_texts if rule_text.text]

    def _listed_words(self) -> Iterator[_RuleText]:
        for rule_text in self._rule_matches("pattern"):
            for word in pattern_words(rule_text.text):
                yield _RuleText(rule_text.rule, word)

    # Matching

    def _match_text(self, text: str, matched: _MatchedTexts) -> None:
        if self._phrases:
            for number in self._keywords.find(normalize_text(text)):
                phrase = self._phrases[number]
                _add(matched, phrase.rule, f'{self._label(phrase.rule)} "{_preview(phrase.text)}"')
        if self._patterns:
            self._match_patterns(text, matched)
        if self._rules_of_type("url"):
            self._match_urls(text, matched)
        for trigger_type, detector in self._detectors.items():
            for number, description in detector.detect(text):
                _add(matched, self._rules_of_type(trigger_type)[number], description)

    def _label(self, index: int) -> str:
        return {"mention": "name", "pattern": "pattern"}.get(self._rules[index].trigger.type, "keyword")

    def _match_patterns(self, text: str, matched: _MatchedTexts) -> None:
        data = _normalize(text).encode("utf-8", "replace")
        for number in self._pattern_set.hits(data):
            words = self._pattern_set.words(number, data)
            if words is not None:
                _add(matched, self._patterns[number].rule, f'pattern "{_preview(words)}"')

    def _match_urls(self, text: str, matched: _MatchedTexts) -> None:
        for address in signals.find_urls(text):
            for index in self._match_address(address):
                _add(matched, index, f"url {_preview(address.removeprefix('//'))}")

    def _match_address(self, address: str) -> Iterator[int]:
        for number in self._url_set.hits(address.encode("utf-8", "replace")):
            yield self._urls[number].rule
        for index in self._rules_of_type("url"):
            trigger = self._rules[index].trigger
            any_address = not trigger.match and not trigger.words
            if (any_address and address.startswith("//")) or (
                self._is_engine_missing and _has_host(address, trigger)
            ):
                yield index

    def _match_paths(self, paths: Iterable[str], matched: _MatchedTexts) -> None:
        for path in paths:
            label = f"path {_preview(path)}"
            normalized = path.replace("\\", "/").removeprefix("./")
            for number in self._path_set.hits(normalized.encode("utf-8", "replace")):
                _add(matched, self._paths[number].rule, label)
            if self._is_engine_missing:
                for index in self._rules_of_type("glob"):
                    if _matches_glob(normalized, self._rules[index].trigger.match):
                        _add(matched, index, label)

    def _match_event(self, event: Event, matched: _MatchedTexts) -> None:
        for index in self._rules_of_type(event.type):
            topic, _, trigger = self._rules[index]
            if event.type == "cron" and event.topic == topic.name:
                _add(matched, index, f"schedule {trigger.schedule}")
                break  # the event does not say which of several schedules came due
            if event.type == "webhook" and _matches_event(trigger, event):
                _add(matched, index, _preview(f"webhook {event.source}/{event.event}"))


def _compile_edges(pattern: str) -> BoundedPattern:
    return (
        add_boundaries(_normalize(pattern))
        if len(pattern) <= regex.MAX_PATTERN_CHARS
        else BoundedPattern(pattern, pattern)
    )


def _whole_expressions(expressions: Iterable[str]) -> Expressions:
    return Expressions([BoundedPattern(expression, expression) for expression in expressions], whole=True)


# A pattern that is only a list of words: `mail|inbox`, `\b(mail|receipts?)\b`. Most are, and matching words
# costs a fraction of running expressions.
_WORD = r"\w(?:[\w '-]*\w)?\??"
_LIST = rf"{_WORD}(?:\|{_WORD})*"
_WORD_LIST = re.compile(rf"({_LIST})|\((?:\?:)?({_LIST})\)|\\b\((?:\?:)?({_LIST})\)\\b|\\b({_WORD})\\b")


def pattern_words(pattern: str) -> list[str]:
    """The words of such a pattern; empty for any other pattern."""
    matched = _WORD_LIST.fullmatch(pattern) if len(pattern) <= regex.MAX_PATTERN_CHARS else None
    words = matched[matched.lastindex or 0].split("|") if matched else []
    return [form for word in words for form in _word_forms(word)]


def _word_forms(word: str) -> Iterator[str]:
    if word.endswith("?"):
        if len(word) > 2:
            yield word[:-2]
        yield word[:-1]
    else:
        yield word


def _matches_glob(path: str, glob: str) -> bool:
    """Match a glob without RE2. The standard library's translation of stars cannot backtrack badly."""
    name = path.rpartition("/")[2]
    return fnmatchcase(path.lower() if "/" in glob else name.lower(), glob.lower())


def _has_host(address: str, trigger: Trigger) -> bool:
    host = address.removeprefix("//").partition("/")[0]
    hosts = (*trigger.words, trigger.match.partition("/")[0])
    return any(wanted_host and f".{host}".endswith(f".{wanted_host.lower()}") for wanted_host in hosts)


def _matches_event(trigger: Trigger, event: Event) -> bool:
    pairs = ((trigger.source, event.source), (trigger.event or "*", event.event))
    return all(expected == "*" or expected.casefold() == actual.casefold() for expected, actual in pairs)


# Triggers about the message as a whole


class _CodeDetector:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._languages_of_rules = [
            frozenset(map(signals.normalize_language, rule.trigger.words)) for rule in rules
        ]

    def detect(self, text: str) -> Iterator[tuple[int, str]]:
        blocks = signals.find_code_blocks(text)
        for number, languages in enumerate(self._languages_of_rules if blocks else ()):
            matching = [block for block in blocks if not languages or block in languages]
            if matching:
                yield number, f"code {matching[0]}".strip()


class _LanguageDetector:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._languages_of_rules = [frozenset(map(parse_language_code, rule.trigger.words)) for rule in rules]

    def detect(self, text: str) -> Iterator[tuple[int, str]]:
        spoken = detect_language(text)
        for number, languages in enumerate(self._languages_of_rules if spoken else ()):
            if spoken in languages:
                yield number, f"language {spoken}"


class _UrgencyDetector:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._count = len(rules)

    def detect(self, text: str) -> Iterator[tuple[int, str]]:
        sign = signals.find_urgency(text)
        for number in range(self._count if sign else 0):
            yield number, f'urgency "{_preview(sign)}"'


_DETECTORS: Mapping[TriggerType, type[_CodeDetector | _LanguageDetector | _UrgencyDetector]] = {
    "code": _CodeDetector,
    "language": _LanguageDetector,
    "urgency": _UrgencyDetector,
}


# For people


def _add(matched: _MatchedTexts, index: int, text: str) -> None:
    texts = matched.setdefault(index, [])
    if text not in texts and len(texts) < 5:
        texts.append(text)


def _summarize(texts: Sequence[str]) -> str:
    """`keyword "deploy"`, followed by other matches without the repeated kind."""
    kind = texts[0].split(" ", 1)[0]
    return ", ".join((texts[0], *(text.removeprefix(f"{kind} ") for text in texts[1:])))


def _preview(text: str) -> str:
    plain = text[: 4 * _MAX_PREVIEW_CHARS]
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    plain = " ".join(plain.split())
    return plain if len(plain) <= _MAX_PREVIEW_CHARS else plain[: _MAX_PREVIEW_CHARS - 1] + "…"


def _normalize(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", space_marks(text))
