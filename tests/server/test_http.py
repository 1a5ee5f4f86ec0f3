"""One connection: how requests are read, how many there may be, and what no client can do to others."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack

import pytest

from tacit.server.http import ConnectionLimits
from tests.server.conftest import (
    ECHO,
    GENEROUS,
    LONG,
    Held,
    Line,
    Start,
    in_background,
    operation,
    request,
    until,
)

BODY = b'{"a": 1}'


def test_a_connection_answers_one_request_after_the_other(start: Start) -> None:
    with start(ECHO).line() as line:
        for number in range(3):
            answer = line.ask("POST", "/v1/echo", json.dumps({"n": number}).encode())
            assert (answer.status, answer.json) == (200, {"echo": {"n": number}})
            assert answer.headers["content-length"] == str(len(answer.body))
            assert "connection" not in answer.headers


def test_requests_that_are_sent_together_are_answered_in_their_order(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"".join(request("POST", "/v1/echo", b'{"n": %d}' % n) for n in range(20)))
        assert [line.answer().json["echo"]["n"] for _ in range(20)] == list(range(20))


def test_a_refused_request_between_others_does_not_mix_them_up(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(request("GET", "/nothing") + request("POST", "/v1/echo", BODY) + request("GET", "/no"))
        assert [line.answer().status for _ in range(3)] == [404, 200, 404]


def test_what_comes_while_a_request_is_worked_on_is_kept_for_later(start: Start, held: Held) -> None:
    running = start(ECHO, operation("slow", held))
    with running.line() as line:
        line.send(request("POST", "/v1/slow", BODY))
        held.wait_begun()
        line.send(request("POST", "/v1/echo", BODY))
        held.go.set()
        assert line.answer().json["text"] == "made"
        assert line.answer().json == {"echo": {"a": 1}}


def test_a_request_may_arrive_byte_by_byte(start: Start) -> None:
    with start(ECHO).line() as line:
        for number in request("POST", "/v1/echo", BODY):
            line.send(bytes([number]))
        assert line.answer().json == {"echo": {"a": 1}}


def test_a_chunked_body_is_put_together(start: Start) -> None:
    with start(ECHO).line() as line:
        chunks = b'4\r\n{"a"\r\n4;x=y\r\n: 1}\r\n0\r\nTrailer: x\r\n\r\n'
        answer = line.ask("POST", "/v1/echo", chunks, {"Transfer-Encoding": "chunked"})
        assert answer.json == {"echo": {"a": 1}}
        assert line.ask("POST", "/v1/echo", BODY).status == 200


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n")
        assert line.socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        line.send(BODY)
        assert line.answer().json == {"echo": {"a": 1}}


def test_a_client_that_waits_for_leave_is_refused_before_it_sends(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(
            b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"
        )
        assert line.answer().status == 413


def test_head_is_get_without_the_body(start: Start) -> None:
    with start(ECHO).line() as line:
        assert line.ask("GET", "/v1/health").status == 200
        answer = line.ask("HEAD", "/v1/health")
        assert (answer.status, answer.body) == (200, b"")
        assert int(answer.headers["content-length"]) > 0
        assert line.ask("GET", "/v1/health").status == 200


def test_options_tells_the_methods_and_invites_nobody(start: Start) -> None:
    with start(ECHO).line() as line:
        answer = line.ask("OPTIONS", "/v1/echo")
        assert (answer.status, answer.headers["allow"]) == (204, "OPTIONS, POST")
        assert line.ask("OPTIONS", "/metrics").headers["allow"] == "GET, HEAD, OPTIONS"
        assert line.ask("OPTIONS", "*").status == 204
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_wrong_method_is_told_which_ones_there_are(start: Start) -> None:
    answer = start(ECHO).ask("DELETE", "/v1/echo")
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method", "OPTIONS, POST")


def test_a_client_of_http_1_0_gets_one_answer(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"POST /v1/echo HTTP/1.0\r\nContent-Length: 8\r\n\r\n" + BODY)
        assert line.answer().json == {"echo": {"a": 1}}
        assert line.closed()


def test_a_client_that_ends_its_side_still_gets_its_answers(start: Start, held: Held) -> None:
    with start(ECHO, operation("slow", held)).line() as line:
        line.send(request("POST", "/v1/slow", BODY) + request("POST", "/v1/echo", BODY))
        held.wait_begun()
        line.socket.shutdown(socket.SHUT_WR)
        held.go.set()
        assert line.answer().json["text"] == "made"
        assert line.answer().json == {"echo": {"a": 1}}
        assert line.closed()


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 8\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 8",
        "Content-Length: 8\r\nContent-Length: 9",
        "Content-Length: 8, 9",
        "Content-Length: +8",
        "Content-Length: -1",
        "Content-Length: 0x8",
        "Content-Length: 99999999999999999999999999",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Content-Length : 8",
        "Bad Name: x",
        "X: a\0b",
        "Host: y",
    ],
)
def test_a_request_with_two_readings_is_refused_and_the_connection_closed(start: Start, head: str) -> None:
    """What follows such a request may be a second one that somebody hid in the first."""
    with start(ECHO).line() as line:
        hidden = request("POST", "/v1/echo", BODY)
        line.send(f"POST /v1/echo HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + hidden)
        answer = line.answer()
        assert answer.status in (400, 501)
        assert answer.headers["connection"] == "close"
        assert line.closed()


@pytest.mark.parametrize(
    "head",
    [
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\nTransfer-Encoding: chunked",
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 18",
        "POST /v1/echo HTTP/1.0\r\nTransfer-Encoding: chunked",
    ],
)
def test_two_lengths_are_refused_even_if_both_could_be_read(start: Start, head: str) -> None:
    with start(ECHO).line() as line:
        line.send(head.encode() + b"\r\n\r\n8\r\n" + BODY + b"\r\n0\r\n\r\n")
        answer = line.answer()
        assert (answer.status, answer.code) == (400, "malformed")
        assert line.closed()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"\0" * 100,
        b"GET / HTTP/3.7\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_others_go_on(start: Start, garbage: bytes) -> None:
    running = start(ECHO)
    with running.line() as line, running.line() as other:
        line.send(garbage)
        assert line.closed()
        assert other.ask("POST", "/v1/echo", BODY).status == 200
    assert running.said("bug") == []


def test_a_head_without_end_is_refused(start: Start) -> None:
    running = start(ECHO)
    with running.line() as line:
        line.send(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000)
        assert line.answer().status == 431
    with running.line() as line:
        line.send(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 101 + b"\r\n")
        assert line.answer().status == 431
    with running.line() as line:
        line.send(b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.answer().status == 431


def test_a_body_that_is_too_large_is_refused_before_it_is_read(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n")
        answer = line.answer()
        assert (answer.status, answer.code) == (413, "too_large")
        assert "1024 kB" in answer.json["error"]["message"]


def test_a_client_that_sends_5_mb_before_it_reads_learns_why_it_was_refused(start: Start) -> None:
    running = start(ECHO, limits=ConnectionLimits(end_seconds=GENEROUS))
    assert running.ask("POST", "/v1/echo", b"x" * (5 << 20)).status == 413


def test_a_chunked_body_that_is_too_large_is_refused_on_the_way(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        for _ in range(20):
            line.send(chunk)
        assert line.answer().status == 413


def test_a_body_in_a_million_pieces_is_refused(start: Start) -> None:
    with start(ECHO).line() as line:
        line.send(b"POST /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        line.send(b"1\r\nx\r\n" * 5000)
        assert line.answer().status == 400


def test_a_body_of_the_largest_size_is_read(start: Start) -> None:
    text = "x" * ((1 << 20) - 20)
    assert start(ECHO).ask("POST", "/v1/echo", {"a": text}).json == {"echo": {"a": text}}


def test_a_compressed_body_is_refused_and_an_uncompressed_one_is_not(start: Start) -> None:
    running = start(ECHO)
    for coding in ("gzip", "deflate", "br", "identity, gzip"):
        assert running.ask("POST", "/v1/echo", BODY, {"Content-Encoding": coding}).status == 415
    assert running.ask("POST", "/v1/echo", BODY, {"Content-Encoding": "identity"}).status == 200


@pytest.mark.parametrize(
    ("begun", "phase"), [(b"GET /v1/he", "head"), (request("POST", "/v1/echo", BODY)[:-1], "body")]
)
def test_a_request_that_does_not_come_to_an_end_is_given_up(start: Start, begun: bytes, phase: str) -> None:
    running = start(ECHO)
    with running.line() as line:
        line.send(begun)
        until(lambda: running.phases() == [phase])
        running.pass_by(LONG)
        answer = line.answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert line.closed()


def test_a_request_that_goes_on_and_on_in_single_bytes_is_given_up_too(start: Start) -> None:
    running = start(ECHO)
    with running.line() as line:
        line.socket.settimeout(0.02)
        line.send(b"GET /v1/health HTTP/1.1\r\n")
        until(lambda: running.phases() == ["head"])
        got = b""
        for _ in range(1000):
            running.pass_by(0.1)
            try:
                line.send(b"X: y\r\n")
                got += line.socket.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                break
            if got:
                break
        assert got.startswith(b"HTTP/1.1 408")


def test_connections_on_which_nothing_happens_are_closed(start: Start) -> None:
    running = start(ECHO)
    with running.line() as silent, running.line() as idle:
        assert idle.ask("POST", "/v1/echo", BODY).status == 200
        until(lambda: running.phases() == ["idle", "new"])
        running.pass_by(LONG)
        assert idle.closed()
        assert silent.closed()
    until(lambda: running.ask("GET", "/v1/health").json["connections"] == 1)


def test_a_client_that_does_not_read_its_answer_is_given_up(start: Start) -> None:
    running = start(operation("large", lambda body: {"a": "x" * (8 << 20)}))
    with running.line() as line:
        line.send(request("POST", "/v1/large", BODY) * 3)
        until(lambda: running.phases() == ["write"])
        running.pass_by(LONG)
        until(lambda: running.metrics.closed.value("slow") == 1)
        assert running.metrics.requests.value("large", "200") == 1, "the next ones had to wait for this one"


def test_when_there_are_too_many_connections_the_oldest_idle_one_goes(start: Start, held: Held) -> None:
    running = start(ECHO, operation("slow", held), limits=ConnectionLimits(connections=4))
    with running.line() as busy, running.line() as first, running.line() as second, running.line() as third:
        busy.send(request("POST", "/v1/slow", BODY))
        held.wait_begun()
        for line in (second, third, first):
            assert line.ask("POST", "/v1/echo", BODY).status == 200
        with running.line() as more:
            assert more.ask("POST", "/v1/echo", BODY).status == 200
            assert second.closed()
            assert first.ask("POST", "/v1/echo", BODY).status == 200
            held.go.set()
            assert busy.answer().json["text"] == "made"


def test_when_all_connections_are_at_work_a_new_one_is_told_so(start: Start, held: Held) -> None:
    running = start(operation("slow", held), limits=ConnectionLimits(connections=2))
    with ExitStack() as open_ones:
        lines = [open_ones.enter_context(running.line()) for _ in range(2)]
        for line in lines:
            line.send(request("POST", "/v1/slow", BODY))
            held.wait_begun()
        with running.line() as more:
            answer = more.answer()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert more.closed()
        held.go.set()
        for line in lines:
            assert line.answer().status == 200


def test_clients_that_leave_at_any_moment_leave_nothing_behind(start: Start, held: Held) -> None:
    running = start(ECHO, operation("slow", held))
    whole = request("POST", "/v1/slow", BODY)
    for length in (0, 1, 20, len(whole) - 1, len(whole)):
        with running.line() as line:
            line.send(whole[:length])
    held.wait_begun()
    held.go.set()
    until(lambda: running.ask("GET", "/v1/health").json["connections"] == 1)
    until(lambda: held.ran == 1)
    assert running.said("bug") == []


def test_a_connection_at_work_is_not_closed_for_being_slow(start: Start, held: Held) -> None:
    running = start(operation("slow", held))
    waiting = in_background(lambda: running.ask("POST", "/v1/slow", {}))
    held.wait_begun()
    with running.line() as other:
        until(lambda: running.phases() == ["new", "work"])
        running.pass_by(LONG)
        assert other.closed(), "all limits have passed now"
    held.go.set()
    assert waiting().status == 200


def test_an_upgrade_is_not_taken_up(start: Start) -> None:
    with start(ECHO).line() as line:
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x"}
        assert line.ask("GET", "/v1/health", b"", headers).status == 200
        assert line.ask("CONNECT", "/v1/health").status == 405
        assert isinstance(line, Line)
