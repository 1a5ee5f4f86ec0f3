"""Two rankings become one, score parts add up, relevance is comparable, and snippets show the match."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.model import Scored, Why
from tacit.search.scoring import (
    CALIBRATIONS_FILE,
    MAX_CHARS,
    Calibration,
    Candidates,
    blend,
    choose_calibration,
    fuse,
    load_calibrations,
    make_snippet,
    mean_and_spread,
    order_by_score,
    top_with_ties,
)
from tacit.search.sqlite.index import SqliteIndex, open_memory_index
from tests.hostile import hostile

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


@pytest.fixture(scope="module")
def index() -> SqliteIndex:
    return open_memory_index()


def shown(text: str, *terms: str, width: int = MAX_CHARS) -> str:
    return make_snippet(text, open_memory_index().words.matches(terms, text), width)


def filler(words: int) -> str:
    return "lorem ipsum dolor " * (words // 3)


def test_a_short_text_is_shown_whole_with_its_matches_marked() -> None:
    assert (
        shown("The kiln is hot. Kilns cool slowly.", "kiln") == "The **kiln** is hot. **Kilns** cool slowly."
    )


def test_the_original_case_stays() -> None:
    assert shown("Reif 3B and REIF 3b", "reif") == "**Reif** 3B and **REIF** 3b"


def test_without_a_match_it_is_the_beginning() -> None:
    text = "The first words. " + filler(300)
    assert shown(text, "absent").startswith("The first words. lorem")
    assert shown(text, "absent").endswith(" …")


def test_the_window_is_where_most_different_terms_are() -> None:
    text = f"kiln kiln kiln {filler(200)} the kiln needs glaze and cobalt {filler(200)} cobalt"
    found = shown(text, "kiln", "glaze", "cobalt")
    assert "the **kiln** needs **glaze** and **cobalt**" in found
    assert found.startswith("… ")
    assert found.endswith(" …")


def test_of_equal_windows_the_first_is_shown() -> None:
    text = f"{filler(60)} one kiln {filler(200)} two kiln {filler(60)}"
    assert "one **kiln**" in shown(text, "kiln")


def test_cut_ends_are_ends_of_words() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    found = shown(text, "word150")
    words = found.strip("… ").replace("**", "").split()
    assert set(words) <= set(text.split())
    assert "**word150**" in found


def test_a_text_without_spaces_is_cut_anywhere() -> None:
    text = "あ" * 400 + "東京" + "い" * 400
    found = shown(text, "東京")
    assert "**東京**" in found
    assert len(found) <= MAX_CHARS + 10


def test_bold_words_of_the_text_are_not_taken_for_matches() -> None:
    """`****Kiln****` would be bold for nobody, and whoever counts the marks would be off by one."""
    assert shown("**Kiln** rules", "kiln") == "**Kiln** rules"
    assert shown("**Kiln rules** are old", "kiln") == "**Kiln** rules are old"
    assert shown("**old** kiln", "kiln") == "old **kiln**"


@pytest.mark.parametrize("text", ["2 ** 3 kiln", "src/**/a.py kiln", "f(**named) kiln"])
def test_stars_that_make_nothing_bold_stay(text: str) -> None:
    assert shown(text, "kiln") == text.replace("kiln", "**kiln**")


@given(st.text(st.characters(), max_size=900), st.lists(st.sampled_from(["a", "der", "東京", "é", "x"])))
def test_what_is_marked_is_what_matched(text: str, terms: list[str]) -> None:
    index = open_memory_index()
    matches = index.words.matches(terms, text)
    found = make_snippet(text, matches)
    words = {text[first:last] for first, last, _ in matches}
    if "**" not in text:
        assert set(found.split("**")[1::2]) <= words


@st.composite
def matched(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    """Any text, with places in it that do not overlap."""
    text = "".join(draw(st.lists(st.one_of(hostile, st.just("ab " * 60)), max_size=8)))
    ends = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pairs = zip(ends[::2], ends[1::2], strict=False)
    return text, [(first, last, draw(st.sampled_from("abc"))) for first, last in pairs]


@given(matched(), st.integers(40, 400))
def test_without_its_marks_it_is_a_piece_of_the_text(
    given: tuple[str, list[tuple[int, int, str]]], width: int
) -> None:
    text, matches = given
    found = make_snippet(text, matches, width)
    bare = found.replace("**", "").strip("… ").strip()
    assert bare in text.replace("**", "")
    assert len(bare) <= width


@given(matched(), st.integers(40, 400))
def test_marks_come_in_pairs_and_hold_whole_matches(
    given: tuple[str, list[tuple[int, int, str]]], width: int
) -> None:
    text, matches = given
    if "*" in text:
        return
    parts = make_snippet(text, matches, width).split("**")
    assert len(parts) % 2 == 1
    assert set(parts[1::2]) <= {text[first:last] for first, last, _ in matches}


@given(st.text(st.characters(), max_size=2000))
def test_the_densest_place_is_always_in_it(text: str) -> None:
    text = f"{text} needle {text}".replace("*", " ")
    matches = open_memory_index().words.matches(["needle"], text)
    found = make_snippet(text, matches)
    assert not matches or "**needle**" in found.casefold()
