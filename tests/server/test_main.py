"""The daemon from its start to its end, as a real process."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import tacit as product
from tacit.client import connect
from tacit.daemon_socket import send_request, socket_path
from tacit.home.layout import CONFIG, Home
from tacit.server.instance import DaemonInfo, find_daemon
from tacit.server.main import notify_systemd
from tacit.transcripts import spool, writer
from tacit.transcripts.model import Message
from tests.conftest import GitLog, Tacit, eventually
from tests.memory.homes import QUESTION, write
from tests.server.conftest import request
from tests.server.served import PATIENCE, Process, answers, serving


def said(home: Path) -> list[str]:
    files = sorted((home / "raw/conversations").rglob("*.md"))
    loaded = [writer.load(Home(home), str(file.relative_to(home))) for file in files]
    return [turn.text for one in loaded for turn in one.turns if isinstance(turn, Message)]


def test_what_was_acknowledged_outlives_kill_9_and_the_next_start_goes_on(
    home: Path, git_log: GitLog
) -> None:
    kept: list[str] = []
    with serving(home) as first:
        health = first.ask("GET", "/v1/health")
        assert health["pid"] == first.popen.pid
        first.message("committed", session_key="agent:main:telegram:direct:7")
        first.ask("POST", "/v1/session/end", session_key="agent:main:telegram:direct:7")

        def talk() -> None:
            for number in range(1000):
                try:
                    answer = first.message(f"message {number}", id=f"r{number}")
                except (OSError, AssertionError):
                    return
                assert answer["number"] == number + 1
                kept.append(f"message {number}")

        thread = threading.Thread(target=talk)
        thread.start()
        assert eventually(lambda: len(kept) >= 20)
        first.popen.kill()
        first.popen.wait()
        thread.join()
    assert (home / ".tacit/daemon.sock").exists()  # nobody was there to remove it
    assert find_daemon(Home(home)) is None
    there = [text for text in said(home) if text != "committed"]
    assert there[: len(kept)] == kept
    assert len(there) <= len(kept) + 1  # the last one may be there without anybody being told

    # Meanwhile hosts find nobody and spool; the one that got no answer does so with its id.
    for number in range(len(kept), len(kept) + 10):
        body = {"role": "user", "text": f"message {number}", "id": f"r{number}"}
        spool.add(home, "message", body)
    with serving(home) as second:
        assert spool.count_waiting(home) == 0
        assert second.message("at last")["number"] == len(kept) + 11
        assert eventually(lambda: git_log()[0].subject == "conversation: committed")
        assert second.end() == (0, "")
    wanted = [f"message {number}" for number in range(len(kept) + 10)]
    assert sorted(said(home)) == sorted([*wanted, "at last", "committed"])
    # The session was neither sealed by the end of the daemon nor is it by the next command.
    open_ones = [record for record in writer.list_states(Home(home)) if record.sha256 is None]
    assert len(open_ones) == 1


def test_what_waits_in_the_spool_is_kept_before_what_is_said_now(home: Path) -> None:
    """As after a daemon hung: the host spooled meanwhile, and speaks again before anybody looked there."""
    with serving(home) as daemon:
        assert eventually(lambda: daemon.ask("GET", "/v1/health")["jobs"]["spool"]["runs"])
        for number in range(2):  # few: a new message waits for the spool only a moment
            spool.add(home, "message", {"role": "user", "text": f"spooled {number}"})
        daemon.message("said now")
    assert said(home) == ["spooled 0", "spooled 1", "said now"]


def test_a_stop_finishes_what_was_let_in_and_leaves_nothing_of_itself(home: Path, git_log: GitLog) -> None:
    with serving(home) as process:
        process.message("hello")
        sealed = process.ask("POST", "/v1/session/end", id="e1")
        assert sealed["sha256"]
        assert process.end(signal.SIGINT) == (0, "")
    assert git_log()[0].trailer("Transcript-SHA256") == [sealed["sha256"]]
    assert not (home / ".tacit/daemon.sock").exists()
    assert not (home / ".tacit/daemon.json").exists()
    events = [json.loads(line)["event"] for line in (home / ".tacit/daemon.log").read_text().splitlines()]
    assert (events[0], events[-1]) == ("started", "stopped")


def test_a_broken_config_stops_the_start_with_what_to_do_and_no_place_is_kept(home: Path) -> None:
    (home / CONFIG).write_text("nonsense: 1\n")
    process = Process(home)
    out, errors = process.popen.communicate(timeout=PATIENCE)
    assert (process.popen.returncode, out) == (1, "")
    assert "unknown key 'nonsense'" in errors
    assert find_daemon(Home(home)) is None


def test_a_hangup_reads_the_config_again_and_the_process_serves_on(home: Path) -> None:
    with serving(home) as process:
        assert process.message("kept")["session_id"]
        (home / CONFIG).write_text("capture:\n  exclude_agents: [main]\n")
        process.popen.send_signal(signal.SIGHUP)
        assert eventually(lambda: process.ask("GET", "/v1/health")["capture"]["exclude_agents"] == ["main"])
        assert process.message("psst")["session_id"] == ""
        (home / CONFIG).write_text("capture: [\n")
        assert eventually(lambda: "settings from before hold" in str(process.ask("GET", "/v1/health")))
        assert process.message("psst")["session_id"] == ""
        (home / CONFIG).write_text("serve: {workers: 7, waiting: 3}\n")
        assert eventually(lambda: "serve.workers, serve.waiting" in str(process.ask("GET", "/v1/health")))
        assert "after a restart" in str(process.ask("GET", "/v1/health")["problems"])
        code, errors = process.end()
        assert code == 0
        assert "settings from before hold" in errors
    assert said(home) == ["kept"]


def test_a_changed_deadline_is_that_of_the_next_turn(home: Path) -> None:
    """10 ms are too short for a body that takes longer to arrive, and a minute is not."""

    def slow_turn() -> str:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(socket_path(str(home)))
            asked = request("POST", "/v1/turn", b'{"message":"x"}', {"Connection": "close"})
            line.sendall(asked[:-1])
            time.sleep(0.1)
            line.sendall(asked[-1:])
            return b"".join(iter(lambda: line.recv(65536), b"")).decode()

    (home / CONFIG).write_text("inject: {deadline_ms: 60000}\n")
    with serving(home) as process:
        assert "deadline was over" not in slow_turn()
        (home / CONFIG).write_text("inject: {deadline_ms: 10}\n")
        process.popen.send_signal(signal.SIGHUP)
        assert eventually(lambda: bool(named(home, "config_reloaded")))
        assert "Its deadline was over when all of the request was here" in slow_turn()
        assert find_daemon(Home(home)) == info_of(home)
        assert process.end()[0] == 0


def info_of(home: Path) -> DaemonInfo:
    return DaemonInfo(**json.loads((home / ".tacit/daemon.json").read_text()))


def test_a_daemon_whose_private_folder_was_taken_away_ends_and_another_can_begin(home: Path) -> None:
    with serving(home) as process:
        process.message("before")
        shutil.rmtree(home / ".tacit")
        _, errors = process.popen.communicate(timeout=PATIENCE)
        assert process.popen.returncode == 1
        assert "replaced under this daemon" in errors
    with serving(home) as again:
        again.message("after")
        again.end()
    assert sorted(said(home)) == ["after", "before"]


def events(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (home / ".tacit/daemon.log").read_text().splitlines()]


def named(home: Path, event: str) -> list[dict[str, object]]:
    return [line for line in events(home) if line["event"] == event]


def test_a_daemon_whose_home_was_moved_answers_nobody_wrongly_and_ends(home: Path) -> None:
    """Neither for the home that it had, nor for another one that is put in its place."""
    write(home, "knowledge/reference/soul.md", "# Soul\n\nThe zebra has a soul.\n")
    moved = home.with_name("moved")
    with serving(home) as process, connect(home, warn=print) as client:
        client.message("user", "before", session_id="ses_m")
        assert [hit.path for hit in client.find("zebra").hits]
        home.rename(moved)
        found = Tacit(moved)("search", "zebra")
        assert (found.code, found.stderr) == (0, "")
        assert "knowledge/reference/soul.md" in found.stdout
        with connect(moved, warn=print) as there:
            assert QUESTION in there.turn(QUESTION, seconds=PATIENCE).text
        status, answer = send_request(
            socket_path(str(moved)), "POST", "/v1/search", b'{"query": "zebra"}', PATIENCE
        )
        assert (status, json.loads(answer)["error"]["code"]) == (500, "home")
        _, errors = process.popen.communicate(timeout=PATIENCE)
        assert process.popen.returncode == 1
        assert f"was moved to {moved}" in errors
    assert named(moved, "moved")[0]["to"] == str(moved)
    assert not home.exists()
    with serving(moved) as again:
        assert again.message("after", session_id="ses_m")["number"] == 2


@pytest.mark.parametrize("how", ["deleted", "another's", "a file"])
def test_a_socket_that_is_not_ours_any_more_is_made_anew(home: Path, how: str) -> None:
    path = home / ".tacit/daemon.sock"
    with serving(home) as process, socket.socket(socket.AF_UNIX) as other:
        path.unlink()
        if how == "another's":
            other.bind(str(path))
        if how == "a file":
            path.write_text("in the way")
            assert eventually(lambda: named(home, "socket_lost"))
            path.unlink()
        assert eventually(lambda: answers(home))
        assert process.message("still here")["number"] == 1
        assert len(named(home, "socket_anew")) == 1
        assert mode(path) == 0o600
        assert process.end()[0] == 0
    assert not path.exists()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_an_index_that_was_broken_before_the_start_is_in_the_log(home: Path) -> None:
    with serving(home) as process:
        process.end()
    for file in (home / ".tacit").glob("memory.db*"):
        file.write_bytes(b"this is no index" * 300)
    with serving(home) as process:
        process.end()
    [line] = named(home, "index")
    assert "set aside" in str(line["odd"])


def test_a_home_that_is_gone_for_a_while_ends_nothing(home: Path) -> None:
    away = home.with_name("away")
    with serving(home) as process:
        process.message("before")
        home.rename(away)
        assert process.popen.stderr is not None
        assert "is gone" in process.popen.stderr.readline()
        assert not home.exists()
        away.rename(home)
        assert process.message("after")["number"] == 2
        assert process.end()[0] == 0


def test_systemd_is_told_when_it_answers_and_when_it_ends(home: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(PATIENCE)
        with serving(home, "--tcp", env={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as process:
            assert told.recv(100) == b"READY=1"
            assert answers(home)
            process.end()
        assert told.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("address", ["", "nonsense", "/nowhere/at/all", "@nobody"])
def test_a_notice_that_nobody_wants_does_no_harm(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_systemd("READY=1")


def test_a_second_signal_does_not_wait(home: Path) -> None:
    with serving(home) as process:
        theirs = product.open(home).session(session_id="theirs")
        theirs.message("user", "held by another process")
        waiting = threading.Thread(target=lambda: tried(process))
        waiting.start()
        assert eventually(lambda: process.ask("GET", "/v1/health")["workers"]["busy"])
        process.popen.send_signal(signal.SIGTERM)  # it finishes what was let in, which takes seconds here
        assert eventually(lambda: not answers(home))
        code, _ = process.end(signal.SIGTERM)
        assert code == 128 + signal.SIGTERM
        waiting.join()
        theirs.detach()
    assert said(home) == ["held by another process"]


def tried(process: Process) -> None:
    with suppress(OSError, AssertionError):
        process.message("nobody waits for this", session_id="theirs")
