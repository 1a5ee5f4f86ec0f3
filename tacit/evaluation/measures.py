"""Recall, reciprocal rank and discounted gain of one ranking, and their means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

DEPTHS = (5, 10, 20)


def of_ranking(ranks: Sequence[int | None]) -> dict[str, float]:
    """`ranks`: for each thing that had to be found where it came first, from 0; None: not found."""
    wanted = len(ranks)
    found = sorted(rank for rank in ranks if rank is not None)
    measures = {f"R@{depth}": sum(rank < depth for rank in found) / wanted for depth in DEPTHS}
    measures["MRR"] = 1 / (1 + found[0]) if found else 0.0
    best = sum(1 / log2(place + 2) for place in range(min(wanted, 10)))
    measures["nDCG@10"] = sum(1 / log2(rank + 2) for rank in found if rank < 10) / best
    return measures


def share_found(wanted: Collection[str], ranking: Iterable[str], depth: int) -> float:
    """Of the things wanted, how many are among the first `depth` different ones."""
    first = list(dict.fromkeys(ranking))[:depth]
    return sum(one in first for one in wanted) / len(wanted)


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        name: sum(values) / len(values)
        for name in names
        if (values := [row[name] for row in rows if name in row])
    }


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
