"""Triggers by regular expressions and globs: over the message, the paths in tool calls, and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

from tacit.diagnostics import Problem
from tacit.text import signals
from tacit.topics import regex
from tacit.topics.model import Trigger
from tacit.topics.regex import Expressions
from tacit.topics.triggers.base import (
    LIST_KEYS,
    MatchInput,
    Rule,
    TriggerEntry,
    TriggerType,
    compose,
    preview,
)
from tacit.topics.triggers.words import Phrases
from tacit.topics.word_boundary import BoundedPattern, add_boundaries

_MAX_PATHS = 200
_MAX_DESCRIBED_CHARS = 40  # of a pattern, in a list of triggers
_MAX_ABOUT_CHARS = 1_000  # of a pattern, in which words are looked for that say what a topic is about


class _ExpressionTrigger(TriggerType):
    """Triggers whose expressions run together on RE2. Each expression belongs to one rule."""

    def __init__(
        self,
        rules: Sequence[Rule],
        texts: Sequence[tuple[Rule, str]],
        compile_text: Callable[[str], BoundedPattern],
        whole: bool,
    ) -> None:
        super().__init__(rules)
        self._texts = texts
        self._expressions = Expressions([compile_text(text) for _, text in texts], whole)
        self._is_engine_missing = bool(texts) and not regex.is_available()

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        texts = entry.matches()
        if texts is None:
            return
        texts = texts or list(entry.words(LIST_KEYS))
        yield from (entry.trigger(match=text) for text in texts)
        if not texts:
            entry.skip(f"a {cls.name} needs `match`", cls.advice)

    def problems(self) -> Iterator[Problem]:
        for refused in self._expressions.refused:
            rule, text = self._texts[refused.number]
            message = (
                f'Trigger {rule.number + 1}: the {self.name} "{preview(text)}" '
                f"cannot be used: {refused.reason}."
            )
            yield Problem(rule.topic.path, message, "The topic's other triggers work.")

    def _find_whole(self, text: str) -> Iterator[int]:
        """The positions of the rules with an expression for the whole text."""
        for number in self._expressions.hits(text.encode("utf-8", "replace")):
            yield self._texts[number][0].position


def _compile_glob(translate: Callable[[str], str]) -> Callable[[str], BoundedPattern]:
    def compile_text(text: str) -> BoundedPattern:
        expression = translate(text)
        return BoundedPattern(expression, expression)

    return compile_text


class PatternTrigger(_ExpressionTrigger):
    """A regular expression, in any case. A pattern that only lists words is looked for as words."""

    name = "pattern"
    aliases = ("regex", "regexp")
    advice = "Write for instance match: 'deploy|rollback'."

    def __init__(self, rules: Sequence[Rule]) -> None:
        words = {rule.position: list_words(rule.trigger.match) for rule in rules}
        self._phrases = Phrases((position, word) for position, forms in words.items() for word in forms)
        texts = [
            (rule, rule.trigger.match) for rule in rules if rule.trigger.match and not words[rule.position]
        ]
        super().__init__(rules, texts, _compile_pattern, whole=False)

    @classmethod
    def describe(cls, trigger: Trigger) -> str:
        return f'{cls.name} "{preview(trigger.match, _MAX_DESCRIBED_CHARS)}"'

    @classmethod
    def words(cls, trigger: Trigger) -> Iterator[str]:
        pattern = _CLASS.sub(" ", _BOTH_CASES.sub(r"\1", trigger.match[:_MAX_ABOUT_CHARS]))
        yield _SYNTAX.sub(" ", _OPTIONAL.sub("", _ENDINGS.sub(_expand_endings, pattern)))

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        for position, phrase in self._phrases.find(source):
            yield position, f'pattern "{preview(phrase)}"'
        for number in self._expressions.hits(source.data) if self._texts and source.text else ():
            words = self._expressions.words(number, source.data)
            if words is not None:
                yield self._texts[number][0].position, f'pattern "{preview(words)}"'

    def problems(self) -> Iterator[Problem]:
        if self._is_engine_missing:
            message = "RE2 cannot be loaded, so patterns that are more than a list of words match nothing."
            yield Problem("topics", message, "Install google-re2, or use keywords.", level="warning")
        yield from super().problems()


def _compile_pattern(pattern: str) -> BoundedPattern:
    if len(pattern) <= regex.MAX_PATTERN_CHARS:
        return add_boundaries(compose(pattern))
    return BoundedPattern(pattern, pattern)


# A pattern that is only a list of words: `mail|inbox`, `\b(mail|receipts?)\b`. Most are, and matching words
# costs a fraction of running expressions.
_WORD = r"\w(?:[\w '-]*\w)?\??"
_LIST = rf"{_WORD}(?:\|{_WORD})*"
_WORD_LIST = re.compile(rf"({_LIST})|\((?:\?:)?({_LIST})\)|\\b\((?:\?:)?({_LIST})\)\\b|\\b({_WORD})\\b")


def list_words(pattern: str) -> list[str]:
    """The words of such a pattern; empty for any other pattern."""
    matched = _WORD_LIST.fullmatch(pattern) if len(pattern) <= regex.MAX_PATTERN_CHARS else None
    words = matched[matched.lastindex or 0].split("|") if matched else []
    return [form for word in words for form in _word_forms(word)]


def _word_forms(word: str) -> Iterator[str]:
    if not word.endswith("?"):
        yield word
        return
    if len(word) > 2:
        yield word[:-2]
    yield word[:-1]


# What a pattern is about: its words without syntax.
_BOTH_CASES = re.compile(r"\[(\w)\w\]")  # [Pp]ull
_CLASS = re.compile(r"\\[pP]\{[^}]*\}|\\[a-zA-Z]|\[(?:[^\]\\]|\\.)*\][?*+]?|\(\?(?:P?<\w*>|[a-zA-Z-]*[:)])")
_ENDINGS = re.compile(r"(\w+)\(([\w|]+)\)\??")
_OPTIONAL = re.compile(r"[\w-]\?")
_SYNTAX = re.compile(r"\{\d*,?\d*\}|[.^$*+?{}()|\[\]\\]")


def _expand_endings(matched: re.Match[str]) -> str:
    """Expand `deploy(ing|ed)?` to the words that it matches."""
    return " ".join((matched[1], *(matched[1] + ending for ending in matched[2].split("|"))))


class GlobTrigger(_ExpressionTrigger):
    """A glob over the paths in tool calls since the last turn."""

    name = "glob"
    aliases = ("path", "paths", "file", "files")
    advice = "Write for instance match: '*.py'."

    def __init__(self, rules: Sequence[Rule]) -> None:
        texts = [(rule, rule.trigger.match) for rule in rules if rule.trigger.match]
        super().__init__(rules, texts, _compile_glob(signals.translate_path_glob), whole=True)

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        for path in source.paths[:_MAX_PATHS]:
            normalized = path.replace("\\", "/").removeprefix("./")
            for position in self._find_path(normalized):
                yield position, f"path {preview(path)}"

    def _find_path(self, path: str) -> Iterator[int]:
        yield from self._find_whole(path)
        if self._is_engine_missing:
            yield from (rule.position for rule in self._rules if _matches_glob(path, rule.trigger.match))


def _matches_glob(path: str, glob: str) -> bool:
    """Match a glob without RE2. The standard library's translation of stars cannot backtrack badly."""
    name = path.rpartition("/")[2]
    return fnmatchcase(path.lower() if "/" in glob else name.lower(), glob.lower())


class UrlTrigger(_ExpressionTrigger):
    """An address: a host with its subdomains, or a part of the address; any address if neither is named."""

    name = "url"
    aliases = ("link", "urls", "host", "hosts")

    def __init__(self, rules: Sequence[Rule]) -> None:
        texts = [(rule, rule.trigger.match) for rule in rules if rule.trigger.match]
        texts += [(rule, word) for rule in rules for word in rule.trigger.words]
        super().__init__(rules, texts, _compile_glob(signals.translate_url_glob), whole=True)

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        texts, hosts = entry.matches(), entry.words(LIST_KEYS)
        if texts is not None:
            yield from (entry.trigger(match=text, words=hosts) for text in texts or [""])

    @classmethod
    def words(cls, trigger: Trigger) -> Iterator[str]:
        yield _ADDRESS_WORDS.sub(" ", trigger.match)

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        for address in signals.find_urls(source.text) if source.text else ():
            for position in self._find_address(address):
                yield position, f"url {preview(address.removeprefix('//'))}"

    def _find_address(self, address: str) -> Iterator[int]:
        yield from self._find_whole(address)
        for rule in self._rules:
            matches_any = not rule.trigger.match and not rule.trigger.words
            if (matches_any and address.startswith("//")) or (
                self._is_engine_missing and _has_host(address, rule.trigger)
            ):
                yield rule.position


_ADDRESS_WORDS = re.compile(r"\b(?:https?|www|com|org|net|html?)\b")


def _has_host(address: str, trigger: Trigger) -> bool:
    host = address.removeprefix("//").partition("/")[0]
    hosts = (*trigger.words, trigger.match.partition("/")[0])
    return any(wanted and f".{host}".endswith(f".{wanted.lower()}") for wanted in hosts)
