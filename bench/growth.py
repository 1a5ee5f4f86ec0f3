"""How a turn grows from 1,000 to 100,000 notes, against its SQL statements.

It does not run by default: making the larger home takes minutes once, and indexing it again takes minutes
whenever the indexing code changed.
"""

from __future__ import annotations

from pathlib import Path

from bench import turn
from bench.pairs import Measured

_SMALL, _LARGE = 1_000, 100_000
_SAMPLES = 60


def measure(folder: Path) -> list[Measured]:
    del folder
    small, large = turn.warm(_SMALL, _SAMPLES), turn.warm(_LARGE, _SAMPLES)
    return [small, large, turn.growth(small, large, f"turn: growth from {_SMALL:,} to {_LARGE:,} notes")]
