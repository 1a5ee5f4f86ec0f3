"""Sentences end where a reader would end them."""

from __future__ import annotations

import pytest

from tacit.text.sentences import (
    MAX_SENTENCE_CHARS,
    is_informative,
    mask_quotes,
    shorten_sentence,
    split_sentences,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Drive slowly. It rains.", ["Drive slowly.", "It rains."]),
        ("We use e.g. oak. It lasts.", ["We use e.g. oak.", "It lasts."]),
        ("Am 22. Oktober kommt er. Um acht.", ["Am 22. Oktober kommt er.", "Um acht."]),
        ("It was 125 °C at 22:32. But nothing came.", ["It was 125 °C at 22:32.", "But nothing came."]),
        ("Sie wohnt in Nummer 17. Sie mag Tee.", ["Sie wohnt in Nummer 17.", "Sie mag Tee."]),
        ("It boils at 78 °C. It burns.", ["It boils at 78 °C.", "It burns."]),
        ("It holds 1222. Then it cools.", ["It holds 1222.", "Then it cools."]),
        ("we are home. mama is fine. it rains", ["we are home.", "mama is fine.", "it rains"]),
        ("Open report.pdf now. Then close it.", ["Open report.pdf now.", "Then close it."]),
        ("- one thing\n- another thing", ["one thing", "another thing"]),
        ("> quoted\n\nsaid", ["said"]),
        ("# title\n\n```\ncode.\n```\nsaid", ["said"]),
        ("| a | b |\n\nsaid", ["said"]),
    ],
)
def test_a_text_is_cut_into_its_sentences(text: str, expected: list[str]) -> None:
    assert list(split_sentences(text)) == expected


def test_what_is_quoted_or_code_is_masked_in_its_length() -> None:
    assert mask_quotes('he said "no way" and `rm`') == 'he said "······" and `··`'


def test_what_ends_with_a_colon_or_is_short_says_too_little() -> None:
    assert not is_informative("Here it comes:")
    assert not is_informative("Oh no")
    assert is_informative("Close the door.")
    assert is_informative("窓を閉める。")


def test_what_is_too_long_is_cut_at_a_word() -> None:
    text = shorten_sentence("word " * 100)
    assert len(text) <= MAX_SENTENCE_CHARS
    assert text.endswith("word …")
