"""Fits the constants of relevance.

Each question is asked in its own home and in another one, which has no answer to it. A logistic regression on
the kinds of evidence separates the two. Its scale is then shifted so that two values mean the same for every
model:

    0.75   the best hit of one in twenty questions without an answer reaches it; for questions that the set
           itself calls unanswerable, whose subjects are in the home, one in twelve
    0.12   more than a third of the questions that only another home answers stay below it; a higher value
           would cost evidence of questions that this home does answer

How fast relevance falls from hit to hit is fitted on which of the first ten hits were right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

from tacit.evaluation.search_quality import QuestionHits, percentile
from tacit.search.scoring import mean_and_spread
from tacit.search.weights import GATE_RELEVANCE, STRONG_RELEVANCE

_STRONG_PERCENTILE, _STRONG_PERCENTILE_NEAR, _GATE_PERCENTILE = 0.95, 0.92, 0.36
_MAX_HITS = 10
_MAX_ROUNDS = 50
_RIDGE = 1.0  # keeps constants near 0 if the data says little about them


def fit_constants(own: Sequence[QuestionHits], foreign: Sequence[QuestionHits]) -> dict[str, float]:
    cosines = [cosine for answer in foreign for cosine in _word_hit_cosines(answer)]
    mean, spread = mean_and_spread(cosines) if cosines else (0.0, 1.0)
    answered = [_evidence(answer, mean, spread) for answer in own if answer.ranks and answer.found.hits]
    unrelated = [_evidence(answer, mean, spread) for answer in foreign if answer.found.hits]
    near = [_evidence(answer, mean, spread) for answer in own if not answer.ranks and answer.found.hits]
    fitted = _fit_logistic([(row, 1.0) for row in answered] + [(row, 0.0) for row in (*unrelated, *near)])
    weights = [fitted[0], *(max(0.0, weight) for weight in fitted[1:])]  # better evidence is never worse
    fall = _fit_logistic([row for answer in own for row in _fall_rows(answer)])[1]
    unrelated_scores = [_dot(weights, row) for row in unrelated]
    near_scores = [_dot(weights, row) for row in near]
    strong = max(
        percentile(unrelated_scores, _STRONG_PERCENTILE),
        percentile(near_scores, _STRONG_PERCENTILE_NEAR) if near else -1e9,
    )
    gate = min(percentile(unrelated_scores, _GATE_PERCENTILE), strong - 0.1)
    scale = (_log_odds(STRONG_RELEVANCE) - _log_odds(GATE_RELEVANCE)) / (strong - gate)
    _, words, meaning, reading = (scale * weight for weight in weights)
    return {
        "mean": round(mean, 4),
        "spread": round(spread, 4),
        "bias": round(_log_odds(STRONG_RELEVANCE) + scale * (weights[0] - strong), 3),
        "words": round(words, 3),
        "meaning": round(meaning, 3),
        "reading": round(reading, 3),
        "fall": round(fall, 3),
    }


def _log_odds(likely: float) -> float:
    return log(likely / (1 - likely))


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def _word_hit_cosines(answer: QuestionHits) -> Iterator[float]:
    """Cosines of chunks that were found by their words in a home without an answer."""
    for hit in answer.found.hits:
        if hit.why.cosine is not None and hit.why.vector_rank is None:
            yield hit.why.cosine


def _evidence(answer: QuestionHits, mean: float, spread: float) -> tuple[float, ...]:
    evidence = answer.found.trace["evidence"]
    assert isinstance(evidence, dict)
    cosine = evidence["cosine"]
    meaning = 0.0 if cosine is None else (cosine - mean) / spread
    return 1.0, evidence["words"], meaning, evidence["reading"]


_Row = tuple[tuple[float, ...], float]


def _fall_rows(answer: QuestionHits) -> Iterator[_Row]:
    """How far each of the first hits is below the best, and whether it was right."""
    hits = answer.found.hits[:_MAX_HITS]
    if any(answer.right[:_MAX_HITS]):
        for hit, right in zip(hits, answer.right, strict=False):
            yield (1.0, hit.why.standing - hits[0].why.standing), float(right)


def _fit_logistic(rows: Sequence[_Row]) -> list[float]:
    """Logistic regression by Newton's method, without a library. Both labels get the same total weight."""
    size = len(rows[0][0])
    weights = [0.0] * size
    right = sum(label for _, label in rows) or 1.0
    worth = {1.0: len(rows) / (2 * right), 0.0: len(rows) / (2 * max(1.0, len(rows) - right))}
    for _ in range(_MAX_ROUNDS):
        step = _newton_step(rows, weights, worth)
        weights = [weight - change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-6:
            break
    return weights


def _newton_step(rows: Sequence[_Row], weights: Sequence[float], worth: dict[float, float]) -> list[float]:
    size = len(weights)
    slope = [_RIDGE * weight if index else 0.0 for index, weight in enumerate(weights)]
    curve = [[_RIDGE * (i == j) + 1e-9 for j in range(size)] for i in range(size)]
    for features, label in rows:
        likely = 1 / (1 + exp(-max(-30.0, min(30.0, _dot(weights, features)))))
        pull, bend = worth[label] * (likely - label), worth[label] * likely * (1 - likely)
        for i in range(size):
            slope[i] += pull * features[i]
            for j in range(size):
                curve[i][j] += bend * features[i] * features[j]
    return _solve(curve, slope)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row_index in range(size):
            if row_index != column and rows[column][column]:
                factor = rows[row_index][column] / rows[column][column]
                rows[row_index] = [a - factor * b for a, b in zip(rows[row_index], rows[column], strict=True)]
    return [
        rows[column][size] / rows[column][column] if rows[column][column] else 0.0 for column in range(size)
    ]
