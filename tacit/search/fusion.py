"""Two rankings become one, and every part of a score keeps its name.

Each side's scores are compared with those of the other candidates of the same question: how many standard
deviations above their mean. That puts BM25, whose scale depends on the question, and cosine, whose scale
depends on the model, on one footing. What a side did not find counts as 0 there for words; for vectors the
cosine is looked up, since every passage has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from tacit.model.search import Scored, Why

DEPTH = 100  # candidates from each side


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both sides found for one question."""

    lexical: Sequence[Scored]
    nearest: Sequence[Scored]
    cosines: Mapping[int, float]  # for all candidates that have a vector; empty: there are no vectors
    ideal: float  # the BM25 of a passage that holds every term again and again


def fuse(
    found: Candidates, lexical_weight: float, vector_weight: float, count: int | None = None
) -> dict[int, Why]:
    """The highest, and those equal to the last of them; without `count` all."""
    ids = {scored.id for scored in (*found.lexical, *found.nearest)}
    bm25 = {scored.id: scored.score for scored in found.lexical}
    words = _standard({one: bm25.get(one, 0.0) for one in ids})
    meaning = _standard({one: found.cosines[one] for one in ids if one in found.cosines})
    total = lexical_weight + vector_weight
    of_words = lexical_weight / total if found.cosines and total else 1.0
    lexical_rank = {scored.id: rank for rank, scored in enumerate(found.lexical, 1)}
    vector_rank = {scored.id: rank for rank, scored in enumerate(found.nearest, 1)}
    scores = {one: of_words * words[one] + (1 - of_words) * meaning.get(one, 0.0) for one in ids}
    return {
        one: Why(
            score=scores[one],
            standing=scores[one],
            lexical=of_words * words[one],
            vector=(1 - of_words) * meaning.get(one, 0.0),
            bm25=bm25.get(one),
            cosine=found.cosines.get(one),
            lexical_rank=lexical_rank.get(one),
            vector_rank=vector_rank.get(one),
        )
        for one in (ids if count is None else top(scores, count))
    }


def _standard(values: Mapping[int, float]) -> dict[int, float]:
    """Each value as standard deviations above the mean; 0 where all are equal."""
    if not values:
        return {}
    mean = sum(values.values()) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    return {one: (value - mean) / spread if spread > 1e-9 else 0.0 for one, value in values.items()}


def blend(whys: Mapping[int, Why], logits: Mapping[int, float], share: float) -> dict[int, float]:
    """Scores after a cross-encoder read the best passages: `share` of it is the cross-encoder's word."""
    before = _standard({one: whys[one].score for one in logits})
    after = _standard(logits)
    return {one: (1 - share) * before[one] + share * after[one] for one in logits}


def best(scores: Mapping[int, float], places: Mapping[int, tuple[str, int]], limit: int) -> list[int]:
    """Highest first; equal ones in the order of the files, so that an index grown otherwise says the same."""
    ordered = sorted(scores, key=lambda one: (-round(scores[one], 9), places.get(one, ("", one))))
    return ordered[: max(0, limit)]


def top(scores: Mapping[int, float], count: int) -> list[int]:
    """The highest, and those equal to the last of them: which of equals stay is for `best` to say."""
    ordered = sorted(scores, key=lambda one: -scores[one])
    end = max(0, count)
    while 0 < end < len(ordered) and scores[ordered[end]] > scores[ordered[end - 1]] - 1e-9:
        end += 1
    return ordered[:end]
