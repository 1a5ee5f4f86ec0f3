"""Measures two things alternately, so that a busy moment of the machine affects both."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

# Does the work once and returns its seconds, without setup and cleanup.
Timed = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds are medians; `ratio` is the median of the pairs' ratios, half of which are in `middle`."""

    what: str
    against: str
    floor: float
    ours: float
    ratio: float
    middle: tuple[float, float]
    samples: int
    aim: float | None = None
    remark: str = ""


def paired(
    what: str,
    against: str,
    floor: Timed,
    ours: Timed,
    *,
    samples: int,
    aim: float | None = None,
    warm: int = 2,
) -> Measured:
    """floor, ours, floor, ours …; the first `warm` pairs are dropped."""
    print(f"{what}: {samples} pairs", file=sys.stderr)
    pairs = [(floor(), ours()) for _ in range(warm + samples)][warm:]
    ratios = [ours_took / floor_took for floor_took, ours_took in pairs]
    low, _, high = quantiles(ratios, n=4)
    return Measured(
        what=what,
        against=against,
        floor=median(took for took, _ in pairs),
        ours=median(took for _, took in pairs),
        ratio=median(ratios),
        middle=(low, high),
        samples=samples,
        aim=aim,
    )


def timed(work: Callable[[], object]) -> Timed:
    def once() -> float:
        began = perf_counter()
        work()
        return perf_counter() - began

    return once
