"""Triggers by words and names, found as whole words, in any case, in any script.

Phrases are indexed by their first word, so that the cost depends on the words of the text and not on the
number of phrases. Phrases in scripts without spaces are searched one by one, fast enough for thousands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from tacit.text.words import is_unspaced
from tacit.topics.model import Trigger
from tacit.topics.triggers.base import MatchInput, Rule, TriggerEntry, TriggerType, normalize_text, preview
from tacit.topics.word_boundary import is_outside

_WORD = re.compile(r"\w+")


class Phrases:
    """Phrases to find, each with the position of its rule."""

    def __init__(self, phrases: Iterable[tuple[int, str]]) -> None:
        self._phrases = list(phrases)
        self._by_word: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        self._anywhere: list[tuple[int, str]] = []
        for index, (_, phrase) in enumerate(self._phrases):
            folded = normalize_text(phrase)
            first = _WORD.search(folded)
            if first and not is_unspaced(folded):
                self._by_word[first[0]].append((index, folded, first.start()))
            elif folded:
                self._anywhere.append((index, folded))

    def find(self, source: MatchInput) -> list[tuple[int, str]]:
        """The phrases in the text with the positions of their rules, in order."""
        if not self._phrases or not source.text:
            return []
        text = source.folded
        indices = {index for index, phrase in self._anywhere if phrase in text and _contains(text, phrase)}
        for word, position in source.words if self._by_word else ():
            for index, phrase, offset in self._by_word.get(word, ()):
                start = position - offset
                if start >= 0 and text.startswith(phrase, start) and _is_free(text, start, phrase):
                    indices.add(index)
        return [self._phrases[index] for index in sorted(indices)]


def _contains(text: str, phrase: str) -> bool:
    start = text.find(phrase)
    while start >= 0:
        if _is_free(text, start, phrase):
            return True
        start = text.find(phrase, start + 1)
    return False


def _is_free(text: str, start: int, phrase: str) -> bool:
    end = start + len(phrase)
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return (is_outside(phrase[0]) or is_outside(before)) and (is_outside(phrase[-1]) or is_outside(after))


class KeywordTrigger(TriggerType):
    """Words and phrases."""

    name = "keywords"
    aliases: ClassVar[tuple[str, ...]] = ("keyword", "words")
    advice = "Write for instance words: [deploy, rollback]."
    _label = "keyword"

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__(rules)
        self._phrases = Phrases(
            (rule.position, self._to_phrase(word)) for rule in rules for word in rule.trigger.words
        )

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        words = entry.words()
        if words:
            yield entry.trigger(words=words)
        else:
            entry.skip(f"a {cls.name} trigger needs `words`", cls.advice)

    @classmethod
    def words(cls, trigger: Trigger) -> Iterator[str]:
        yield from trigger.words

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        for position, phrase in self._phrases.find(source):
            yield position, f'{self._label} "{preview(phrase)}"'

    def _to_phrase(self, word: str) -> str:
        return word


class MentionTrigger(KeywordTrigger):
    """Names, with or without @."""

    name = "mention"
    aliases = ("mentions", "name", "names", "person")
    advice = "Write for instance words: [David, Silas]."
    _label = "name"

    def _to_phrase(self, word: str) -> str:
        return word.removeprefix("@")
