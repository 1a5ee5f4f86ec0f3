"""Too much, too slow, too large: the others are served, and afterwards all is as before."""

from __future__ import annotations

import gzip
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tacit.config.schema import ServeSettings
from tacit.server.http import ConnectionLimits
from tacit.server.pool import Pool, WorkItem, WorkResult
from tests.server.conftest import (
    ECHO,
    GENEROUS,
    LONG,
    Held,
    Start,
    in_background,
    operation,
    request,
    resident_kb,
    until,
)

MOST_KB = 48 << 10  # of growth that is no sign of anything


def health(running: Any) -> Any:
    return running.ask("GET", "/v1/health").json


def load(running: Any) -> tuple[int, int]:
    """How many calls run, and how many wait."""
    told = health(running)
    return told["workers"]["busy"], told["waiting"]


# ---------------------------------------------------------------- too much


def test_when_all_workers_are_busy_and_enough_wait_the_next_is_refused_at_once(
    start: Start, held: Held
) -> None:
    running = start(operation("message", held), serve=ServeSettings(workers=2, waiting=3))
    asking = [in_background(lambda: running.ask("POST", "/v1/message", {})) for _ in range(5)]
    until(lambda: load(running) == (2, 3))
    for _ in range(20):
        answer = running.ask("POST", "/v1/message", {})
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "busy", "1")
    held.go.set()
    assert [one().status for one in asking] == [200] * 5
    assert held.ran == 5, "what was refused was not done"
    assert running.ask("POST", "/v1/message", {}).status == 200
    assert running.metrics.refused.value("busy") == 20
    assert len(running.said("busy")) == 1, "the log does not grow with the load"


def test_long_operations_leave_a_worker_for_turns_and_messages(start: Start, held: Held) -> None:
    running = start(
        operation("search", held),
        operation("turn", lambda body: {"text": "made"}, is_turn=True),
        operation("message", lambda body: {"kept": True}),
        serve=ServeSettings(workers=3, waiting=8),
    )
    asking = [in_background(lambda: running.ask("POST", "/v1/search", {})) for _ in range(6)]
    until(lambda: load(running) == (2, 4))
    for _ in range(5):
        assert running.ask("POST", "/v1/turn", {}).json == {"text": "made"}
        assert running.ask("POST", "/v1/message", {}).json == {"kept": True}
    held.go.set()
    assert [one().status for one in asking] == [200] * 6


def test_long_operations_do_not_take_all_places_to_wait(start: Start, held: Held) -> None:
    running = start(
        operation("search", held),
        operation("turn", held, is_turn=True),
        serve=ServeSettings(workers=2, waiting=4),
    )
    asking = [in_background(lambda: running.ask("POST", "/v1/search", {})) for _ in range(4)]
    until(lambda: load(running) == (1, 3))
    assert running.ask("POST", "/v1/search", {}).status == 503
    asking += [in_background(lambda: running.ask("POST", "/v1/turn", {})) for _ in range(2)]
    until(lambda: load(running) == (2, 4))
    assert running.ask("POST", "/v1/turn", {}).status == 503
    held.go.set()
    assert [one().status for one in asking] == [200] * 6


def test_a_single_worker_also_does_long_operations(start: Start) -> None:
    running = start(operation("search", lambda body: {"hits": []}), serve=ServeSettings(workers=1, waiting=0))
    assert [running.ask("POST", "/v1/search", {}).status for _ in range(3)] == [200] * 3


def test_after_ten_times_too_much_it_is_as_before(start: Start) -> None:
    """More clients than there is room for, each of them asking again at once."""

    def work(body: Any) -> dict[str, Any]:
        time.sleep(0.002)
        return {"text": "x" * 1000}

    running = start(operation("message", work), serve=ServeSettings(workers=2, waiting=2))
    statuses: list[int] = []

    def client() -> None:
        with running.line() as line:
            statuses.extend(line.ask("POST", "/v1/message", b"{}").status for _ in range(40))

    client()
    before = resident_kb()
    threads = [threading.Thread(target=client) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 41 * 40
    assert set(statuses) == {200, 503}
    assert resident_kb() - before < MOST_KB
    until(lambda: load(running) == (0, 0) and health(running)["connections"] == 1)
    assert health(running)["status"] == "ok"
    assert running.ask("POST", "/v1/message", {}).status == 200


# ---------------------------------------------------------------- workers that hang


def hang(running: Any, held: Held) -> None:
    """Ask for turns until one of them has begun: the time of the first may be over before that."""
    while not held.begun.acquire(blocking=False):
        assert running.ask("POST", "/v1/turn", {"deadline_ms": 20}).json["skipped"] == "deadline"


def test_a_worker_that_hangs_is_replaced_and_everybody_is_told(start: Start, held: Held) -> None:
    running = start(
        operation("turn", held, is_turn=True),
        operation("message", lambda body: {}),
        serve=ServeSettings(workers=1),
        stuck=0.1,
    )
    hang(running, held)
    until(lambda: health(running)["workers"] == {"count": 1, "busy": 0, "stuck": 1})
    told = health(running)
    assert (told["status"], told["given_up"]) == ("degraded", 1)
    assert "hang" in told["problems"][0]
    (line,) = running.said("stuck")
    assert (line["operation"], line["workers"], line["stuck"]) == ("turn", 1, 1)
    assert running.metrics.stuck.value() == 1
    assert running.ask("POST", "/v1/message", {}).status == 200
    held.go.set()
    until(lambda: health(running)["workers"] == {"count": 1, "busy": 0, "stuck": 0})
    assert health(running)["status"] == "ok"
    assert running.ask("POST", "/v1/message", {}).status == 200


def test_when_nobody_is_left_to_work_everything_is_refused_at_once_until_one_comes_back(
    start: Start, held: Held
) -> None:
    running = start(
        operation("turn", held, is_turn=True),
        operation("message", lambda body: {}),
        serve=ServeSettings(workers=1),
        stuck=0.05,
    )
    while (workers := health(running)["workers"])["count"]:
        assert workers["stuck"] < 10, "the spare ones have an end"
        hang(running, held)
        until(lambda: health(running)["workers"]["busy"] == 0)
    assert running.ask("POST", "/v1/message", {}).status == 503
    assert running.ask("POST", "/v1/turn", {}).status == 503
    assert running.ask("GET", "/metrics").status == 200
    held.go.set()
    until(lambda: health(running)["workers"] == {"count": 1, "busy": 0, "stuck": 0})
    assert running.ask("POST", "/v1/message", {}).status == 200


@pytest.fixture
def pool() -> Iterator[Pool]:
    one = Pool("test", 2, 2, spare=1)
    yield one
    one.close()


def job(call: Any, done: Any, **options: Any) -> WorkItem:
    return WorkItem(
        "x", call, done, **{"latest": time.monotonic() + GENEROUS, "limit": float("inf"), **options}
    )


def test_a_pool_gives_back_what_a_call_returns_or_raises(pool: Pool) -> None:
    outcomes: list[WorkResult] = []
    assert pool.admit(job(lambda: 3, outcomes.append))
    until(lambda: len(outcomes) == 1)
    assert pool.admit(job(lambda: 1 / 0, outcomes.append))
    until(lambda: len(outcomes) == 2)
    assert outcomes[0] == WorkResult(3)
    assert isinstance(outcomes[1].error, ZeroDivisionError)
    assert pool.idle()


def test_what_waits_can_be_taken_back_and_what_runs_cannot(pool: Pool, held: Held) -> None:
    ran: list[str] = []
    running = [job(lambda: held({}), lambda _: None) for _ in range(2)]
    waiting = job(lambda: ran.append("x"), lambda _: None)
    for one in (*running, waiting):
        assert pool.admit(one)
    held.wait_begun()
    held.wait_begun()
    assert not pool.drop(running[0])
    assert pool.drop(waiting)
    assert not pool.drop(waiting)
    held.go.set()
    until(pool.idle)
    assert ran == []


def test_urgent_calls_go_before_patient_ones(held: Held) -> None:
    order: list[str] = []
    pool = Pool("test", 1, 2)
    assert pool.admit(job(lambda: held({}), lambda _: None))
    held.wait_begun()
    assert pool.admit(job(lambda: order.append("patient"), lambda _: None, kind="long"))
    assert pool.admit(job(lambda: order.append("urgent"), lambda _: None))
    pool.close()
    held.go.set()
    until(lambda: len(order) == 2)
    assert order == ["urgent", "patient"]


def test_no_more_compute_at_once_than_may_and_records_are_kept_all_the_same(held: Held) -> None:
    pool, kept = Pool("test", 4, 8, at_once=2), threading.Event()
    for _ in range(5):
        assert pool.admit(job(lambda: held({}), lambda _: None, kind="turn"))
    held.wait_begun()
    held.wait_begun()
    assert pool.admit(job(kept.set, lambda _: None))
    assert kept.wait(GENEROUS)
    standing = pool.standing()
    assert (standing.running, standing.waiting) == (2, 3)
    held.go.set()
    until(pool.idle)
    assert held.ran == 5
    pool.close()


def test_records_without_end_leave_a_thread_for_turns() -> None:
    pool, order, go = Pool("test", 2, 9, at_once=1), list[str](), [threading.Event() for _ in range(2)]
    for event in go:
        assert pool.admit(job(event.wait, lambda _: None))
    until(lambda: pool.standing().running == 2)
    for _ in range(3):
        assert pool.admit(job(lambda: order.append("record"), lambda _: None))
    assert pool.admit(job(lambda: order.append("turn"), lambda _: None, kind="turn"))
    go[0].set()
    until(lambda: len(order) == 4)
    assert order == ["turn", "record", "record", "record"]
    go[1].set()
    pool.close()


def test_a_turn_whose_time_is_over_leaves_its_place_to_the_next(held: Held) -> None:
    pool, ran = Pool("test", 2, 8, at_once=1), threading.Event()
    first = job(lambda: held({}), lambda _: None, kind="turn")
    assert pool.admit(first)
    held.wait_begun()
    first.latest = time.monotonic() + 0.05
    assert pool.admit(job(ran.set, lambda _: None, kind="turn"))
    assert ran.wait(GENEROUS), "nobody has to come back for that"
    held.go.set()
    pool.close()


def test_a_turn_that_would_be_late_as_turns_go_now_is_refused_at_once(held: Held) -> None:
    pool = Pool("test", 2, 8, at_once=1)
    assert pool.admit(job(lambda: time.sleep(0.3), lambda _: None, kind="turn"))
    until(pool.idle)
    hurried = {"kind": "turn", "latest": time.monotonic() + 0.3}
    assert pool.admit(job(lambda: None, lambda _: None, **hurried)), "nobody is before it"
    until(pool.idle)
    assert pool.admit(job(lambda: held({}), lambda _: None, kind="turn"))
    held.wait_begun()
    hurried = {"kind": "turn", "latest": time.monotonic() + 0.3}
    assert not pool.admit(job(lambda: None, lambda _: None, **hurried))
    assert pool.admit(job(lambda: None, lambda _: None, kind="turn")), "this one has time"
    held.go.set()
    until(pool.idle)
    pool.close()


def test_the_spare_threads_of_a_pool_have_an_end(pool: Pool, held: Held) -> None:
    for count, threads in ((1, 2), (2, 1), (3, 0)):
        assert pool.admit(job(lambda: held({}), lambda _: None, limit=0.0))
        held.wait_begun()
        assert len(pool.give_up_stuck(time.monotonic())) == 1
        assert pool.give_up_stuck(time.monotonic()) == [], "each is told once"
        assert (pool.standing().stuck, pool.standing().threads) == (count, threads)
    assert not pool.admit(job(lambda: None, lambda _: None))
    held.go.set()
    until(lambda: pool.standing().stuck == 0)
    assert pool.standing().threads == 2


def test_a_closed_pool_does_what_it_let_in_and_takes_no_more(pool: Pool, held: Held) -> None:
    done: list[WorkResult] = []
    for _ in range(4):
        assert pool.admit(job(lambda: held({}), done.append))
    held.wait_begun()
    pool.close()
    assert not pool.admit(job(lambda: None, done.append))
    held.go.set()
    until(lambda: len(done) == 4)
    until(lambda: pool.standing().threads == 0)


# ---------------------------------------------------------------- too large, too slow, too many


def test_a_gzip_bomb_is_not_opened(start: Start) -> None:
    running = start(ECHO)
    bomb = gzip.compress(b"\0" * 50_000_000, 9)
    before = resident_kb()
    answer = running.ask("POST", "/v1/echo", bomb, {"Content-Encoding": "gzip"})
    assert (answer.status, answer.code) == (415, "encoding")
    assert running.ask("POST", "/v1/echo", bomb).status == 400
    assert running.ask("POST", "/v1/echo", bomb, {"Transfer-Encoding": "gzip, chunked"}).status == 501
    assert resident_kb() - before < MOST_KB


def test_a_gigabyte_is_neither_kept_nor_read_to_its_end(start: Start) -> None:
    running = start(ECHO)
    before = resident_kb()
    piece, sent = b"x" * (1 << 20), 0
    with running.line() as line:
        line.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n")
        while sent < 1 << 30:
            try:
                line.send(piece)
            except ConnectionError:
                break
            sent += len(piece)
            assert resident_kb() - before < MOST_KB
    assert sent < 200 << 20
    assert running.ask("POST", "/v1/echo", {}).status == 200


@pytest.fixture
def many_files() -> Iterator[int]:
    """How many connections this test can have on both ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield min(1000, (max(soft, wanted) - 600) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("begun", [b"", b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_thousand_half_open_connections_keep_nobody_out(
    start: Start, many_files: int, begun: bytes
) -> None:
    assert many_files >= 200, "the system allows too few files for this test"
    running = start(ECHO, limits=ConnectionLimits(connections=many_files // 2, head_seconds=LONG))
    before = resident_kb()
    with ExitStack() as open_ones:
        for number in range(many_files):
            line = open_ones.enter_context(running.line())
            line.send(begun)
            if number % 50 == 0:
                assert running.ask("POST", "/v1/echo", {"n": number}).json == {"echo": {"n": number}}
        with running.line() as kept:
            for _ in range(20):
                assert kept.ask("POST", "/v1/echo", b"{}").status == 200
        assert health(running)["connections"] <= many_files // 2
        assert running.metrics.closed.value("crowded") >= many_files // 2
        assert resident_kb() - before < MOST_KB
    until(lambda: health(running)["connections"] == 1)


def test_slow_senders_are_given_up_while_others_are_served(start: Start) -> None:
    running = start(ECHO)
    slow = request("POST", "/v1/echo", b'{"a": 1}')
    with ExitStack() as open_ones:
        lines = [open_ones.enter_context(running.line()) for _ in range(50)]
        for line in lines:
            line.send(slow[:40])
        until(lambda: running.phases() == ["head"] * 50)
        running.pass_by(LONG)
        for number in range(50):
            assert running.ask("POST", "/v1/echo", {"n": number}).status == 200
        assert {line.answer().status for line in lines} == {408}
    assert running.ask("GET", "/v1/health").status == 200


def test_few_files_mean_few_connections_and_not_the_end(start: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    running = start(ECHO)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, hard))
    try:
        with ExitStack() as open_ones, suppress(OSError):
            for _ in range(100):
                open_ones.enter_context(running.line())
            raise AssertionError("there were files enough for all of them")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert running.ask("POST", "/v1/echo", {}).status == 200


def test_a_server_with_few_files_allows_fewer_connections(start: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        assert start(ECHO).server._connections.limits.connections == 150
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---------------------------------------------------------------- large records


def test_large_records_are_made_one_at_a_time_and_leave_a_thread_for_turns(held: Held) -> None:
    pool, turned = Pool("test", 3, 20, at_once=2), threading.Event()
    for _ in range(5):
        assert pool.admit(job(lambda: held({}), lambda _: None, kind="large"))
    held.wait_begun()
    for _ in range(5):  # behind it in its conversation
        assert pool.admit(job(lambda: held.go.wait(GENEROUS), lambda _: None))
    until(lambda: pool.standing().running == 2)
    assert pool.admit(job(turned.set, lambda _: None, kind="turn"))
    assert turned.wait(GENEROUS)
    assert (pool.standing().running, pool.standing().waiting) == (2, 8)
    held.go.set()
    until(pool.idle)
    assert held.ran == 5, "all are kept in the end"
    pool.close()


def test_no_number_of_large_records_that_hang_takes_all_threads(held: Held) -> None:
    pool, turned = Pool("test", 2, 20, spare=1), threading.Event()
    for _ in range(8):
        assert pool.admit(job(lambda: held({}), lambda _: None, kind="large", limit=0.0))
    held.wait_begun()
    assert len(pool.give_up_stuck(time.monotonic())) == 1
    for _ in range(3):
        assert pool.give_up_stuck(time.monotonic()) == [], "the next does not begin before it is back"
    assert pool.admit(job(turned.set, lambda _: None, kind="turn"))
    assert turned.wait(GENEROUS)
    assert pool.standing().threads == 2
    held.go.set()
    until(pool.idle)
    pool.close()


def test_of_large_records_only_a_few_may_wait(held: Held) -> None:
    pool = Pool("test", 2, 100)
    assert pool.admit(job(lambda: held({}), lambda _: None, kind="large"))
    held.wait_begun()
    large = [pool.admit(job(lambda: None, lambda _: None, kind="large")) for _ in range(20)]
    assert large == [True] * 8 + [False] * 12
    assert pool.admit(job(lambda: None, lambda _: None)), "others may"
    held.go.set()
    until(pool.idle)
    pool.close()


def test_a_record_of_megabytes_does_not_keep_turns_from_the_workers(start: Start, held: Held) -> None:
    running = start(
        operation("message", held),
        operation("turn", lambda body: {"text": "made"}, is_turn=True),
        serve=ServeSettings(workers=2, waiting=8),
    )
    large = {"text": "x" * 1_000_000}
    asking = [in_background(lambda: running.ask("POST", "/v1/message", large)) for _ in range(4)]
    held.wait_begun()
    until(lambda: load(running) == (1, 3))
    for _ in range(5):
        assert running.ask("POST", "/v1/turn", {}).json == {"text": "made"}
    held.go.set()
    assert [one().status for one in asking] == [200] * 4
