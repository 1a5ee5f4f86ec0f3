"""A snippet shows the part of a chunk that matched, and nothing that is not there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.scoring import MAX_CHARS, make_snippet
from tacit.search.sqlite.index import SqliteIndex, open_memory_index
from tests.hostile import hostile


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
