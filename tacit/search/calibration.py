"""One relevance from 0 to 1 that means the same whichever embedder runs.

    log odds = bias + words · how much of the best possible word match the best passage has
                    + meaning · how far the best cosine stands above that of unrelated texts
                    + reading · the best that a cross-encoder said, where there is one
                    - fall · how far the hit stands below the first

The first three are the same for all hits of a question and say whether the home holds anything on it at all;
the last makes relevance fall with rank. The constants are fitted by `tacit eval --calibrate` on questions
with and without an answer, one set for each model, and kept in calibrations.json. evaluation/calibrate.py
says what 0.12 and 0.75 mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from pathlib import Path

FILE = Path(__file__).with_name("calibrations.json")
WORDS_ALONE = "none"
ANY = "any"  # for models that nobody fitted
_ENOUGH = 20  # cosines to tell a mean and a spread from


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of one model. `mean` and `spread` are of the cosine between unrelated texts; `trust` is what
    its cosines are worth beside words, 1 for a good transformer."""

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
        """How far below a hit of some relevance one stands that has the lower one."""
        return (_odds(relevance) - _odds(lower)) / max(0.1, self.fall)


def _odds(relevance: float) -> float:
    sane = max(1e-9, min(1 - 1e-9, relevance))
    return log(sane / (1 - sane))


def read(file: Path = FILE) -> dict[str, Calibration]:
    found: dict[str, dict[str, float]] = json.loads(file.read_bytes())
    return {name: Calibration(**values) for name, values in found.items()}


def choose(
    known: Mapping[str, Calibration],
    embedder: str,
    reranker: bool,
    unrelated: Callable[[], Sequence[float]] = list,
) -> Calibration:
    """The constants of this embedder. One that was never fitted gets those of any, with the mean and spread
    of its own cosines between `unrelated` texts of the home."""
    family = embedder.partition("/")[0] or WORDS_ALONE
    suffix = "+rerank" if reranker else ""
    if family + suffix in known:
        return known[family + suffix]
    cosines = unrelated()
    if len(cosines) < _ENOUGH:
        return known[ANY + suffix]
    mean, spread = background(cosines)
    return replace(known[ANY + suffix], mean=mean, spread=spread)


def background(cosines: Sequence[float]) -> tuple[float, float]:
    """Mean and spread of the cosine between texts that have nothing to do with each other."""
    mean = sum(cosines) / len(cosines)
    return mean, max(1e-3, sqrt(sum((one - mean) ** 2 for one in cosines) / len(cosines)))
