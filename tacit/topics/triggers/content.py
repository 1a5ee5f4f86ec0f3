"""Triggers by what the message is as a whole: code, its language, its urgency, its mood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tacit.text import signals
from tacit.text.language import LANGUAGES, detect_language, parse_language_code
from tacit.topics.model import Trigger
from tacit.topics.triggers.base import MatchInput, Rule, TriggerEntry, TriggerType, preview, show


class _ContentTrigger(TriggerType):
    """Needs no words; with words it reacts only to these."""

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        yield entry.trigger(words=entry.words())


class CodeTrigger(_ContentTrigger):
    """Code in fences, or three indented lines of it; with words, code in one of these languages."""

    name = "code"

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__(rules)
        self._languages = [frozenset(map(signals.normalize_language, rule.trigger.words)) for rule in rules]

    @classmethod
    def words(cls, trigger: Trigger) -> Iterator[str]:
        yield from trigger.words

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        blocks = signals.find_code_blocks(source.text) if source.text else ()
        for rule, languages in zip(self._rules, self._languages, strict=True) if blocks else ():
            matching = [block for block in blocks if not languages or block in languages]
            if matching:
                yield rule.position, f"code {matching[0]}".strip()


class LanguageTrigger(TriggerType):
    """The language that the message is written in."""

    name = "language"
    aliases = ("lang", "languages")
    advice = "Write for instance words: [de]."

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__(rules)
        self._languages = [frozenset(map(parse_language_code, rule.trigger.words)) for rule in rules]

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        codes = []
        for word in entry.words(prepare=_restore_no):
            code = parse_language_code(word)
            if code:
                codes.append(code)
            else:
                reason = f"the language {show(word)} is not known"
                entry.reject_word(reason, f"Known are: {', '.join(LANGUAGES)}.")
        if codes:
            yield entry.trigger(words=tuple(codes))
        elif not entry.has_words():
            entry.skip(f"a {cls.name} trigger needs `words`", cls.advice)

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        language = detect_language(source.text) if source.text else ""
        for rule, languages in zip(self._rules, self._languages, strict=True) if language else ():
            if language in languages:
                yield rule.position, f"language {language}"


def _restore_no(value: object) -> object:
    """`no` is Norwegian here, but YAML reads it as False."""
    if isinstance(value, list):
        return [_restore_no(item) for item in value]
    return "no" if value is False else value


class UrgencyTrigger(_ContentTrigger):
    """ "!!!", "ASAP", "dringend", 至急, or shouting."""

    name = "urgency"
    aliases = ("urgent",)

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        sign = signals.find_urgency(source.text) if source.text else ""
        for rule in self._rules if sign else ():
            yield rule.position, f'urgency "{preview(sign)}"'


class SentimentTrigger(_ContentTrigger):
    """The mood of the message, which is measured together with its similarity."""

    name = "sentiment"
    aliases = ("mood",)
