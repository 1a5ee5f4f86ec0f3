"""One daemon for a home, whatever was left behind by the one before."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tacit.daemon_socket import socket_path
from tacit.errors import Busy, HomeError
from tacit.home.layout import Home
from tacit.server.instance import DaemonInfo, DaemonInstance, find_daemon
from tests.conftest import plain_user
from tests.server.conftest import GENEROUS

# A daemon without a server: it takes its place, says so, and stays until it is told to go.
HOLDER = """
import sys
from pathlib import Path
from tacit.server.instance import DaemonInstance
from tacit.errors import Busy
from tacit.home.layout import Home
place = DaemonInstance(Home(Path(sys.argv[1])))
try:
    place.take(wait=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
except Busy as error:
    print("busy", flush=True)
    sys.exit(0)
bound = place.listen()
place.announce(None)
print("mine", flush=True)
sys.stdin.readline()
bound.close()
place.leave()
"""


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def process(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", HOLDER, str(root), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def said(holder: subprocess.Popen[bytes]) -> str:
    assert holder.stdout is not None
    return holder.stdout.readline().decode().strip()


@contextmanager
def holder(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    one = process(root)
    try:
        assert said(one) == "mine"
        yield one
    finally:
        one.kill()
        one.communicate()


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(path)
        except OSError:
            return False
        return True


def test_who_takes_the_place_is_found_there_and_leaves_nothing_but_the_lock(home: Path) -> None:
    place = DaemonInstance(Home(home))
    assert find_daemon(Home(home)) is None
    place.take()
    with place.listen():
        info = place.announce(4711)
        assert find_daemon(Home(home)) == info
        assert info.pid == os.getpid()
        assert info.tcp == 4711
        assert info.socket == socket_path(str(home))
        assert connects(info.socket)
    place.leave()
    assert find_daemon(Home(home)) is None
    assert {path.name for path in (home / ".tacit").glob("daemon*")} == {"daemon.lock"}


def test_all_files_of_a_daemon_are_the_owners_alone_whatever_the_mask(home: Path) -> None:
    mask = os.umask(0)
    try:
        with DaemonInstance(Home(home)) as place, place.listen():
            place.announce()
            place.token()
            names = ("daemon.lock", "daemon.json", "daemon.sock", "daemon.token")
            assert {name: oct(mode(home / ".tacit" / name)) for name in names} == dict.fromkeys(
                names, "0o600"
            )
            assert mode(home / ".tacit") == 0o700
    finally:
        os.umask(mask)


def test_the_socket_is_not_open_to_others_for_a_moment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = os.chmod

    def chmod(path: str, wanted: int) -> None:
        seen.append((os.path.basename(path), mode(path)))
        real(path, wanted)

    mask = os.umask(0)
    try:
        with DaemonInstance(Home(home)) as place:
            monkeypatch.setattr(os, "chmod", chmod)
            place.listen().close()
    finally:
        os.umask(mask)
    assert seen == [("daemon.sock", 0o600)]


def test_a_folder_that_was_open_to_others_is_closed(home: Path) -> None:
    (home / ".tacit").chmod(0o777)
    with DaemonInstance(Home(home)):
        assert mode(home / ".tacit") == 0o700


def test_a_second_start_says_who_holds_the_home_and_what_to_do(home: Path) -> None:
    with holder(home) as other:
        info = find_daemon(Home(home))
        assert info is not None
        assert info.pid == other.pid
        with pytest.raises(Busy) as error:
            DaemonInstance(Home(home)).take(wait=0)
        for part in (str(other.pid), info.started, info.socket, "tacit --home", "stop"):
            assert part in str(error.value)


def test_a_daemon_that_has_not_announced_itself_yet_is_there_nevertheless(home: Path) -> None:
    with DaemonInstance(Home(home)):
        assert find_daemon(Home(home)) == DaemonInfo(0, "", "", socket_path(str(home)), None)
        with pytest.raises(Busy, match="just starting"):
            DaemonInstance(Home(home)).take(wait=0)


def test_a_look_at_the_lock_does_not_take_the_place_from_a_start(home: Path) -> None:
    """`running` holds the lock for a moment itself."""
    with DaemonInstance(Home(home)):
        pass
    fd = os.open(home / ".tacit" / "daemon.lock", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    taken = process(home, str(GENEROUS))
    os.close(fd)
    assert said(taken) == "mine"
    taken.communicate(b"\n")


def test_a_lock_that_is_replaced_while_it_is_taken_is_not_taken_for_ours(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, real, calls = home / ".tacit" / "daemon.lock", fcntl.flock, []

    def flock(fd: int, how: int) -> None:
        calls.append(how)
        if len(calls) == 1:
            lock.unlink()
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with DaemonInstance(Home(home)) as place:
        assert place.holds()
        assert find_daemon(Home(home)) is not None
    assert len(calls) == 3


def test_after_a_kill_the_next_start_takes_over_at_once(home: Path) -> None:
    with holder(home) as first:
        socket_file = socket_path(str(home))
        assert connects(socket_file)
        first.send_signal(signal.SIGKILL)
        with holder(home) as second:
            info = find_daemon(Home(home))
            assert info is not None
            assert info.pid == second.pid
            assert connects(socket_file)
            second.communicate(b"\n")
    assert not os.path.lexists(socket_file)


def test_a_killed_daemon_does_not_run_though_all_its_files_are_there(home: Path) -> None:
    with holder(home) as one:
        one.kill()
        one.wait()
        assert (home / ".tacit" / "daemon.json").exists()
        assert os.path.lexists(socket_path(str(home)))
        assert find_daemon(Home(home)) is None


def test_a_file_that_names_a_living_process_means_nothing(home: Path) -> None:
    """A pid is used again by another process, and anybody can write a file."""
    fake = {"pid": os.getpid(), "started": "x", "version": "x", "socket": "x", "tcp": None}
    with DaemonInstance(Home(home)):
        pass
    (home / ".tacit" / "daemon.json").write_text(json.dumps(fake))
    assert find_daemon(Home(home)) is None
    with DaemonInstance(Home(home)), pytest.raises(Busy, match="just starting"):
        DaemonInstance(Home(home)).take(wait=0)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"pid": "x"}', '{"pid": 1}', "\0", "[" * 100_000, '{"pid": null, "tcp": 1}'],
)
def test_a_broken_daemon_json_does_not_hide_a_daemon(home: Path, text: str) -> None:
    with DaemonInstance(Home(home)) as place:
        place.announce()
        (home / ".tacit" / "daemon.json").write_text(text)
        assert find_daemon(Home(home)) == DaemonInfo(0, "", "", socket_path(str(home)), None)


def test_of_many_that_start_at_the_same_moment_one_wins(home: Path) -> None:
    for _ in range(2):
        starting = [process(home) for _ in range(6)]
        answers = [said(one) for one in starting]
        info = find_daemon(Home(home))
        assert sorted(answers) == ["busy"] * 5 + ["mine"]
        assert info is not None
        assert info.pid == starting[answers.index("mine")].pid
        assert connects(info.socket)
        for one in starting:
            with suppress(BrokenPipeError):
                one.communicate(b"\n")


def test_of_many_that_start_after_a_kill_one_wins(home: Path) -> None:
    with holder(home) as first:
        first.kill()
        first.wait()
    starting = [process(home) for _ in range(6)]
    assert sorted(said(one) for one in starting) == ["busy"] * 5 + ["mine"]
    assert connects(socket_path(str(home)))
    for one in starting:
        one.kill()
        one.communicate()


def test_who_was_replaced_takes_nothing_away_from_its_successor(home: Path) -> None:
    """.tacit can be deleted at any time. Then the lock of the first daemon is no longer the home's."""
    first = DaemonInstance(Home(home))
    first.take()
    first.listen().close()
    assert first.holds()
    (home / ".tacit").rename(home / ".old")
    assert not first.holds()
    with holder(home) as second:
        first.leave()
        info = find_daemon(Home(home))
        assert info is not None
        assert info.pid == second.pid
        assert connects(info.socket)


def test_leaving_a_home_that_is_gone_is_no_error(home: Path) -> None:
    place = DaemonInstance(Home(home))
    place.take()
    place.listen().close()
    place.announce()
    home.rename(home.with_name("elsewhere"))
    assert not place.holds()
    place.leave()
    place.leave()


def test_a_path_that_is_too_long_for_a_socket_gets_a_folder_of_our_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100) / "home"
    deep.parent.mkdir()
    home.rename(deep)
    path = socket_path(str(deep))
    assert not path.startswith(str(deep))
    with DaemonInstance(Home(deep)) as place, place.listen():
        info = place.announce()
        assert info.socket == path
        assert mode(path) == 0o600
        assert mode(os.path.dirname(path)) == 0o700
        assert connects(path)
    assert not os.path.lexists(path)


def test_what_is_no_socket_is_not_removed(home: Path) -> None:
    with DaemonInstance(Home(home)) as place:
        in_the_way = home / ".tacit" / "daemon.sock"
        in_the_way.write_text("precious")
        with pytest.raises(HomeError, match="in the way"):
            place.listen()
        assert in_the_way.read_text() == "precious"


def test_a_link_in_place_of_the_private_folder_is_refused(home: Path, tmp_path: Path) -> None:
    (home / ".tacit").rename(tmp_path / "elsewhere")
    (home / ".tacit").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HomeError, match="not a folder"):
        DaemonInstance(Home(home)).take()


def test_a_link_in_place_of_the_lock_is_not_followed(home: Path, tmp_path: Path) -> None:
    (home / ".tacit" / "daemon.lock").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        DaemonInstance(Home(home)).take()
    assert not (tmp_path / "target").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_home_of_somebody_else_is_refused(home: Path) -> None:
    os.chown(home / ".tacit", 65534, 65534)
    with pytest.raises(HomeError, match="belongs to user 65534"):
        DaemonInstance(Home(home)).take()


def test_a_home_that_cannot_be_written_is_explained(home: Path) -> None:
    (home / ".tacit").chmod(0o500)
    code = HOLDER.replace("except Busy as error", "except Exception as error").replace('"busy"', "str(error)")
    done = subprocess.run(
        plain_user(sys.executable, "-c", code, home), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert "may not write there" in done.stdout
    (home / ".tacit").chmod(0o700)


def test_the_token_is_made_once_and_is_long(home: Path) -> None:
    with DaemonInstance(Home(home)) as place:
        token = place.token()
        assert len(token) >= 43
        assert place.token() == token
    other = DaemonInstance(Home(home))
    with other:
        assert other.token() == token


def test_a_token_that_others_could_read_is_refused(home: Path) -> None:
    with DaemonInstance(Home(home)) as place:
        place.token()
        (home / ".tacit" / "daemon.token").chmod(0o640)
        with pytest.raises(HomeError, match="read by others"):
            place.token()


@pytest.mark.parametrize("text", ["", "short", "x" * 40 + "\0"])
def test_a_file_that_holds_no_token_is_refused(home: Path, text: str) -> None:
    with DaemonInstance(Home(home)) as place:
        file = home / ".tacit" / "daemon.token"
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(HomeError, match="no token"):
            place.token()


def test_a_token_is_not_read_through_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x" * 50)
    (tmp_path / "elsewhere").chmod(0o600)
    (home / ".tacit" / "daemon.token").symlink_to(tmp_path / "elsewhere")
    with DaemonInstance(Home(home)) as place, pytest.raises(HomeError, match="cannot be read"):
        place.token()


def test_the_lock_does_not_go_to_programs_that_the_daemon_starts(home: Path) -> None:
    place = DaemonInstance(Home(home))
    place.take()
    child = subprocess.Popen(["sleep", str(GENEROUS)], close_fds=False)
    place.leave()
    try:
        assert find_daemon(Home(home)) is None
    finally:
        child.kill()
        child.wait()


def test_looking_for_a_daemon_loads_nothing_heavy() -> None:
    code = "import sys, tacit.server.instance; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"yaml", "subprocess", "rich", "splintr", "dataclasses", "asyncio", "h11"} & set(
        loaded.split()
    )
