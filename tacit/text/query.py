"""What somebody asks, made ready for the indexes: text to compare, words to look up, days, known names.

Any text is a question: nothing here raises, and no question that has words ends without terms. Words too
common to look for are dropped, and so are those that only say when ("two weeks ago"), unless nothing else
is left. `C++`, `#34`, `src/app.py` and "quoted words" are looked for in one piece, and their parts besides.

Code between fences and lines quoted with `>` are what the question is about, seldom the question. They
count only where there is nothing else.

Time grows with the length of the text, of which the first 20,000 characters count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from tacit.text import dates, words
from tacit.text.dates import Days
from tacit.text.lines import scan
from tacit.text.stopwords import STOPWORDS

LONGEST = 20_000  # what is looked at
LONGEST_TEXT = 2_000  # what is compared by meaning: models read little more
MOST_TERMS = 32
LONGEST_INTENT = 280
SHORTEST_INTENT = 10
SHORTEST_UNSPACED_INTENT = 4  # four Chinese characters say what ten letters do
_LONGEST_WHOLE = 120  # longer paths and addresses are looked for by their parts


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for, ready to be quoted. `whole` is an identifier or words said together."""

    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    terms: tuple[Term, ...] = ()
    days: Days | None = None
    names: tuple[str, ...] = ()


def understand(text: object, now: datetime | None = None, names: Collection[str] = ()) -> Query:
    """What `text` asks. Days are looked for only with `now`; `names` are those worth noticing."""
    if not isinstance(text, str):
        return Query("")
    asked = _asked(text[:LONGEST])
    days = dates.days(asked, now.date()) if now else None
    known = _known(asked, names)
    return Query(_cut(asked, LONGEST_TEXT), _terms(asked, days, known), days, known)


def intent(text: object) -> str | None:
    """The start of a message, to remember by itself; None if too little is left without code and quotes."""
    if not isinstance(text, str):
        return None
    said = _bare(_speech(text[:LONGEST], code=False, quotes=False))
    unspaced = sum(map(len, words.RUN.findall(said)))
    if len(said) < SHORTEST_INTENT and unspaced < SHORTEST_UNSPACED_INTENT:
        return None
    return _cut(said, LONGEST_INTENT)


def match(terms: Iterable[Term]) -> str:
    """The expression for the index: any of `terms`. Empty if there are none."""
    return " OR ".join(map(_quoted, terms))


def _quoted(term: Term) -> str:
    quoted = '"{}"'.format(term.text.replace('"', '""'))
    # Such letters are indexed in pairs, so one alone is found as the beginning of a pair.
    return f"{quoted}*" if len(term.text) == 1 and words.unspaced(term.text) else quoted


# The text.

_TRIPLE = re.compile(r"```[^`]*+```")
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_TOKEN = re.compile(r"[^\W_]|[\ue000-\uf8ff]")


def _asked(text: str) -> str:
    for code, quotes in ((False, False), (False, True), (True, True)):
        said = _bare(_speech(text, code, quotes))
        if _TOKEN.search(said):
            return said
    return said


def _speech(text: str, code: bool, quotes: bool) -> str:
    kinds = ("text", "heading", "code") if code else ("text", "heading")
    kept = [line.text for line in scan(text) if line.kind in kinds]
    if not quotes:
        kept = [line for line in kept if not line.lstrip().startswith(">")]
    said = "\n".join(kept)
    return said if code else _TRIPLE.sub(" ", said)


def _bare(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def _cut(text: str, longest: int) -> str:
    """At a space, unless the last word is most of it."""
    if len(text) <= longest:
        return text
    end = text.rfind(" ", longest // 2, longest + 1)
    return text[: end if end > 0 else longest].rstrip()


# The terms.

_MARKS = "\u0300-\u036f\u0483-\u0489\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc\u135d-\u135f\u1ab0-\u1aff"
_LETTERS = rf"(?:(?![{words.UNSPACED}])[\w{_MARKS}\ue000-\uf8ff])++"
_INSIDE = r"(?:://|::|->|[-./:@\\&+~=#'’‐])"
_WORD = re.compile(rf"(?P<run>[{words.UNSPACED}]++)|{_LETTERS}(?:{_INSIDE}{_LETTERS})*+")
_PIECE = re.compile(rf"(?:(?!_)[\w{_MARKS}\ue000-\uf8ff])++")
_QUOTES = re.compile(
    r"""["“”„]([^"“”„]{2,120})["“”]|«([^«»]{2,120})»|`([^`]{2,120})`|(?<!\w)'([^']{2,120})'(?!\w)"""
)
_MIXED = re.compile(r"[^\W\d_][0-9]|[0-9][^\W\d_]")
_HIRAGANA = re.compile(r"[ぁ-ゟ]+")
# French and Italian words that lose their end before a vowel; D'Angelo is a name.
_ELIDED = re.compile(
    r"\A(?:(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|all|dall|dell|nell|sull|quell)'(?=\w)"
    r"|(?:[CDJLMNST]|Qu|All|Dell|Nell)'(?=[a-zà-ÿ]))"
)
_POSSESSIVE = "'s"
_NAMES_TOO = frozenset(("will", "may"))  # with a capital inside a sentence

_CONTENT, _TIME, _COMMON = range(3)  # only the best of these that there are is kept
_FIRST, _SECOND, _LAST = range(3)  # which go when there are too many


class _Candidate(NamedTuple):
    at: int
    term: Term
    rank: int = _FIRST
    kind: int = _CONTENT


@dataclass(frozen=True, slots=True)
class _Setting:
    """What decides about a word besides the word."""

    text: str
    shouted: bool  # all in capitals, which then say nothing
    time: frozenset[str]
    names: frozenset[str]

    def inside_sentence(self, at: int) -> bool:
        return at > 1 and self.text[at - 2] not in ".!?:;"


def _terms(asked: str, days: Days | None, known: Collection[str]) -> tuple[Term, ...]:
    text = words.clean(asked).replace("’", "'")
    time = frozenset(_folded_words(days.text)) if days and dates.is_vague(days.text) else frozenset()
    names = frozenset(word for name in known for word in _folded_words(name))
    setting = _Setting(text, text == text.upper(), time, names)
    found = [*_aliased(text), *_phrases(text, known), *_worded(setting)]
    best = min((one.kind for one in found), default=_CONTENT)
    chosen = _distinct(one for one in sorted(found, key=lambda one: one.at) if one.kind == best)
    by_worth = sorted(range(len(chosen)), key=lambda at: (chosen[at].rank, -len(chosen[at].term.text)))
    return tuple(chosen[at].term for at in sorted(by_worth[:MOST_TERMS]))


def _distinct(found: Iterable[_Candidate]) -> list[_Candidate]:
    kept: dict[str, _Candidate] = {}
    for one in found:
        same = kept.setdefault(one.term.text.casefold(), one)
        if one.term.whole and not same.term.whole:
            kept[one.term.text.casefold()] = same._replace(term=one.term, rank=one.rank)
    return list(kept.values())


def _aliased(text: str) -> Iterator[_Candidate]:
    for alias in words.aliases(text):
        yield _Candidate(alias.start, Term(alias.word, True))


def _phrases(text: str, known: Iterable[str]) -> Iterator[_Candidate]:
    for quoted in _QUOTES.finditer(text):
        yield from _phrase(quoted.start(), quoted[quoted.lastindex or 0])
    folded = text.casefold()
    for name in known:
        at = folded.find(words.clean(name).casefold())
        if at >= 0 and len(_folded_words(name)) > 1:
            yield from _phrase(at, name)


def _phrase(at: int, said: str) -> Iterator[_Candidate]:
    text = " ".join(words.term(said).replace('"', " ").split())
    if _TOKEN.search(text):
        yield _Candidate(at, Term(text, True))


def _worded(setting: _Setting) -> Iterator[_Candidate]:
    symbols = {alias.start for alias in words.aliases(setting.text)}
    for found in _WORD.finditer(setting.text):
        if found["run"]:
            yield from _run(found.start(), found[0])
        elif len(found[0]) > 1 or found.start() not in symbols:  # C++ is not C
            yield from _word(found.start(), found[0], setting)


def _run(at: int, run: str) -> Iterator[_Candidate]:
    for token in words.term(run).split():
        # Two Hiragana are mostly endings and particles.
        yield _Candidate(at, Term(token), _LAST if _HIRAGANA.fullmatch(token) else _SECOND)


def _word(at: int, word: str, setting: _Setting) -> Iterator[_Candidate]:
    said = word.strip("_").casefold()
    if STOPWORDS.issuperset(said.split("/")) and not _stands_out(at, word, setting):
        yield from _plain(at, word, setting, _COMMON)
        return
    word = _ELIDED.sub("", word.removesuffix(_POSSESSIVE)) if "'" in word else word
    pieces = _PIECE.findall(word)
    if len(pieces) == 1 and not _is_identifier(word):
        common = "'" in said and word.casefold() in STOPWORDS  # l'on
        yield from _plain(at, pieces[0], setting, _COMMON if common else _CONTENT)
    else:
        yield from _identifier(at, word, pieces, setting)


def _identifier(at: int, word: str, pieces: list[str], setting: _Setting) -> Iterator[_Candidate]:
    if len(word) <= _LONGEST_WHOLE or len(pieces) == 1:
        yield from _phrase(at, word)
    for piece in pieces:
        for part in (*([piece] if len(pieces) > 1 else ()), *words.camel_parts(piece)):
            common = len(part) < 2 or part.casefold() in STOPWORDS
            yield from _plain(at, part, setting, _COMMON if common else _CONTENT)


def _plain(at: int, word: str, setting: _Setting, kind: int = _CONTENT) -> Iterator[_Candidate]:
    text = words.term(word)
    folded = words.fold(word)
    if _TOKEN.search(text):
        kind = _TIME if kind == _CONTENT and folded in setting.time else kind
        first = folded in setting.names or _is_telling(at, word, setting)
        yield _Candidate(at, Term(text), _FIRST if first else _SECOND, kind)


def _is_identifier(word: str) -> bool:
    return bool(_MIXED.search(word)) or any(words.camel_parts(word))


def _is_telling(at: int, word: str, setting: _Setting) -> bool:
    """A number, an abbreviation, or a capital inside a sentence."""
    capital = word[0].isupper() and not setting.shouted
    return word[0].isdigit() or (capital and (word.isupper() or setting.inside_sentence(at)))


def _stands_out(at: int, word: str, setting: _Setting) -> bool:
    """A common word that is none here: IT, US, WHO, or Will inside a sentence."""
    if words.fold(word) in setting.names:
        return True
    if setting.shouted or not word[0].isupper() or len(word) < 2:
        return False
    return word.isupper() or (word.casefold() in _NAMES_TOO and setting.inside_sentence(at))


# The names.

_NOT_FIRST_NAMES = STOPWORDS | {"new", "old", "san", "saint", "project", "team", "dr", "mr", "mrs", "ms"}


def _known(asked: str, names: Collection[str]) -> tuple[str, ...]:
    """Those of `names` that are in the text, in the order in which they come."""
    text = words.fold(asked)
    line = " ".join(("", *_folded_words(text), ""))
    spoken = frozenset(line.split())
    by_word = _by_first_word(tuple(names))
    near = (name for word in ("", *spoken) for name in by_word.get(word, ()))
    found = ((_place(name, text, line, spoken), name) for name in dict.fromkeys(near))
    return tuple(name for at, name in sorted((at, name) for at, name in found if at >= 0))


@lru_cache(maxsize=8)
def _by_first_word(names: tuple[str, ...]) -> dict[str, list[str]]:
    """A home has thousands of names, and a question few words. Under nothing stand those that have to be
    looked at always: scripts without spaces."""
    found: dict[str, list[str]] = {}
    for name in names:
        parts = _folded_words(name)
        first = "" if words.unspaced(name) else parts[0] if parts else None
        if first is not None:
            found.setdefault(first, []).append(name)
    return found


def _place(name: str, text: str, line: str, spoken: frozenset[str]) -> int:
    """Where in the text, or -1."""
    parts = _folded_words(name)
    if not parts:
        return -1
    if words.unspaced(name):
        return text.find(words.fold(name))
    if parts[0] not in spoken:
        return -1
    at = line.find(f" {' '.join(parts)} ")
    return at if at >= 0 or not _has_first_name(name, parts) else line.find(f" {parts[0]} ")


def _has_first_name(name: str, parts: list[str]) -> bool:
    """Ana of Ana Ruiz, but not "night" of "night jar relay", nor New of New York."""
    written = name.split()
    return (
        len(written) > 1
        and all(word[0].isupper() for word in written)
        and len(parts[0]) > 1
        and parts[0] not in _NOT_FIRST_NAMES
    )


def _folded_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", words.fold(text))
