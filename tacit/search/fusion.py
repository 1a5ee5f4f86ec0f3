"""Fuses two rankings into one and keeps the parts of each score.

The scores of each channel are standardized over the candidates of the query: standard deviations above their
mean. That puts BM25, whose scale depends on the query, and cosine, whose scale depends on the model, on one
scale. A chunk that lexical search did not find counts as 0 there; for vectors the cosine is looked up,
since every chunk has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from tacit.search.model import Scored, Why


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both channels found for one query."""

    lexical: Sequence[Scored]
    nearest: Sequence[Scored]
    cosines: Mapping[int, float]  # of all candidates that have a vector; empty: there are no vectors
    ideal: float  # the BM25 of a chunk that repeats every term many times


def fuse(
    found: Candidates, lexical_weight: float, vector_weight: float, count: int | None = None
) -> dict[int, Why]:
    """The best `count` and those that tie with the last of them; without `count` all."""
    ids = {scored.id for scored in (*found.lexical, *found.nearest)}
    bm25 = {scored.id: scored.score for scored in found.lexical}
    words = _standardize({id_: bm25.get(id_, 0.0) for id_ in ids})
    meaning = _standardize({id_: found.cosines[id_] for id_ in ids if id_ in found.cosines})
    total = lexical_weight + vector_weight
    lexical_share = lexical_weight / total if found.cosines and total else 1.0
    lexical_rank = {scored.id: rank for rank, scored in enumerate(found.lexical, 1)}
    vector_rank = {scored.id: rank for rank, scored in enumerate(found.nearest, 1)}
    scores = {id_: lexical_share * words[id_] + (1 - lexical_share) * meaning.get(id_, 0.0) for id_ in ids}
    return {
        id_: Why(
            score=scores[id_],
            standing=scores[id_],
            lexical=lexical_share * words[id_],
            vector=(1 - lexical_share) * meaning.get(id_, 0.0),
            bm25=bm25.get(id_),
            cosine=found.cosines.get(id_),
            lexical_rank=lexical_rank.get(id_),
            vector_rank=vector_rank.get(id_),
        )
        for id_ in (ids if count is None else top_with_ties(scores, count))
    }


def _standardize(values: Mapping[int, float]) -> dict[int, float]:
    """Each value in standard deviations above the mean; 0 if all are equal."""
    if not values:
        return {}
    mean = sum(values.values()) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    return {id_: (value - mean) / spread if spread > 1e-9 else 0.0 for id_, value in values.items()}


def blend(whys: Mapping[int, Why], logits: Mapping[int, float], share: float) -> dict[int, float]:
    """Blend the scores with those of a cross-encoder, whose share is `share`."""
    before = _standardize({id_: whys[id_].score for id_ in logits})
    after = _standardize(logits)
    return {id_: (1 - share) * before[id_] + share * after[id_] for id_ in logits}


def order_by_score(
    scores: Mapping[int, float], places: Mapping[int, tuple[str, int]], limit: int
) -> list[int]:
    """Highest first; ties in the order of the files, so that the history of the index makes no difference."""
    ordered = sorted(scores, key=lambda id_: (-round(scores[id_], 9), places.get(id_, ("", id_))))
    return ordered[: max(0, limit)]


def top_with_ties(scores: Mapping[int, float], count: int) -> list[int]:
    """The highest `count` and those that tie with the last of them, which `best` puts in order."""
    ordered = sorted(scores, key=lambda id_: -scores[id_])
    end = max(0, count)
    while 0 < end < len(ordered) and scores[ordered[end]] > scores[ordered[end - 1]] - 1e-9:
        end += 1
    return ordered[:end]
