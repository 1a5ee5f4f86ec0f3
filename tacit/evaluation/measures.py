"""Recall, reciprocal rank and discounted gain of a ranking, and their means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log2

RECALL_DEPTHS = (5, 10, 20)


def measure_ranking(ranks: Sequence[int | None]) -> dict[str, float]:
    """`ranks`: for each expected item its first rank, from 0; None: not found."""
    total = len(ranks)
    found_ranks = sorted(rank for rank in ranks if rank is not None)
    measures = {f"R@{depth}": sum(rank < depth for rank in found_ranks) / total for depth in RECALL_DEPTHS}
    measures["MRR"] = 1 / (1 + found_ranks[0]) if found_ranks else 0.0
    best = sum(1 / log2(place + 2) for place in range(min(total, 10)))
    measures["nDCG@10"] = sum(1 / log2(rank + 2) for rank in found_ranks if rank < 10) / best
    return measures


def share_found(wanted: Collection[str], ranking: Iterable[str], depth: int) -> float:
    """The share of the expected items that are among the first `depth` distinct ones."""
    top = list(dict.fromkeys(ranking))[:depth]
    return sum(item in top for item in wanted) / len(wanted)


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
