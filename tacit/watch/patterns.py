"""Tier 1: which triggers a message matches by its words, free of any model.

All patterns of all topics run at once on RE2, all keywords and names by one pass over the words, the rest
is looked at only where a topic asks for it. A trigger that cannot be used is a problem to show; the others
go on. Nothing here raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple, TypeAlias

from tacit.model.problems import Problem
from tacit.model.topics import Event, Match, Side, Stimulus, Topic, Trigger, TriggerType
from tacit.text import globs, signs
from tacit.text.edges import Edged, edged
from tacit.text.language import code_of, language
from tacit.watch import engine
from tacit.watch.engine import Expressions
from tacit.watch.keywords import Keywords, folded_text

FIRST = 20_000  # characters of a long text that are looked at
LAST = 4_000
_SHOWN = 60
_MOST_PATHS = 200


class PatternMatcher:
    """The triggers of all topics. Each side is made ready when it is first asked."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = sorted(topics, key=lambda topic: topic.name)
        self._sides: dict[Side, _Watch] = {}

    def match(self, text: str) -> set[str]:
        """The names of the topics that a message wakes."""
        return {found.topic for found in self.find(Stimulus(text))}

    def find(self, stimulus: Stimulus) -> list[Match]:
        """All that matched, by topic and by the order of its triggers; once for each trigger."""
        return self._side(stimulus.side).find(stimulus)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """What cannot be used, and why."""
        found = (*self._side("input").problems(), *self._side("output").problems())
        return tuple(dict.fromkeys(found))

    def _side(self, side: Side) -> _Watch:
        if side not in self._sides:
            rules = [
                _Rule(topic, number, trigger)
                for topic in self._topics
                for number, trigger in enumerate(topic.triggers)
                if trigger.scope in (side, "both")
            ]
            self._sides[side] = _Watch(rules)
        return self._sides[side]


def looked_at(text: str) -> str:
    """The beginning and the end of a long text."""
    return text if len(text) <= FIRST + LAST else f"{text[:FIRST]}\n{text[-LAST:]}"


class _Rule(NamedTuple):
    topic: Topic
    number: int
    trigger: Trigger

    def matched(self, on: str) -> Match:
        return Match(self.topic.name, self.trigger.type, on, self.trigger.correction_hint)


class _Owned(NamedTuple):
    """Something to look for, and the place in the list of rules it is from."""

    rule: int
    text: str


_Found: TypeAlias = dict[int, list[str]]  # by rule: what it matched


class _Watch:
    """The rules of one side."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules
        self._by_type: dict[TriggerType, list[int]] = {}
        for place, rule in enumerate(rules):
            self._by_type.setdefault(rule.trigger.type, []).append(place)
        self._looks = {
            kind: look([rules[place] for place in self._places(kind)])
            for kind, look in _LOOKS.items()
            if self._places(kind)
        }
        self._phrases = [*self._words("keywords"), *self._words("mention"), *self._listed()]
        self._keywords = Keywords(owned.text for owned in self._phrases)
        self._patterns = [one for one in self._matches("pattern") if not listed(one.text)]
        self._paths = self._matches("glob")
        self._urls = [*self._matches("url"), *self._words("url")]
        self._pattern_set = Expressions([_form(owned.text) for owned in self._patterns])
        self._path_set = _whole(map(globs.path_pattern, (owned.text for owned in self._paths)))
        self._url_set = _whole(map(globs.url_pattern, (owned.text for owned in self._urls)))
        self._no_engine = bool(self._patterns or self._paths or self._urls) and not engine.available()

    def find(self, stimulus: Stimulus) -> list[Match]:
        found: _Found = {}
        text = looked_at(stimulus.text)
        if text:
            self._in_text(text, found)
        if stimulus.paths:
            self._in_paths(stimulus.paths[:_MOST_PATHS], found)
        if stimulus.event:
            self._by_event(stimulus.event, found)
        return [self._rules[place].matched(_joined(found[place])) for place in sorted(found)]

    def problems(self) -> Iterator[Problem]:
        if self._no_engine and self._patterns:
            what = "RE2 cannot be loaded, so patterns that are more than a list of words match nothing."
            yield Problem("topics", what, "Install google-re2, or use keywords.", level="warning")
        for owned, expressions in (
            (self._patterns, self._pattern_set),
            (self._paths, self._path_set),
            (self._urls, self._url_set),
        ):
            for refused in expressions.refused:
                yield self._problem(owned[refused.number], refused.reason)

    def _problem(self, owned: _Owned, reason: str) -> Problem:
        rule = self._rules[owned.rule]
        kind = rule.trigger.type
        what = f'Trigger {rule.number + 1}: the {kind} "{_brief(owned.text)}" cannot be used: {reason}.'
        return Problem(rule.topic.path, what, "The topic's other triggers work.")

    # What to look for

    def _places(self, kind: TriggerType) -> Sequence[int]:
        return self._by_type.get(kind, ())

    def _words(self, kind: TriggerType) -> Iterator[_Owned]:
        for place in self._places(kind):
            for word in self._rules[place].trigger.words:
                yield _Owned(place, word.removeprefix("@") if kind == "mention" else word)

    def _matches(self, kind: TriggerType) -> list[_Owned]:
        owned = [_Owned(place, self._rules[place].trigger.match) for place in self._places(kind)]
        return [one for one in owned if one.text]

    def _listed(self) -> Iterator[_Owned]:
        for owned in self._matches("pattern"):
            for word in listed(owned.text):
                yield _Owned(owned.rule, word)

    # Looking

    def _in_text(self, text: str, found: _Found) -> None:
        if self._phrases:
            for number in self._keywords.find(folded_text(text)):
                phrase = self._phrases[number]
                _add(found, phrase.rule, f'{self._named(phrase.rule)} "{_brief(phrase.text)}"')
        if self._patterns:
            self._by_pattern(text, found)
        if self._places("url"):
            self._by_url(text, found)
        for kind, look in self._looks.items():
            for number, shown in look.look(text):
                _add(found, self._places(kind)[number], shown)

    def _named(self, place: int) -> str:
        return {"mention": "name", "pattern": "pattern"}.get(self._rules[place].trigger.type, "keyword")

    def _by_pattern(self, text: str, found: _Found) -> None:
        data = _composed(text).encode("utf-8", "replace")
        for number in self._pattern_set.hits(data):
            words = self._pattern_set.words(number, data)
            if words is not None:
                _add(found, self._patterns[number].rule, f'pattern "{_brief(words)}"')

    def _by_url(self, text: str, found: _Found) -> None:
        for address in signs.urls(text):
            for place in self._for_address(address):
                _add(found, place, f"url {_brief(address.removeprefix('//'))}")

    def _for_address(self, address: str) -> Iterator[int]:
        for number in self._url_set.hits(address.encode("utf-8", "replace")):
            yield self._urls[number].rule
        for place in self._places("url"):
            trigger = self._rules[place].trigger
            any_address = not trigger.match and not trigger.words
            if (any_address and address.startswith("//")) or (
                self._no_engine and _has_host(address, trigger)
            ):
                yield place

    def _in_paths(self, paths: Iterable[str], found: _Found) -> None:
        for path in paths:
            shown = f"path {_brief(path)}"
            plain = path.replace("\\", "/").removeprefix("./")
            for number in self._path_set.hits(plain.encode("utf-8", "replace")):
                _add(found, self._paths[number].rule, shown)
            if self._no_engine:
                for place in self._places("glob"):
                    if _fits(plain, self._rules[place].trigger.match):
                        _add(found, place, shown)

    def _by_event(self, event: Event, found: _Found) -> None:
        for place in self._places(event.type):
            topic, _, trigger = self._rules[place]
            if event.type == "cron" and event.topic == topic.name:
                _add(found, place, f"schedule {trigger.schedule}")
                break  # which one of several came due, the event does not say
            if event.type == "webhook" and _is_for(trigger, event):
                _add(found, place, _brief(f"webhook {event.source}/{event.event}"))


def _form(pattern: str) -> Edged:
    return edged(_composed(pattern)) if len(pattern) <= engine.LONGEST else Edged(pattern, pattern)


def _whole(expressions: Iterable[str]) -> Expressions:
    return Expressions([Edged(expression, expression) for expression in expressions], whole=True)


# A pattern that is a list of words and nothing else: `mail|inbox`, `\b(mail|receipts?)\b`. Most are, and
# finding words costs a fraction of running expressions.
_WORD = r"\w(?:[\w '-]*\w)?\??"
_LIST = rf"{_WORD}(?:\|{_WORD})*"
_LISTED = re.compile(rf"({_LIST})|\((?:\?:)?({_LIST})\)|\\b\((?:\?:)?({_LIST})\)\\b|\\b({_WORD})\\b")


def listed(pattern: str) -> list[str]:
    """The words of such a pattern; none of any other."""
    found = _LISTED.fullmatch(pattern) if len(pattern) <= engine.LONGEST else None
    words = found[found.lastindex or 0].split("|") if found else []
    return [form for word in words for form in _forms(word)]


def _forms(word: str) -> Iterator[str]:
    if word.endswith("?"):
        if len(word) > 2:
            yield word[:-2]
        yield word[:-1]
    else:
        yield word


def _fits(path: str, glob: str) -> bool:
    """Without RE2. The standard library's own translation of stars cannot run away."""
    name = path.rpartition("/")[2]
    return fnmatchcase(path.lower() if "/" in glob else name.lower(), glob.lower())


def _has_host(address: str, trigger: Trigger) -> bool:
    host = address.removeprefix("//").partition("/")[0]
    wanted = (*trigger.words, trigger.match.partition("/")[0])
    return any(one and f".{host}".endswith(f".{one.lower()}") for one in wanted)


def _is_for(trigger: Trigger, event: Event) -> bool:
    wanted = ((trigger.source, event.source), (trigger.event or "*", event.event))
    return all(one == "*" or one.casefold() == other.casefold() for one, other in wanted)


# Triggers about the message as a whole


class _Code:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._wanted = [frozenset(map(signs.code_language, rule.trigger.words)) for rule in rules]

    def look(self, text: str) -> Iterator[tuple[int, str]]:
        blocks = signs.code_blocks(text)
        for number, wanted in enumerate(self._wanted if blocks else ()):
            fitting = [block for block in blocks if not wanted or block in wanted]
            if fitting:
                yield number, f"code {fitting[0]}".strip()


class _Language:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._wanted = [frozenset(map(code_of, rule.trigger.words)) for rule in rules]

    def look(self, text: str) -> Iterator[tuple[int, str]]:
        spoken = language(text)
        for number, wanted in enumerate(self._wanted if spoken else ()):
            if spoken in wanted:
                yield number, f"language {spoken}"


class _Urgency:
    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._count = len(rules)

    def look(self, text: str) -> Iterator[tuple[int, str]]:
        sign = signs.urgency(text)
        for number in range(self._count if sign else 0):
            yield number, f'urgency "{_brief(sign)}"'


_LOOKS: Mapping[TriggerType, type[_Code | _Language | _Urgency]] = {
    "code": _Code,
    "language": _Language,
    "urgency": _Urgency,
}


# For people


def _add(found: _Found, place: int, shown: str) -> None:
    listed = found.setdefault(place, [])
    if shown not in listed and len(listed) < 5:
        listed.append(shown)


def _joined(shown: Sequence[str]) -> str:
    """`keyword "deploy"`, and the others of the same kind shortly."""
    kind = shown[0].split(" ", 1)[0]
    return ", ".join((shown[0], *(one.removeprefix(f"{kind} ") for one in shown[1:])))


def _brief(text: str) -> str:
    plain = text[: 4 * _SHOWN]
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    plain = " ".join(plain.split())
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
