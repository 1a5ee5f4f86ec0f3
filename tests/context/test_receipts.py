"""The receipt log: whole lines only, small for ever, quick to ask, and never in the way of a turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.context import receipts
from tacit.context.injection_log import InjectionLog
from tacit.context.model import SLOTS, Dropped, Receipt, Section
from tacit.context.receipt_codec import as_dict, decode_line, encode_line
from tacit.context.receipts import append, find_by_id, last, new_id, read_receipts, recent
from tacit.diagnostics import Notice
from tacit.errors import UsageError
from tacit.home.layout import Home

START = datetime(2026, 11, 2, 8, tzinfo=UTC)
KEY = "agent:main:telegram:direct:48210011"


def section(digest: str, slot: Any = "knowledge") -> Section:
    return Section(f"{slot}:x", slot, "knowledge/reference/glazes.md:7", 90, 0.8, "meaning", digest=digest)


def turn(number: int, *digests: str, key: str = KEY, id_: str = "ses_1", **more: Any) -> Receipt:
    at = START + timedelta(minutes=number)
    return Receipt(
        id=new_id(at, number),
        at=at.isoformat(),
        session_key=key,
        session_id=id_,
        session_type="PRIVATE_DM",
        agent="main",
        message_hash="00",
        message=f"Question {number}?",
        budget=8192,
        tokens=1000,
        characters=4000,
        sections=tuple(map(section, digests)),
        dropped=(),
        **more,
    )


def dropped(number: int, code: str) -> Dropped:
    return Dropped(f"knowledge:{number}", "knowledge", f"knowledge/{number}.md:1", code, "because", 9, 0.1)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path)


def folder(place: Home) -> Path:
    return place.private / "receipts"


def files(place: Home) -> list[Path]:
    return sorted(folder(place).iterdir())


def ids(found: Any) -> list[str]:
    return [receipt.id for receipt in found]


# Lines

text = st.text(st.characters(exclude_categories=()), max_size=60)
number = st.floats(allow_nan=False)
channels = st.dictionaries(text, number, max_size=4)
slot = st.sampled_from(SLOTS)
sections = st.builds(
    Section, text, slot, text, st.integers(), st.none() | number, text, text, channels, text, text
)
drops = st.builds(
    Dropped, text, slot, text, text, text, st.none() | st.integers(), st.none() | number, channels
)


@given(
    st.builds(
        Receipt,
        *[text] * 8,
        *[st.integers()] * 3,
        st.lists(sections, max_size=4).map(tuple),
        st.lists(drops, max_size=4).map(tuple),
        text,
        st.lists(st.builds(Notice, text, text), max_size=3).map(tuple),
        channels,
        st.dictionaries(text, st.tuples(st.integers(), st.integers()), max_size=4),
        st.booleans(),
        st.booleans(),
        text,
        text,
        st.dictionaries(text, st.integers(min_value=1), max_size=3),
    )
)
def test_a_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    line = encode_line(receipt)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line) == receipt
    assert decode_line(json.dumps(as_dict(receipt)).encode()) == receipt


def test_every_field_is_in_the_dictionary() -> None:
    told = as_dict(
        replace(turn(1, "d"), notices=(Notice("deadline", "late"),), dropped=(dropped(1, "weak"),))
    )
    assert list(told) == [field.name for field in fields(Receipt)]
    assert list(told["sections"][0]) == [field.name for field in fields(Section)]
    assert list(told["dropped"][0]) == [field.name for field in fields(Dropped)]


def test_a_receipt_of_a_newer_version_is_read_without_what_is_new() -> None:
    told = as_dict(turn(1, "d"))
    told["mood"] = {"calm": True}
    told["sections"][0]["weather"] = "rain"
    told["sections"][0]["slot"] = "dreams"
    read = decode_line(json.dumps(told).encode())
    assert read is not None
    assert (read.id, read.sections[0].slot) == (turn(1).id, "dreams")


def test_a_receipt_of_an_older_version_is_read_with_what_was_not_there_yet() -> None:
    told = as_dict(turn(1, "d"))
    for name in ("unlisted", "audience", "past", "trial", "slots", "timings_ms", "notices"):
        del told[name]
    del told["sections"][0]["channels"]
    assert decode_line(json.dumps(told).encode()) == turn(1, "d")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"id":"x"}',
        b"\xff\xfe",
        b"[" * 100_000,
        encode_line(turn(1))[:-20],
        encode_line(turn(1)).replace(b'"budget":8192', b'"budget":"much"'),
        encode_line(turn(1)).replace(b'"sections":[]', b'"sections":7'),
        encode_line(turn(1)).replace(b'"sections":[]', b'"sections":[{"slot":1}]'),
    ],
)
def test_what_is_no_receipt_is_read_as_none(line: bytes) -> None:
    assert decode_line(line) is None


def test_numbers_of_other_libraries_are_kept() -> None:
    numpy = pytest.importorskip("numpy")
    odd = replace(
        section("d"), score=numpy.float32(0.5), tokens=numpy.int64(7), channels={"bm25": numpy.float32(2)}
    )
    read = decode_line(encode_line(replace(turn(1), sections=(odd,))))
    assert read is not None
    assert (read.sections[0].score, read.sections[0].channels) == (0.5, {"bm25": 2.0})


def test_many_dropped_blocks_are_cut_and_counted_and_no_code_is_lost() -> None:
    many = tuple(dropped(at, "weak") for at in range(500))
    receipt = replace(turn(1), dropped=(*many, dropped(501, "audience"), dropped(502, "budget")))
    read = decode_line(encode_line(receipt))
    assert read is not None
    assert len(read.dropped) == 100
    assert read.unlisted == {"weak": 402}
    assert read.dropped[:98] == many[:98]  # the first ones, in their order
    assert [block.code for block in read.dropped[98:]] == ["audience", "budget"]
    again = decode_line(encode_line(replace(read, dropped=(*read.dropped, dropped(503, "weak")))))
    assert again is not None
    assert again.unlisted == {"weak": 403}


def test_only_the_beginning_of_a_message_is_kept() -> None:
    read = decode_line(encode_line(replace(turn(1), message="kiln " * 100_000)))
    assert read is not None
    assert len(read.message) == 120
    assert read.message.endswith("…")


def test_a_line_is_never_long() -> None:
    long = "\U0001f3fa" * 200_000
    huge = Section(
        long, "knowledge", long, 1, 1.0, long, long, {f"{long}{at}": 0.1 for at in range(99)}, long, long
    )
    lost = Dropped(long, "knowledge", long, long, long, 1, 1.0, {long: 1.0})
    receipt = replace(
        turn(1),
        session_id=long,
        agent=long,
        past=long,
        sections=(huge,) * 3000,
        dropped=(lost,) * 3000,
        notices=(Notice(long, long),) * 3000,
        timings_ms={f"{at}{long}": 1.0 for at in range(500)},
    )
    line = encode_line(receipt)
    assert len(line) <= 256_000
    read = decode_line(line)
    assert read is not None
    assert read.unlisted
    assert read.notices[-1].code == "cut"


# Ids


def test_ids_are_short_sort_by_time_and_differ_by_their_token() -> None:
    moments = [START + timedelta(milliseconds=step) for step in (0, 1, 31, 32, 1023, 1024, 10**9, 10**12)]
    made = [new_id(moment, 7) for moment in moments]
    assert made == sorted(set(made))
    assert {len(name) for name in made} == {13}
    assert new_id(START, 1)[:9] == new_id(START, 2)[:9]
    assert len({new_id(START, token) for token in range(1000)}) == 1000
    assert new_id(START, 5 + 2**20) == new_id(START, 5)


# Adding and asking


def test_an_empty_log_has_no_receipts(place: Home) -> None:
    assert last(place) is None
    assert recent(place, 5) == []
    assert find_by_id(place, "abcd") is None
    assert InjectionLog(place).digests(KEY) == {}


def test_receipts_are_found_newest_first_by_session_and_by_trial(place: Home) -> None:
    other = "agent:main:group:7"
    told = [turn(1), turn(2, key=other), turn(3, id_="ses_2"), turn(4, trial=True)]
    for receipt in told:
        assert append(place, receipt) == ""
    assert last(place) == told[3]
    assert last(place, trial=False) == told[2]
    assert last(place, session_key=other) == told[1]
    assert last(place, session_key="agent:main") is None
    assert last(place, session_key=other, since=START + timedelta(minutes=2)) == told[1]
    assert last(place, session_key=other, since=START + timedelta(minutes=3)) is None
    assert ids(recent(place, 2)) == ids([told[3], told[2]])
    assert ids(recent(place, 9, KEY)) == ids([told[3], told[2], told[0]])
    assert ids(read_receipts(place, KEY, session_id="ses_1", trial=False)) == ids([told[0]])


def test_the_log_is_for_the_owner_alone(place: Home) -> None:
    append(place, turn(1))
    [file] = files(place)
    assert (file.stat().st_mode & 0o777, folder(place).stat().st_mode & 0o777) == (0o600, 0o700)
    assert file.name == "000001-2026-11-02.jsonl"


def test_by_id_takes_the_whole_the_beginning_or_the_end(place: Home) -> None:
    one, two = turn(1), turn(60)
    append(place, one)
    append(place, two)
    assert find_by_id(place, one.id) == one
    assert find_by_id(place, f" {one.id[:8].upper()} ") == one
    assert find_by_id(place, two.id[-5:]) == two
    assert find_by_id(place, "zzzzz") is None
    with pytest.raises(UsageError, match=f"any of 2 receipts: {two.id}, {one.id}"):
        find_by_id(place, one.id[:4])
    with pytest.raises(UsageError, match="at least four"):
        find_by_id(place, one.id[:3])


def test_an_id_that_is_the_beginning_of_another_is_found(place: Home) -> None:
    short, long = replace(turn(1), id="abcde"), replace(turn(2), id="abcdefg")
    append(place, short)
    append(place, long)
    assert find_by_id(place, "abcde") == short


def test_broken_lines_are_passed_over(place: Home) -> None:
    append(place, turn(1, "a"))
    [file] = files(place)
    with file.open("ab") as log:
        log.write(b'\xff\xfe\n{"id":"zzzz1"}\n\n[1]\n' + encode_line(turn(2))[:50])  # torn by a full disk
    assert append(place, turn(3, "c")) == ""
    assert ids(recent(place, 9)) == ids([turn(3), turn(1)])
    assert find_by_id(place, "zzzz1") is None
    assert InjectionLog(place).digests(KEY) == {"a": 2, "c": 1}


@pytest.mark.parametrize("block", [1, 7, 300, 5000])
def test_lines_are_read_backwards_whole_wherever_a_block_ends(
    place: Home, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "_BLOCK_BYTES", block)
    told = [turn(at, past="x" * at) for at in range(9)]
    for receipt in told:
        append(place, receipt)
    assert recent(place, 99) == told[::-1]


def test_a_new_day_begins_a_new_file_and_an_old_one_does_not(place: Home) -> None:
    days = [turn(1), turn(60 * 24), turn(2), turn(60 * 24 + 1), turn(60 * 48)]
    for receipt in days:
        append(place, receipt)
    assert [file.name[:17] for file in files(place)] == [
        "000001-2026-11-02",
        "000002-2026-11-03",
        "000003-2026-11-04",
    ]
    assert recent(place, 9) == days[::-1]


def test_a_receipt_without_a_good_date_is_kept_all_the_same(place: Home) -> None:
    odd = replace(turn(1), at="yesterday")
    assert append(place, odd) == ""
    assert append(place, turn(2)) == ""
    assert recent(place, 2) == [turn(2), odd]


def test_files_and_the_log_stay_small_and_the_oldest_go(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "MAX_FILE_BYTES", 4000)
    monkeypatch.setattr(receipts, "MAX_LOG_BYTES", 20_000)
    told = [turn(at) for at in range(200)]
    for receipt in told:
        assert append(place, receipt) == ""
        assert sum(file.stat().st_size for file in files(place)) <= 20_000
    assert all(file.stat().st_size <= 4000 for file in files(place))
    assert len(files(place)) >= 4
    kept = recent(place, 999)
    assert kept == told[::-1][: len(kept)]
    assert 20 < len(kept) < 200


def test_quiet_days_do_not_fill_the_folder(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "_MAX_FILES", 5)
    for day in range(12):
        append(place, turn(day * 60 * 24))
    assert len(files(place)) == 5
    assert len(recent(place, 99)) == 5


def test_other_files_in_the_folder_are_left_alone(place: Home) -> None:
    append(place, turn(1))
    (folder(place) / "notes.txt").write_text("mine\n")
    (folder(place) / "999999.jsonl").write_text("mine\n")
    append(place, turn(2))
    assert len(recent(place, 9)) == 2
    assert (folder(place) / "notes.txt").read_text() == "mine\n"


# What is in the way


def test_a_log_that_cannot_be_written_is_a_reason_and_no_error(place: Home) -> None:
    place.private.mkdir()
    folder(place).write_text("in the way")
    assert append(place, turn(1)).startswith("Could not keep the receipt: ")
    assert last(place) is None
    assert InjectionLog(place).digests(KEY) == {}


def test_a_home_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    assert append(Home(tmp_path / "gone"), turn(1)).startswith("Could not keep the receipt: ")
    assert not (tmp_path / "gone").exists()


def test_links_are_not_followed(place: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.private.mkdir()
    folder(place).symlink_to(elsewhere)
    assert append(place, turn(1)).startswith("Could not keep the receipt: ")
    assert list(elsewhere.iterdir()) == []
    folder(place).unlink()
    folder(place).mkdir()
    (folder(place) / "000001-2026-11-02.jsonl").symlink_to(elsewhere / "x")
    assert append(place, turn(1)).startswith("Could not keep the receipt: ")
    assert list(elsewhere.iterdir()) == []


def test_a_pipe_in_place_of_the_log_holds_up_nobody(place: Home) -> None:
    folder(place).mkdir(parents=True)
    os.mkfifo(folder(place) / "000001-2026-11-02.jsonl")
    assert append(place, turn(1)).startswith("Could not keep the receipt: ")
    assert last(place) is None
    assert InjectionLog(place).digests(KEY) == {}


WRITER = """
import sys
from pathlib import Path
from tacit.home.layout import Home
from tacit.context.receipts import append
from tests.context.test_receipts import dropped, turn
from dataclasses import replace
who = int(sys.argv[2])
for number in range(60):
    many = tuple(dropped(at, "weak") for at in range(number))
    receipt = replace(turn(number, key=f"agent:{who}:main"), dropped=many)
    assert append(Home(Path(sys.argv[1])), receipt) == ""
"""


def test_processes_that_add_at_once_never_mix_lines(place: Home) -> None:
    root = Path(__file__).parent.parent.parent
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(place.root), str(who)], cwd=root)
        for who in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for who in range(3):
        found = list(read_receipts(place, f"agent:{who}:main"))
        assert [len(receipt.dropped) for receipt in found] == list(range(60))[::-1]
    # A writer that meets another one's line half written begins a new one: an empty line does no harm.
    lines = [line for file in files(place) for line in file.read_bytes().splitlines() if line]
    assert len(lines) == 180
    assert all(decode_line(line) for line in lines)


# What a session was given


def test_given_tells_what_was_retrieved_and_how_many_turns_ago(place: Home) -> None:
    append(place, turn(1, "a", "b"))
    append(place, turn(2))
    append(place, turn(3, "a", "c"))
    append(place, turn(4, "other", key="agent:main:main"))
    append(place, turn(5, "another", id_="ses_2"))
    append(place, turn(6, "trial", trial=True))
    append(place, replace(turn(7), sections=(section("soul", "identity"), section(""))))
    assert InjectionLog(place).digests(KEY, "ses_1") == {"a": 2, "b": 4, "c": 2}
    assert InjectionLog(place).digests(KEY) == {"a": 3, "b": 5, "c": 3, "another": 2}
    assert InjectionLog(place).digests(KEY, "ses_1", START + timedelta(minutes=2)) == {"a": 2, "c": 2}
    assert InjectionLog(place).digests(KEY, "ses_9") == {}


def test_given_tells_the_labels_of_all_that_was_not_retrieved(place: Home) -> None:
    correction = replace(section("", "topics"), label="correction:python")
    append(place, replace(turn(1, "a"), sections=(correction, section("soul", "identity"), section("a"))))
    append(place, replace(turn(2), sections=(section("soul", "identity"),)))
    assert InjectionLog(place).labels(KEY) == {"correction:python": 2, "identity:x": 1}


def test_files_of_earlier_days_are_not_opened(place: Home) -> None:
    for day in range(3):
        append(place, turn(day * 60 * 24, f"day {day}"))
    files(place)[0].unlink()
    os.mkfifo(files(place)[0].with_name("000001-2026-11-02.jsonl"))
    since = START + timedelta(days=2)
    assert last(place, session_key="nobody", since=since) is None
    assert InjectionLog(place).digests(KEY, since=since) == {"day 2": 1}


def test_given_learns_what_is_new_and_reads_nothing_twice(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_before = InjectionLog(place)
    assert given_before.digests(KEY) == {}
    append(place, turn(1, "a"))
    assert given_before.digests(KEY) == {"a": 1}
    read: list[int] = []
    pread = os.pread

    def counted(fd: int, size: int, at: int) -> bytes:
        read.append(size)
        return pread(fd, size, at)

    monkeypatch.setattr(os, "pread", counted)
    assert given_before.digests(KEY) == {"a": 1}
    assert read == []
    line = encode_line(turn(2, "b"))
    append(place, turn(2, "b"))
    read.clear()
    assert given_before.digests(KEY) == {"a": 2, "b": 1}
    assert read == [len(line)]


def test_given_waits_for_the_rest_of_a_line(place: Home) -> None:
    given_before = InjectionLog(place)
    append(place, turn(1, "a"))
    [file] = files(place)
    line = encode_line(turn(2, "b"))
    with file.open("ab", buffering=0) as log:
        log.write(line[:40])
        assert given_before.digests(KEY) == {"a": 1}
        log.write(line[40:])
    assert given_before.digests(KEY) == {"a": 2, "b": 1}


def test_given_looks_further_back_when_asked_to(place: Home) -> None:
    for day in range(4):
        append(place, turn(day * 60 * 24, f"day {day}"))
    given_before = InjectionLog(place)
    assert given_before.digests(KEY, since=START + timedelta(days=3)) == {"day 3": 1}
    assert given_before.digests(KEY) == {"day 0": 4, "day 1": 3, "day 2": 2, "day 3": 1}
    assert given_before.digests(KEY, since=START + timedelta(days=2)) == {"day 2": 2, "day 3": 1}


def test_given_starts_anew_where_the_log_was_deleted(place: Home) -> None:
    given_before = InjectionLog(place)
    append(place, turn(1, "a"))
    assert given_before.digests(KEY) == {"a": 1}
    for file in files(place):
        file.rename(file.with_name("aside"))  # its inode stays in use
    append(place, turn(2, "b"))
    assert given_before.digests(KEY) == {"b": 1}


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.booleans(), st.booleans()), max_size=30))
def test_given_that_grew_is_given_that_reads_all(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool, bool]]
) -> None:
    place = Home(tmp_path_factory.mktemp("log"))
    grown = InjectionLog(place)
    for at, (digest, trial, look) in enumerate(steps):
        append(place, turn(at * 300, digest, trial=trial))
        if look:
            grown.digests(KEY)
    assert grown.digests(KEY) == InjectionLog(place).digests(KEY)
    turns = [digest for digest, trial, _ in reversed(steps) if not trial]
    assert InjectionLog(place).digests(KEY) == {digest: turns.index(digest) + 1 for digest in turns}
