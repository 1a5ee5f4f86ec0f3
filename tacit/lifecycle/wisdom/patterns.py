"""A theme in one short sentence without a model: the most general one that its lessons themselves have.

Nothing is reworded. Of all sentences and clauses that are short enough and name no detail, the one that is
most like the whole theme is taken; where it leaves half of the theme out, a second one is joined to it if
there is room."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.lifecycle.wisdom.likeness import ALIKE, Likeness, stems, telling
from tacit.lifecycle.wisdom.lint import MOST_WORDS, details
from tacit.lifecycle.wisdom.section import Entry
from tacit.text.sentences import sentences
from tacit.text.words import fold, unspaced

_FEWEST_WORDS = 3
_FEWEST_LETTERS = 5
_CLAUSE = re.compile(
    r"\s*(?:[;–—]|\s-\s|,\s+(?:so|or|but|which|because|since|aber|weil|sonst)\b"
    r"|\s(?:because|so that|since|weil)\s).*\Z"
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_RULE = re.compile(
    r"(?:always|never|don['’]t|do not|check|verify|test|ask|read|keep|write|look|make|use|confirm|measure|say"
    r"|tell|plan|treat|prefer|avoid|assume|leave|start|stop|wait|before|after|when|if|immer|nie|erst|vor|prüfe?"
    r"|frage?)\b",
    re.IGNORECASE,
)
_STORY = re.compile(
    r"\b(?:i|we|my|our|he|she|they|was|were|had|did|yesterday|today|last (?:week|month|night)|ich|wir|war"
    r"|hatte)\b",
    re.IGNORECASE,
)
_NAME_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")


class Candidate(NamedTuple):
    text: str
    lesson: int
    score: float = 0.0


def pattern(texts: Sequence[str], theme: Sequence[int], likeness: Likeness) -> Entry | None:
    """`texts` of all lessons, of which `theme` are the numbers. None: no sentence is short and general
    enough."""
    found = _ranked(texts, theme, likeness)
    if not found:
        return None
    best = found[0].text
    like = likeness.of([best])[0]
    left = [at for at in theme if like[at] < ALIKE]
    if 2 * len(left) > len(theme):
        others = (_joined(best, one.text) for one in found if one.lesson in left)
        best = next(filter(None, others), best)
    return Entry(_name(texts, theme, best), best)


def _ranked(texts: Sequence[str], theme: Sequence[int], likeness: Likeness) -> list[Candidate]:
    """The most general first."""
    found = [Candidate(text, at) for at in theme for text in dict.fromkeys(_short(texts[at]))]
    if not found:
        return []
    like = likeness.of([one.text for one in found])[:, list(theme)].mean(axis=1)
    scored = [
        one._replace(score=float(near) + _general(one.text)) for one, near in zip(found, like, strict=True)
    ]
    return sorted(scored, key=lambda one: (-one.score, one.lesson, one.text))


def _short(lesson: str) -> Iterator[str]:
    for sentence in sentences(lesson):
        whole = _ASIDE.sub("", sentence).strip()
        for text in (whole, _CLAUSE.sub("", whole)):
            bare = text.replace("**", "").rstrip(" .;:,")
            if _fits(bare):
                yield f"{bare[0].upper()}{bare[1:]}."


def _fits(text: str) -> bool:
    if details(text) or text.endswith("?"):
        return False
    if unspaced(text):
        return _FEWEST_LETTERS <= sum(map(str.isalnum, text)) <= 4 * MOST_WORDS
    return _FEWEST_WORDS <= len(text.split()) <= MOST_WORDS


def _general(text: str) -> float:
    """Rules before stories, few names, few words: each costs tokens in every session."""
    rule = 0.15 * bool(_RULE.match(text))
    story = 0.15 * bool(_STORY.search(text))
    return rule - story - 0.1 * len(_NAME_INSIDE.findall(text)) - 0.01 * len(text.split())


def _joined(one: str, other: str) -> str | None:
    text = f"{one.rstrip('.')}; {other[0].lower()}{other[1:]}"
    return text if _fits(text) and fold(other) not in fold(one) else None


def _name(texts: Sequence[str], theme: Sequence[int], sentence: str) -> str:
    """The word that the theme has and the other lessons have not; of equal ones, that in the sentence."""
    inside = Counter(stem for at in theme for stem in stems(texts[at]))
    everywhere = Counter(stem for text in texts for stem in stems(text))
    here = stems(sentence)

    def weight(stem: str) -> tuple[float, bool, str]:
        return inside[stem] ** 2 / everywhere[stem], stem in here, stem

    for stem in sorted(inside, key=weight, reverse=True):
        word = _surface(stem, [texts[at] for at in theme])
        if word and not details(word):
            return f"{word[0].upper()}{word[1:]}."
    return f"{sentence.split(maxsplit=1)[0].rstrip('.,;:')}."


def _surface(stem: str, texts: Sequence[str]) -> str:
    """How the word is written most often; the longer form of equal ones, which is more often a noun."""
    words = Counter(
        word.lower()
        for text in texts
        for word in _WORD.findall(text)
        if telling(fold(word)) and stem in stems(word)
    )
    return max(words, key=lambda word: (words[word], len(word), word), default="")
