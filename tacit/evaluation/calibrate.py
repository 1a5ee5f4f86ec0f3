"""Fitting the constants of relevance.

Each question is asked of its own home and of another one, which has no answer to it. How well anything
matched tells the two apart: a logistic regression weighs the kinds of evidence. Its scale is then moved so
that two marks mean the same for every model:

    0.75   the best hit of one in twenty questions without an answer gets there; of those that the set itself
           calls unanswerable, which are about what the home does hold, one in twelve
    0.12   more than a third of the questions that another home answers get no further; more would cost
           evidence of questions that this home does answer

How fast relevance falls from hit to hit is fitted on which of the first ten hits were right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

from tacit.evaluation.measures import percentile
from tacit.evaluation.run import Asked
from tacit.search.calibration import background

_STRONG, _GATE = 0.75, 0.12
_FEW, _FEW_NEAR, _THIRD = 0.95, 0.92, 0.36
_HITS = 10
_ROUNDS = 50
_RIDGE = 1.0  # holds constants near 0 that the data says little about


def fit(own: Sequence[Asked], foreign: Sequence[Asked]) -> dict[str, float]:
    cosines = [cosine for one in foreign for cosine in _unrelated(one)]
    mean, spread = background(cosines) if cosines else (0.0, 1.0)
    answered = [_evidence(one, mean, spread) for one in own if one.ranks and one.found.hits]
    unrelated = [_evidence(one, mean, spread) for one in foreign if one.found.hits]
    near = [_evidence(one, mean, spread) for one in own if not one.ranks and one.found.hits]
    fitted = _logistic([(row, 1.0) for row in answered] + [(row, 0.0) for row in (*unrelated, *near)])
    weights = [fitted[0], *(max(0.0, weight) for weight in fitted[1:])]  # better evidence is never worse
    fall = _logistic([row for one in own for row in _falls(one)])[1]
    unrelated_scores = [_dot(weights, row) for row in unrelated]
    near_scores = [_dot(weights, row) for row in near]
    strong = max(percentile(unrelated_scores, _FEW), percentile(near_scores, _FEW_NEAR) if near else -1e9)
    gate = min(percentile(unrelated_scores, _THIRD), strong - 0.1)
    scale = (_odds(_STRONG) - _odds(_GATE)) / (strong - gate)
    _, words, meaning, reading = (scale * weight for weight in weights)
    return {
        "mean": round(mean, 4),
        "spread": round(spread, 4),
        "bias": round(_odds(_STRONG) + scale * (weights[0] - strong), 3),
        "words": round(words, 3),
        "meaning": round(meaning, 3),
        "reading": round(reading, 3),
        "fall": round(fall, 3),
    }


def _odds(likely: float) -> float:
    return log(likely / (1 - likely))


def _dot(weights: Sequence[float], row: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, row, strict=True))


def _unrelated(one: Asked) -> Iterator[float]:
    """Cosines of passages that were found by their words, in a home that has no answer."""
    for hit in one.found.hits:
        if hit.why.cosine is not None and hit.why.vector_rank is None:
            yield hit.why.cosine


def _evidence(one: Asked, mean: float, spread: float) -> tuple[float, ...]:
    evidence = one.found.trace["evidence"]
    assert isinstance(evidence, dict)
    cosine = evidence["cosine"]
    meaning = 0.0 if cosine is None else (cosine - mean) / spread
    return 1.0, evidence["words"], meaning, evidence["reading"]


_Row = tuple[tuple[float, ...], float]


def _falls(one: Asked) -> Iterator[_Row]:
    """How far each of the first hits stands below the best, and whether it was right."""
    hits = one.found.hits[:_HITS]
    if any(one.right[:_HITS]):
        for hit, right in zip(hits, one.right, strict=False):
            yield (1.0, hit.why.standing - hits[0].why.standing), float(right)


def _logistic(rows: Sequence[_Row]) -> list[float]:
    """Newton's method; a handful of numbers needs no library. Both answers weigh the same in all."""
    size = len(rows[0][0])
    weights = [0.0] * size
    right = sum(label for _, label in rows) or 1.0
    worth = {1.0: len(rows) / (2 * right), 0.0: len(rows) / (2 * max(1.0, len(rows) - right))}
    for _ in range(_ROUNDS):
        step = _newton(rows, weights, worth)
        weights = [weight - change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-6:
            break
    return weights


def _newton(rows: Sequence[_Row], weights: Sequence[float], worth: dict[float, float]) -> list[float]:
    size = len(weights)
    slope = [_RIDGE * weight if at else 0.0 for at, weight in enumerate(weights)]
    curve = [[_RIDGE * (i == j) + 1e-9 for j in range(size)] for i in range(size)]
    for features, label in rows:
        likely = 1 / (1 + exp(-max(-30.0, min(30.0, _dot(weights, features)))))
        pull, bend = worth[label] * (likely - label), worth[label] * likely * (1 - likely)
        for i in range(size):
            slope[i] += pull * features[i]
            for j in range(size):
                curve[i][j] += bend * features[i] * features[j]
    return _solved(curve, slope)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for other in range(size):
            if other != at and rows[at][at]:
                factor = rows[other][at] / rows[at][at]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [rows[at][size] / rows[at][at] if rows[at][at] else 0.0 for at in range(size)]
