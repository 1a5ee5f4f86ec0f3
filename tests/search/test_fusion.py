"""Two rankings become one, and the parts of a score add up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.model import Scored, Why
from tacit.search.scoring import Candidates, blend, fuse, order_by_score, top_with_ties

numbers = st.floats(-1e6, 1e6, allow_nan=False)


def candidates(
    lexical: Sequence[tuple[int, float]] = (),
    nearest: Sequence[tuple[int, float]] = (),
    beyond: Sequence[tuple[int, float]] = (),
) -> Candidates:
    """`beyond`: cosines of chunks that are not among the nearest."""
    return Candidates(
        [Scored(*one) for one in lexical],
        [Scored(*one) for one in nearest],
        dict([*nearest, *beyond]),
        ideal=10.0,
    )


def test_scores_are_standard_deviations_above_the_mean() -> None:
    whys = fuse(candidates([(1, 5.0), (2, 3.0), (3, 1.0)]), 0.4, 0.6)
    assert whys[1].score == pytest.approx(1.2247, abs=1e-4)
    assert whys[2].score == pytest.approx(0.0)
    assert whys[3].score == pytest.approx(-1.2247, abs=1e-4)


def test_the_scale_of_a_side_does_not_matter() -> None:
    small = fuse(candidates([(1, 0.2), (2, 0.1)], [(1, 0.01), (2, 0.02)]), 0.4, 0.6)
    large = fuse(candidates([(1, 200.0), (2, 100.0)], [(1, 0.5), (2, 0.9)]), 0.4, 0.6)
    assert {one: why.score for one, why in small.items()} == pytest.approx(
        {one: why.score for one, why in large.items()}
    )


def test_words_that_are_not_found_count_as_nothing() -> None:
    whys = fuse(candidates([(1, 4.0)], [(2, 0.9)], [(1, 0.9)]), 0.5, 0.5)
    assert whys[2].bm25 is None
    assert whys[2].lexical == pytest.approx(-0.5)  # 0 beside 4: one deviation below the mean
    assert whys[1].lexical == pytest.approx(0.5)
    assert whys[1].vector == whys[2].vector == 0.0


def test_a_chunk_found_by_words_has_its_own_cosine() -> None:
    whys = fuse(candidates([(1, 4.0)], [(2, 0.9)], [(1, 0.1)]), 0.4, 0.6)
    assert (whys[1].cosine, whys[1].vector_rank) == (0.1, None)
    assert whys[1].vector == pytest.approx(-0.6)


def test_a_chunk_without_a_vector_is_in_the_middle() -> None:
    whys = fuse(candidates([(1, 4.0), (3, 2.0)], [(2, 0.9)], [(3, 0.1)]), 0.4, 0.6)
    assert (whys[1].cosine, whys[1].vector) == (None, 0.0)


def test_without_vectors_words_are_all_there_is() -> None:
    whys = fuse(candidates([(1, 4.0), (2, 2.0)]), 0.1, 0.9)
    assert whys[1].score == whys[1].lexical == pytest.approx(1.0)


def test_without_words_vectors_decide() -> None:
    whys = fuse(candidates((), [(1, 0.9), (2, 0.2)]), 0.4, 0.6)
    assert whys[1].score == whys[1].vector == pytest.approx(0.6)
    assert whys[1].lexical == 0.0


@pytest.mark.parametrize(("words", "meaning", "first"), [(1, 0, 1), (0, 1, 2), (3, 1, 1), (1, 3, 2)])
def test_weights_decide_between_the_sides(words: float, meaning: float, first: int) -> None:
    found = candidates([(1, 9.0), (2, 1.0)], [(2, 0.9), (1, 0.1)])
    whys = fuse(found, words, meaning)
    assert max(whys, key=lambda one: whys[one].score) == first


def test_no_weight_at_all_means_words() -> None:
    whys = fuse(candidates([(1, 9.0), (2, 1.0)], [(2, 0.9), (1, 0.1)]), 0, 0)
    assert whys[1].score == pytest.approx(1.0)


def test_ranks_count_from_one_on_each_side() -> None:
    whys = fuse(candidates([(7, 9.0), (8, 1.0)], [(8, 0.9)], [(7, 0.3)]), 0.4, 0.6)
    assert (whys[7].lexical_rank, whys[7].vector_rank) == (1, None)
    assert (whys[8].lexical_rank, whys[8].vector_rank) == (2, 1)


def test_nothing_found_is_nothing() -> None:
    assert fuse(candidates(), 0.4, 0.6) == {}


@given(
    st.dictionaries(st.integers(0, 30), numbers),
    st.dictionaries(st.integers(0, 30), numbers),
    st.floats(0, 1000),
    st.floats(0, 1000),
)
def test_the_parts_of_a_score_add_up(
    lexical: dict[int, float], nearest: dict[int, float], words: float, meaning: float
) -> None:
    whys = fuse(candidates(list(lexical.items()), list(nearest.items())), words, meaning)
    assert whys.keys() == lexical.keys() | nearest.keys()
    for why in whys.values():
        assert why.score == pytest.approx(why.lexical + why.vector)


# After a second reading


def whys_of(scores: dict[int, float]) -> dict[int, Why]:
    return {one: Why(score=score, standing=score) for one, score in scores.items()}


def test_a_second_reading_has_its_share() -> None:
    whys = whys_of({1: 2.0, 2: 0.0})
    assert blend(whys, {1: -5.0, 2: 5.0}, 0.0) == pytest.approx({1: 1.0, 2: -1.0})
    assert blend(whys, {1: -5.0, 2: 5.0}, 1.0) == pytest.approx({1: -1.0, 2: 1.0})
    assert blend(whys, {1: -5.0, 2: 5.0}, 0.75) == pytest.approx({1: -0.5, 2: 0.5})


def test_only_what_was_read_again_is_blended() -> None:
    assert blend(whys_of({1: 2.0, 2: 0.0, 3: 9.0}), {1: 1.0, 2: 1.0}, 0.5).keys() == {1, 2}


# The order


def test_equal_scores_come_in_the_order_of_the_files() -> None:
    places = {1: ("b.md", 1), 2: ("a.md", 9), 3: ("a.md", 2)}
    assert order_by_score({1: 1.0, 2: 1.0, 3: 1.0}, places, 10) == [3, 2, 1]


def test_what_differs_by_less_than_arithmetic_does_is_equal() -> None:
    places = {1: ("b.md", 1), 2: ("a.md", 1)}
    assert order_by_score({1: 1.0 + 1e-13, 2: 1.0}, places, 10) == [2, 1]


@pytest.mark.parametrize(("limit", "count"), [(-3, 0), (0, 0), (1, 1), (2, 2), (99, 3)])
def test_there_are_as_many_as_were_wanted(limit: int, count: int) -> None:
    scores = {1: 3.0, 2: 2.0, 3: 1.0}
    assert order_by_score(scores, {}, limit) == [1, 2, 3][:count]
    assert top_with_ties(scores, limit) == [1, 2, 3][:count]


def test_equals_at_the_cut_are_all_kept_for_the_files_to_decide() -> None:
    scores = {1: 3.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 0.5}
    assert sorted(top_with_ties(scores, 2)) == [1, 2, 3, 4]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_the_reasons_of_the_best_are_the_same_without_the_others(count: int) -> None:
    found = candidates([(1, 9.0), (2, 4.0), (3, 1.0)], [(4, 0.9), (2, 0.5)], [(1, 0.1), (3, 0.2)])
    whys = fuse(found, 0.4, 0.6)
    kept = top_with_ties({one: why.score for one, why in whys.items()}, count)
    assert fuse(found, 0.4, 0.6, count) == {one: whys[one] for one in kept}
    assert len(kept) == min(count, 4)


def test_nothing_but_the_score_decides_the_order_at_first() -> None:
    whys = fuse(candidates([(1, 9.0), (2, 4.0)]), 0.4, 0.6)
    assert all(why.standing == why.score for why in whys.values())
