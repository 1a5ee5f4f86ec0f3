"""Whether two lines say the same, and whether a later one contradicts an earlier one.

By words alone. Lines contradict each other when they name the same things and differ in what can only have
one value (numbers, times, days), when the later one says itself that something changed and names all that
the earlier one does, or when one denies the other. One more word in front of the value is another thing: the
large bowl is not the bowl, and staging is not production. Anything less sure is left to people: two lines
that disagree are a smaller harm than one that was struck out wrongly.
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
_FEW_MORE = 3  # words of the later line that the earlier one has not, where it says no more than "now"
_FEWEST = 2  # words in common, values not counted
_KINDS = ("decision", "fact")

_DAYS = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "montag", "dienstag",
    "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "january", "february", "march", "april", "may",
    "june", "july", "august", "september", "october", "november", "december", "januar", "februar", "märz",
    "mai", "juni", "juli", "oktober", "dezember", "noon", "midnight", "mittag", "mitternacht",
})  # fmt: skip
_CHANGED = re.compile(
    r"\b(?:instead of|rather than|no longer|not any ?more|replac(?:es|ed|ing)|switch(?:es|ed)?|"
    r"mov(?:es|ed) (?:to|from)|changed? (?:to|from)|statt|anstatt|nicht mehr|ersetzt|verschoben|umgestellt|"
    r"wechseln?)\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:now|from now on|jetzt|ab sofort|künftig)\b", re.IGNORECASE)
# Said of anything that is settled or changed, and no part of what it is about.
_SETTLING_WORDS = """
now on we decided decide agreed agree settled settle go goes going stay stays stick keep keeps use uses using
used switch switched switches move moves moved change changed changes replace replaced instead longer anymore
only always again also already still just finally new please let lets take takes start starts
wir jetzt ab sofort künftig nun entschieden beschlossen vereinbart bleiben bleibt nehmen nimmt nutzen
verwenden wechseln umgestellt verschoben statt anstatt mehr nur immer wieder auch schon bitte neu neue machen
gibt
"""
_SETTLING = frozenset(form for word in _SETTLING_WORDS.split() for form in forms_of(word))
_NOT = re.compile(
    r"\b(?:not|no|never|nothing|nobody|none|cannot|without|nicht|nichts|nie|niemals|niemand|kein\w{0,2}|ohne)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"\b(?:from|von|vom|aus)\b(?! now on\b)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TIME = re.compile(r"\b[0-9]{1,2}:[0-9]{2}\b")
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
    named: frozenset[str]  # of the words up to the last value, those that tell what it is about
    numbers: tuple[str, ...]  # of the values, in their order; names with digits too
    times: frozenset[str]
    days: frozenset[str]
    is_denied: bool  # whether it says that something is not so
    is_from: bool  # whether something comes from somewhere


def says_the_same(one: str, other: str) -> bool:
    if fold(one) == fold(other):
        return True
    left, right = _content(one), _content(other)
    if left.values != right.values or not left.words or not right.words:
        return False
    if (left.is_denied, left.is_from) != (right.is_denied, right.is_from):
        return False
    return _share(left.words, right.words) >= SAME


def contradicted(entries: Iterable[Entry], change: Change) -> list[Entry]:
    """Which of these no longer hold, given the change."""
    if change.kind not in _KINDS:
        return []
    new = _content(change.text)
    return [
        one
        for one in entries
        if _is_comparable(one, change) and any(rule(_content(one.said), new, change.text) for rule in _RULES)
    ]


def _is_comparable(one: Entry, change: Change) -> bool:
    is_same_section = change.section is None or fold(one.section) == fold(change.section)
    return is_same_section and bool(one.day) and one.day <= change.day


def _has_other_value(old: _Content, new: _Content, text: str) -> bool:
    """Whether both give the same thing a value of the same kind, and another one."""
    says_so = _NOW.search(text) or _CHANGED.search(text)
    if old.named != new.named or len(old.named) < (1 if says_so else _FEWEST):
        return False
    other = _differing(old.numbers, new.numbers)
    if other > 1:  # the first of several is often part of the name: release 2.3.0 is due on the 4th
        return False
    pairs = (old.times, new.times), (old.days, new.days)
    return other == 1 or any(one and two and not one & two for one, two in pairs)


def _differing(old: tuple[str, ...], new: tuple[str, ...]) -> int:
    if len(old) != len(new):
        return len(old) + len(new)
    return sum(one != two for one, two in zip(old, new, strict=True))


def _is_changed(old: _Content, new: _Content, text: str) -> bool:
    """Whether the new one says that something changed which is all that the old one is about."""
    about = old.words - _SETTLING
    if len(about) < _FEWEST or not about <= new.words:
        return False
    if _CHANGED.search(text):
        return True
    more = new.words - old.words - _SETTLING
    return _NOW.search(text) is not None and len(more) <= _FEW_MORE


def _is_denied(old: _Content, new: _Content, text: str) -> bool:  # noqa: ARG001
    """Whether the new one says that what the old one tells is not so, or is so after all."""
    if old.is_denied == new.is_denied or old.values != new.values:
        return False
    about = old.words - _SETTLING
    return len(about) >= _FEWEST and about == new.words - _SETTLING


_RULES = (_has_other_value, _is_changed, _is_denied)


def words_in(text: str) -> frozenset[str]:
    """What two lines must have one of in common to say the same, or to contradict each other."""
    found = _content(text)
    return found.words or found.values


@lru_cache(maxsize=8_192)
def _content(text: str) -> _Content:
    times = frozenset(_TIME.findall(text))
    rest = _TIME.sub(" ", text)
    numbers = tuple(found[0].strip(".,%€$").casefold() for found in _VALUE.finditer(rest))
    words, days = _words(rest)
    named = _words(_up_to_values(text))[0] - _SETTLING
    return _Content(
        words,
        frozenset(numbers) | days | times,
        named,
        numbers,
        times,
        days,
        _NOT.search(text) is not None,
        _FROM.search(text) is not None,
    )


def _words(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What it names, and days."""
    tokens = [token for token in words_of(text) if not any(map(str.isdigit, token))]
    days = {_day(token) for token in tokens} - {""}
    words = {form for token in tokens if not _day(token) for form in forms_of(token)}
    return frozenset(words), frozenset(days)


def _day(token: str) -> str:
    """The day that a token names, also as "Mondays"; empty where it names none."""
    return next((one for one in (token, token.removesuffix("s")) if one in _DAYS), "")


def _up_to_values(text: str) -> str:
    """What comes after the last value is why, not what."""
    ends = [found.end() for found in _VALUE.finditer(text)]
    ends += [found.end() for found in _WORD.finditer(text) if _day(found[0].casefold())]
    return text[: max(ends, default=0)]


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)
