"""A shortened text fits, ends at a section where it can, and says what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.context.shorten import excerpt_around, shorten, shorten_middle
from tacit.text.tokens import count

SOUL = "# Soul\n\nI am Ton, an agent in a pottery.\n\n" + "".join(
    f"## Part {number}\n\n" + f"Sentence {number} about clay, fire and glaze. " * 12 + "\n\n"
    for number in range(1, 6)
)


def test_what_fits_is_left_as_it_is() -> None:
    assert shorten(SOUL, count(SOUL), count) == (SOUL, "")
    assert shorten_middle(SOUL, count(SOUL), count) == (SOUL, "")


def test_it_is_cut_at_the_end_of_a_section_and_names_the_missing_ones() -> None:
    short = shorten(SOUL, count(SOUL) // 2, count)
    assert short.text.startswith("# Soul\n\nI am Ton")
    body, _, mark = short.text.rpartition("\n\n")
    assert body.rstrip().endswith("clay, fire and glaze.")
    assert mark == "[… 3 sections left out: Part 3, Part 4, Part 5]"
    assert short.left_out == "3 sections left out: Part 3, Part 4, Part 5"


def test_one_long_section_is_cut_between_paragraphs() -> None:
    text = "# One\n\n" + "\n\n".join(f"Paragraph {number} says a few words." for number in range(40))
    short = shorten(text, 60, count)
    assert "Paragraph 0 says a few words.\n\n" in short.text
    assert short.text.endswith("[… the rest left out]")


def test_one_long_word_is_cut_anywhere_and_says_so() -> None:
    short = shorten("x" * 100_000, 50, count)
    assert short.text.endswith("[… the rest left out]")
    assert count(short.text) <= 50


def test_a_message_keeps_its_beginning_and_its_end() -> None:
    log = "\n".join(f"line {number}: something happened" for number in range(3000))
    short = shorten_middle(f"Look at this log:\n{log}\nWhy did it stop?", 300, count)
    assert short.text.startswith("Look at this log:")
    assert short.text.endswith("Why did it stop?")
    assert "the middle is left out" in short.text
    assert count(short.text) <= 300


@pytest.mark.parametrize("room", [0, 1, 5, 11])
def test_where_nothing_can_be_said_the_text_is_empty(room: int) -> None:
    assert shorten(SOUL, room, count).text == ""
    assert shorten(SOUL, room, count).left_out


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["# T", "## Ü 見出し", "word " * 30, "長い文章です。" * 9, "```\ncode\n```", "", "🙂" * 7]
        )
    ),
    st.integers(0, 300),
)
def test_neither_form_is_ever_longer_than_its_room(lines: list[str], room: int) -> None:
    text = "\n".join(lines)
    assert count(shorten(text, room, count).text) <= room
    assert count(shorten_middle(text, room, count).text) <= room


# A passage around what was asked


def test_a_passage_that_fits_is_left_as_it_is() -> None:
    assert excerpt_around("# Kiln\n\nIt is hot.", 20, ["kiln"]) == ("# Kiln\n\nIt is hot.", "")


def test_a_line_that_is_longer_than_the_room_is_cut_between_sentences() -> None:
    line = (
        "The kiln is old. " + "Nothing is said here. " * 40 + "The fuse is number seven. " + "No more. " * 40
    )
    shown = excerpt_around(f"# Kiln\n\n{line}", 300, ["fuse", "seven"])
    assert shown.text.startswith("[…] Nothing is said here.")
    assert "The fuse is number seven." in shown.text
    assert shown.text.endswith(" […]")
    assert (
        shown.left_out
        == f"only {len(shown.text) - len('[…] ') - len(' […]')} of {len(line) + 8:,} characters"
    )


def test_a_sentence_that_is_longer_than_the_room_is_cut_between_words() -> None:
    words = " ".join(f"word{number}" for number in range(400))
    shown = excerpt_around(words, 200, ["word250"])
    assert "word250" in shown.text
    assert all(one in words.split() for one in shown.text.replace("[…]", "").split())


def test_what_stands_in_few_places_counts_more_than_what_stands_in_many() -> None:
    text = "\n".join([*["the kiln and the kiln"] * 20, "the spare element", *["the kiln"] * 20])
    assert "spare" in excerpt_around(text, 120, ["kiln", "spare"]).text


def test_a_heading_alone_is_no_answer() -> None:
    shown = excerpt_around("# Kiln\n\n" + "x" * 500, 120, ["kiln"])
    assert "xxx" in shown.text
    assert excerpt_around("# Kiln\n\n" * 90, 60, ["kiln"]).text == ""


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["# T", "a b c. ", "長い文章です。" * 9, "\n", "\n\n", "| a |", "🙂" * 70, "x" * 90])
    ),
    st.integers(0, 300),
)
def test_a_passage_is_never_longer_than_its_characters(parts: list[str], characters: int) -> None:
    text = "".join(parts)
    shown = excerpt_around(text, characters, ["a", "文"])
    assert len(shown.text) <= characters
    assert shown.text == text or shown.left_out
