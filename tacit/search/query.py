"""Parses a question for the indexes: text to embed, terms to look up, days, known names.

Any text is a valid question: nothing here raises, and a question with words always has terms. Words that are
too common are dropped, and so are those that only say when ("two weeks ago"), unless nothing else is left.
`C++`, `#34`, `src/app.py` and "quoted words" are searched as a whole and by their parts.

Fenced code and lines quoted with `>` are usually what the question is about and not the question. They count
only if there is nothing else.

Time grows with the length of the text, of which only the first 20,000 characters are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import NamedTuple

from tacit.text import dates, words
from tacit.text.dates import DayRange
from tacit.text.lines import scan
from tacit.text.words import STOPWORDS

MAX_CHARS = 20_000  # that are read
MAX_QUERY_CHARS = 2_000  # that are embedded: models read little more
MAX_TERMS = 32
MAX_INTENT_CHARS = 280
MIN_INTENT_CHARS = 10
MIN_UNSPACED_INTENT_CHARS = 4  # four Chinese characters say as much as ten letters
_MAX_WHOLE_CHARS = 120  # longer paths and addresses are searched only by their parts


@dataclass(frozen=True, slots=True)
class Term:
    """One term to search, not yet quoted. `whole`: an identifier or a phrase."""

    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    terms: tuple[Term, ...] = ()
    days: DayRange | None = None
    names: tuple[str, ...] = ()


def parse_query(text: object, now: datetime | None = None, names: Collection[str] = ()) -> Query:
    """Parse a question. Days are recognized only with `now`; `names` are the known names to recognize."""
    if not isinstance(text, str):
        return Query("")
    question = _question_text(text[:MAX_CHARS])
    days = dates.find_days(question, now.date()) if now else None
    found_names = _find_names(question, names)
    return Query(
        _truncate(question, MAX_QUERY_CHARS), _choose_terms(question, days, found_names), days, found_names
    )


def extract_intent(text: object) -> str | None:
    """The start of a message without code and quotes; None if too little is left."""
    if not isinstance(text, str):
        return None
    remaining = _normalize(_text_lines(text[:MAX_CHARS], code=False, quotes=False))
    unspaced = sum(map(len, words.UNSPACED_RUN.findall(remaining)))
    if len(remaining) < MIN_INTENT_CHARS and unspaced < MIN_UNSPACED_INTENT_CHARS:
        return None
    return _truncate(remaining, MAX_INTENT_CHARS)


def match_expression(terms: Iterable[Term]) -> str:
    """The index expression that matches any of `terms`. Empty if there are none."""
    # These scripts are indexed in pairs of letters, so a single one matches as the start of a pair.
    return " OR ".join(
        '"{}"{}'.format(
            term.text.replace('"', '""'), "*" if len(term.text) == 1 and words.is_unspaced(term.text) else ""
        )
        for term in terms
    )


# The text.

_TRIPLE = re.compile(r"```[^`]*+```")
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_TOKEN = re.compile(r"[^\W_]|[\ue000-\uf8ff]")


def _question_text(text: str) -> str:
    for code, quotes in ((False, False), (False, True), (True, True)):
        question = _normalize(_text_lines(text, code, quotes))
        if _TOKEN.search(question):
            return question
    return question


def _text_lines(text: str, code: bool, quotes: bool) -> str:
    kinds = ("text", "heading", "code") if code else ("text", "heading")
    lines = [line.text for line in scan(text) if line.kind in kinds]
    if not quotes:
        lines = [line for line in lines if not line.lstrip().startswith(">")]
    joined = "\n".join(lines)
    return joined if code else _TRIPLE.sub(" ", joined)


def _normalize(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def _truncate(text: str, max_chars: int) -> str:
    """Cut at a space, unless the last word is most of the text."""
    if len(text) <= max_chars:
        return text
    end = text.rfind(" ", max_chars // 2, max_chars + 1)
    return text[: end if end > 0 else max_chars].rstrip()


# The terms.

_MARKS = "\u0300-\u036f\u0483-\u0489\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc\u135d-\u135f\u1ab0-\u1aff"
_LETTERS = rf"(?:(?![{words.UNSPACED_CHARS}])[\w{_MARKS}\ue000-\uf8ff])++"
_INSIDE = r"(?:://|::|->|[-./:@\\&+~=#'’‐])"
_WORD = re.compile(rf"(?P<run>[{words.UNSPACED_CHARS}]++)|{_LETTERS}(?:{_INSIDE}{_LETTERS})*+")
_PIECE = re.compile(rf"(?:(?!_)[\w{_MARKS}\ue000-\uf8ff])++")
_QUOTES = re.compile(
    r"""["“”„]([^"“”„]{2,120})["“”]|«([^«»]{2,120})»|`([^`]{2,120})`|(?<!\w)'([^']{2,120})'(?!\w)"""
)
_MIXED = re.compile(r"[^\W\d_][0-9]|[0-9][^\W\d_]")
_HIRAGANA = re.compile(r"[ぁ-ゟ]+")
# French and Italian words that are elided before a vowel; D'Angelo is a name.
_ELIDED = re.compile(
    r"\A(?:(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|all|dall|dell|nell|sull|quell)'(?=\w)"
    r"|(?:[CDJLMNST]|Qu|All|Dell|Nell)'(?=[a-zà-ÿ]))"
)
_POSSESSIVE = "'s"
_ALSO_NAMES = frozenset(("will", "may"))  # when capitalized inside a sentence

_CONTENT, _TIME, _COMMON = range(3)  # only candidates of the best kind present are kept
_FIRST, _SECOND, _LAST = range(3)  # the later ones are dropped first if there are too many


class _TermCandidate(NamedTuple):
    start: int
    term: Term
    rank: int = _FIRST
    kind: int = _CONTENT


@dataclass(frozen=True, slots=True)
class _WordContext:
    """The context that decides how a word counts."""

    text: str
    shouted: bool  # all in capitals, so that capitals mean nothing
    time: frozenset[str]
    names: frozenset[str]

    def inside_sentence(self, start: int) -> bool:
        return start > 1 and self.text[start - 2] not in ".!?:;"


def _choose_terms(question: str, days: DayRange | None, found_names: Collection[str]) -> tuple[Term, ...]:
    text = words.clean(question).replace("’", "'")
    time = frozenset(_folded_words(days.text)) if days and dates.is_vague(days.text) else frozenset()
    names = frozenset(word for name in found_names for word in _folded_words(name))
    context = _WordContext(text, text == text.upper(), time, names)
    candidates = [
        *_alias_candidates(text),
        *_phrase_candidates(text, found_names),
        *_word_candidates(context),
    ]
    best = min((candidate.kind for candidate in candidates), default=_CONTENT)
    distinct = _drop_duplicates(
        candidate
        for candidate in sorted(candidates, key=lambda candidate: candidate.start)
        if candidate.kind == best
    )
    by_rank = sorted(
        range(len(distinct)),
        key=lambda position: (distinct[position].rank, -len(distinct[position].term.text)),
    )
    return tuple(distinct[position].term for position in sorted(by_rank[:MAX_TERMS]))


def _drop_duplicates(candidates: Iterable[_TermCandidate]) -> list[_TermCandidate]:
    by_text: dict[str, _TermCandidate] = {}
    for candidate in candidates:
        same = by_text.setdefault(candidate.term.text.casefold(), candidate)
        if candidate.term.whole and not same.term.whole:
            by_text[candidate.term.text.casefold()] = same._replace(term=candidate.term, rank=candidate.rank)
    return list(by_text.values())


def _alias_candidates(text: str) -> Iterator[_TermCandidate]:
    for alias in words.find_aliases(text):
        yield _TermCandidate(alias.start, Term(alias.word, True))


def _phrase_candidates(text: str, names: Iterable[str]) -> Iterator[_TermCandidate]:
    for quoted in _QUOTES.finditer(text):
        yield from _phrase_candidate(quoted.start(), quoted[quoted.lastindex or 0])
    folded = text.casefold()
    for name in names:
        start = folded.find(words.clean(name).casefold())
        if start >= 0 and len(_folded_words(name)) > 1:
            yield from _phrase_candidate(start, name)


def _phrase_candidate(start: int, phrase: str) -> Iterator[_TermCandidate]:
    text = " ".join(words.prepare_query(phrase).replace('"', " ").split())
    if _TOKEN.search(text):
        yield _TermCandidate(start, Term(text, True))


def _word_candidates(context: _WordContext) -> Iterator[_TermCandidate]:
    symbols = {alias.start for alias in words.find_aliases(context.text)}
    for token in _WORD.finditer(context.text):
        if token["run"]:
            yield from _run_candidates(token.start(), token[0])
        elif len(token[0]) > 1 or token.start() not in symbols:  # C++ is not C
            yield from _candidates_of_word(token.start(), token[0], context)


def _run_candidates(start: int, run: str) -> Iterator[_TermCandidate]:
    for token in words.prepare_query(run).split():
        # Two Hiragana are usually an ending or a particle.
        yield _TermCandidate(start, Term(token), _LAST if _HIRAGANA.fullmatch(token) else _SECOND)


def _candidates_of_word(start: int, word: str, context: _WordContext) -> Iterator[_TermCandidate]:
    folded = word.strip("_").casefold()
    if STOPWORDS.issuperset(folded.split("/")) and not _stands_out(start, word, context):
        yield from _plain_candidate(start, word, context, _COMMON)
        return
    word = _ELIDED.sub("", word.removesuffix(_POSSESSIVE)) if "'" in word else word
    pieces = _PIECE.findall(word)
    is_identifier = bool(_MIXED.search(word)) or any(words.split_camel_case(word))
    if len(pieces) == 1 and not is_identifier:
        common = "'" in folded and word.casefold() in STOPWORDS  # l'on
        yield from _plain_candidate(start, pieces[0], context, _COMMON if common else _CONTENT)
    else:
        yield from _identifier_candidates(start, word, pieces, context)


def _identifier_candidates(
    start: int, word: str, pieces: list[str], context: _WordContext
) -> Iterator[_TermCandidate]:
    if len(word) <= _MAX_WHOLE_CHARS or len(pieces) == 1:
        yield from _phrase_candidate(start, word)
    for piece in pieces:
        for part in (*([piece] if len(pieces) > 1 else ()), *words.split_camel_case(piece)):
            common = len(part) < 2 or part.casefold() in STOPWORDS
            yield from _plain_candidate(start, part, context, _COMMON if common else _CONTENT)


def _plain_candidate(
    start: int, word: str, context: _WordContext, kind: int = _CONTENT
) -> Iterator[_TermCandidate]:
    text = words.prepare_query(word)
    folded = words.fold(word)
    if _TOKEN.search(text):
        kind = _TIME if kind == _CONTENT and folded in context.time else kind
        is_first = folded in context.names or _is_specific(start, word, context)
        yield _TermCandidate(start, Term(text), _FIRST if is_first else _SECOND, kind)


def _is_specific(start: int, word: str, context: _WordContext) -> bool:
    """A number, an abbreviation, or a capital inside a sentence."""
    capital = word[0].isupper() and not context.shouted
    return word[0].isdigit() or (capital and (word.isupper() or context.inside_sentence(start)))


def _stands_out(start: int, word: str, context: _WordContext) -> bool:
    """Whether a common word is a name here: IT, US, WHO, or Will inside a sentence."""
    if words.fold(word) in context.names:
        return True
    if context.shouted or not word[0].isupper() or len(word) < 2:
        return False
    return word.isupper() or (word.casefold() in _ALSO_NAMES and context.inside_sentence(start))


# The names.

_NOT_FIRST_NAMES = STOPWORDS | {"new", "old", "san", "saint", "project", "team", "dr", "mr", "mrs", "ms"}


def _find_names(question: str, names: Collection[str]) -> tuple[str, ...]:
    """Those of `names` that are in the text, in order of appearance."""
    text = words.fold(question)
    line = " ".join(("", *_folded_words(text), ""))
    question_words = frozenset(line.split())
    by_word = _index_by_first_word(tuple(names))
    likely = (name for word in ("", *question_words) for name in by_word.get(word, ()))
    places = ((_find_name(name, text, line, question_words), name) for name in dict.fromkeys(likely))
    return tuple(name for start, name in sorted((start, name) for start, name in places if start >= 0))


@lru_cache(maxsize=8)
def _index_by_first_word(names: tuple[str, ...]) -> dict[str, list[str]]:
    """Names by their first word: a home has thousands of names, and a question few words. Names in scripts
    without spaces must always be checked; they are under the empty string."""
    by_word: dict[str, list[str]] = {}
    for name in names:
        parts = _folded_words(name)
        first = "" if words.is_unspaced(name) else parts[0] if parts else None
        if first is not None:
            by_word.setdefault(first, []).append(name)
    return by_word


def _find_name(name: str, text: str, line: str, question_words: frozenset[str]) -> int:
    """The offset of the name in the text, or -1."""
    parts = _folded_words(name)
    if not parts:
        return -1
    if words.is_unspaced(name):
        return text.find(words.fold(name))
    if parts[0] not in question_words:
        return -1
    start = line.find(f" {' '.join(parts)} ")
    return start if start >= 0 or not _has_first_name(name, parts) else line.find(f" {parts[0]} ")


def _has_first_name(name: str, parts: list[str]) -> bool:
    """Whether the first word counts alone: Ana of Ana Ruiz, but not "night" of "night jar relay" or New of
    New York."""
    written = name.split()
    return (
        len(written) > 1
        and all(word[0].isupper() for word in written)
        and len(parts[0]) > 1
        and parts[0] not in _NOT_FIRST_NAMES
    )


def _folded_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", words.fold(text))


# The speakers: "what did you suggest" means the agent, "did I say" the user.

_USER = (
    "i me my mine myself we us our ours i'm i've i'd i'll we've"
    " ich mir mich mein meine meinem meinen meiner meines wir uns unser unsere unserem unseren"
    " je j'ai moi mon ma mes nous notre nos yo mi mis nosotros nuestro nuestra io mio mia noi nostro"
)
_AGENT = (
    "you your yours you've you'd"
    " du dir dich dein deine deinem deinen deiner sie ihnen ihr ihre"
    " tu toi ton ta tes vous votre vos usted tú tuyo"
)
_USER_UNSPACED = ("私", "僕", "俺", "我", "うち", "自分", "咱")
_AGENT_UNSPACED = ("あなた", "きみ", "君", "你", "您")
_SPEAKER_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def parse_speaker_roles(question: str) -> tuple[frozenset[str], frozenset[str]]:
    """The roles that the question asks about, and all its words, folded."""
    text = words.fold(question[:2000]).replace("’", "'")
    spoken = frozenset(_SPEAKER_WORD.findall(text))
    roles = set()
    if not spoken.isdisjoint(_fold_words(_USER)) or any(pronoun in text for pronoun in _USER_UNSPACED):
        roles.add("user")
    if not spoken.isdisjoint(_fold_words(_AGENT)) or any(pronoun in text for pronoun in _AGENT_UNSPACED):
        roles.add("agent")
    return frozenset(roles), spoken | {word.removesuffix("'s") for word in spoken}


@cache
def _fold_words(text: str) -> frozenset[str]:
    return frozenset(map(words.fold, text.split()))


def is_asked_about(speaker: str, roles: Collection[str], question_words: Collection[str]) -> bool:
    """Whether the question asks about this speaker."""
    if speaker in ("user", "agent"):
        return speaker in roles
    return any(name in question_words for name in _SPEAKER_WORD.findall(words.fold(speaker)) if len(name) > 1)
