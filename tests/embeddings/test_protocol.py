from __future__ import annotations

from array import array
from math import inf, nan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.embeddings.protocol import EmbedderError, replace_surrogates, scale_to_bytes

NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=True)


def numbers(vector: bytes) -> list[int]:
    return array("b", vector).tolist()


@given(st.lists(NUMBERS, min_size=1, max_size=40))
def test_the_largest_component_is_127_and_none_is_larger(values: list[float]) -> None:
    vector = scale_to_bytes(values)
    if any(values):
        assert vector is not None
        assert len(vector) == len(values)
        assert max(map(abs, numbers(vector))) == 127


def test_the_direction_is_kept() -> None:
    values = [0.3, -1.0, 0.02, 0.7]
    vector = numbers(scale_to_bytes(values) or b"")
    product = sum(a * b for a, b in zip(values, vector, strict=True))
    assert product / sqrt(sum(a * a for a in values) * sum(b * b for b in vector)) > 0.9999


def test_twice_as_long_is_the_same_vector() -> None:
    assert scale_to_bytes([1.0, 2.0, -3.0]) == scale_to_bytes([2.0, 4.0, -6.0])


def test_what_points_nowhere_has_no_vector() -> None:
    assert scale_to_bytes([0.0, -0.0]) is None
    assert scale_to_bytes([]) is None


@pytest.mark.parametrize("odd", [nan, inf, -inf])
def test_numbers_that_are_not_finite_are_refused(odd: float) -> None:
    with pytest.raises(EmbedderError, match="not finite"):
        scale_to_bytes([1.0, odd])


def test_half_characters_are_replaced_and_nothing_else() -> None:
    assert replace_surrogates("a\ud83db\udc00 🔥\0") == "a\ufffdb\ufffd 🔥\0"
