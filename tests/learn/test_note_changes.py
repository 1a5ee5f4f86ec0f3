"""Lines into notes, and out of them again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tacit.home.layout import MEMORY
from tacit.learn.model import Change, ChangeKind, Source
from tacit.learn.note_changes import apply_changes, format_line
from tacit.markdown import comment, notes
from tacit.markdown.note_page import line_count, remove_lines

TRANSCRIPT = "raw/conversations/2026/02/16/1845-ses_x-a.md"
NOTE = (
    "---\ntype: memory\nupdated: 2026-01-01\nline_count: 14\n---\n\n# Core\n\n## Key Decisions\n\n"
    "### Shop\n- 2026-01-01: Parcels leave on Fridays\n\n## Lessons Learned\n"
)


def change(
    text: str,
    day: str = "2026-02-16",
    *,
    path: str = MEMORY,
    section: str | None = "Key Decisions",
    kind: ChangeKind = "decision",
    number: int = 3,
) -> Change:
    source = Source("agent:main:main", number, "user", at=f"{day}T10:00:00+01:00", transcript=TRANSCRIPT)
    return Change(path, section, text, day, kind, source, "owner", "decisions/1")


def test_a_line_stands_at_the_end_of_its_own_section_and_not_under_what_is_inside_it() -> None:
    text = apply_changes(NOTE, MEMORY, [change("The door is blue")]).text
    lines = text.split("\n")
    at = next(at for at, line in enumerate(lines) if "door" in line)
    assert lines[at - 2] == "## Key Decisions"
    assert lines.index("### Shop") > at


def test_fields_of_the_head_follow_and_the_rest_stays() -> None:
    text = apply_changes(NOTE, MEMORY, [change("The door is blue")]).text
    assert "updated: 2026-02-16T10:00:00+01:00" in text
    assert notes.parse(text).fields["line_count"] == line_count(text)
    assert remove_lines(text, lambda line, mark: True) is not None
    assert notes.split(remove_lines(text, lambda line, mark: True) or "")[1] == notes.split(NOTE)[1]


def test_nothing_is_added_twice_in_the_same_or_almost_the_same_words() -> None:
    once = apply_changes(NOTE, MEMORY, [change("The door is blue"), change("the door is blue!", number=9)])
    assert len(once.added) == 1
    assert apply_changes(once.text, MEMORY, [change("The door is blue")]).text == once.text
    assert not apply_changes(NOTE, MEMORY, [change("Parcels leave on Fridays")]).added


def test_a_later_line_supersedes_the_one_it_contradicts_and_keeps_it() -> None:
    both = [change("We fire Reif at 1,215 °C"), change("We fire Reif at 1,180 °C", "2026-03-01", number=5)]
    done = apply_changes(NOTE, MEMORY, both)
    old, new = (line for line in done.text.split("\n") if "Reif" in line)
    assert comment.is_superseded(old)
    assert "(superseded 2026-03-01)" in old
    assert not comment.is_superseded(new)
    assert apply_changes(done.text, MEMORY, both).text == done.text


def test_a_line_of_a_person_is_told_and_not_touched() -> None:
    note = NOTE.replace("Parcels leave on Fridays", "We fire Reif at 1,215 °C")
    note = note.replace("### Shop\n", "")
    done = apply_changes(note, MEMORY, [change("We fire Reif at 1,180 °C", "2026-03-01")])
    assert [line for line, _ in done.contradicts] == ["- 2026-01-01: We fire Reif at 1,215 °C"]
    assert "- 2026-01-01: We fire Reif at 1,215 °C\n" in done.text


def test_what_is_about_something_else_contradicts_nothing() -> None:
    two = [change("The cup costs 34 €"), change("The evening course costs 245 €", "2026-03-01", number=4)]
    assert not apply_changes(NOTE, MEMORY, two).superseded


def test_lines_end_as_they_do_in_the_note() -> None:
    text = apply_changes(
        NOTE.replace("\n", "\r\n"), MEMORY, [change("The door is blue"), change("New", section="X")]
    )
    assert "\n" not in text.text.replace("\r\n", "")


def test_a_note_that_tacit_made_goes_with_its_last_line_and_one_that_a_person_wrote_in_does_not() -> None:
    path = "knowledge/journal/2026-02-16.md"
    page = apply_changes(
        None, path, [change("Fired the kiln", path=path, section="Studio", kind="event")]
    ).text
    assert page.startswith(
        "---\ntype: journal\ndate: 2026-02-16\ngenerated: true\n---\n\n## 2026-02-16\n\n### Studio\n"
    )
    assert remove_lines(page, lambda line, mark: True) is None
    assert remove_lines(page + "- by hand\n", lambda line, mark: True) is not None


def test_a_line_that_somebody_changed_is_not_taken_out() -> None:
    text = apply_changes(NOTE, MEMORY, [change("The door is blue")]).text.replace("blue", "red")
    assert remove_lines(text, lambda line, mark: True) == text
    assert not any(map(comment.is_generated, text.split("\n")))


WORDS = st.lists(
    st.sampled_from(("kiln", "cup", "plate", "1215", "1180", "Friday", "not", "now", "oak", "door")),
    min_size=1,
    max_size=6,
)


@given(
    st.lists(
        st.tuples(WORDS, st.integers(1, 28), st.sampled_from(["Key Decisions", "New", None])), max_size=8
    )
)
def test_out_and_in_again_is_the_same_note_and_the_lines_of_people_stay(
    wanted: list[tuple[list[str], int, str | None]],
) -> None:
    changes = [
        change(" ".join(words), f"2026-02-{day:02}", section=section, number=at)
        for at, (words, day, section) in enumerate(wanted, 1)
    ]
    done = apply_changes(NOTE, MEMORY, changes)
    assert apply_changes(done.text, MEMORY, changes).text == done.text
    bare = remove_lines(done.text, lambda line, mark: True)
    assert bare is not None
    assert apply_changes(bare, MEMORY, changes).text == done.text
    for line in NOTE.split("---\n", 2)[2].split("\n"):
        assert line in done.text.split("\n")


def test_what_an_agent_says_strikes_out_no_word_of_the_owner() -> None:
    note = apply_changes(NOTE, MEMORY, [change("We fire Reif at 1,215 °C")]).text
    agents = replace(change("We fire Reif at 1,180 °C", "2026-03-01", number=5), trust="agent")
    done = apply_changes(note, MEMORY, [agents])
    assert (done.added, done.superseded) == ((agents,), ())
    assert [text for text, _ in done.contradicts] == [format_line(change("We fire Reif at 1,215 °C")).text]
    again = apply_changes(done.text, MEMORY, [change("We fire Reif at 1,150 °C", "2026-03-02", number=6)])
    assert len(again.superseded) == 2


def test_what_was_struck_out_may_come_to_hold_again() -> None:
    days = [("1,215", "2026-02-16"), ("1,180", "2026-03-01"), ("1,215", "2026-03-09")]
    done = apply_changes(NOTE, MEMORY, [change(f"We fire Reif at {value} °C", day) for value, day in days])
    held = [line for line in done.text.split("\n") if "Reif" in line and not comment.is_superseded(line)]
    assert [line[2:12] for line in held] == ["2026-03-09"]
