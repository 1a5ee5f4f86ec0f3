"""What we write by hand, every YAML reader reads as the value we meant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.markdown import notes
from tacit.markdown.frontmatter import format_entry, format_flow, format_timestamp
from tests.hostile import characters, hostile

_words = st.from_regex(r"[A-Za-z0-9_./+@(), ~:#&*!|>'\"%`-]{0,12}", fullmatch=True)


@given(st.one_of(hostile, _words, st.text(characters)))
@example("true")
@example("No")
@example("NULL")
@example("~")
@example("1e5")
@example("0x1F")
@example("12:30:45")
@example("2026-01-01")
@example("=")
@example("<<")
@example(".inf")
@example("a: b")
@example("a #b")
@example("- a")
@example("_1")
@example("a ")
def test_a_string_is_read_as_that_string(text: str) -> None:
    line = format_entry("key", text)
    assert line.count("\n") == 1
    assert yaml.safe_load(line)["key"] == text


@given(st.one_of(hostile, _words))
def test_our_own_reader_agrees(text: str) -> None:
    note = notes.parse(f"---\n{format_entry('key', text)}---\nbody\n", "a.md")
    assert note.problems == ()
    assert note.fields["key"] == text
    assert note.body == "body\n"


@given(st.lists(st.fixed_dictionaries({"path": hostile, "action": _words, "summary": hostile}), min_size=1))
def test_a_list_of_mappings_stands_below_its_key_item_by_item(items: list[dict[str, str]]) -> None:
    text = format_entry("changes", items)
    read = yaml.safe_load(text)["changes"]
    assert read == items
    assert text.count("\n") == 1 + 3 * len(items)


@given(st.lists(hostile))
def test_a_list_of_strings_stands_on_one_line(items: list[str]) -> None:
    line = format_entry("tags", items)
    assert line.count("\n") == 1
    assert yaml.safe_load(line)["tags"] == items


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        ([], "[]"),
        (["a", "b c", "d: e"], '[a, b c, "d: e"]'),
        (date(2026, 2, 16), "2026-02-16"),
        (datetime(2026, 2, 16, 18, 45, tzinfo=UTC), "2026-02-16T18:45:00Z"),
        ("plain words and more", "plain words and more"),
        ("agent:main:main", '"agent:main:main"'),
        ("yes", '"yes"'),
        ("", '""'),
        ("line\nbreak", '"line\\nbreak"'),
        ("Grüße", "Grüße"),
        ("\0", '"\\u0000"'),
    ],
)
def test_each_kind_of_value_has_one_form(value: object, written: str) -> None:
    assert format_flow(value) == written


@given(st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=0)))
def test_a_time_in_utc_ends_in_z_and_is_the_same_moment(at: datetime) -> None:
    assert format_timestamp(at).endswith("Z")
    assert datetime.fromisoformat(format_timestamp(at)) == at


def test_a_time_elsewhere_keeps_its_offset() -> None:
    at = datetime(2026, 2, 16, 18, 45, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert format_timestamp(at) == "2026-02-16T18:45:00+05:45"
