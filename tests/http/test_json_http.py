"""One address over real sockets: what is tried again, what is not, and what is never told."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from email.utils import formatdate
from itertools import chain, repeat
from time import time

import pytest

from tacit.json_http import JsonPoster, PostError, Purpose, parse_address
from tests.embeddings import conftest
from tests.embeddings.conftest import CERTIFICATE, Reply, Request, Serve

KEY = "sk-very-secret-0123456789"
MODEL = Purpose("chat model", "watchers.gate_model")


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def replies(*given: Reply) -> Callable[[Request], Reply]:
    """One after the other; the last one for ever."""
    rest: Iterator[Reply] = chain(given, repeat(given[-1]))
    return lambda request: next(rest)


def posting(base: str, clock: Time | None = None) -> JsonPoster:
    clock = clock or Time()
    return JsonPoster(base, MODEL, key=KEY, clock=clock.clock, sleep=clock.sleep)


def test_json_goes_there_and_comes_back(serve: Serve) -> None:
    server = serve(replies(Reply({"answer": 1})))
    assert posting(server.base)("/embeddings", {"input": ["ä"]}, 5, 5) == {"answer": 1}
    request = server.requests[0]
    assert (request.path, request.json) == ("/v1/embeddings", {"input": ["ä"]})
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent(serve: Serve) -> None:
    server = serve(replies(Reply({})))
    JsonPoster(server.base, MODEL)("/e", {}, 5, 5)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_after_longer_and_longer_waits(serve: Serve, status: int) -> None:
    time = Time()
    busy = Reply(b"busy", status)
    server = serve(replies(busy, busy, busy, Reply({"ok": True})))
    assert posting(server.base, time)("/e", {}, 5, 60) == {"ok": True}
    assert time.slept == [0.5, 1.0, 2.0]


def test_the_wait_a_server_asks_for_is_kept(serve: Serve) -> None:
    time = Time()
    server = serve(replies(Reply(b"", 429, (("Retry-After", "7"),)), Reply({})))
    posting(server.base, time)("/e", {}, 5, 60)
    assert time.slept == [7.0]


def test_a_wait_may_be_a_date_and_nonsense_counts_as_none(serve: Serve) -> None:
    clock = Time()
    dates = [formatdate(time() - 60, usegmt=True), "soon", "", "9" * 400]
    server = serve(replies(*(Reply(b"", 503, (("Retry-After", date),)) for date in dates), Reply({})))
    with pytest.raises(PostError, match="status 503"):
        posting(server.base, clock)("/e", {}, 5, 60)
    assert clock.slept == [0.0, 1.0, 2.0]


def test_nobody_waits_longer_than_there_is_time(serve: Serve) -> None:
    time = Time()
    server = serve(replies(Reply(b"", 429, (("Retry-After", "3600"),))))
    with pytest.raises(PostError, match=r"answered with status 429\. Try again later"):
        posting(server.base, time)("/e", {}, 5, 60)
    assert time.slept == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_not_tried_again(serve: Serve, status: int) -> None:
    server = serve(replies(Reply({"error": {"message": "no such model"}}, status)))
    with pytest.raises(PostError, match=f"status {status}: .*no such model"):
        posting(server.base)("/e", {}, 5, 60)
    assert len(server.requests) == 1


def test_no_error_holds_the_key(serve: Serve) -> None:
    echo = Reply(f"bad key {KEY}\x1b[2J\n".encode(), 401)
    away = Reply(b"", 307, (("Location", f"http://example.com/?key={KEY}"),))
    for reply in (echo, away, Reply(f"{KEY}".encode(), 500), Reply(KEY.encode())):
        server = serve(replies(reply))
        with pytest.raises(PostError) as caught:
            posting(server.base)("/e", {}, 5, 0.1)
        assert KEY not in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("key", ["line\nbreak", "kéy", "nul\0", "tab\tkey"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(PostError, match="Set it again") as caught:
        JsonPoster("http://127.0.0.1:1/v1", MODEL, key=key)
    assert key not in str(caught.value)


def test_spaces_around_a_key_are_dropped(serve: Serve) -> None:
    server = serve(replies(Reply({})))
    JsonPoster(server.base, MODEL, key=f" {KEY}\n")("/e", {}, 5, 5)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_server_that_says_nothing_is_given_up(serve: Serve) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return Reply({})

    server = serve(wait)
    with pytest.raises(PostError, match="did not answer in time"):
        JsonPoster(server.base, MODEL)("/e", {}, 0.1, 0.2)


def test_a_server_that_answers_for_ever_is_given_up(serve: Serve) -> None:
    """Each byte comes in time, all of them together do not."""
    server = serve(replies(Reply(b" " * 100_000, drip=True)))
    with pytest.raises(PostError, match="did not answer in time"):
        JsonPoster(server.base, MODEL)("/e", {}, 0.3, 0.3)


def test_a_dead_server_is_told(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(PostError, match=r"cannot be reached \(Connection refused\)"):
        posting(f"http://127.0.0.1:{port}/v1")("/e", {}, 5, 1)


def test_an_answer_that_breaks_off_is_told(serve: Serve) -> None:
    class Cut(bytes):
        def __len__(self) -> int:  # the length that is announced
            return 1000

    server = serve(replies(Reply(Cut(b'{"data": '))))
    with pytest.raises(PostError, match="broke off its answer"):
        posting(server.base)("/e", {}, 5, 1)


@pytest.mark.parametrize("body", [b"", b"<html>hello</html>", b"\xff\xfe\xff", b"[" * 100_000, b'{"a": 1'])
def test_what_is_not_json_is_told(serve: Serve, body: bytes) -> None:
    server = serve(replies(Reply(body)))
    with pytest.raises(PostError, match="did not answer in JSON"):
        posting(server.base)("/e", {}, 5, 60)
    assert len(server.requests) == 1


def test_a_huge_answer_is_not_read_to_its_end(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.json_http._MAX_ANSWER", 1 << 20)
    server = serve(replies(Reply(b" " * (8 << 20))))
    with pytest.raises(PostError, match="sent more than 1 MB"):
        posting(server.base)("/e", {}, 5, 60)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_on_the_same_server_is_followed(serve: Serve, status: int) -> None:
    def reply(request: Request) -> Reply:
        if request.path == "/v2/new":
            return Reply({"ok": request.json})
        return Reply(b"", status, (("Location", "/v2/new"),))

    server = serve(reply)
    assert posting(server.base)("/e", {"a": 1}, 5, 5) == {"ok": {"a": 1}}


@pytest.mark.parametrize(
    "location",
    [
        "http://example.com/v1/e",
        "//example.com/e",
        "https://127.0.0.1/e",
        "http://127.0.0.1:1/e",
        "http://[",
        "/é",
    ],
)
def test_a_redirect_to_any_other_place_is_refused(serve: Serve, location: str) -> None:
    server = serve(replies(Reply(b"", 307, (("Location", location),))))
    with pytest.raises(PostError, match=r"redirects to .*only where you said"):
        posting(server.base)("/e", {}, 5, 5)
    assert len(server.requests) == 1


def test_a_circle_of_redirects_ends(serve: Serve) -> None:
    server = serve(replies(Reply(b"", 307, (("Location", "/v1/e"),))))
    with pytest.raises(PostError, match="in a circle"):
        posting(server.base)("/e", {}, 5, 5)


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(serve: Serve) -> None:
    server = serve(replies(Reply({})), secure=True)
    time = Time()
    with pytest.raises(PostError, match="certificate that is not trusted"):
        posting(server.base, time)("/e", {}, 5, 60)
    assert (server.requests, time.slept) == ([], [])


def test_a_certificate_that_the_person_trusts_is_fine(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    server = serve(replies(Reply({"ok": 1})), secure=True)
    assert posting(server.base)("/e", {}, 5, 5) == {"ok": 1}


def test_after_three_failures_a_server_is_left_alone_for_half_a_minute(serve: Serve) -> None:
    time = Time()
    server = serve(replies(*[Reply(b"", 500)] * 4, Reply({"ok": 1})))
    post = posting(server.base, time)
    for _ in range(3):
        with pytest.raises(PostError, match="status 500"):
            post("/e", {}, 5, 0.1)
    with pytest.raises(PostError, match="paused for 30 s more"):
        post("/e", {}, 5, 0.1)
    assert len(server.requests) == 3
    time.now += 30
    with pytest.raises(PostError, match="status 500"):
        post("/e", {}, 5, 0.1)
    with pytest.raises(PostError, match="is paused for"):
        post("/e", {}, 5, 0.1)
    time.now += 30
    assert post("/e", {}, 5, 0.1) == post("/e", {}, 5, 0.1) == {"ok": 1}


@pytest.mark.parametrize(
    "url",
    ["", "localhost:11434", "ftp://host/v1", "http://", "http:///v1", "http://host:port/v1", "http://host:99999/",
     "http://host/v1?key=1", "http://host/v1#model", "http://ho st/v1", "http://host/\x1b", "http://[::1/v1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(PostError, match="is no address"):
        parse_address(url, "chat model")


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(PostError, match="holds a name or a key") as caught:
        parse_address("http://me:hunter2@host/v1", "chat model")
    assert "hunter2" not in str(caught.value)


def test_the_parts_of_an_address() -> None:
    assert parse_address("https://Example.com/v1/", "chat model") == ("https", "example.com", 443, "/v1")
    assert parse_address("http://[::1]:8080", "chat model").place == "http://[::1]:8080"


def test_these_tests_cannot_reach_the_network(serve: Serve) -> None:
    assert conftest.Server is not None
    with pytest.raises(AssertionError, match="reach the network"):
        posting("http://192.0.2.1/v1")("/e", {}, 5, 5)


def test_every_error_speaks_of_the_model_that_was_meant(serve: Serve) -> None:
    """Somebody whose gate is broken must not be sent to the settings of search."""
    given = [
        Reply(b"", 500),
        Reply(b"", 400),
        Reply(b"<html>"),
        Reply(b"", 307, (("Location", "/v1/e"),)),
        Reply(b"", 307, (("Location", "http://example.com/"),)),
    ]
    for reply in given:
        with pytest.raises(PostError, match=r"watchers\.gate_model"):
            posting(serve(replies(reply)).base)("/e", {}, 5, 0.1)
    for url in ("http://me:pw@host/v1", "nowhere"):
        with pytest.raises(PostError, match="the chat model"):
            parse_address(url, "chat model")
