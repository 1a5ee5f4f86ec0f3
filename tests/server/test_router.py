"""From a request to an operation and back: addresses, bodies, deadlines, failures, the end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tacit.config.schema import ServeSettings
from tacit.errors import (
    Busy,
    ChangedOnDisk,
    ConfigError,
    DiskError,
    GitError,
    HomeError,
    SessionError,
    TacitError,
    UsageError,
)
from tacit.memory import Memory
from tacit.operations.catalog import OPERATIONS, Operation
from tacit.operations.handlers import OperationContext
from tacit.sessions.registry import SessionRegistry
from tacit.version import VERSION
from tests.server.conftest import (
    ECHO,
    GENEROUS,
    Answer,
    Body,
    Held,
    Running,
    Start,
    echo,
    in_background,
    noting,
    operation,
    real_operations,
    request,
    until,
)

PRIVATE = "the-name-of-a-private-note"


def raising(error: BaseException, *, is_turn: bool = False) -> Any:
    def run(body: Body) -> dict[str, Any]:
        raise error

    return operation("fails", run, is_turn=is_turn)


# ---------------------------------------------------------------- what is asked


def test_an_operation_gets_the_object_in_the_body(start: Start) -> None:
    body = {"text": "grüße 🔥", "list": [1, 2.5, None, True], "object": {"a": "b"}}
    assert start(ECHO).ask("POST", "/v1/echo", body).json == {"echo": body}


def test_a_get_takes_its_fields_from_the_address(start: Start) -> None:
    running = start(
        operation("list", echo, method="GET"), operation("one", echo, method="GET", path="/v1/one/{id}")
    )
    assert running.ask("GET", "/v1/list?limit=5&session_key=a%3Ab&x=").json["echo"] == {
        "limit": "5",
        "session_key": "a:b",
        "x": "",
    }
    assert running.ask("GET", "/v1/one/r%2F1?id=other&a=b").json["echo"] == {"id": "r/1", "a": "b"}
    assert running.ask("GET", "/v1/one/gr%C3%BC%C3%9Fe").json["echo"] == {"id": "grüße"}
    for target in ("/v1/one/", "/v1/one", "/v1/one/a/b", "/v1/list/", "//v1/list", "/v1/LIST"):
        assert running.ask("GET", target).status == 404
    for target in ("/v1/one/%FF", "/v1/list?a=%FF", "/v1/list?" + "a=b&" * 60):
        assert running.ask("GET", target).status == 400


@pytest.mark.parametrize("target", ["http://evil/v1/echo", "evil", "*"])
def test_only_a_path_is_an_address(start: Start, target: str) -> None:
    assert start(ECHO).ask("POST", target, {}).status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b" ",
        b"{}{}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": ' + b"9" * 20 + b"}",
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b"\xff\xfe{\0}\0",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"a": "\x00"}',
        b"{'a': 1}",
        b'{"a": 1,}',
        b"\x1f\x8b\x08\x00",
    ],
)
def test_a_body_that_is_no_json_object_is_refused_in_words(start: Start, body: bytes) -> None:
    running = start(ECHO)
    answer = running.ask("POST", "/v1/echo", body)
    assert (answer.status, answer.code) == (400, "usage")
    assert len(answer.json["error"]["message"]) < 200
    assert running.ask("POST", "/v1/echo", b"{}").status == 200
    assert running.said("bug") == []


def test_an_empty_body_is_told_what_to_send(start: Start) -> None:
    answer = start(ECHO).ask("POST", "/v1/echo", headers={"Content-Length": "0"})
    assert answer.status == 400
    assert "{}" in answer.json["error"]["message"]


def test_half_a_character_does_not_break_a_turn(start: Start) -> None:
    """JavaScript cuts texts between the halves of one."""
    answer = start(ECHO).ask("POST", "/v1/echo", b'{"a": "\\ud83d", "\\udd25": "\\u0000"}')
    assert answer.json == {"echo": {"a": "\ud83d", "\udd25": "\0"}}


def test_a_large_body_is_read_as_well_as_a_small_one(start: Start) -> None:
    body = {"history": [{"role": "user", "text": f"number {n}"} for n in range(5000)]}
    running = start(ECHO)
    assert running.ask("POST", "/v1/echo", body).json == {"echo": body}
    assert running.ask("POST", "/v1/echo", b"[" * 900_000).status == 400


# ---------------------------------------------------------------- what is answered when it fails


@pytest.mark.parametrize(
    ("error", "status", "code", "message"),
    [
        (UsageError("'limit' must be a whole number."), 400, "usage", "'limit' must be a whole number."),
        (Busy("Another process works. Try again."), 503, "busy", "Another process works. Try again."),
        (DiskError("Could not write: the disk is full."), 500, "disk", "Could not write: the disk is full."),
        (ChangedOnDisk("a.md"), 500, "store", "a.md changed"),
        (ConfigError("memory-config.yaml", 3, "No."), 500, "config", "memory-config.yaml:3: No."),
        (HomeError("There is no home."), 500, "home", "There is no home."),
        (SessionError("It is sealed."), 500, "session", "It is sealed."),
        (GitError("git failed.", f"fatal: {PRIVATE}"), 500, "git", "git failed."),
        (TacitError("Something."), 500, "failed", "Something."),
        (OSError(28, "No space left on device", PRIVATE), 500, "system", "No space left on device"),
        (OSError(PRIVATE), 500, "system", "no reason given"),
        (KeyError(PRIVATE), 500, "bug", "daemon.log"),
        (RecursionError(PRIVATE), 400, "usage", "nested too deeply"),
        (MemoryError(), 500, "bug", "daemon.log"),
        (SystemExit(3), 500, "bug", "daemon.log"),
    ],
)
def test_every_failure_has_a_status_a_code_and_words(
    start: Start, error: BaseException, status: int, code: str, message: str
) -> None:
    running = start(raising(error), ECHO)
    answer = running.ask("POST", "/v1/fails", {})
    assert (answer.status, answer.code) == (status, code)
    assert message in answer.json["error"]["message"]
    assert PRIVATE not in answer.body.decode()
    assert (status == 503) == ("retry-after" in answer.headers)
    assert running.ask("POST", "/v1/echo", {}).status == 200


def test_what_nobody_foresaw_is_in_the_log_with_its_trace_and_the_caller_gets_the_reference(
    start: Start,
) -> None:
    running = start(raising(ZeroDivisionError("oh")))
    answer = running.ask("POST", "/v1/fails", {})
    (line,) = running.said("bug")
    assert line["reference"] in answer.json["error"]["message"]
    assert "ZeroDivisionError" in line["trace"]
    assert "ZeroDivisionError" not in answer.body.decode()
    assert running.metrics.bugs.value() == 1


def test_a_turn_that_fails_tells_the_host_nothing_of_the_home(start: Start) -> None:
    """The host may show it to whoever is in the session."""
    running = start(raising(ChangedOnDisk(PRIVATE), is_turn=True))
    answer = running.ask("POST", "/v1/fails", {})
    assert (answer.status, answer.code) == (500, "store")
    assert PRIVATE not in answer.body.decode()
    assert PRIVATE in running.said("store")[0]["error"]


def test_an_answer_that_is_no_json_is_a_bug_and_not_the_end(start: Start) -> None:
    running = start(operation("odd", lambda body: {"a": {1, 2}}), ECHO)
    assert running.ask("POST", "/v1/odd", {}).code == "bug"
    assert running.ask("POST", "/v1/echo", {}).status == 200


# ---------------------------------------------------------------- deadlines


def test_a_turn_is_told_how_much_time_is_left(start: Start) -> None:
    running = start(operation("turn", echo, is_turn=True), deadline_ms=50_000)
    left = running.ask("POST", "/v1/turn", {}).json["echo"]["deadline_ms"]
    assert 0 < left <= 50_000
    left = running.ask("POST", "/v1/turn", {"deadline_ms": 9_000}).json["echo"]["deadline_ms"]
    assert 0 < left <= 9_000


def test_the_time_that_a_turn_waited_is_taken_off(start: Start, held: Held) -> None:
    running = start(
        operation("slow", held),
        operation("turn", echo, is_turn=True),
        serve=ServeSettings(workers=1),
        deadline_ms=50_000,
    )
    busy = in_background(lambda: running.ask("POST", "/v1/slow", {}))
    held.wait_begun()
    waiting = in_background(lambda: running.ask("POST", "/v1/turn", {}))
    until(lambda: running.ask("GET", "/v1/health").json["waiting"] == 1)
    began = time.monotonic()
    threading.Event().wait(0.2)
    waited = (time.monotonic() - began) * 1000
    held.go.set()
    assert busy().status == 200
    assert waiting().json["echo"]["deadline_ms"] <= 50_000 - waited


def test_a_turn_that_is_not_ready_in_time_is_answered_with_nothing(start: Start, held: Held) -> None:
    running = start(operation("turn", held, is_turn=True), deadline_ms=1000)
    answer = running.ask("POST", "/v1/turn", {"lane": "runtime"})
    assert answer.status == 200
    assert answer.json.pop("notices")[0]["code"] == "deadline"
    assert {key: value for key, value in answer.json.items() if key != "notices"} == {
        "text": "",
        "tokens": 0,
        "budget": 0,
        "sections": [],
        "dropped": [],
        "receipt": "",
        "timings_ms": {},
        "session_type": "",
        "skipped": "deadline",
    }
    assert running.said("deadline")[0]["begun"] is True
    assert running.metrics.turns.value("runtime", "deadline") == 1
    held.go.set()
    until(lambda: running.metrics.late.value() == 1)


def test_a_bootstrap_that_is_not_ready_in_time_leaves_the_hosts_files_alone(start: Start, held: Held) -> None:
    running = start(operation("bootstrap", held, is_turn=True), deadline_ms=100)
    for given in ([{"name": "SOUL.md", "content": "I am."}], [], None):
        answer = running.ask("POST", "/v1/bootstrap", {"files": given}).json
        assert (answer["files"], answer["changed"], answer["skipped"]) == (given, False, "deadline")


def test_a_turn_that_could_not_begin_in_time_is_never_begun(start: Start, held: Held) -> None:
    ran: list[str] = []
    running = start(
        operation("slow", held),
        operation("turn", noting(ran), is_turn=True),
        serve=ServeSettings(workers=1),
    )
    busy = in_background(lambda: running.ask("POST", "/v1/slow", {}))
    held.wait_begun()
    answer = running.ask("POST", "/v1/turn", {"deadline_ms": 50})
    assert (answer.status, answer.json["skipped"]) == (200, "deadline")
    assert "No worker" in answer.json["notices"][0]["text"]
    held.go.set()
    assert busy().status == 200
    assert running.ask("POST", "/v1/turn", {}).status == 200
    assert len(ran) == 1


@pytest.mark.parametrize("deadline", [-1, "100", 1.5, True, [], 10**18])
def test_a_deadline_that_is_none_is_refused_or_bounded(start: Start, deadline: object) -> None:
    running = start(operation("turn", echo, is_turn=True))
    answer = running.ask("POST", "/v1/turn", {"deadline_ms": deadline})
    if deadline == 10**18:
        assert answer.json["echo"]["deadline_ms"] <= 60_000
    else:
        assert (answer.status, "deadline_ms" in answer.json["error"]["message"]) == (400, True)


def test_a_turn_without_any_time_is_answered_with_nothing(start: Start) -> None:
    running = start(operation("turn", echo, is_turn=True))
    key = "agent:main:telegram:direct:7"
    answer = running.ask("POST", "/v1/turn", {"deadline_ms": 0, "session_key": key}).json
    assert answer["skipped"] == "deadline"
    assert "deadline was over" in answer["notices"][0]["text"]  # and not that all workers were busy
    assert running.said("deadline")[0]["session_key"] == key


def test_what_was_said_may_be_longer_than_what_is_asked(start: Start) -> None:
    running = start(operation("message", echo), ECHO, serve=ServeSettings(max_request_kb=16))
    body = {"text": "x" * 1_500_000}
    assert running.ask("POST", "/v1/message", body).json["echo"] == body
    assert running.ask("POST", "/v1/echo", body).status == 413
    pieces = b"ffff\r\n%s\r\n" % (b" " * 0xFFFF)
    with running.line() as line:
        line.send(request("POST", "/v1/message", headers={"Transfer-Encoding": "chunked"}))
        line.send(pieces * 20 + b"2\r\n{}\r\n0\r\n\r\n")
        assert line.answer("POST").status == 200


def test_what_is_no_turn_is_given_up_after_its_time_and_may_still_be_done(start: Start, held: Held) -> None:
    running = start(operation("message", held), serve=ServeSettings(request_seconds=1))
    answer = running.ask("POST", "/v1/message", {})
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (504, "timeout", "1")
    held.go.set()
    until(lambda: held.ran == 1)


def test_turns_are_counted_by_what_became_of_them(start: Start) -> None:
    def turn(body: Body) -> dict[str, Any]:
        return {
            "text": "x",
            "tokens": 7,
            "skipped": body.get("why"),
            "notices": [{"code": "index", "text": PRIVATE}],
        }

    running = start(operation("turn", turn, is_turn=True))
    running.ask("POST", "/v1/turn", {"why": "", "session_key": PRIVATE})
    running.ask("POST", "/v1/turn", {"why": "heartbeat", "lane": "runtime"})
    running.ask("POST", "/v1/turn", {"why": f"because of {PRIVATE}", "lane": PRIVATE})
    text = running.ask("GET", "/metrics").body.decode()
    assert 'tacit_turns_total{lane="prompt",skipped=""} 1' in text
    assert 'tacit_turns_total{lane="runtime",skipped="heartbeat"} 1' in text
    assert 'tacit_turns_total{lane="prompt",skipped="other"} 1' in text
    assert 'tacit_turn_notices_total{code="index"} 3' in text
    assert "tacit_tokens_given_total 21" in text
    assert PRIVATE not in text


# ---------------------------------------------------------------- the server's own


def test_health_tells_who_answers(start: Start) -> None:
    told = start(ECHO).ask("GET", "/v1/health").json
    assert (told["status"], told["version"], told["problems"]) == ("ok", VERSION, [])
    assert told["workers"] == {"count": 4, "busy": 0, "stuck": 0}


def test_health_tells_what_others_add_and_does_not_depend_on_them(start: Start, held: Held) -> None:
    assert start(ECHO, about=lambda: {"index": "warm"}).ask("GET", "/v1/health").json["index"] == "warm"
    failing = start(ECHO, about=lambda: {"a": {}}[PRIVATE]).ask("GET", "/v1/health")
    assert (failing.status, failing.json["status"]) == (200, "degraded")
    assert PRIVATE not in failing.body.decode()
    ill = start(ECHO, about=lambda: {"problems": ["The disk is full."]}).ask("GET", "/v1/health").json
    assert (ill["status"], ill["problems"]) == ("degraded", ["The disk is full."])
    hanging = start(ECHO, about=lambda: held({}), look=0.2).ask("GET", "/v1/health").json
    assert "in time" in hanging["problems"][0]


def test_metrics_tell_even_when_somebody_elses_number_hangs(start: Start, held: Held) -> None:
    running = start(ECHO, look=0.2)
    running.metrics.gauge("tacit_odd", "It hangs.", lambda: float(held({})["tokens"]))
    answer = running.ask("GET", "/metrics")
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    assert "tacit_workers 4" in answer.body.decode()
    assert "tacit_odd" not in answer.body.decode()


def test_requests_are_counted_by_operation_and_status(start: Start) -> None:
    running = start(ECHO)
    running.ask("POST", "/v1/echo", {})
    running.ask("POST", "/v1/echo", b"{")
    running.ask("GET", f"/{PRIVATE}")
    text = running.ask("GET", "/metrics").body.decode()
    assert 'tacit_requests_total{operation="echo",status="200"} 1' in text
    assert 'tacit_requests_total{operation="echo",status="400"} 1' in text
    assert 'tacit_requests_total{operation="none",status="404"} 1' in text
    assert 'tacit_request_seconds_count{operation="echo"} 2' in text
    assert PRIVATE not in text


# ---------------------------------------------------------------- the end


def begin_stop(running: Running) -> Any:
    def stop() -> bool:
        running.stop(GENEROUS)
        return True

    return in_background(stop)


def test_whoever_asks_for_the_end_is_answered_and_then_it_is_up_to_the_process(start: Start) -> None:
    running = start(ECHO)
    assert not running.server.stop_requested.is_set()
    answer = running.ask("POST", "/v1/stop")
    assert (answer.status, answer.json["stopping"]) == (202, True)
    asyncio.run_coroutine_threadsafe(running.server.stop_requested.wait(), running.loop).result(GENEROUS)


def test_what_was_let_in_is_finished_before_the_end(start: Start, held: Held) -> None:
    """Also what still waited, and what nobody waits for any more."""
    running = start(operation("message", held), serve=ServeSettings(workers=1))
    asking: list[Any] = [in_background(lambda: running.ask("POST", "/v1/message", {"n": 1}))]
    held.wait_begun()
    asking.append(in_background(lambda: running.ask("POST", "/v1/message", {"n": 2})))
    with running.line() as gone:
        gone.send(request("POST", "/v1/message", b'{"n": 3}'))
        until(lambda: running.ask("GET", "/v1/health").json["waiting"] == 2)
    stopped = begin_stop(running)
    held.go.set()
    answers: list[Answer] = [one() for one in asking]
    assert [answer.json["echo"]["n"] for answer in answers] == [1, 2]
    assert all(answer.headers["connection"] == "close" for answer in answers)
    assert stopped()
    assert held.ran == 3


def test_at_the_end_idle_connections_are_closed_and_new_ones_are_not_made(start: Start, held: Held) -> None:
    running = start(operation("message", held), ECHO)
    with running.line() as idle, running.line() as half, running.line() as busy:
        assert idle.ask("POST", "/v1/echo", b"{}").status == 200
        half.send(b"POST /v1/message HTTP/1.1\r\n")
        busy.send(request("POST", "/v1/message", b"{}"))
        held.wait_begun()
        stopped = begin_stop(running)
        assert idle.closed()
        assert half.closed()
        with pytest.raises(OSError, match="refused"):
            running.line()
        busy.send(request("POST", "/v1/echo", b"{}"))
        held.go.set()
        assert busy.answer().status == 200
        assert busy.closed()
    assert stopped()


def test_the_end_does_not_wait_for_ever_for_a_worker_that_hangs(start: Start, held: Held) -> None:
    running = start(operation("message", held))
    with running.line() as line:
        line.send(request("POST", "/v1/message", b"{}"))
        held.wait_begun()
        running.stop(0.2)
        assert line.closed()
    assert running.said("stopped_early")[0]["running"] == 1


def test_a_hanging_worker_does_not_keep_the_process_from_ending() -> None:
    code = """
import threading, time
from tacit.server.pool import WorkItem, Pool
begun = threading.Event()
pool = Pool("x", 1, 1)
pool.admit(WorkItem("hang", lambda: (begun.set(), time.sleep(1000)), print, latest=1e12, limit=1e12))
begun.wait()
pool.close()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=GENEROUS).returncode == 0


def test_the_log_has_no_word_of_what_was_asked(start: Start) -> None:
    running = start(raising(Busy("Try again.")), ECHO)
    running.ask("POST", "/v1/fails", {"message": PRIVATE}, {"Authorization": f"Bearer {PRIVATE}"})
    running.ask("POST", "/v1/echo", f'{{"{PRIVATE}'.encode())
    running.ask("GET", f"/{PRIVATE}")
    lines = running.log_file.read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["held", "usage"]
    assert PRIVATE not in str(lines)


# ---------------------------------------------------------------- with the real operations


@pytest.fixture
def real(memory: Memory, start: Start) -> Running:
    return start(*real_operations(OperationContext(memory, SessionRegistry(memory.services))))


def test_a_session_that_nobody_knows_is_told_once_in_the_log(real: Running) -> None:
    for key in ("something:else", "something:else", "agent:main:cron:x:run:1", "something:more"):
        for lane in ("runtime", "prompt"):
            assert real.ask("POST", "/v1/turn", {"message": "Hello?", "session_key": key, "lane": lane}).json
        real.ask("POST", "/v1/bootstrap", {"session_key": key, "files": []})
    assert [line["session_key"] for line in real.said("unknown-key")] == ["something:else", "something:more"]


def test_the_session_of_a_turn_that_was_not_made_is_told(start: Start, held: Held) -> None:
    seen: list[tuple[str, str]] = []

    def skipped(asked: Body, began: int, code: str, reason: str) -> None:
        assert time.time_ns() - 60 * 10**9 < began <= time.time_ns()
        seen.append((str(asked["session_key"]), code))

    running = start(operation("turn", held, is_turn=True), skipped=skipped, serve=ServeSettings(workers=1))
    for key in ("agent:a:begun", "agent:a:waited"):
        asked = {"session_key": key, "lane": "runtime", "deadline_ms": 20}
        assert running.ask("POST", "/v1/turn", asked).json["skipped"] == "deadline"
    wrong = {"session_key": "agent:a:wrong", "deadline_ms": "soon"}
    assert running.ask("POST", "/v1/turn", wrong).status == 400
    # One that a worker has leaves its own receipt, and so needs no code here.
    until(lambda: seen == [("agent:a:begun", ""), ("agent:a:waited", "deadline"), ("agent:a:wrong", "")])
    held.go.set()


@pytest.mark.parametrize("nested", [True, False])
def test_the_protocol_of_ethos_is_answered_as_it_is_written(
    real: Running, memory: Memory, nested: bool
) -> None:
    for number in range(7):
        note = memory.home.root / f"knowledge/reference/bed-{number}.md"
        note.write_text(f"# Bed {number}\n\nWe water the tomatoes of bed {number} at dawn.\n")
    asked = {"query": "How do we water the tomatoes?"}
    body = {"action": "search", "payload": asked} if nested else {"action": "search", **asked}
    answer = real.ask("POST", "/v1/ipc", body).json
    assert list(answer) == ["status", "data"]
    assert answer["status"] == "ok"
    [result, *_] = answer["data"]["results"]
    assert list(result) == ["id", "content", "score", "metadata"]
    assert list(result["metadata"]) == ["channel", "ts"]
    assert "tomatoes" in result["content"]
    assert 0 < result["score"] <= 1
    assert len(answer["data"]["results"]) == 5
    unknown = real.ask("POST", "/v1/ipc", {"action": "drop"}).json
    assert unknown["status"] == "error"
    assert "search" in unknown["error"]


# Every field that an operation reads, and what it may be given instead of what it wants.
FIELDS = (
    "message",
    "session_key",
    "agent",
    "history",
    "budget",
    "event",
    "paths",
    "wake",
    "sender",
    "trigger",
    "session_id",
    "tool",
    "deadline_ms",
    "lane",
    "full",
    "files",
    "workspace",
    "query",
    "limit",
    "category",
    "scope",
    "role",
    "text",
    "at",
    "speaker",
    "id",
    "name",
    "summary",
    "result",
    "channel",
    "model",
    "tags",
    "action",
    "payload",
    "path",
)
WRONG: tuple[object, ...] = (
    1,
    -1,
    2.5,
    True,
    [],
    {},
    [1],
    [[]],
    {"a": 1},
    "",
    "x" * 5000,
    "\ud800",
    "\0",
    None,
)


@pytest.mark.parametrize(
    "route", [one for one in OPERATIONS if one.method == "POST"], ids=lambda one: one.name
)
def test_a_wrong_value_in_any_field_is_answered_or_refused_in_words(real: Running, route: Operation) -> None:
    with real.line() as line:
        for name in FIELDS:
            for value in WRONG:
                body = {
                    "message": "tomatoes",
                    "text": "tomatoes",
                    "query": "tomatoes",
                    "name": "read",
                    name: value,
                }
                answer = line.ask("POST", route.path, json.dumps(body).encode())
                assert answer.status in (200, 400) or answer.code not in ("bug", "system"), (name, value)
    assert real.said("bug") == []


def test_a_message_is_kept_and_a_turn_is_answered(real: Running, home: Path) -> None:
    kept = real.ask("POST", "/v1/message", {"text": "The tomatoes want water at six.", "id": "m1"}).json
    again = real.ask("POST", "/v1/message", {"text": "The tomatoes want water at six.", "id": "m1"}).json
    assert (kept["number"], again["again"]) == (1, True)
    assert "tomatoes" in (home / kept["path"]).read_text()
    turn = real.ask("POST", "/v1/turn", {"message": "When do the tomatoes want water?"}).json
    assert turn["receipt"]
    listed = real.ask("GET", "/v1/receipts?limit=1").json["receipts"]
    assert [one["id"] for one in listed] == [turn["receipt"]]
    assert real.ask("GET", f"/v1/receipts/{turn['receipt']}").json["id"] == turn["receipt"]
    ended = real.ask("POST", "/v1/session/end", {}).json
    assert (home / ended["path"]).is_file()
