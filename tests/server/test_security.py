"""Who is answered: on every route of the server's own table, so that a new one cannot be forgotten."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.home.layout import Home
from tacit.operations.catalog import OPERATIONS
from tacit.server.instance import DaemonInstance
from tests.server.conftest import ECHO, TOKEN, Answer, Runnable, Running, Start, noting, operation

EVIL = "http://evil.example"


def counted(ran: list[str]) -> list[Runnable]:
    """All operations there are, none of which does anything but say that it ran."""
    return [
        operation(one.name, noting(ran, one.name), is_turn=one.is_turn, method=one.method, path=one.path)
        for one in OPERATIONS
    ]


def ask_all(running: Running, headers: Mapping[str, str], method: str = "", *, tcp: bool = True) -> set[int]:
    """The statuses of every route for the same headers. None of them may invite a page of another origin."""
    statuses = set()
    for route in running.server.routes:
        target = route.path.replace("{id}", "x")
        answer = ask(running, method or route.method, target, headers, tcp=tcp)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        statuses.add(answer.status)
    return statuses


def ask(running: Running, method: str, target: str, headers: Mapping[str, str], *, tcp: bool) -> Answer:
    given = {"Host": f"127.0.0.1:{running.port}", "Content-Type": "application/json", **headers}
    body = b'{"message": "x"}' if method == "POST" else b""
    with running.line(tcp=tcp) as line:
        return line.ask(method, target, body, {name: value for name, value in given.items() if value})


GOOD = {"Authorization": f"Bearer {TOKEN}"}

ATTACKS = {
    "a name that points here": ({**GOOD, "Host": "evil.example"}, 421),
    "a name that points here, with our port": ({**GOOD, "Host": "evil.example:%d"}, 421),
    "a name that begins like ours": ({**GOOD, "Host": "localhost.evil.example:%d"}, 421),
    "a name that ends like ours": ({**GOOD, "Host": "evil.localhost:%d"}, 421),
    "any address": ({**GOOD, "Host": "0.0.0.0:%d"}, 421),
    "our name with another port": ({**GOOD, "Host": "127.0.0.1:1"}, 421),
    "our name without the port": ({**GOOD, "Host": "localhost"}, 421),
    "another origin": ({**GOOD, "Origin": EVIL}, 403),
    "another port as origin": ({**GOOD, "Origin": "http://127.0.0.1:1"}, 403),
    "the other name of ours as origin": ({**GOOD, "Origin": "http://localhost:%d"}, 403),
    "an origin by https": ({**GOOD, "Origin": "https://127.0.0.1:%d"}, 403),
    "a hidden origin": ({**GOOD, "Origin": "null"}, 403),
    "a page of another site": ({**GOOD, "Sec-Fetch-Site": "cross-site"}, 403),
    "a page of another port": ({**GOOD, "Sec-Fetch-Site": "same-site"}, 403),
    "no token": ({}, 401),
    "a wrong token": ({"Authorization": "Bearer x"}, 401),
    "the beginning of the token": ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
    "more than the token": ({"Authorization": f"Bearer {TOKEN}x"}, 401),
    "an empty token": ({"Authorization": "Bearer "}, 401),
    "another scheme": ({"Authorization": f"Basic {TOKEN}"}, 401),
    "the token alone": ({"Authorization": TOKEN}, 401),
    "a token of other letters": ({"Authorization": "Bearer tökén"}, 401),
    "the token in the wrong place": ({"Cookie": f"token={TOKEN}", "X-Token": TOKEN}, 401),
}


@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_route_is_open_to(start: Start, attack: str) -> None:
    ran: list[str] = []
    running = start(*counted(ran), tcp=True)
    headers, status = ATTACKS[attack]
    filled = {name: value.replace("%d", str(running.port)) for name, value in headers.items()}
    assert ask_all(running, filled) == {status}
    assert ran == []
    assert not running.server.stop_requested.is_set()


@pytest.mark.usefixtures("loopback")
def test_no_route_answers_the_question_of_a_page_whether_it_might_ask(start: Start) -> None:
    running = start(*counted([]), tcp=True)
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for headers in (
        {"Origin": EVIL, **asks},
        {"Origin": EVIL},
        {**GOOD, "Origin": EVIL, **asks},
        {**GOOD, **asks},
    ):
        assert ask_all(running, headers, "OPTIONS") == {403}
    assert ask_all(running, {"Origin": EVIL, **asks}, "OPTIONS", tcp=False) == {403}


@pytest.mark.usefixtures("loopback")
def test_no_route_takes_a_form(start: Start) -> None:
    """A page can send one to any address; its browser asks nobody."""
    ran: list[str] = []
    running = start(*counted(ran), tcp=True)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        for route in running.server.routes:
            if route.method == "POST":
                answer = ask(running, "POST", route.path, {**GOOD, "Content-Type": kind}, tcp=True)
                assert answer.status == (403 if route.is_local and kind == "application/json" else 415)
    assert ran == []


@pytest.mark.usefixtures("loopback")
def test_two_headers_are_no_way_around_one(start: Start) -> None:
    running = start(ECHO, tcp=True)
    own = f"127.0.0.1:{running.port}"
    for lines, status in (
        (f"Host: {own}\r\nAuthorization: Bearer x\r\nAuthorization: Bearer {TOKEN}", 401),
        (f"Host: {own}\r\nOrigin: http://{own}\r\nOrigin: {EVIL}\r\nAuthorization: Bearer {TOKEN}", 403),
        (
            f"Host: {own}\r\nOrigin: http://{own}\r\nOrigin: http://{own}\r\nAuthorization: Bearer {TOKEN}",
            403,
        ),
        (f"Host: {own}\r\nHost: evil\r\nAuthorization: Bearer {TOKEN}", 400),
        (f"Host: {own}, evil\r\nAuthorization: Bearer {TOKEN}", 421),
    ):
        with running.line(tcp=True) as line:
            line.send(f"GET /v1/health HTTP/1.1\r\n{lines}\r\n\r\n".encode())
            assert line.answer().status == status
    with running.line(tcp=True) as line:
        head = f"Host: {own}\r\nAuthorization: Bearer {TOKEN}"
        line.send(f"GET http://{own}/v1/health HTTP/1.1\r\n{head}\r\n\r\n".encode())
        assert line.answer().status == 400
    with running.line(tcp=True) as line:
        line.send(f"GET /v1/health HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert line.answer().status == 421


@pytest.mark.usefixtures("loopback")
def test_who_knows_the_token_is_answered_on_every_route_but_the_one_that_ends_it(start: Start) -> None:
    ran: list[str] = []
    running = start(*counted(ran), tcp=True)
    for host in (f"127.0.0.1:{running.port}", f"localhost:{running.port}", f"LOCALHOST:{running.port}"):
        for more in ({}, {"Origin": f"http://{host}"}, {"Sec-Fetch-Site": "same-origin"}):
            for route in running.server.routes:
                target = route.path.replace("{id}", "x")
                answer = ask(running, route.method, target, {**GOOD, "Host": host, **more}, tcp=True)
                assert answer.status == (403 if route.is_local else 200), route
    assert set(ran) == {one.name for one in OPERATIONS}
    assert not running.server.stop_requested.is_set()


@pytest.mark.usefixtures("loopback")
def test_a_stranger_is_not_read_further_than_the_head(start: Start) -> None:
    running = start(ECHO, tcp=True)
    with running.line(tcp=True) as line:
        head = f"Host: 127.0.0.1:{running.port}\r\nContent-Length: 500000"
        line.send(f"POST /v1/echo HTTP/1.1\r\n{head}\r\n\r\n".encode())
        assert line.answer().status == 401
    with running.line(tcp=True) as line:
        line.send(b"GET /nothing HTTP/1.1\r\nHost: evil\r\n\r\n")
        assert line.answer().status == 421, "who may not ask is not told what there is"


@pytest.mark.usefixtures("loopback")
def test_the_port_is_the_machines_own(start: Start) -> None:
    running = start(ECHO, tcp=True)
    sockets = [one for listener in running.server._listeners for one in listener.sockets]
    assert [one.getsockname()[0] for one in sockets if one.family != socket.AF_UNIX] == ["127.0.0.1"]


def test_there_is_no_port_unless_somebody_asked_for_one(start: Start) -> None:
    running = start(ECHO)
    families = [one.family for listener in running.server._listeners for one in listener.sockets]
    assert (running.port, families) == (None, [socket.AF_UNIX])


def test_there_is_no_port_without_a_token(start: Start) -> None:
    with pytest.raises(UsageError, match="needs a token"):
        start(ECHO, tcp=True, token="")


@pytest.mark.usefixtures("loopback")
def test_a_port_that_is_taken_is_told_by_its_number(start: Start) -> None:
    port = start(ECHO, tcp=True).port
    with pytest.raises(UsageError, match=f"Port {port} .* in use"):
        start(ECHO, tcp=True, port=port)


@pytest.mark.usefixtures("loopback")
def test_neither_token_nor_attempt_is_in_the_log(start: Start) -> None:
    running = start(ECHO, tcp=True)
    for attack, (headers, _) in ATTACKS.items():
        assert ask(running, "GET", f"/{attack.replace(' ', '')}", headers, tcp=True).status >= 400
    text = running.log_file.read_text()
    assert "guard" in text
    assert TOKEN[:-1] not in text
    assert "evil" not in text
    assert "beginning" not in text


def test_pages_are_not_answered_on_the_unix_socket_either(start: Start) -> None:
    """Somebody may have put a port in front of it."""
    ran: list[str] = []
    running = start(*counted(ran))
    for headers in (
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost"},
    ):
        assert ask_all(running, headers, tcp=False) == {403}
    assert ran == []


def test_on_the_unix_socket_neither_token_nor_name_matters(start: Start) -> None:
    ran: list[str] = []
    running = start(*counted(ran))
    assert ask_all(running, {"Host": "whatever", "Content-Type": ""}, tcp=False) == {200, 202}
    assert set(ran) == {one.name for one in OPERATIONS}


# ---------------------------------------------------------------- other users of the machine


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that other users can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(path: str, data: bytes = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n") -> str:
    """What another user gets: refused, closed or answered."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads; the child only asks
        child = os.fork()
    if child == 0:
        outcome = b"failed"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            line.settimeout(20)
            try:
                line.connect(path)
            except PermissionError:
                outcome = b"refused"
            else:
                try:
                    line.sendall(data)
                    outcome = b"answered" if line.recv(100) else b"closed"
                except ConnectionError:
                    outcome = b"closed"
        finally:
            os.write(writer, outcome)
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        outcome = pipe.read()
    os.waitpid(child, 0)
    return outcome.decode()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@needs_root
def test_another_user_cannot_connect_even_if_the_mask_lets_everybody(open_folder: Path) -> None:
    mask = os.umask(0)
    try:
        home = Home(open_folder / "home")
        home.root.mkdir(mode=0o755)
        with DaemonInstance(home) as place, place.listen():
            path = place.socket_file
            assert as_nobody(path) == "refused"
            home.private.chmod(0o755)
            assert as_nobody(path) == "refused", "the mode of the socket"
            home.private.chmod(0o700)
            os.chmod(path, 0o666)
            assert as_nobody(path) == "refused", "the mode of the folder"
    finally:
        os.umask(mask)


@needs_root
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the system who is at the other end")
def test_another_user_that_can_connect_is_not_answered(open_folder: Path) -> None:
    running = Running(open_folder, [ECHO])
    try:
        os.chmod(running.path, 0o666)
        assert as_nobody(running.path) == "closed"
        assert running.ask("GET", "/v1/health").status == 200
        assert running.metrics.closed.value("foreign") == 1
        assert running.said("foreign")
    finally:
        running.stop()


def test_the_log_is_the_owners_alone(start: Start) -> None:
    running = start(ECHO)
    running.ask("GET", "/v1/health", None, {"Origin": EVIL})
    assert stat.S_IMODE(running.log_file.stat().st_mode) == 0o600
