"""Any text can stand in our files and comes back as it was."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.markdown import escape
from tests.hostile import SHAPES, characters, hostile

_LOOKS_LIKE_STRUCTURE = re.compile(
    r"^(## (\d{4}-\d\d-\d\d )?\d\d:\d\d |> \[(tool|knowledge|attachment):|<!-- (\d+ |torn))"
)


@given(st.text(characters))
@example("&#x0;&amp;#x0;&amp;amp;#x41;")
@example("&#x110000;")
@example("&&#x&#x41")
@example("a\r\nb\rc\r")
def test_every_character_comes_back(text: str) -> None:
    assert escape.restore_characters(escape.characters(text)) == text


@given(hostile)
@example("\\\\## 18:45 — agent\n\\> [tool:x]\n<!-- torn -->")
def test_a_block_comes_back(text: str) -> None:
    assert escape.restore_block(escape.block(text)) == text


@given(hostile)
def test_no_line_of_a_block_looks_like_structure(text: str) -> None:
    for line in escape.block(text).split("\n"):
        assert not _LOOKS_LIKE_STRUCTURE.match(line), line


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if _LOOKS_LIKE_STRUCTURE.match(shape)])
def test_a_line_that_looks_like_structure_gets_one_backslash_and_stays_readable(shape: str) -> None:
    assert escape.block(f"before\n{shape}") == f"before\n\\{shape}"


def test_a_backslash_that_people_wrote_is_not_taken_for_ours() -> None:
    assert escape.block("\\## 18:45 — agent") == "\\\\## 18:45 — agent"
    assert escape.block("\\# 18:45") == "\\# 18:45"


@given(hostile)
def test_what_is_stored_is_utf8_without_controls(text: str) -> None:
    stored = escape.block(text)
    stored.encode()  # raises for a lone surrogate
    unsafe = [ch for ch in stored if unicodedata.category(ch) == "Cc" and ch not in "\t\n\r"]
    assert unsafe == []
    assert not re.search("\r(?!\n)|[\u2028\u2029\ufffe\uffff]", stored)


@given(hostile, st.sampled_from(["", "]", "→", "—", "()"]))
def test_inline_text_is_one_line_without_its_delimiters(text: str, forbidden: str) -> None:
    line = escape.inline(text, forbidden)
    assert not set(line) & {"\n", "\r", *forbidden}
    assert escape.restore_characters(line) == text


@pytest.mark.parametrize(
    "text",
    [
        "plain text",
        "Grüße, 日本語 🔥",
        "# heading",
        "```\ncode\n```",
        "a & b &amp; c &#65;",
        "tab\there",
        "x\r\ny",
    ],
)
def test_ordinary_text_is_stored_as_it_is(text: str) -> None:
    assert escape.block(text) == text


def test_a_reference_that_names_no_character_is_left_alone() -> None:
    assert escape.restore_characters("&#x110000; &#xFFFFFF;") == "&#x110000; &#xFFFFFF;"


@pytest.mark.parametrize("piece", ["\\", "&amp;", "&", "&#x", "<!-- ", "> [tool:", "1", "\r", "\n\\"])
def test_a_megabyte_of_almost_structure_comes_back(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert escape.restore_block(escape.block(text)) == text
