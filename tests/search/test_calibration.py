"""Relevance is a number from 0 to 1 that falls with rank, whichever model runs."""

from __future__ import annotations

import json
from dataclasses import fields
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.scoring import (
    CALIBRATIONS_FILE,
    Calibration,
    choose_calibration,
    load_calibrations,
    mean_and_spread,
)

anything = st.floats(-1e9, 1e9, allow_nan=False)
FIELDS = {field.name for field in fields(Calibration)}
NEEDED = {"bias", "fall"}
KNOWN = {
    "none": Calibration(bias=1),
    "any": Calibration(bias=2),
    "wordllama": Calibration(bias=3),
    "none+rerank": Calibration(bias=4),
    "any+rerank": Calibration(bias=5),
}


@given(anything, anything, anything, anything)
def test_relevance_is_never_below_0_or_above_1(
    words: float, meaning: float, reading: float, below: float
) -> None:
    for one in load_calibrations().values():
        assert 0.0 <= one.relevance(words, meaning, reading, below) <= 1.0


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=20))
def test_relevance_falls_with_rank(standings: list[float]) -> None:
    standings.sort(reverse=True)
    for one in load_calibrations().values():
        scores = [one.relevance(0.5, 1.0, 0.5, standings[0] - standing) for standing in standings]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", sorted(load_calibrations()))
def test_better_evidence_never_makes_relevance_less(name: str) -> None:
    one = load_calibrations()[name]
    assert one.relevance(0.9, 1, 0, 0) >= one.relevance(0.1, 1, 0, 0)
    assert one.relevance(0.5, 3, 0, 0) >= one.relevance(0.5, 0, 0, 0)
    assert one.relevance(0.5, 1, 3, 0) >= one.relevance(0.5, 1, 0, 0)


def test_meaning_is_measured_against_unrelated_texts() -> None:
    one = Calibration(mean=0.2, spread=0.1)
    assert one.meaning_of(0.4) == pytest.approx(2.0)
    assert one.meaning_of(None) == 0.0


@pytest.mark.parametrize(
    ("embedder", "reranker", "bias"),
    [
        ("", False, 1),
        ("wordllama/218196a0/256/p1", False, 3),
        ("wordllama", False, 3),
        ("http:nomic/http://localhost:11434/v1/768/p1", False, 2),
        ("", True, 4),
        ("wordllama/218196a0/256/p1", True, 5),
        ("e5-small/1/384", True, 5),
    ],
)
def test_the_constants_are_those_of_the_models(embedder: str, reranker: bool, bias: float) -> None:
    assert choose_calibration(KNOWN, embedder, reranker).bias == bias


def test_a_model_that_nobody_fitted_is_measured_in_the_home() -> None:
    found = choose_calibration(KNOWN, "new/1", False, lambda: [0.6, 0.8] * 500)
    assert found.bias == 2
    assert found.mean == pytest.approx(0.7)
    assert found.spread == pytest.approx(0.1)
    assert choose_calibration(KNOWN, "new/1", False, lambda: [0.6]) == KNOWN["any"]


def test_a_model_that_was_fitted_is_not_measured_again() -> None:
    assert choose_calibration(KNOWN, "wordllama/1", False, lambda: [0.6, 0.8] * 500) == KNOWN["wordllama"]


def test_every_pair_of_models_has_constants() -> None:
    for embedder in ("", "wordllama/x", "somebody's own/1"):
        for reranker in (False, True):
            choose_calibration(load_calibrations(), embedder, reranker)


@pytest.mark.parametrize("name", sorted(json.loads(CALIBRATIONS_FILE.read_bytes())))
def test_every_entry_of_the_file_is_complete(name: str) -> None:
    """A constant that is left out would silently be that of nobody."""
    entry = json.loads(CALIBRATIONS_FILE.read_bytes())[name]
    by_words = name.partition("+")[0] == "none"
    assert entry.keys() >= NEEDED | (set() if by_words else {"mean", "spread", "trust"})
    assert entry.keys() <= FIELDS
    assert all(type(value) in (int, float) and isfinite(value) for value in entry.values())
    assert entry.get("spread", 1.0) > 0
    assert entry["fall"] > 0
    assert 0 < entry.get("trust", 1.0) <= 2


def test_the_background_of_equal_cosines_has_some_spread() -> None:
    assert mean_and_spread([0.5, 0.5]) == (0.5, 0.001)
    assert mean_and_spread([0.1, 0.3]) == pytest.approx((0.2, 0.1))
