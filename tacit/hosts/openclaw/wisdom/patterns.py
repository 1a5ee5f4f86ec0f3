"""Sums up a theme in one short sentence without a model: the most general sentence of its lessons.

Nothing is reworded. Of all sentences and clauses that are short enough and name no detail, the one most
similar to the whole theme is taken; if it leaves out half of the theme, a second one is joined to it if there
is room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.hosts.openclaw.wisdom.lint import MAX_WORDS, find_details
from tacit.hosts.openclaw.wisdom.section import WisdomEntry
from tacit.hosts.openclaw.wisdom.similarity import MIN_SIMILARITY, Likeness, is_distinctive, stems
from tacit.text.sentences import split_sentences
from tacit.text.words import fold, is_unspaced

_MIN_WORDS = 3
_MIN_LETTERS = 5
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


def summarize_theme(texts: Sequence[str], theme: Sequence[int], likeness: Likeness) -> WisdomEntry | None:
    """`texts`: all lessons; `theme`: the numbers of its lessons. None: no sentence is short and general
    enough."""
    candidates = _rank_candidates(texts, theme, likeness)
    if not candidates:
        return None
    best = candidates[0].text
    similarities = likeness.of([best])[0]
    uncovered = [index for index in theme if similarities[index] < MIN_SIMILARITY]
    if 2 * len(uncovered) > len(theme):
        joined = (
            _join_sentences(best, candidate.text) for candidate in candidates if candidate.lesson in uncovered
        )
        best = next(filter(None, joined), best)
    return WisdomEntry(_name_theme(texts, theme, best), best)


def _rank_candidates(texts: Sequence[str], theme: Sequence[int], likeness: Likeness) -> list[Candidate]:
    """The most general first."""
    candidates = [
        Candidate(text, index) for index in theme for text in dict.fromkeys(_short_sentences(texts[index]))
    ]
    if not candidates:
        return []
    similarities = likeness.of([candidate.text for candidate in candidates])[:, list(theme)].mean(axis=1)
    scored = [
        candidate._replace(score=float(similarity) + _generality(candidate.text))
        for candidate, similarity in zip(candidates, similarities, strict=True)
    ]
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.lesson, candidate.text))


def _short_sentences(lesson: str) -> Iterator[str]:
    for sentence in split_sentences(lesson):
        whole = _ASIDE.sub("", sentence).strip()
        for text in (whole, _CLAUSE.sub("", whole)):
            trimmed = text.replace("**", "").rstrip(" .;:,")
            if _is_usable(trimmed):
                yield f"{trimmed[0].upper()}{trimmed[1:]}."


def _is_usable(text: str) -> bool:
    if find_details(text) or text.endswith("?"):
        return False
    if is_unspaced(text):
        return _MIN_LETTERS <= sum(map(str.isalnum, text)) <= 4 * MAX_WORDS
    return _MIN_WORDS <= len(text.split()) <= MAX_WORDS


def _generality(text: str) -> float:
    """Prefers rules to stories, few names and few words: each word costs tokens in every session."""
    rule = 0.15 * bool(_RULE.match(text))
    story = 0.15 * bool(_STORY.search(text))
    return rule - story - 0.1 * len(_NAME_INSIDE.findall(text)) - 0.01 * len(text.split())


def _join_sentences(first: str, second: str) -> str | None:
    text = f"{first.rstrip('.')}; {second[0].lower()}{second[1:]}"
    return text if _is_usable(text) and fold(second) not in fold(first) else None


def _name_theme(texts: Sequence[str], theme: Sequence[int], sentence: str) -> str:
    """The word most typical of the theme; of equal ones, the one in the sentence."""
    theme_counts = Counter(stem for index in theme for stem in stems(texts[index]))
    all_counts = Counter(stem for text in texts for stem in stems(text))
    sentence_stems = stems(sentence)

    def weight(stem: str) -> tuple[float, bool, str]:
        return theme_counts[stem] ** 2 / all_counts[stem], stem in sentence_stems, stem

    for stem in sorted(theme_counts, key=weight, reverse=True):
        word = _surface_form(stem, [texts[index] for index in theme])
        if word and not find_details(word):
            return f"{word[0].upper()}{word[1:]}."
    return f"{sentence.split(maxsplit=1)[0].rstrip('.,;:')}."


def _surface_form(stem: str, texts: Sequence[str]) -> str:
    """The most frequent spelling of the word; of equal ones the longer, which is more often a noun."""
    words = Counter(
        word.lower()
        for text in texts
        for word in _WORD.findall(text)
        if is_distinctive(fold(word)) and stem in stems(word)
    )
    return max(words, key=lambda word: (words[word], len(word), word), default="")
