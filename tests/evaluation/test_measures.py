"""The measures are those that everybody means by these names."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.evaluation.measures import means, measure_ranking, percentile, share_found


def test_all_found_at_the_top_is_perfect() -> None:
    assert measure_ranking([0]) == {"R@5": 1, "R@10": 1, "R@20": 1, "MRR": 1, "nDCG@10": 1}
    assert measure_ranking([1, 0]) == {"R@5": 1, "R@10": 1, "R@20": 1, "MRR": 1, "nDCG@10": 1}


def test_nothing_found_is_nothing() -> None:
    assert set(measure_ranking([None, None]).values()) == {0.0}


def test_a_rank_counts_up_to_its_depth() -> None:
    found = measure_ranking([4, 9, 19, None])
    assert (found["R@5"], found["R@10"], found["R@20"]) == (0.25, 0.5, 0.75)
    assert found["MRR"] == 1 / 5
    best = sum(1 / log2(place + 2) for place in range(4))
    assert found["nDCG@10"] == pytest.approx((1 / log2(6) + 1 / log2(11)) / best)
    assert measure_ranking([5])["R@5"] == 0.0


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=30, unique_by=lambda x: x or -1)
)
def test_measures_are_shares(ranks: list[int | None]) -> None:
    found = measure_ranking(ranks)
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in found.values())
    assert found["R@5"] <= found["R@10"] <= found["R@20"]


def test_sessions_count_once() -> None:
    assert share_found(["a", "b"], ["x", "x", "x", "a", "b"], 2) == 0.5
    assert share_found(["a"], [], 5) == 0.0


def test_a_mean_is_of_the_rows_that_have_it() -> None:
    assert means([{"a": 1.0, "b": 0.0}, {"a": 0.0}]) == {"a": 0.5, "b": 0.0}
    assert means([]) == {}


def test_percentiles() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([1.0], 0.95) == 1.0
    assert percentile([], 0.5) == 0.0
    assert percentile(range(100), 0.95) == 95
