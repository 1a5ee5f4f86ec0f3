"""Finding many words and phrases in a text at once: whole, in any case, in any script.

Each phrase is kept by its first word, so that a text costs what its own words cost, however many phrases
there are. Phrases in scripts without spaces are looked for one by one, which is fast enough for thousands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from tacit.text.edges import is_outside
from tacit.text.words import UNSPACED, clean, unspaced

_WORD = re.compile(r"\w+")
_SPACED_WORD = re.compile(rf"[^\W{UNSPACED}]+")


class Keywords:
    """Phrases, each known by its number in `given`."""

    def __init__(self, given: Iterable[str]) -> None:
        self._by_word: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        self._anywhere: list[tuple[int, str]] = []
        for number, phrase in enumerate(given):
            folded = folded_text(phrase)
            first = _WORD.search(folded)
            if first and not unspaced(folded):
                self._by_word[first[0]].append((number, folded, first.start()))
            elif folded:
                self._anywhere.append((number, folded))

    def find(self, folded: str) -> list[int]:
        """Which phrases are in a text that went through `folded_text`, in order."""
        found = {number for number, phrase in self._anywhere if phrase in folded and _stands(folded, phrase)}
        words = _WORD if folded.isascii() else _SPACED_WORD
        for word in words.finditer(folded) if self._by_word else ():
            for number, phrase, offset in self._by_word.get(word[0], ()):
                start = word.start() - offset
                if start >= 0 and folded.startswith(phrase, start) and _free(folded, start, phrase):
                    found.add(number)
        return sorted(found)


def folded_text(text: str) -> str:
    """One case, one spelling, one space between words."""
    return " ".join(clean(text).casefold().split())


def _stands(text: str, phrase: str) -> bool:
    start = text.find(phrase)
    while start >= 0:
        if _free(text, start, phrase):
            return True
        start = text.find(phrase, start + 1)
    return False


def _free(text: str, start: int, phrase: str) -> bool:
    end = start + len(phrase)
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return (is_outside(phrase[0]) or is_outside(before)) and (is_outside(phrase[-1]) or is_outside(after))
