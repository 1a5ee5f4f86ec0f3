"""Fitting the constants of relevance: a logistic regression over hits that are gold and hits that are not.

Half of the questions have an answer in their home; the other half are the same questions asked of another
home. Without the second half, everything would look likely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp

from tacit.evaluation.run import Asked
from tacit.search.calibration import background

_HITS = 10  # of each question
_ROUNDS = 50
_RIDGE = 1.0  # holds constants near 0 that the data says little about


def fit(own: Sequence[Asked], foreign: Sequence[Asked]) -> dict[str, float]:
    cosines = [cosine for one in foreign for cosine in _unrelated(one)]
    mean, spread = background(cosines) if cosines else (0.0, 1.0)
    rows = [row for one in (*own, *foreign) for row in _rows(one, mean, spread)]
    bias, standing, words, meaning, reading = _logistic(rows)
    return {
        "mean": round(mean, 4),
        "spread": round(spread, 4),
        "bias": round(bias, 3),
        "standing": round(standing, 3),
        "words": round(words, 3),
        "meaning": round(meaning, 3),
        "reading": round(reading, 3),
    }


def _unrelated(one: Asked) -> Iterator[float]:
    """Cosines of passages that were found by their words, in a home that has no answer."""
    for hit in one.found.hits:
        if hit.why.cosine is not None and hit.why.vector_rank is None:
            yield hit.why.cosine


_Row = tuple[tuple[float, ...], float]


def _rows(one: Asked, mean: float, spread: float) -> Iterator[_Row]:
    evidence = one.found.trace["evidence"]
    assert isinstance(evidence, dict)
    cosine = evidence["cosine"]
    meaning = 0.0 if cosine is None else (cosine - mean) / spread
    for hit, right in list(zip(one.found.hits, one.right, strict=True))[:_HITS]:
        yield (1.0, hit.why.standing, evidence["words"], meaning, evidence["reading"]), float(right)


def _logistic(rows: Sequence[_Row]) -> list[float]:
    """Newton's method; five numbers need no library."""
    size = len(rows[0][0])
    weights = [0.0] * size
    for _ in range(_ROUNDS):
        slope = [_RIDGE * weight if at else 0.0 for at, weight in enumerate(weights)]
        curve = [[_RIDGE if i == j and i else 1e-9 * (i == j) for j in range(size)] for i in range(size)]
        for features, right in rows:
            odds = sum(weight * value for weight, value in zip(weights, features, strict=True))
            likely = 1 / (1 + exp(-max(-30.0, min(30.0, odds))))
            for i in range(size):
                slope[i] += (likely - right) * features[i]
                for j in range(size):
                    curve[i][j] += likely * (1 - likely) * features[i] * features[j]
        step = _solved(curve, slope)
        weights = [weight - change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-6:
            break
    return weights


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
