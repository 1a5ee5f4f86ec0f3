"""Whether two lines say the same, and whether a later one contradicts an earlier one.

By words alone. Lines contradict each other when they are about the same and differ in what can only have one
value (numbers, names with digits, days), or when the later one says itself that something changed. Anything
less sure is left to people: two lines that disagree are a smaller harm than one that was struck out wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tacit.model.changes import Change
from tacit.text.forms import forms_of, words_of
from tacit.text.marks import Mark
from tacit.text.words import fold

SAME = 0.85  # share of words that two lines have in common which say the same
_ABOUT = 0.6  # … that are about the same thing
_ABOUT_A_CHANGE = 0.4  # … where the later one says that something changed
_FEWEST = 2  # words in common, values not counted
_KINDS = ("decision", "fact")

_DAYS = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "montag", "dienstag",
    "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "january", "february", "march", "april", "may",
    "june", "july", "august", "september", "october", "november", "december", "januar", "februar", "märz",
    "mai", "juni", "juli", "oktober", "dezember", "noon", "midnight", "mittag", "mitternacht",
})  # fmt: skip
_CHANGED = re.compile(
    r"\b(?:instead of|rather than|no longer|not any ?more|from now on|replac(?:es|ed|ing)|switch(?:es|ed)?|"
    r"mov(?:es|ed) (?:to|from)|changed? (?:to|from)|now|statt|anstatt|nicht mehr|ab (?:jetzt|sofort)|künftig|"
    r"ersetzt|verschoben|umgestellt|wechseln?)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[^\s;:()]*[0-9][^\s;:()]*")


class Entry(NamedTuple):
    """One bullet of a note."""

    at: int  # line of the text, from 0
    line: str
    said: str  # without bullet, date and mark
    day: str
    section: str
    mark: Mark | None


class _Content(NamedTuple):
    words: frozenset[str]
    values: frozenset[str]


def says_the_same(one: str, other: str) -> bool:
    if fold(one) == fold(other):
        return True
    left, right = _content(one), _content(other)
    if left.values != right.values or not left.words or not right.words:
        return False
    return _share(left.words, right.words) >= SAME


def contradicted(entries: Iterable[Entry], change: Change) -> list[Entry]:
    """Which of these no longer hold, given the change."""
    if change.kind not in _KINDS:
        return []
    new = _content(change.text)
    is_change = _CHANGED.search(change.text) is not None
    return [
        one
        for one in entries
        if _is_comparable(one, change) and _contradicts(_content(one.said), new, is_change=is_change)
    ]


def _is_comparable(one: Entry, change: Change) -> bool:
    is_same_section = change.section is None or fold(one.section) == fold(change.section)
    return is_same_section and bool(one.day) and one.day <= change.day


def _contradicts(old: _Content, new: _Content, *, is_change: bool) -> bool:
    common = old.words & new.words
    if len(common) < _FEWEST:
        return False
    share = len(common) / min(len(old.words), len(new.words))
    if old.values and new.values and not old.values & new.values and share >= _ABOUT:
        return True
    return is_change and share >= _ABOUT_A_CHANGE and len(common) > _FEWEST


def words_in(text: str) -> frozenset[str]:
    """What two lines must have one of in common to say the same, or to contradict each other."""
    found = _content(text)
    return found.words or found.values


@lru_cache(maxsize=8_192)
def _content(text: str) -> _Content:
    values = {found[0].strip(".,%€$").casefold() for found in _VALUE.finditer(text)}
    tokens = [token for token in words_of(text) if not any(map(str.isdigit, token))]
    days = {token for token in tokens if token in _DAYS}
    words = {form for token in tokens if token not in days for form in forms_of(token)}
    return _Content(frozenset(words), frozenset(values | days))


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)
