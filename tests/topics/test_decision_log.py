"""The gate log: nothing is mixed or lost by accident, nothing is read that is no decision, nothing raises."""

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.home.layout import Home
from tacit.topics.decision_log import Decisions, GateCache, GateLog, decision_id
from tacit.topics.model import TopicDecision

MADE = TopicDecision(
    timestamp="2026-11-16T09:30:00.000001+01:00",
    message_hash="ab" * 32,
    topic_name="mail",
    tier1_matched=True,
    tier2_score=0.2512,
    outcome="activated",
    by="rule",
    reason="score 0.25 is enough",
    gate_result=True,
    channels={"bm25": 0.5},
)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path)


def folder(place: Home) -> Path:
    return place.private / "gate"


def numbered(count: int, first: int = 0) -> list[TopicDecision]:
    return [replace(MADE, timestamp=f"{first + n:06}") for n in range(count)]


def times(read: Decisions) -> list[str]:
    return [one.decision.timestamp for one in read]


def put(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


# ---------------------------------------------------------------- decisions


def test_what_is_added_is_read_again_in_order(place: Home) -> None:
    log = GateLog(place)
    second = replace(MADE, topic_name="Öfen \ud800", outcome="dropped", gate_result=None, channels={})
    assert log.append([MADE], "Hello there") == ""
    assert log.append([second, *numbered(2)]) == ""
    first, *rest = log.read()
    assert (first.decision, first.message) == (MADE, "Hello there")
    assert [one.decision for one in rest] == [second, *numbered(2)]
    assert first.id == decision_id(MADE.timestamp, MADE.message_hash, MADE.topic_name)


def test_a_line_holds_what_every_decision_is_logged_with(place: Home) -> None:
    GateLog(place).append([MADE])
    line = json.loads((folder(place) / "decisions.jsonl").read_text())
    assert {
        "timestamp",
        "message_hash",
        "topic_name",
        "tier1_matched",
        "tier2_score",
        "gate_result",
    } <= line.keys()


def test_of_a_message_only_the_beginning_is_kept_on_one_line(place: Home) -> None:
    log = GateLog(place)
    log.append([MADE], "a\n b\x00 " + "c" * 1000)
    (one,) = log.read()
    assert one.message == ("a b\x00 " + "c" * 1000)[:80]


@given(st.text(), st.text(max_size=50), st.floats(0, 1), st.text(max_size=50))
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, message: str, topic: str, score: float, reason: str
) -> None:
    log = GateLog(Home(tmp_path_factory.mktemp("any")))
    made = replace(MADE, topic_name=topic, tier2_score=round(score, 4), reason=reason)
    assert log.append([made], message) == ""
    assert [one.decision for one in log.read()] == [made]


def test_files_and_folders_are_for_the_owner_alone(place: Home) -> None:
    log = GateLog(place)
    log.append([MADE])
    log.mark("x", True, "now")
    GateCache(place).put("k", True)
    assert stat.S_IMODE(folder(place).stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder(place).iterdir()} == {0o600}


def test_an_empty_home_has_no_decisions(place: Home) -> None:
    read = GateLog(place).read()
    assert (list(read), read.broken) == ([], 0)
    assert GateLog(place).append([]) == ""
    assert not place.private.exists()


@pytest.mark.parametrize("line", [
    b"{", b"[]", b"7", b'"text"', b"null", b"{}", b"\xff\xfe", b"[" * 50_000, b"x" * 200_000,
    json.dumps({"id": 7}).encode(),
])  # fmt: skip
def test_a_line_that_is_no_decision_is_passed_over_and_counted(place: Home, line: bytes) -> None:
    log = GateLog(place)
    log.append(numbered(1))
    with (folder(place) / "decisions.jsonl").open("ab") as file:
        file.write(line + b"\n")
    log.append(numbered(1, 1))
    read = log.read()
    assert times(read) == ["000000", "000001"]
    assert read.broken >= 1


@pytest.mark.parametrize(("field", "value"), [
    ("tier2_score", float("nan")), ("tier2_score", "0.5"), ("tier2_score", True), ("outcome", "woke"),
    ("topic_name", None), ("channels", []), ("channels", {"a": "b"}), ("timestamp", 7),
])  # fmt: skip
def test_a_field_of_the_wrong_kind_makes_no_decision(place: Home, field: str, value: object) -> None:
    log = GateLog(place)
    log.append([MADE])
    file = folder(place) / "decisions.jsonl"
    put(file, json.dumps({**json.loads(file.read_text()), field: value}).encode() + b"\n")
    read = log.read()
    assert (list(read), read.broken) == ([], 1)


def test_what_a_full_disk_tore_does_not_take_the_next_line_with_it(place: Home) -> None:
    log = GateLog(place)
    log.append(numbered(2))
    file = folder(place) / "decisions.jsonl"
    put(file, file.read_bytes()[:-20])
    log.append(numbered(1, 2))
    read = log.read()
    assert times(read) == ["000000", "000002"]
    assert read.broken == 1


def test_a_full_log_moves_aside_and_the_oldest_goes(place: Home) -> None:
    log = GateLog(place, max_bytes=1000, old_files=2)
    for number in range(40):
        log.append(numbered(1, number))
    names = {file.name for file in folder(place).glob("decisions*")}
    assert {"decisions.1.jsonl", "decisions.2.jsonl"} <= names
    assert "decisions.3.jsonl" not in names
    kept = times(log.read())
    assert kept == [f"{number:06}" for number in range(40 - len(kept), 40)]
    assert 4 < len(kept) < 40


def test_threads_that_add_at_once_do_not_mix_lines(place: Home) -> None:
    log = GateLog(place, max_bytes=20_000, old_files=1000)

    def add(first: int) -> None:
        for number in range(100):
            assert log.append(numbered(2, first + 2 * number)) == ""

    threads = [threading.Thread(target=add, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = log.read()
    assert sorted(times(read)) == sorted(f"{1000 * n + m:06}" for n in range(4) for m in range(200))
    assert read.broken == 0


def no_folder(place: Home) -> None:
    put(place.private, b"a file in its place")


def a_folder_in_its_place(place: Home) -> None:
    for name in ("decisions", "marks", "cache"):
        (folder(place) / f"{name}.jsonl").mkdir(parents=True)


def a_link(place: Home) -> None:
    folder(place).mkdir(parents=True)
    put(place.root / "precious", b"precious\n")
    for name in ("decisions", "marks", "cache"):
        (folder(place) / f"{name}.jsonl").symlink_to(place.root / "precious")


def a_pipe(place: Home) -> None:
    folder(place).mkdir(parents=True)
    for name in ("decisions", "marks", "cache"):
        os.mkfifo(folder(place) / f"{name}.jsonl")


@pytest.mark.parametrize("spoil", [no_folder, a_folder_in_its_place, a_link, a_pipe])
def test_a_disk_that_refuses_gives_a_reason_and_never_raises(place: Home, spoil: object) -> None:
    assert callable(spoil)
    spoil(place)
    log, cache = GateLog(place), GateCache(place)
    assert "could not be written" in log.append([MADE])
    assert "could not be written" in log.mark("x", True, "now")
    cache.put("key", True)
    assert cache.get("key") is True
    assert list(log.read()) == []
    precious = place.root / "precious"
    assert not precious.exists() or precious.read_bytes() == b"precious\n"


# ---------------------------------------------------------------- marks


def test_a_mark_says_what_was_useful_and_the_last_one_counts(place: Home) -> None:
    log = GateLog(place)
    log.append(numbered(3))
    first, second, _ = log.read()
    log.mark(first.id, True, "now")
    log.mark(second.id, True, "now")
    log.mark(second.id, False, "later")
    put(folder(place) / "marks.jsonl", (folder(place) / "marks.jsonl").read_bytes() + b"{\n[]\n{}\n")
    assert [one.decision.was_useful for one in log.read()] == [True, False, None]


# ---------------------------------------------------------------- the cache


def test_the_next_process_knows_the_answers(place: Home) -> None:
    cache = GateCache(place)
    cache.put("a", True)
    cache.put("b", False)
    cache.put("a", False)
    again = GateCache(place)
    assert (again.get("a"), again.get("b"), again.get("c")) == (False, False, None)


def test_the_cache_keeps_what_was_used_last(place: Home) -> None:
    cache = GateCache(place, bound=3)
    for key in "abc":
        cache.put(key, True)
    cache.get("a")
    cache.put("d", True)
    assert [cache.get(key) for key in "abcd"] == [True, None, True, True]


def test_the_cache_file_stays_small(place: Home) -> None:
    cache = GateCache(place, bound=10)
    for number in range(200):
        cache.put(str(number), number % 2 == 0)
        assert len((folder(place) / "cache.jsonl").read_text().splitlines()) <= 20
    again = GateCache(place, bound=10)
    assert [again.get(str(number)) for number in range(190, 200)] == [True, False] * 5
    assert again.get("189") is None
    assert {file.name for file in folder(place).iterdir()} == {"cache.jsonl", "lock"}


def test_tidying_up_keeps_what_another_process_added(place: Home) -> None:
    mine, theirs = GateCache(place, bound=4), GateCache(place, bound=4)
    mine.put("mine", True)
    theirs.put("theirs", False)
    for _ in range(7):
        mine.put("mine", True)
    assert GateCache(place, bound=4).get("theirs") is False


def test_a_broken_cache_is_an_empty_one(place: Home) -> None:
    put(
        folder(place) / "cache.jsonl",
        b'\xff\n{"key": 1, "yes": true}\n{"key": "k", "yes": 1}\n[\n{"key":"a","yes":true}\n',
    )
    cache = GateCache(place)
    assert (cache.get("a"), cache.get("k")) == (True, None)


def test_two_decisions_have_two_ids() -> None:
    ids = {
        decision_id(*parts) for parts in [("t", "h", "a"), ("t", "h", "b"), ("t", "ha", ""), ("th", "", "a")]
    }
    assert len(ids) == 4
