"""One relevance from 0 to 1 that means the same whichever embedder runs.

    log odds = bias + standing · how far the hit stands above the other candidates
                    + words · how much of the best possible word match the best hit has
                    + meaning · how far the best cosine stands above that of unrelated texts
                    + reading · what a cross-encoder says of the best hit, where there is one

The first part differs from hit to hit, so relevance falls with rank; the others are the same for all hits
of a question and say whether the home holds anything on it at all. The constants are fitted by `tacit eval
--calibrate` on questions with and without an answer, one set for each model, and kept in calibrations.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from pathlib import Path

FILE = Path(__file__).with_name("calibrations.json")
WORDS_ALONE = "none"
ANY = "any"  # for models that nobody fitted


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of one model. `mean` and `spread` are of the cosine between unrelated texts; `trust` is what
    its cosines are worth beside words, 1 for a good transformer."""

    mean: float = 0.0
    spread: float = 1.0
    trust: float = 1.0
    bias: float = 0.0
    standing: float = 1.0
    words: float = 0.0
    meaning: float = 0.0
    reading: float = 0.0

    def meaning_of(self, cosine: float | None) -> float:
        return 0.0 if cosine is None else (cosine - self.mean) / self.spread

    def relevance(self, standing: float, words: float, meaning: float, reading: float = 0.0) -> float:
        odds = (
            self.bias
            + self.standing * standing
            + self.words * words
            + self.meaning * meaning
            + self.reading * reading
        )
        return 1 / (1 + exp(-max(-30.0, min(30.0, odds))))


def read(file: Path = FILE) -> dict[str, Calibration]:
    found: dict[str, dict[str, float]] = json.loads(file.read_bytes())
    return {name: Calibration(**values) for name, values in found.items()}


def choose(known: Mapping[str, Calibration], embedder: str, reranker: str = "") -> Calibration:
    """The constants of this pair of models; of any model when they were never fitted."""
    family = embedder.partition("/")[0] or WORDS_ALONE
    suffix = "+rerank" if reranker else ""
    return known.get(family + suffix) or known[ANY + suffix]


def background(cosines: Sequence[float]) -> tuple[float, float]:
    """Mean and spread of the cosine between texts that have nothing to do with each other."""
    mean = sum(cosines) / len(cosines)
    return mean, max(1e-3, sqrt(sum((one - mean) ** 2 for one in cosines) / len(cosines)))
