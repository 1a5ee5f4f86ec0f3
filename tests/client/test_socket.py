"""The way to the daemon: one place for every process, one deadline for everything, nobody else answers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import daemon_socket as local
from tacit.daemon_socket import Unreachable, is_listening, prepare_folder, send_request, socket_path
from tests.http.fake import (
    Behave,
    answers,
    drips,
    floods,
    hangs,
    listening,
    read_request,
    reply,
    resets,
    sends,
)

GENEROUS = 20.0  # seconds in which an answer is surely there
SHORT = 0.3


@pytest.fixture
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a socket can be: the name of a test makes a path too long for one."""
    return tmp_path_factory.mktemp("s") / "d.sock"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in the place of /tmp."""
    folder = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(local, "_SHORT_FOLDER", str(folder))
    yield folder
    shutil.rmtree(folder)


def unreachable(path: str, seconds: float = GENEROUS, max_bytes: int = 1_000_000) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        send_request(path, "POST", "/v1/turn", b"{}", seconds, max_bytes)
    return caught.value


# ---------------------------------------------------------------- where


def test_the_socket_is_in_the_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("h")
    assert socket_path(str(home)) == f"{home}/.tacit/daemon.sock"


def test_every_way_to_write_a_home_leads_to_the_same_socket(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("h")
    link = home.parent / f"{home.name}-link"
    link.symlink_to(home)
    monkeypatch.chdir(home.parent)
    ways = [str(home), f"{home}/", str(link), f"{home}/../{home.name}", home.name]
    assert {socket_path(way) for way in ways} == {f"{home}/.tacit/daemon.sock"}


def test_a_long_path_gives_a_short_one_and_another_home_another(tmp_path: Path, short: Path) -> None:
    found = [socket_path(str(tmp_path / (name * 120))) for name in "ab"]
    assert all(len(path) < 100 and path.startswith(f"{short}/tacit-{os.getuid()}/") for path in found)
    assert found[0] != found[1]


def test_a_link_to_a_long_path_is_no_other_home(
    tmp_path_factory: pytest.TempPathFactory, short: Path
) -> None:
    """Else the daemon would listen in one place and a hook ask in the other."""
    base = tmp_path_factory.mktemp("l")
    home = base / ("a" * 120)
    home.mkdir()
    (base / "short").symlink_to(home)
    assert socket_path(str(base / "short")) == socket_path(str(home))


def test_the_environment_has_no_say_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook may run with other variables than the daemon."""
    long = str(tmp_path / ("a" * 120))
    before = socket_path(long)
    for name in ("TMPDIR", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert socket_path(long) == before


def test_a_place_outside_the_home_is_made_for_its_owner_alone(tmp_path: Path, short: Path) -> None:
    path = socket_path(str(tmp_path / ("a" * 120)))
    prepare_folder(path)
    prepare_folder(path)
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_in_which_others_can_write_is_refused(tmp_path: Path, short: Path, mode: int) -> None:
    path = socket_path(str(tmp_path / ("a" * 120)))
    prepare_folder(path)
    with listening(Path(path), answers(b"{}")):
        assert send_request(path, "GET", "/", b"", GENEROUS) == (200, b"{}")
        os.chmod(os.path.dirname(path), mode)
        assert unreachable(path).kind == "foreign"
        with pytest.raises(Unreachable):
            prepare_folder(path)


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path, short: Path) -> None:
    path = socket_path(str(tmp_path / ("a" * 120)))
    elsewhere = short / "elsewhere"
    elsewhere.mkdir(0o700)
    Path(path).parent.symlink_to(elsewhere)
    with pytest.raises(Unreachable):
        prepare_folder(path)
    with listening(elsewhere / Path(path).name, answers(b"{}")):
        assert unreachable(path).kind == "foreign"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_socket_of_somebody_else_is_not_asked(at: Path) -> None:
    asked = threading.Event()

    def notice(line: socket.socket, over: threading.Event) -> None:
        asked.set()

    with listening(at, notice) as path:
        os.chown(path, 65534, -1)
        error = unreachable(path)
    assert error.kind == "foreign"
    assert "65534" in str(error)


@pytest.mark.skipif(os.getuid() != 0 or not hasattr(socket, "SO_PEERCRED"), reason="needs root, on Linux")
def test_somebody_else_behind_a_socket_of_ours_is_not_asked(at: Path) -> None:
    """The file may have been another one when it was looked at."""
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]);"
        "os.setuid(65534); s.listen(4); print('up', flush=True); s.accept()[0].recv(1)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(at)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert unreachable(str(at)).kind == "foreign"
        other.kill()


# ---------------------------------------------------------------- asking


def test_an_answer_is_its_status_and_its_body(at: Path) -> None:
    with listening(at, answers(b'{"error": 1}', b"503 Service Unavailable")) as path:
        assert send_request(path, "POST", "/v1/turn", b"{}", GENEROUS) == (503, b'{"error": 1}')


def test_a_request_is_plain_http_that_ends_the_connection(at: Path) -> None:
    seen: list[bytes] = []

    def look(line: socket.socket, over: threading.Event) -> None:
        seen.append(read_request(line))
        line.sendall(reply(b"{}"))

    with listening(at, look) as path:
        send_request(path, "POST", "/v1/turn", b'{"a": 1}', GENEROUS)
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v1/turn HTTP/1.1"
    assert b"Connection: close" in head
    assert body == b'{"a": 1}'


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.0 200\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length:2\r\nX: y\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}and more",
    ],
    ids=["to the end", "no reason", "small letters", "length twice", "more than said"],
)
def test_an_answer_may_be_written_in_several_ways(at: Path, data: bytes) -> None:
    with listening(at, sends(data)) as path:
        assert send_request(path, "GET", "/", b"", GENEROUS) == (200, b"{}")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe<html>\n",
        b'{"context": "x"}\n',
        b"HTTP/1.1 \r\n\r\n{}",
        b"HTTP/1.1 abc OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n{}",
    ],
    ids=lambda data: data[:60].decode("latin-1"),
)
def test_what_is_no_answer_is_garbage(at: Path, data: bytes) -> None:
    with listening(at, sends(data)) as path:
        assert unreachable(path).kind == "garbage"


@pytest.mark.parametrize(
    "behave",
    [
        sends(b""),
        sends(b"HTTP/1.1"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}"),
        resets,
    ],
    ids=["no answer", "half a line", "half a body", "a reset"],
)
def test_who_breaks_off_went_away(at: Path, behave: Behave) -> None:
    with listening(at, behave) as path:
        error = unreachable(path)
    assert error.kind == "gone"
    assert "the daemon went away" in str(error)


def test_who_listens_is_there_also_when_it_never_answers_or_lets_nobody_in(at: Path) -> None:
    assert not is_listening(str(at), GENEROUS)
    with socket.socket(socket.AF_UNIX) as never:
        never.bind(str(at))
        assert not is_listening(str(at), GENEROUS)  # left behind
        never.listen(0)
        assert is_listening(str(at), GENEROUS)
        assert all(is_listening(str(at), SHORT) for _ in range(3))  # until its door is crowded


@pytest.mark.parametrize("behave", [floods, answers(b"x" * 2000)], ids=["without an end", "and says so"])
def test_an_answer_that_is_too_long_is_not_taken(at: Path, behave: Behave) -> None:
    with listening(at, behave) as path:
        assert unreachable(path, max_bytes=1000).kind == "garbage"


@pytest.mark.parametrize("behave", [hangs, drips], ids=["hangs", "drips"])
def test_there_is_one_deadline_for_everything(at: Path, behave: Behave) -> None:
    """Also for one who always sends a little more in time."""
    began = time.monotonic()
    with listening(at, behave) as path:
        assert unreachable(path, SHORT).kind == "late"
    assert SHORT <= time.monotonic() - began < GENEROUS


def test_one_who_does_not_read_is_not_waited_for(at: Path) -> None:
    def ignore(line: socket.socket, over: threading.Event) -> None:
        over.wait()

    with listening(at, ignore) as path, pytest.raises(Unreachable) as caught:
        send_request(path, "POST", "/", b"x" * 50_000_000, SHORT)
    assert caught.value.kind == "late"


def test_one_who_lets_nobody_in_is_not_waited_for(at: Path) -> None:
    """As many wait as the system lets wait: the next one is turned away at once, and tries again in vain."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(at))
    listener.listen(0)
    waiting = []
    with listener:
        while True:
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            waiting.append(one)
            try:
                one.connect(str(at))
            except BlockingIOError:
                break
        assert unreachable(str(at), SHORT).kind == "late"
        for one in waiting:
            one.close()


def test_who_was_turned_away_for_a_moment_gets_in(at: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(at))
    listener.listen(0)
    first = socket.socket(socket.AF_UNIX)
    first.connect(str(at))
    found: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: found.append(send_request(str(at), "GET", "/", b"", GENEROUS)))
    with listener, first:
        asking.start()
        while not found:
            line, _ = listener.accept()
            with line:
                line.settimeout(0.2)
                try:
                    read_request(line)
                    line.sendall(reply(b"{}"))
                except (TimeoutError, OSError):
                    continue
            asking.join(GENEROUS)
    assert found == [(200, b"{}")]


def test_one_who_answers_before_all_is_sent_is_heard(at: Path) -> None:
    """A request that is too long: the daemon says so and reads no more."""

    def refuse(line: socket.socket, over: threading.Event) -> None:
        line.recv(1000)
        line.sendall(reply(b"too long", b"413 Too Large"))

    with listening(at, refuse) as path:
        assert send_request(path, "POST", "/", b"x" * 20_000_000, GENEROUS) == (413, b"too long")


def test_nobody_is_there_in_many_ways(at: Path, tmp_path: Path) -> None:
    left_behind = at.with_name("left")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left_behind))
    (at.parent / "file").write_text("")
    places = [str(at), str(left_behind), str(at.parent), str(at.parent / "file"), "", "a\0b", "x" * 5000]
    assert [unreachable(path).kind for path in places] == ["absent"] * len(places)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/ä", "no slash", "/\0"])
def test_an_address_cannot_smuggle_anything_in(at: Path, target: str) -> None:
    with listening(at, answers(b"{}")) as path, pytest.raises(Unreachable):
        send_request(path, "GET", target, b"", GENEROUS)


def test_no_time_is_too_late(at: Path) -> None:
    with listening(at, answers(b"{}")) as path:
        assert unreachable(path, 0.0).kind == "late"
        assert unreachable(path, -1.0).kind == "late"


def test_it_imports_nothing_that_takes_time() -> None:
    code = (
        "import sys, os; old = set(sys.modules); import tacit.daemon_socket; print(*set(sys.modules) - old)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    ours = {"tacit", "tacit.version", "tacit.daemon_socket"}
    assert set(done.stdout.split()) - ours <= {"_socket", "time", "__future__"}
