"""What can go wrong under a real daemon. Whoever asks for a turn gets an answer in time, and a receipt or the
log says what happened."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

import tacit as product
from tacit.client import Client, connect
from tacit.context import receipts
from tacit.context.model import Compiled
from tacit.daemon_socket import send_request, socket_path
from tacit.home.layout import Home
from tacit.server.log import Log
from tacit.transcripts import spool
from tacit.transcripts.model import Message
from tests.client.conftest import _garden, another, garden
from tests.client.relay.conftest import Relay
from tests.conftest import eventually
from tests.embeddings.conftest import Reply, Request, Server
from tests.faults.fulldisk import fill, tmpfs
from tests.faults.machine import Impossible
from tests.memory.homes import OWNERS, QUESTION, notice_codes, settle, write
from tests.server.served import PATIENCE, Process, serving

__all__ = ["_garden", "another", "garden"]

DEADLINE = 5.0  # seconds of a turn
GENEROUS = 30.0  # seconds in which a turn with such a deadline is answered on the busiest machine
KITES = "Do the kites fly low over the orchard?"
NOTE = "# Kites\n\n- The kites fly low over the orchard, KITEWORD\n"


class Caller:
    """A host that asks for one turn after the other, each in a session of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._number = 0

    def __call__(self, message: str = QUESTION) -> Compiled:
        self._number += 1
        key = f"agent:main:telegram:direct:7:thread:{self._number}"
        began = time.monotonic()
        compiled = self.client.turn(message, session_key=key, seconds=DEADLINE)
        assert time.monotonic() - began < GENEROUS
        # Made and on record, or empty with the reason.
        assert compiled.receipt.id or (compiled.text == "" and notice_codes(compiled))
        return compiled


@contextmanager
def calling(home: Path) -> Iterator[Caller]:
    with connect(home, warn=lambda text: None) as client:
        yield Caller(client)


def log(home: Path) -> list[dict[str, Any]]:
    with suppress(OSError):
        return [json.loads(line) for line in (home / ".tacit/daemon.log").read_text().splitlines()]
    return []


def logged(home: Path, event: str) -> list[dict[str, Any]]:
    return [line for line in log(home) if line["event"] == event]


def said_in(home: Path) -> list[str]:
    """By the messages of the session that these tests talk in."""
    memory = product.open(home)
    path = memory.services.conversations.find_last_part("ses_f")
    turns = memory.transcript(path).turns if path else ()
    return [turn.text for turn in turns if isinstance(turn, Message)]


def health(process: Process) -> dict[str, Any]:
    told = process.ask("GET", "/v1/health")
    assert isinstance(told, dict)
    return told


# ---------------------------------------------------------------- models


class Models:
    """An embedding model on this machine that answers, or does not, as it is told."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self.mode = "answers"

    def __call__(self, request: Request) -> Reply:
        texts = request.json["input"]
        if self.mode != "answers" and KITES in str(texts):
            self.asked.set()
            if self.mode == "hangs":
                self.go.wait(PATIENCE)
            return Reply(b"no", 500)
        vectors = [[byte / 256 for byte in sha256(text.encode()).digest()[:8]] for text in texts]
        return Reply({"data": [{"index": at, "embedding": one} for at, one in enumerate(vectors)]})


@pytest.fixture
def models(loopback: None) -> Iterator[tuple[Models, Server]]:
    model = Models()
    with Server(model) as server:
        yield model, server
        model.go.set()


def use(home: Path, server: Server) -> None:
    settle(home, f"{OWNERS}search: {{embedding_model: '{server.base}#m', embedding_dimensions: 8}}\n")


@pytest.mark.parametrize("mode", ["hangs", "is broken"])
def test_fault_a_slow_or_broken_embedder_costs_a_turn_its_vectors_and_nothing_else(
    garden: Path, models: tuple[Models, Server], mode: str
) -> None:
    model, server = models
    use(garden, server)
    write(garden, "knowledge/reference/kites.md", NOTE)
    with serving(garden) as process, calling(garden) as caller:
        assert eventually(lambda: not health(process)["problems"])
        assert "PROCEDUREWORD" in caller().text
        model.mode = mode
        compiled = caller(KITES)
        assert model.asked.is_set()
        assert "KITEWORD" in compiled.text
        said = [notice for notice in compiled.receipt.notices if "127.0.0.1" in notice.text]
        assert said, compiled.receipt.notices
        kept = receipts.find_by_id(Home(garden), compiled.receipt.id)
        assert kept is not None
        assert [notice.code for notice in kept.notices] == notice_codes(compiled)


def test_fault_a_dead_embedder_costs_a_turn_its_vectors_and_nothing_else(
    garden: Path, models: tuple[Models, Server]
) -> None:
    _, server = models
    use(garden, server)
    write(garden, "knowledge/reference/kites.md", NOTE)
    with serving(garden) as process, calling(garden) as caller:
        assert eventually(lambda: not health(process)["problems"])
        server.__exit__()
        compiled = caller(KITES)
        assert "KITEWORD" in compiled.text
        assert "127.0.0.1" in str(compiled.receipt.notices)
        write(garden, "knowledge/reference/hawks.md", "# Hawks\n\n- The hawks nest on the mill, HAWKWORD\n")
        assert eventually(lambda: "HAWKWORD" in caller("Where do the hawks nest on the mill?").text)


# ---------------------------------------------------------------- killed


def test_fault_a_daemon_that_is_killed_in_the_middle_of_a_turn_is_answered_for_and_comes_back(
    garden: Path, models: tuple[Models, Server]
) -> None:
    model, server = models
    use(garden, server)
    with serving(garden) as first, calling(garden) as caller:
        assert "PROCEDUREWORD" in caller().text
        model.mode = "hangs"
        found: list[Compiled] = []
        waiting = threading.Thread(target=lambda: found.append(caller(KITES)))
        waiting.start()
        assert model.asked.wait(PATIENCE)  # it is at it
        first.popen.kill()
        waiting.join(GENEROUS)
        (cut,) = found
        assert (cut.text, cut.receipt.skipped, notice_codes(cut)) == ("", "daemon", ["daemon"])
        model.mode = "answers"
        first.popen.wait()
        # Its socket is still there and nobody behind it: what follows is made without it.
        assert (garden / ".tacit/daemon.sock").exists()
        alone = caller()
        assert "PROCEDUREWORD" in alone.text
        assert receipts.find_by_id(Home(garden), alone.receipt.id) is not None
        assert "not running: Connection refused" in Relay(garden)("turn", {"prompt": QUESTION}).reason
        with serving(garden) as second:
            assert health(second)["pid"] == second.popen.pid
            assert "PROCEDUREWORD" in caller().text
            assert second.end()[0] == 0
    life = [line["event"] for line in log(garden) if line["event"] in ("started", "stopped")]
    assert life == ["started", "started", "stopped"]  # nobody was there to say that the first one ended


def has_grown(some: list[str], to: int) -> bool:
    return len(some) > to


def test_fault_what_a_client_says_around_kills_is_kept_once_and_in_order(garden: Path) -> None:
    """No call fails, whenever the daemon dies; what it did not get to is kept without it."""
    over = threading.Event()
    wanted: list[str] = []
    failed: list[Exception] = []

    def talk() -> None:
        with connect(garden, warn=lambda text: None) as client:
            while not over.is_set():
                wanted.append(f"Said {len(wanted)}")
                try:
                    client.message("user", wanted[-1], session_id="ses_f")
                except Exception as error:  # noqa: BLE001 - it is looked at by the test
                    failed.append(error)

    talking = threading.Thread(target=talk)
    talking.start()
    try:
        for _ in range(3):
            with serving(garden) as process:
                assert eventually(partial(has_grown, wanted, len(wanted) + 30))
                process.popen.kill()
                process.popen.wait()
    finally:
        over.set()
        talking.join(PATIENCE)
    assert failed == []
    assert said_in(garden) == wanted


def test_fault_what_hooks_say_around_a_kill_is_kept_once_and_in_order(garden: Path) -> None:
    """Each by a process of its own. What was acknowledged, what was spooled and what was cut off: all of it
    is there after the next start."""
    relay = Relay(garden)

    def say(number: int) -> dict[str, Any]:
        return relay("message", {"text": f"Said {number}", "session_id": "ses_f"}).json

    with serving(garden) as first:
        assert [say(number) for number in range(5)] == [{"continue": True}] * 5
        first.popen.kill()
        first.popen.wait()
    assert [say(number) for number in range(5, 10)] == [{"continue": True, "spooled": True}] * 5
    with serving(garden):
        assert spool.count_waiting(garden) == 0
        assert [say(number) for number in range(10, 12)] == [{"continue": True}] * 2
    assert said_in(garden) == [f"Said {number}" for number in range(12)]
    assert [line["taken"] for line in logged(garden, "drained")] == [5]


# ---------------------------------------------------------------- the index


def index_files(home: Path) -> list[Path]:
    return sorted((home / ".tacit").glob("memory.db*"))


def test_fault_an_index_that_is_deleted_is_made_anew_by_whoever_needs_it(garden: Path) -> None:
    with serving(garden) as process, calling(garden) as caller:
        assert eventually(lambda: not health(process)["problems"])
        assert eventually(lambda: health(process)["jobs"]["index"]["runs"])
        for file in index_files(garden):
            file.unlink()
        assert "PROCEDUREWORD" in caller().text
        assert eventually(lambda: logged(garden, "index_anew") or logged(garden, "index_gone"))
        write(garden, "knowledge/reference/kites.md", NOTE)
        assert eventually(lambda: "KITEWORD" in caller(KITES).text)
        assert index_files(garden)


def test_fault_an_index_that_is_overwritten_is_set_aside_and_made_anew(garden: Path) -> None:
    with serving(garden) as process, calling(garden) as caller:
        assert eventually(lambda: not health(process)["problems"])
        for file in index_files(garden):
            if not file.name.endswith("-shm"):
                with file.open("r+b") as damaged:
                    damaged.write(os.urandom(file.stat().st_size))
        assert "PROCEDUREWORD" in caller().text
        write(garden, "knowledge/reference/kites.md", NOTE)  # what is new cannot come from memory
        assert eventually(lambda: "KITEWORD" in caller(KITES).text)
        assert eventually(lambda: any(damage in str(log(garden)) for damage in ("set aside", "index_anew")))
        assert "PROCEDUREWORD" in caller().text
        assert eventually(lambda: not health(process)["problems"])


# ---------------------------------------------------------------- the disk


def test_fault_a_full_disk_refuses_messages_in_words_and_answers_turns(garden: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(tmpfs(tmp_path / "d", "size=8m"))
        except Impossible as error:
            pytest.skip(str(error))
        home = disk / "h"
        shutil.copytree(garden, home, symlinks=True)
        process = stack.enter_context(serving(home))
        caller = stack.enter_context(calling(home))
        assert "PROCEDUREWORD" in caller().text
        kept = [process.message("Before", session_id="ses_f")["number"]]
        fill(disk / "ballast")
        refused = message(process, "Refused " * 2000)
        assert refused[0] == 500
        assert refused[1]["error"]["code"] == "disk"
        assert "full" in refused[1]["error"]["message"]
        assert "PROCEDUREWORD" in caller(f"{QUESTION} And when?").text
        said = Relay(home)("message", {"text": "Not kept " * 2000, "session_id": "ses_f"})
        assert "spool could not be written" in said.reason
        (disk / "ballast").unlink()
        kept.append(process.message("After", session_id="ses_f")["number"])
        assert kept == [1, 2]
        assert "PROCEDUREWORD" in caller().text
        assert "the disk is full" in logged(home, "disk")[0]["error"]
        assert process.end()[0] == 0
        assert said_in(home) == ["Before", "After"]


def message(process: Process, text: str) -> tuple[int, Any]:
    body = json.dumps({"role": "user", "text": text, "session_id": "ses_f"}).encode()
    status, answer = send_request(socket_path(str(process.home)), "POST", "/v1/message", body, PATIENCE)
    return status, json.loads(answer)


def test_fault_what_could_not_be_logged_is_counted_in_the_next_line(tmp_path: Path) -> None:
    said = Log(tmp_path / "home/.tacit/daemon.log")
    for _ in range(3):
        said.say("error", "disk")
    (tmp_path / "home/.tacit").mkdir(parents=True)
    said.say("info", "home_back")
    said.say("info", "stopped")
    assert [(line["event"], line.get("lost")) for line in log(tmp_path / "home")] == [
        ("home_back", 3),
        ("stopped", None),
    ]


@pytest.fixture
def far(garden: Path) -> Path:
    """A home whose path is so long that its socket is elsewhere: the daemon is reached though it is gone."""
    home = garden.parent / ("long" * 30) / "h"
    home.parent.mkdir()
    garden.rename(home)
    return home


def test_fault_a_home_that_is_gone_for_a_while_empties_turns_until_it_is_back(far: Path) -> None:
    away = far.with_name("away")
    with serving(far) as process, calling(far) as caller:
        assert "PROCEDUREWORD" in caller().text
        far.rename(away)
        gone = caller()
        assert "WORD" not in gone.text
        assert notice_codes(gone)
        assert not far.exists()  # and nobody made it anew
        assert process.popen.stderr is not None
        assert "is gone" in process.popen.stderr.readline()
        away.rename(far)
        assert eventually(lambda: "PROCEDUREWORD" in caller().text)
        assert eventually(lambda: logged(far, "home_back"))
        assert process.message("After", session_id="ses_f")["number"] == 1
        assert process.end()[0] == 0


def test_fault_a_home_that_is_removed_breaks_no_turn(far: Path) -> None:
    with serving(far) as process, calling(far) as caller:
        assert caller().text
        shutil.rmtree(far)
        for _ in range(3):
            gone = caller()
            assert "WORD" not in gone.text
            assert notice_codes(gone)
        assert Relay(far)("turn", {"prompt": QUESTION}).json.keys() <= {"continue", "reason"}
        assert "not kept" in Relay(far)("message", {"text": "x"}).reason
        assert process.popen.stderr is not None
        assert "is gone" in process.popen.stderr.readline()
        assert not far.exists()
        assert process.end()[0] == 0


# ---------------------------------------------------------------- the clock

SET_CLOCK = """
import sys, time
from datetime import datetime, timedelta
from pathlib import Path
import tacit.app
file, real_time, real_now = Path(sys.argv.pop(1)), time.time, tacit.app.utc_now
ahead = lambda: float(file.read_text())
time.time = lambda: real_time() + ahead()
tacit.app.utc_now = lambda: real_now() + timedelta(seconds=ahead())
from tacit.cli.main import entry
entry()
"""


class SetProcess(Process):
    """`tacit serve` with a clock that somebody sets."""

    def __init__(self, home: Path, clock: Path) -> None:
        self.home = home
        command = [sys.executable, "-c", SET_CLOCK, str(clock), "serve", "--home", str(home)]
        self.popen = Popen(command, stdout=PIPE, stderr=PIPE, text=True)


def test_fault_a_clock_that_jumps_back_changes_no_answer_and_no_order(garden: Path, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    process = SetProcess(garden, clock)
    try:
        process.ready()
        with calling(garden) as caller:
            jumps = (0, -2 * 86_400, 3600, -20 * 365 * 86_400, 0)
            for number, ahead in enumerate(jumps):
                clock.write_text(str(ahead))
                assert "PROCEDUREWORD" in caller().text
                kept = process.message(f"Said {number}", session_id="ses_f")
                assert kept["number"] == number + 1
            assert eventually(lambda: health(process)["jobs"]["spool"]["runs"] > 3)  # the work goes on
            years = {line["at"][:4] for line in log(garden)}
            days = {receipt.at[:4] for receipt in receipts.recent(Home(garden), 20)}
            assert len(days) > 1, (years, days)  # each receipt has the time that the clock told
            assert process.end()[0] == 0
    finally:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()
    assert said_in(garden) == [f"Said {number}" for number in range(len(jumps))]


# ---------------------------------------------------------------- what callers send


def test_fault_a_request_of_5_mb_is_refused_and_the_turn_goes_on_without(garden: Path) -> None:
    with serving(garden) as process, calling(garden) as caller:
        huge = caller("x" * 5_000_000)
        assert (huge.text, notice_codes(huge)) == ("", ["usage"])
        assert "max_request_kb" in huge.receipt.notices[0].text
        assert "4000000 bytes" in Relay(garden)("turn", {"prompt": "x" * 5_000_000}).reason
        assert "PROCEDUREWORD" in caller().text
        assert eventually(lambda: logged(garden, "large"))
        assert health(process)["workers"]["stuck"] == 0


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff\xfe", b'{"message": 7}', b'{"a":' * 5000])
def test_fault_malformed_json_is_refused_in_words_and_logged(garden: Path, body: bytes) -> None:
    with serving(garden), calling(garden) as caller:
        status, answer = send_request(socket_path(str(garden)), "POST", "/v1/turn", body, PATIENCE)
        assert status == 400
        assert json.loads(answer)["error"]["message"]
        assert logged(garden, "usage")[0]["operation"] in ("turn", "none")
        assert "PROCEDUREWORD" in caller().text


@contextmanager
def open_files(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"this machine allows {hard} open files, and this needs {count}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_let_in(line: socket.socket, path: str) -> bool:
    """As many wait at a socket as it lets wait; the others try again."""
    return line.connect_ex(path) == 0


def test_fault_a_thousand_half_open_connections_keep_no_turn_out(garden: Path) -> None:
    with open_files(2048), serving(garden) as process, calling(garden) as caller, ExitStack() as lines:
        for _ in range(1000):
            line = lines.enter_context(socket.socket(socket.AF_UNIX))
            assert eventually(partial(is_let_in, line, socket_path(str(garden))))
            line.send(b"POST /v1/turn HTTP/1.1\r\nHost: local")
        assert health(process)["connections"] > 900
        for _ in range(3):
            assert "PROCEDUREWORD" in caller().text
        # None of them comes to an end, and each is given up.
        assert eventually(lambda: logged(garden, "slow"))
        assert eventually(lambda: health(process)["connections"] < 10)
        assert "PROCEDUREWORD" in caller().text
