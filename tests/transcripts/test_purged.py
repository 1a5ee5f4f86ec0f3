"""raw/purged.jsonl: what it names, whatever state it is in."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tacit.home.layout import PURGED
from tacit.home.listing import Stamp
from tacit.transcripts.purged import file_stamp, load_purged, parse_purged

ONE = "raw/conversations/2026/02/16/1845-ses_x-slug.md"
TWO = "raw/conversations/2026/02/17/0900-ses_y-slug.md"
X, Y = "2026/02/16/1845-ses_x-slug", "2026/02/17/0900-ses_y-slug"
AT = Stamp(1, 2, 3)


def line(*sources: object) -> bytes:
    entry = {
        "at": "2026-11-18T09:00:00+01:00",
        "origin": "url x",
        "sources": sources,
        "by": "owner",
        "why": "",
    }
    return json.dumps(entry).encode() + b"\n"


def test_it_names_whole_transcripts_and_records_of_others() -> None:
    found = parse_purged(line(X) + line(f"{Y}#12", f"{Y}#3"))
    assert found.whole(ONE)
    assert not found.whole(TWO)
    assert found.records(TWO) == {3, 12}
    assert found.records(ONE) == frozenset()


def test_an_archived_transcript_is_the_same_one() -> None:
    found = parse_purged(line(X, f"{Y}#2"))
    assert found.whole(ONE.replace("raw/", "archive/"))
    assert found.records(TWO.replace("raw/", "archive/")) == {2}


def test_a_torn_or_foreign_line_names_nothing_and_the_others_hold() -> None:
    data = b'{"sources": ["2026/02/17/0900-ses_y-sl' + b"\n[]\nnull\n" + line(X)
    data += line(7, None, "", "#", f"{Y}#", f"{Y}#x") + b"\xff\xfe"
    found = parse_purged(data)
    assert found.whole(ONE)
    assert not found.whole(TWO)
    assert not found.records(TWO)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data: bytes) -> None:
    assert parse_purged(data + b"\n" + line(X)).whole(ONE)


def test_without_the_file_nothing_is_purged(tmp_path: Path) -> None:
    found = load_purged(tmp_path)
    assert file_stamp(tmp_path) is None
    assert found.applied({ONE: AT}) == {ONE: AT}


def test_stamps_change_with_the_records_that_are_left_out() -> None:
    some, more = parse_purged(line(f"{Y}#3")), parse_purged(line(f"{Y}#4"))
    stamps = {found.applied({TWO: AT})[TWO] for found in (parse_purged(b""), some, more)}
    assert len(stamps) == 3
    assert parse_purged(line(X)).applied({ONE: AT, TWO: AT}) == {TWO: AT}


def test_while_the_file_cannot_be_read_no_conversation_counts(tmp_path: Path) -> None:
    """What it names must not come back because of a disk error."""
    (tmp_path / PURGED).mkdir(parents=True)
    found = load_purged(tmp_path)
    note = "knowledge/people/mara.md"
    assert PURGED in found.trouble
    assert found.applied({ONE: AT, note: AT}) == {note: AT}
