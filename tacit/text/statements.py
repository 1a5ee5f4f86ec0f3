"""Whether two statements say the same, and whether a later one contradicts an earlier one.

Judged by words alone. Statements contradict each other if they name the same things and differ in something
that has only one value (numbers, times, days), if the later one says that something changed and names
everything that the earlier one does, or if one denies the other. One more word in front of the value makes it
another thing: the large bowl is not the bowl, and staging is not production. Less certain cases are left to
people: two lines that disagree do less harm than one that was superseded wrongly.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tacit.text.words import fold, split_words, stem_token

MIN_SAME_SHARE = 0.85  # two lines say the same if they share at least this part of their words
_MAX_NEW_WORDS = 3  # new words in the later line, if it says only "now" and not that something changed
_MIN_COMMON_WORDS = 2  # values not counted

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
# Words about deciding and changing, which say nothing about the subject.
_SETTLING_WORDS = """
now on we decided decide agreed agree settled settle go goes going stay stays stick keep keeps use uses using
used switch switched switches move moves moved change changed changes replace replaced instead longer anymore
only always again also already still just finally new please let lets take takes start starts
wir jetzt ab sofort künftig nun entschieden beschlossen vereinbart bleiben bleibt nehmen nimmt nutzen
verwenden wechseln umgestellt verschoben statt anstatt mehr nur immer wieder auch schon bitte neu neue machen
gibt
"""
_SETTLING = frozenset(form for word in _SETTLING_WORDS.split() for form in stem_token(word))
_NOT = re.compile(
    r"\b(?:not|no|never|nothing|nobody|none|cannot|without|nicht|nichts|nie|niemals|niemand|kein\w{0,2}|ohne)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"\b(?:from|von|vom|aus)\b(?! now on\b)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_TIME = re.compile(r"\b[0-9]{1,2}:[0-9]{2}\b")
_VALUE = re.compile(r"[^\s;:()]*[0-9][^\s;:()]*")


class _Content(NamedTuple):
    words: frozenset[str]
    values: frozenset[str]
    named: frozenset[str]  # words up to the last value that say what it is about
    numbers: tuple[str, ...]  # in their order, including names with digits
    times: frozenset[str]
    days: frozenset[str]
    is_denied: bool  # whether it says that something is not so
    is_from: bool  # whether something comes from somewhere


def says_the_same(first: str, second: str) -> bool:
    if fold(first) == fold(second):
        return True
    left, right = _parse_content(first), _parse_content(second)
    if left.values != right.values or not left.words or not right.words:
        return False
    if (left.is_denied, left.is_from) != (right.is_denied, right.is_from):
        return False
    return _overlap(left.words, right.words) >= MIN_SAME_SHARE


def contradicts(new: str, old: str) -> bool:
    """Whether the later statement contradicts the earlier one."""
    return any(rule(_parse_content(old), _parse_content(new), new) for rule in _RULES)


def _has_other_value(old: _Content, new: _Content, text: str) -> bool:
    """Whether both give the same thing different values of the same kind."""
    says_changed = _NOW.search(text) or _CHANGED.search(text)
    if old.named != new.named or len(old.named) < (1 if says_changed else _MIN_COMMON_WORDS):
        return False
    differing = _count_differing(old.numbers, new.numbers)
    if differing > 1:  # the first of several is often part of the name: release 2.3.0 is due on the 4th
        return False
    pairs = (old.times, new.times), (old.days, new.days)
    return differing == 1 or any(before and after and not before & after for before, after in pairs)


def _count_differing(old: tuple[str, ...], new: tuple[str, ...]) -> int:
    if len(old) != len(new):
        return len(old) + len(new)
    return sum(before != after for before, after in zip(old, new, strict=True))


def _is_changed(old: _Content, new: _Content, text: str) -> bool:
    """Whether the new line says that the subject of the old one changed."""
    about = old.words - _SETTLING
    if len(about) < _MIN_COMMON_WORDS or not about <= new.words:
        return False
    if _CHANGED.search(text):
        return True
    new_words = new.words - old.words - _SETTLING
    return _NOW.search(text) is not None and len(new_words) <= _MAX_NEW_WORDS


def _is_denied(old: _Content, new: _Content, text: str) -> bool:  # noqa: ARG001
    """Whether one line says that something is so, and the other that it is not."""
    if old.is_denied == new.is_denied or old.values != new.values:
        return False
    about = old.words - _SETTLING
    return len(about) >= _MIN_COMMON_WORDS and about == new.words - _SETTLING


_RULES = (_has_other_value, _is_changed, _is_denied)


def index_words(text: str) -> frozenset[str]:
    """The index words: two lines without a common one neither repeat nor contradict each other."""
    content = _parse_content(text)
    return content.words or content.values


@lru_cache(maxsize=8_192)
def _parse_content(text: str) -> _Content:
    times = frozenset(_TIME.findall(text))
    remainder = _TIME.sub(" ", text)
    numbers = tuple(match[0].strip(".,%€$").casefold() for match in _VALUE.finditer(remainder))
    words, days = _words_and_days(remainder)
    named = _words_and_days(_text_before_last_value(text))[0] - _SETTLING
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


def _words_and_days(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a text, and the days it names."""
    tokens = [token for token in split_words(text) if not any(map(str.isdigit, token))]
    days = {_day_name(token) for token in tokens} - {""}
    words = {form for token in tokens if not _day_name(token) for form in stem_token(token)}
    return frozenset(words), frozenset(days)


def _day_name(token: str) -> str:
    """The day that a token names, also as "Mondays"; empty if none."""
    return next((form for form in (token, token.removesuffix("s")) if form in _DAYS), "")


def _text_before_last_value(text: str) -> str:
    """Cut the text after the last value: what follows is the reason."""
    ends = [match.end() for match in _VALUE.finditer(text)]
    ends += [match.end() for match in _WORD.finditer(text) if _day_name(match[0].casefold())]
    return text[: max(ends, default=0)]


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second)
