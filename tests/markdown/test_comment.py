"""The mark behind a line that tacit wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.markdown import comment

SOURCE = "2026/02/16/1845-ses_a1b2c3d4-which-glaze#3"
LINE = comment.attach("- 2026-02-16: Reif 3b, two coats", "decisions/1", [SOURCE], "owner")


def test_a_marked_line_tells_what_made_it_from_what_and_whose_word_it_is() -> None:
    text, mark = comment.read(LINE)
    assert text == "- 2026-02-16: Reif 3b, two coats"
    assert mark is not None
    assert (mark.extractor, mark.name, mark.trust) == ("decisions/1", "decisions", "owner")
    assert mark.transcripts == ("raw/conversations/2026/02/16/1845-ses_a1b2c3d4-which-glaze.md",)
    assert comment.message_number(mark.sources[0]) == 3
    assert comment.is_generated(LINE)


def test_a_line_that_somebody_changed_is_theirs_and_still_tells_its_source() -> None:
    edited = LINE.replace("two coats", "three coats")
    assert not comment.is_generated(edited)
    assert comment.read(edited)[1] is not None


@pytest.mark.parametrize(
    "line",
    [
        "- plain",
        "- with a comment <!-- by hand -->",
        "- half a mark <!-- decisions/1 2026/02/16/x#3 owner -->",
        "- a stranger's trust <!-- decisions/1 2026/02/16/x#3 god 4be0c2f7 -->",
        "- a mark in the middle <!-- decisions/1 2026/02/16/x#3 owner 4be0c2f7 --> of it",
    ],
)
def test_other_comments_are_no_marks(line: str) -> None:
    assert comment.read(line) == (line, None)


def test_several_sources_and_whole_conversations() -> None:
    path = "raw/conversations/2026/02/16/1845-ses_x-a.md"
    line = comment.attach("- x", "week/2", [comment.source_name(path), comment.source_name(path, 7)], "web")
    mark = comment.read(line)[1]
    assert mark is not None
    assert mark.transcripts == (path,)
    assert [comment.message_number(source) for source in mark.sources] == [None, 7]


def test_what_a_person_wrote_into_a_note_is_from_that_note() -> None:
    path = "knowledge/journal/2026-10-11.md"
    mark = comment.read(comment.attach("- x", "week/1", [comment.source_name(path)], "owner"))[1]
    assert mark is not None
    assert mark.transcripts == (path,)


def test_superseding_keeps_the_line_and_its_mark() -> None:
    done = comment.mark_superseded(LINE, "2026-10-19")
    assert done.startswith("- 2026-02-16: Reif 3b, two coats (superseded 2026-10-19) <!-- decisions/1 ")
    assert comment.is_superseded(done)
    assert comment.is_generated(done)
    assert not comment.is_superseded(LINE)
    assert comment.is_superseded("- by hand (superseded 2026-10-19)")
    assert not comment.is_generated(comment.mark_superseded(LINE.replace("two", "ten"), "2026-10-19"))


@given(st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])))
def test_whatever_a_line_says_it_comes_back(text: str) -> None:
    line = comment.attach(text, "facts/1", [SOURCE], "tool")
    assert comment.read(line)[0].rstrip(" \t") == text.rstrip(" \t")


# What no longer holds

NOTE = f"""# Kiln

{LINE}
- it stands in the cellar (superseded 2026-10-19)
- it stands in the yard
- a long line that
  goes on below (superseded 2026-10-19)
  and on
- old {"(superseded 2026-10-19)"}
  - with details
    and more of them

  Not part of it any more.
- (superseded 2026-10-19) in the middle holds

```
- code (superseded 2026-10-19)
```

Prose that holds
and a line that does not (superseded 2026-10-19)
"""


def test_marks_and_what_no_longer_holds_are_taken_out_and_every_other_line_keeps_its_number() -> None:
    held = comment.current_text(NOTE)
    before, after = NOTE.split("\n"), held.split("\n")
    assert len(after) == len(before)
    changed = {number: line for number, line in enumerate(after, 1) if line != before[number - 1]}
    assert changed == {
        3: "- 2026-02-16: Reif 3b, two coats",
        **dict.fromkeys((4, 6, 7, 8, 9, 10, 11, 21), ""),
    }


def test_for_who_reads_it_nothing_is_left_where_such_a_line_stood() -> None:
    assert comment.remove_superseded("- a\n- b (superseded 2026-10-19)\n- c\n") == "- a\n- c\n"


@pytest.mark.parametrize("text", ["", "\n", "# A\n\n- b\n", "a\r\nb", "superseded"])
def test_a_note_without_any_stays_as_it_is(text: str) -> None:
    assert comment.current_text(text) == text == comment.remove_superseded(text)


@given(st.text(alphabet=" \n-*1.x`", max_size=60), st.integers(0, 60))
def test_whatever_the_list_looks_like_a_superseded_line_is_gone(text: str, at: int) -> None:
    lines = text.replace("```", "").split("\n")
    lines.insert(at % len(lines), "- gone (superseded 2026-10-19)")
    held = comment.current_text("\n".join(lines))
    assert "gone" not in held
    assert held.count("\n") == len(lines) - 1
