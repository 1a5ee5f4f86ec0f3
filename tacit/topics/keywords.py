"""Finds many words and phrases in a text at once: as whole words, in any case, in any script.

Phrases are indexed by their first word, so that the cost depends on the words of the text and not on the
number of phrases. Phrases in scripts without spaces are searched one by one, fast enough for thousands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from tacit.text.words import UNSPACED_CHARS, clean, is_unspaced
from tacit.topics.word_boundary import is_outside

_WORD = re.compile(r"\w+")
_SPACED_WORD = re.compile(rf"[^\W{UNSPACED_CHARS}]+")


class Keywords:
    """Phrases, identified by their index in `given`."""

    def __init__(self, given: Iterable[str]) -> None:
        self._by_word: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        self._anywhere: list[tuple[int, str]] = []
        for number, phrase in enumerate(given):
            folded = normalize_text(phrase)
            first = _WORD.search(folded)
            if first and not is_unspaced(folded):
                self._by_word[first[0]].append((number, folded, first.start()))
            elif folded:
                self._anywhere.append((number, folded))

    def find(self, folded: str) -> list[int]:
        """The phrases in a text that was normalized by `folded_text`, in order."""
        numbers = {
            number for number, phrase in self._anywhere if phrase in folded and _contains(folded, phrase)
        }
        words = _WORD if folded.isascii() else _SPACED_WORD
        for word in words.finditer(folded) if self._by_word else ():
            for number, phrase, offset in self._by_word.get(word[0], ()):
                start = word.start() - offset
                if start >= 0 and folded.startswith(phrase, start) and _is_free(folded, start, phrase):
                    numbers.add(number)
        return sorted(numbers)


def normalize_text(text: str) -> str:
    """Normalize case, spelling and spaces."""
    return " ".join(clean(text).casefold().split())


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
