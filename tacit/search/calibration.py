"""Calibrated relevance from 0 to 1, comparable between embedders.

    log odds = bias + words · the best chunk's share of the best possible word match
                    + meaning · how far the best cosine is above that of unrelated texts
                    + reading · the best score of a cross-encoder, if there is one
                    - fall · the distance of the hit from the first

The first three are the same for all hits of a query and say whether the home has an answer at all; the last
makes relevance fall with rank. The constants are fitted by `tacit eval --calibrate` on questions with and
without an answer, one set per model, and stored in calibrations.json. evaluation/calibration.py says what
0.12 and 0.75 mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from pathlib import Path

CALIBRATIONS_FILE = Path(__file__).with_name("calibrations.json")
LEXICAL_ONLY = "none"
GENERAL = "any"  # for models without fitted constants
_MIN_COSINES = 20  # needed for a mean and a spread


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of one model. `mean` and `spread` are those of the cosine between unrelated texts; `trust` is
    the weight of its cosines against words, 1 for a good transformer."""

    mean: float = 0.0
    spread: float = 1.0
    trust: float = 1.0
    bias: float = 0.0
    words: float = 0.0
    meaning: float = 0.0
    reading: float = 0.0
    fall: float = 1.0

    def meaning_of(self, cosine: float | None) -> float:
        return 0.0 if cosine is None else (cosine - self.mean) / self.spread

    def relevance(self, words: float, meaning: float, reading: float, below: float) -> float:
        odds = self.bias + self.words * words + self.meaning * meaning + self.reading * reading
        return 1 / (1 + exp(-max(-30.0, min(30.0, odds - self.fall * below))))

    def apart(self, relevance: float, lower: float) -> float:
        """The distance in rank score between a hit of this relevance and one of the lower relevance."""
        return (_log_odds(relevance) - _log_odds(lower)) / max(0.1, self.fall)


def _log_odds(relevance: float) -> float:
    clamped = max(1e-9, min(1 - 1e-9, relevance))
    return log(clamped / (1 - clamped))


def load_calibrations(file: Path = CALIBRATIONS_FILE) -> dict[str, Calibration]:
    constants: dict[str, dict[str, float]] = json.loads(file.read_bytes())
    return {name: Calibration(**values) for name, values in constants.items()}


def choose_calibration(
    known: Mapping[str, Calibration],
    embedder: str,
    reranker: bool,
    unrelated: Callable[[], Sequence[float]] = list,
) -> Calibration:
    """The constants of this embedder. An embedder without fitted constants gets the general ones, with the
    mean and spread of its own cosines between `unrelated` texts of the home."""
    family = embedder.partition("/")[0] or LEXICAL_ONLY
    suffix = "+rerank" if reranker else ""
    if family + suffix in known:
        return known[family + suffix]
    cosines = unrelated()
    if len(cosines) < _MIN_COSINES:
        return known[GENERAL + suffix]
    mean, spread = mean_and_spread(cosines)
    return replace(known[GENERAL + suffix], mean=mean, spread=spread)


def mean_and_spread(cosines: Sequence[float]) -> tuple[float, float]:
    """Mean and spread of the cosine between texts that have nothing to do with each other."""
    mean = sum(cosines) / len(cosines)
    return mean, max(1e-3, sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines)))
