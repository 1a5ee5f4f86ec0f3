from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.markdown.chunker import TextChunk, split_chunks
from tacit.markdown.notes import split


def texts(text: str, limit: int = 1200) -> list[str]:
    return [chunk.text for chunk in split_chunks(text, limit)]


def dense(text: str) -> str:
    return "".join(text.split())


def test_each_heading_starts_a_chunk() -> None:
    assert texts("intro\n\n# A\n\none\n\n## B\ntwo\n") == ["intro", "# A\n\none", "## B\ntwo"]


def test_a_chunk_knows_the_headings_above_it() -> None:
    found = split_chunks("x\n# A\n## B\n#### C\n## D\n# E\n")
    assert [chunk.section for chunk in found] == [
        (),
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("A", "D"),
        ("E",),
    ]


def test_a_chunk_knows_its_lines_in_the_file() -> None:
    found = split_chunks("---\ntype: topic\n---\n\n# A\none\n\ntwo\n\n# B\r\nthree\r\n")
    assert [(chunk.start, chunk.end) for chunk in found] == [(5, 8), (10, 11)]


def test_frontmatter_is_not_chunked() -> None:
    assert texts("\ufeff---\nsecret: 1\n---\nbody\n") == ["body"]
    assert texts("---\nonly: head\n---") == []


def test_a_byte_order_mark_hides_no_heading() -> None:
    assert split_chunks("\ufeff# A\nx")[0].section == ("A",)


def test_paragraphs_are_packed_together_up_to_the_limit() -> None:
    assert texts("aaaa\n\nbbbb\n\ncccc\n", limit=10) == ["aaaa\n\nbbbb", "cccc"]


def test_marks_in_a_fence_start_no_section() -> None:
    assert len(split_chunks("# A\n```\n# no\n\n# no\n```\nafter\n")) == 1


def test_a_fence_that_fits_is_kept_whole() -> None:
    fence = "```\n" + "line\n\n" * 5 + "```"
    assert fence in texts(f"Before it.\n\n{fence}\n\nAfter it.", limit=len(fence))


def test_a_fence_too_long_is_cut_at_line_ends_and_keeps_its_indentation() -> None:
    code = "```\n" + "".join(f"    value_{n} = {n}\n" for n in range(10)) + "```"
    found = texts(code, limit=60)
    assert "\n".join(found) == code


def test_a_long_list_is_cut_between_items() -> None:
    items = [f"- item {n} with e.g. a dot inside, and words" for n in range(300)]
    found = texts("\n".join(items))
    assert "\n".join(found) == "\n".join(items)
    assert all(text.startswith("- item") for text in found)


def test_a_wall_of_text_is_cut_where_a_sentence_ends() -> None:
    found = texts("One two three four. " * 40, limit=100)
    assert all(text.endswith("four.") for text in found)


def test_without_sentences_it_is_cut_between_words() -> None:
    found = texts("word " * 100, limit=33)
    assert {word for text in found for word in text.split(" ")} == {"word"}


def test_one_endless_word_is_cut_anywhere() -> None:
    assert [len(text) for text in texts("x" * 250, limit=100)] == [100, 100, 50]


def test_an_accent_stays_with_its_letter() -> None:
    found = texts("xe\u0301" * 100, limit=10)
    assert not any(unicodedata.combining(text[0]) for text in found)
    assert "".join(found) == "xe\u0301" * 100


def test_joined_emoji_stay_together() -> None:
    family = "👩\u200d👩\u200d👧"
    assert all(text == family * (len(text) // len(family)) for text in texts(family * 50, limit=13))


def test_a_heading_stays_with_a_long_paragraph_under_it() -> None:
    first = texts("# Title\n\n" + "Some words here. " * 200)[0]
    assert first.startswith("# Title\n\nSome words")


def test_only_newlines_end_lines() -> None:
    assert [(chunk.start, chunk.end) for chunk in split_chunks("a\u2028# b\x0c# c\x85# d\r# e")] == [(1, 1)]


def test_blank_text_has_no_chunks() -> None:
    assert split_chunks("") == split_chunks(" \n\t\n\x0c\n\u2003\n") == []


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError):
        split_chunks("a", limit=0)


pieces = st.sampled_from(
    [
        "# A",
        "## B",
        "###### C",
        "```",
        "~~~~",
        "- item",
        "word ",
        "a. ",
        "\n",
        "\n\n",
        "\r\n",
        "    ",
        "\t",
        "e\u0301",
        "x" * 30,
        "---",
        "\u2028",
        "\x0c",
        "\ufeff",
        "\ud800",
        "\0",
        "漢字。",
        "1. ",
        "> q",
        "- ```",
        "👩\u200d👧",
        "\x1f",
    ]
)
documents = st.lists(pieces, max_size=40).map("".join) | st.text(max_size=120)
limits = st.integers(1, 60)


@given(documents, limits)
def test_no_character_is_lost_and_no_chunk_too_long(text: str, limit: int) -> None:
    found = split_chunks(text, limit)
    _, body = split(text)
    assert dense("".join(chunk.text for chunk in found)) == dense(body.removeprefix("\ufeff"))
    assert all(0 < len(chunk.text) <= limit and chunk.text.strip() for chunk in found)


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


@given(documents, limits)
def test_a_chunk_stands_on_the_lines_it_names(text: str, limit: int) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    for chunk in split_chunks(text, limit):
        named = "\n".join(lines[chunk.start - 1 : chunk.end])
        assert trimmed(chunk.text) in trimmed(named)
        assert chunk.end - chunk.start == chunk.text.count("\n")


@given(documents, limits)
def test_ids_are_unique_and_the_same_every_time(text: str, limit: int) -> None:
    found = split_chunks(text, limit)
    assert len({chunk.id for chunk in found}) == len(found)
    assert split_chunks(text, limit) == found


def test_an_id_names_its_algorithm_and_is_fixed_for_good() -> None:
    """If this fails, every index holds other ids than the code: raise the version."""
    assert split_chunks("# A\nx")[0].id == "c1-e46dcc32ba25df84ea78398b"


def test_windows_line_endings_change_no_id() -> None:
    assert [chunk.id for chunk in split_chunks("# A\r\nx\r\n")] == [
        chunk.id for chunk in split_chunks("# A\nx\n")
    ]


def test_equal_chunks_have_different_ids() -> None:
    first, second, third = split_chunks("# A\nx\n# A\nx\n# A\nx\n")
    assert len({first.id, second.id, third.id}) == 3


def test_an_edit_changes_only_the_ids_of_what_it_changed() -> None:
    sections = [f"# {n}\n" + "Words of this section. " * 90 + "\n" for n in range(6)]
    before = split_chunks("".join(sections))
    sections[2] = "# 2\nquite different\n"
    after = split_chunks("---\nnew: head\n---\n\n" + "".join(sections))

    def ids(found: list[TextChunk]) -> set[str]:
        return {chunk.id for chunk in found if chunk.section != ("2",)}

    assert ids(before) == ids(after)


@given(
    st.lists(st.sampled_from(["one", "two", "three", "# h", "## k", "four " * 9]), min_size=1, max_size=12),
    st.data(),
)
def test_equal_chunks_before_and_after_an_edit_share_their_ids(
    blocks: list[str], data: st.DataObject
) -> None:
    edited = list(blocks)
    edited[data.draw(st.integers(0, len(blocks) - 1))] = "changed here"
    before, after = (split_chunks("\n\n".join(text), 40) for text in (blocks, edited))
    kept = {(c.section, c.text) for c in before} & {(c.section, c.text) for c in after}
    first = {(c.section, c.text): c.id for c in reversed(before)}
    again = {(c.section, c.text): c.id for c in reversed(after)}
    assert all(first[key] == again[key] for key in kept)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 5_000_000,
        "word " * 1_000_000,
        "\u0301" * 2_000_000,
        "a" + " " * 5_000_000 + "b",
        "# " + "a b " * 1_000_000,
        "`" * 5_000_000 + "x`",
        "".join(f"{'#' * (n % 6 + 1)} h{n}\n" for n in range(200_000)),
        "```\n" + "x = 1\n" * 200_000,
        "# a\n" + "\n" * 500_000 + "b",
    ],
    ids=["letters", "words", "accents", "blanks", "heading", "backticks", "headings", "code", "blank lines"],
)
def test_megabytes_are_cut_up(text: str) -> None:
    assert split_chunks(text)
