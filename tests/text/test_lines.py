from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tacit.text.lines import MarkdownLine, scan


def kinds(text: str) -> list[str]:
    return [line.kind for line in scan(text)]


def headings(text: str) -> list[tuple[int, str]]:
    return [(line.level, line.title) for line in scan(text) if line.kind == "heading"]


def test_a_heading_has_level_and_title() -> None:
    assert list(scan("## Plans\n")) == [MarkdownLine(1, "## Plans", "heading", 2, "Plans")]


def test_closing_marks_are_no_part_of_the_title() -> None:
    assert headings("# a #\n## b ##  \n# c#\n### ###\n#\n# \\#") == [
        (1, "a"),
        (2, "b"),
        (1, "c#"),
        (3, ""),
        (1, ""),
        (1, "\\#"),
    ]


def test_seven_marks_or_four_spaces_or_no_space_make_no_heading() -> None:
    assert headings("####### a\n    # b\n#c\n\t# d\n") == []


def test_marks_inside_a_fence_are_code() -> None:
    assert kinds("```sh\n# comment\n\n```\n# heading\n") == ["fence", "code", "code", "fence", "heading"]


def test_a_fence_is_closed_only_by_its_own_kind_and_at_least_its_length() -> None:
    assert kinds("````\n```\n~~~~\n```` x\n    ````\n   `````  \n") == ["fence", *["code"] * 4, "fence"]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert kinds("~~~ `info`\n# a\n\nb") == ["fence", "code", "code", "code"]


def test_a_backtick_in_the_info_string_makes_it_inline_code() -> None:
    assert kinds("``` a`b\n# c") == ["text", "heading"]


def test_a_fence_that_starts_a_list_item_is_a_fence() -> None:
    assert kinds("- ```\n  # x\n  ```\n# y\n") == ["fence", "code", "fence", "heading"]


def test_a_fence_in_a_list_item_ends_with_the_item() -> None:
    assert kinds("1. ~~~\n   # x\n\n# y\n") == ["fence", "code", "code", "heading"]


def test_underlined_headings_are_text() -> None:
    assert kinds("Title\n=====\n") == ["text", "text"]


def test_lines_end_at_newline_only() -> None:
    assert [line.text for line in scan("a\u2028b\x0cc\r\nd\re\n")] == ["a\u2028b\x0cc", "d\re"]


def test_numbers_start_where_asked() -> None:
    assert [line.number for line in scan("a\n\nb", first=7)] == [7, 8, 9]


def test_no_text_has_no_lines() -> None:
    assert list(scan("")) == []


@given(st.text(alphabet="a#`~ -\n\r\t>\u2028", max_size=60))
def test_the_lines_together_are_the_text(text: str) -> None:
    unix = text.replace("\r\n", "\n")
    ended = unix if unix.endswith("\n") or not unix else unix + "\n"
    if not text.endswith("\r"):
        assert "".join(line.text + "\n" for line in scan(text)) == ended


# The oracle is markdown-it with quotes, lists and HTML switched off, because lines.py says that it does
# not look inside those. The documents use spaces and tabs as the only blanks (markdown-it trims all
# Unicode blanks from a title, CommonMark only these two), no bare "\r" (a line end for markdown-it, not
# for us), no NUL (markdown-it replaces it) and a newline at the end (without it, markdown-it leaves a
# blank last line out of an open fence).
oracle = MarkdownIt("commonmark").disable(["blockquote", "list", "html_block", "inline"])

indent = st.sampled_from(["", " ", "  ", "   ", "    ", "\t", " \t"])
words = st.sampled_from(
    ["", " ", "a", " a", " a b ", "\ta", " # ", " ##", "#", " a#", " a #\t", "`", " py", " ~ x", "-"]
)
marks = st.sampled_from(
    ["", "#", "##", "######", "#######", "``", "```", "````", "~~~", "~~~~~", "---", "===", "a"]
)
document = st.lists(st.builds("{}{}{}".format, indent, marks, words), max_size=12).map(
    lambda lines: "".join(line + "\n" for line in lines)
)


def by_oracle(text: str) -> tuple[list[tuple[int, int, str]], set[int]]:
    tokens = oracle.parse(text)
    found: list[tuple[int, int, str]] = []
    code: set[int] = set()
    for token, inside in zip(tokens, [*tokens[1:], *tokens[:1]], strict=True):
        if token.type == "heading_open" and token.map and token.markup.startswith("#"):
            found.append((token.map[0] + 1, len(token.markup), inside.content))
        if token.type == "fence" and token.map:
            code.update(range(token.map[0] + 1, token.map[1] + 1))
    return found, code


@given(document)
def test_headings_and_fences_are_those_of_commonmark(text: str) -> None:
    lines = list(scan(text))
    found, code = by_oracle(text)
    assert [(line.number, line.level, line.title) for line in lines if line.kind == "heading"] == found
    assert {line.number for line in lines if line.kind in ("fence", "code")} == code
