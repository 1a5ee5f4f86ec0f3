"""Open sessions of a process that lives on: everything that was acknowledged is there, once, in its order."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tacit as product
from tacit.errors import Busy, DiskError, HomeError, UsageError
from tacit.home.files import digest
from tacit.home.layout import Home
from tacit.sessions.live_sessions import FairLock, SessionRef, SessionServices
from tacit.sessions.registry import SessionRegistry
from tacit.sessions.stored_events import CaptureResult
from tacit.transcripts import spool, writer
from tacit.transcripts.event_ids import EventIds, NotedEvent
from tacit.transcripts.model import Message
from tests.conftest import GitLog, Tacit
from tests.memory.homes import opened

MAIN = SessionRef()
HOST = SessionRef(session_id="host-1")
OURS = SessionRef("agent:main:telegram:group:-100", "host-1")  # the same id, and not the owner alone
WITHOUT_ZONE = datetime.fromisoformat("2026-03-10T09:30:01.234567")


class Clock:
    """Both clocks, which move only when they are told to."""

    def __init__(self) -> None:
        self.wall, self.steady = datetime.now(UTC), 1000.0

    def pass_by(self, **span: float) -> None:
        self.wall += timedelta(**span)
        self.steady += timedelta(**span).total_seconds()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def talking(home: Path, clock: Clock) -> Iterator[SessionRegistry]:
    live = begun(home, clock)
    yield live
    live.close()


def begun(home: Path, clock: Clock, most_open: int = 64) -> SessionRegistry:
    """As a daemon that was started just now."""
    memory = opened(home, lambda: clock.wall)
    return SessionRegistry(memory.services, clock=lambda: clock.steady, most_open=most_open)


def crash(live: SessionRegistry) -> None:
    """What the kernel does when a process dies."""
    for held in live._table.by_id.values():
        if held.session is not None and held.session._writer is not None:
            held.session._writer.close()
    live._events.ids.close()


def services_of(live: SessionRegistry) -> SessionServices:
    return live._services


def texts_by_key(home: Path) -> dict[str, list[str]]:
    """What was said, by the session key of its transcript, the oldest first."""
    said: dict[str, list[str]] = {}
    for file in sorted((home / "raw/conversations").rglob("*.md"), key=lambda file: file.stat().st_mtime_ns):
        path = str(file.relative_to(home))
        key = str(writer.load(Home(home), path).fields["session_key"])
        said.setdefault(key, []).extend(texts(home, path))
    return said


def texts(home: Path, path: str | None) -> list[str]:
    assert path is not None
    turns = writer.load(Home(home), path).turns
    return [turn.text for turn in turns if isinstance(turn, Message)]


def said(home: Path) -> list[str]:
    """Everything in all transcripts."""
    files = sorted((home / "raw/conversations").rglob("*.md"))
    return [text for file in files for text in texts(home, str(file.relative_to(home)))]


def records(home: Path) -> list[str]:
    return sorted(file.name for file in (home / ".tacit/sessions").glob("*.json"))


# ---------------------------------------------------------------- which session


def test_what_is_said_under_one_key_is_one_session_and_on_disk_at_once(
    home: Path, talking: SessionRegistry
) -> None:
    first = talking.message(MAIN, "user", "hello")
    assert texts(home, first.path) == ["hello"]
    second = talking.message(MAIN, "agent", "hi")
    third = talking.tool(MAIN, "read", "notes.md", "42 lines")
    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert {first.session_id} == {second.session_id, third.session_id}
    assert texts(home, first.path) == ["hello", "hi"]


def test_another_key_or_another_id_is_another_session(home: Path, talking: SessionRegistry) -> None:
    other = SessionRef(session_id="host-2")
    kept = [
        talking.message(MAIN, "user", "mine"),
        talking.message(SessionRef("agent:main:telegram:group:-100"), "user", "ours"),
        talking.message(HOST, "user", "one"),
        talking.message(other, "user", "two"),
        talking.message(HOST, "agent", "three"),
    ]
    assert len({one.session_id for one in kept}) == 4
    assert texts(home, kept[2].path) == ["one", "three"]
    assert talking.message(MAIN, "user", "to whom?").session_id == "host-1"  # the one that spoke last


@pytest.mark.parametrize("about", [MAIN, HOST])
@pytest.mark.parametrize("leave", [crash, SessionRegistry.close])
def test_the_next_process_goes_on_with_the_same_session(
    home: Path, clock: Clock, about: SessionRef, leave: object
) -> None:
    live = begun(home, clock)
    before = live.message(about, "user", "before")
    assert callable(leave)
    leave(live)
    product.open(home).commit()  # a command that looks for what a crash left open
    again = begun(home, clock)
    kept = again.message(about, "agent", "after")
    assert (kept.session_id, kept.number) == (before.session_id, 2)
    assert texts(home, before.path) == ["before", "after"]
    again.close()


def test_a_session_of_the_command_line_goes_on_under_its_key(
    home: Path, tacit: Tacit, talking: SessionRegistry
) -> None:
    tacit("capture", "start", "--session-id", "mine")
    tacit("capture", "message", "mine", "user", "by hand")
    kept = talking.message(MAIN, "agent", "by the daemon")
    assert (kept.session_id, kept.number) == ("mine", 2)


def test_a_session_that_another_process_holds_is_not_taken_from_it(
    home: Path, talking: SessionRegistry
) -> None:
    with product.open(home).session(session_id="theirs") as theirs:
        theirs.message("user", "mine alone")
        assert talking.message(MAIN, "user", "another").session_id != "theirs"


def test_what_another_process_sealed_goes_on_in_a_new_part(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    first = live.message(HOST, "user", "before")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    product.open(home).session(session_id="host-1").end()
    second = live.message(HOST, "user", "after")
    assert second.path != first.path
    assert (second.session_id, second.number) == ("host-1", 1)
    assert writer.load(Home(home), second.path or "").fields["continues"] == first.path
    live.close()


def test_what_was_taken_away_and_sealed_under_us_goes_on_in_a_new_part(
    home: Path, talking: SessionRegistry
) -> None:
    first = talking.message(HOST, "user", "before")
    assert first.path is not None
    copy = home / "copy.md"
    shutil.copy(home / first.path, copy)  # as a sync tool does: another file under the same name
    os.replace(copy, home / first.path)
    product.open(home).session(session_id="host-1").end()
    second = talking.message(HOST, "user", "after")
    assert (texts(home, first.path), texts(home, second.path)) == (["before"], ["after"])


def test_a_transcript_that_was_moved_away_costs_no_message(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    first = live.message(HOST, "user", "before")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    os.rename(home / (first.path or ""), home / "away.md")
    assert texts(home, live.message(HOST, "user", "after").path) == ["after"]
    live.close()


def test_an_agent_whose_conversations_are_not_kept_leaves_nothing(home: Path, clock: Clock) -> None:
    config = home / "memory-config.yaml"
    config.write_text("capture:\n  exclude_agents: [secret]\n")
    live = begun(home, clock)
    for about in (
        SessionRef("agent:secret:main"),
        SessionRef(agent="secret"),
        SessionRef("agent:secret:main", "s1"),
    ):
        assert live.message(about, "user", "psst", record="r1") == CaptureResult("", 0, None)
        assert live.end(about) is None
    assert (said(home), records(home)) == ([], [])

    live.message(HOST, "user", "kept")
    config.write_text("capture:\n  exclude_agents: [main]\n")
    live.use(opened(home, lambda: clock.wall).services)  # the config was changed meanwhile
    assert live.message(HOST, "user", "psst").session_id == ""
    assert said(home) == ["kept"]
    live.close()


# ---------------------------------------------------------------- one id under two keys


def test_an_id_under_two_keys_is_two_sessions_and_each_is_found_again(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    for about in (OURS, HOST):
        live.message(about, "user", f"one in {about.session_key}")
    crash(live)
    live = begun(home, clock)
    for about in (HOST, OURS):
        live.message(about, "user", f"two in {about.session_key}")
    live.close()
    assert texts_by_key(home) == {
        about.session_key: [f"one in {about.session_key}", f"two in {about.session_key}"]
        for about in (OURS, HOST)
    }


def test_an_id_stays_the_one_of_its_key_after_the_session_was_sealed_and_committed(
    home: Path, clock: Clock
) -> None:
    live = begun(home, clock)
    ours, mine = live.message(OURS, "user", "ours"), live.message(HOST, "user", "mine")
    assert live.end(OURS)
    live.commit_ended_sessions()
    assert live.message(HOST, "user", "more").path == mine.path, "in this process"
    assert live.end(HOST)
    live.commit_ended_sessions()
    live.close()
    assert records(home) == []
    again = begun(home, clock)
    for about, before in ((HOST, mine), (OURS, ours)):
        kept = again.message(about, "user", "later")
        assert kept.session_id == before.session_id
        head = writer.load(Home(home), kept.path or "").fields
        assert (head["continues"], head["session_key"]) == (before.path, about.session_key)
    again.close()


def test_who_names_no_id_does_not_come_into_the_session_of_another_key(
    home: Path, talking: SessionRegistry
) -> None:
    ours = talking.message(OURS, "user", "ours")
    mine = talking.message(HOST, "user", "mine")
    assert mine.path != ours.path
    assert talking.message(MAIN, "user", "more").path == mine.path
    assert talking.message(SessionRef(OURS.session_key), "user", "more").path == ours.path


def test_an_end_with_the_id_of_another_key_ends_nothing_and_tells_nothing(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    mine = live.message(HOST, "user", "mine")
    assert live.end(OURS) is None
    assert live.message(HOST, "user", "more").path == mine.path
    crash(live)
    live = begun(home, clock)
    assert live.end(OURS) is None, "found on disk"
    sealed = live.end(HOST)
    assert sealed is not None
    assert sealed.path == mine.path
    assert live.end(OURS) is None, "remembered"
    live.commit_ended_sessions()
    live.close()
    again = begun(home, clock)
    assert again.end(OURS) is None, "sealed and committed"
    again.close()


def test_two_keys_that_begin_with_the_same_id_at_once_get_two_sessions(
    home: Path, talking: SessionRegistry
) -> None:
    abouts = [HOST, OURS] * 4
    together(
        [threading.Thread(target=talking.message, args=(one, "user", one.session_key)) for one in abouts]
    )
    assert texts_by_key(home) == {about.session_key: [about.session_key] * 4 for about in (HOST, OURS)}


def test_nobody_can_take_the_id_that_another_key_would_get(home: Path, talking: SessionRegistry) -> None:
    names = writer.candidate_session_ids("host-1", HOST.session_key)
    for name in itertools.islice(names, 3):
        talking.message(OURS._replace(session_id=name), "user", "ours")
    first, second = (talking.message(HOST, "user", text) for text in ("mine", "more"))
    assert (first.session_id, second.number) == (second.session_id, 2)
    assert texts_by_key(home)[HOST.session_key] == ["mine", "more"]


def test_a_session_of_the_library_goes_on_by_its_id_or_by_its_id_and_its_key(home: Path) -> None:
    memory = product.open(home)
    for key in (OURS.session_key, HOST.session_key):
        with memory.session(key, session_id="host-1") as session:
            session.message("user", key)
    with memory.session(HOST.session_key, session_id="host-1") as session:
        session.message("user", "mine")
    with memory.session(session_id="host-1") as session:
        session.message("user", "by the id alone")
    assert texts_by_key(home) == {
        OURS.session_key: [OURS.session_key, "by the id alone"],
        HOST.session_key: [HOST.session_key, "mine"],
    }


def test_two_that_took_the_same_id_before_either_spoke_do_not_write_into_one_file(home: Path) -> None:
    memory = product.open(home)
    with (
        memory.session(OURS.session_key, session_id="host-1") as ours,
        memory.session(HOST.session_key, session_id="host-1") as mine,
    ):
        ours.message("user", "ours")
        mine.message("user", "mine")
        mine.message("user", "more")
        assert mine.session_id != ours.session_id
    assert texts_by_key(home) == {OURS.session_key: ["ours"], HOST.session_key: ["mine", "more"]}


def test_the_command_line_goes_on_by_the_id_alone(home: Path, tacit: Tacit) -> None:
    tacit("capture", "start", "--session-id", "host-1", "--session-key", OURS.session_key)
    mine = tacit("capture", "start", "--session-id", "host-1").stdout.strip()
    assert mine != "host-1"
    for name, text in (("host-1", "ours"), (mine, "mine")):
        assert tacit("capture", "message", name, "user", text).code == 0
        assert tacit("capture", "end", name).code == 0
        assert tacit("capture", "message", name, "user", "more").code == 0
    assert texts_by_key(home) == {OURS.session_key: ["ours", "more"], HOST.session_key: ["mine", "more"]}


@pytest.mark.parametrize("role", ["thinking", "reasoning"])
def test_what_is_not_kept_begins_no_session(home: Path, talking: SessionRegistry, role: str) -> None:
    kept = talking.message(HOST, role, "hm")
    assert (kept.number, kept.path) == (0, None)
    with pytest.raises(UsageError, match="not a role"):
        talking.message(HOST, "nobody", "x")
    assert records(home) == []
    assert talking.end(HOST) is None


# ---------------------------------------------------------------- once


def test_the_same_id_is_kept_once(home: Path, talking: SessionRegistry) -> None:
    first = talking.message(HOST, "user", "hello", record="r1")
    again = talking.message(HOST, "user", "hello", record="r1")
    assert again == first._replace(again=True)
    assert not talking.message(HOST, "user", "hello", record="r2").again
    assert said(home) == ["hello", "hello"]


def test_an_id_counts_in_its_own_session_key_since_hosts_count_in_each_chat_anew(
    home: Path, talking: SessionRegistry
) -> None:
    assert not talking.message(OURS, "user", "one", record="1").again
    assert not talking.message(HOST, "user", "two", record="1").again
    assert sorted(said(home)) == ["one", "two"]


@pytest.mark.parametrize("about", [MAIN, HOST])
@pytest.mark.parametrize("at", [None, WITHOUT_ZONE, datetime.now(UTC)])
def test_an_id_is_known_to_the_next_process_also_after_the_end(
    home: Path, clock: Clock, about: SessionRef, at: datetime | None
) -> None:
    live = begun(home, clock)
    first = live.message(about, "user", "hello", at=at, record="r1")
    crash(live)
    live = begun(home, clock)
    assert live.message(about, "user", "hello", at=at, record="r1") == first._replace(again=True)
    ended = live.end(about, record="r2")
    assert ended is not None
    live.close()
    live = begun(home, clock)
    assert live.message(about, "user", "hello", at=at, record="r1").again
    assert said(home) == ["hello"]
    live.close()


def test_an_end_that_is_sent_again_does_not_end_what_began_after_it(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    live.message(MAIN, "user", "one", record="r1")
    ended = live.end(MAIN, record="r2")
    live.message(MAIN, "user", "two", record="r3")
    crash(live)
    live = begun(home, clock)
    again = live.end(MAIN, record="r2")
    assert again is not None
    assert ended is not None
    assert (again.path, again.sha256) == (ended.path, ended.sha256)
    assert live.message(MAIN, "user", "three").number == 2
    live.close()


def test_a_crash_before_the_record_is_written_does_not_make_its_id_known(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "one", record="r1")
    with monkeypatch.context() as patch:
        patch.setattr("tacit.transcripts.capture.Session.message", killed)  # the id is noted by then
        with pytest.raises(Killed):
            live.message(HOST, "user", "two", record="r2")
    assert EventIds(Home(home)).find(f"{HOST.session_key}\0r2") == NotedEvent(
        "host-1", 2, services_of(live).clock.now().isoformat()
    )
    crash(live)
    clock.pass_by(milliseconds=1)
    live = begun(home, clock)
    live.message(HOST, "user", "something else", record="r3")  # gets the number that r2 was to have
    assert not live.message(HOST, "user", "two", record="r2").again
    assert said(home) == ["one", "something else", "two"]
    live.close()


class Killed(BaseException):
    """A process that is killed runs no `except`, which few of ours catch this."""


def killed(*_: object) -> None:
    raise Killed


@pytest.mark.parametrize("same_process", [True, False])
def test_a_record_that_could_not_be_kept_is_not_taken_for_the_one_that_got_its_number(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, same_process: bool
) -> None:
    """Also where both were said at the same moment, as hosts with a coarse clock tell it."""
    live = begun(home, clock)
    with monkeypatch.context() as patch:
        patch.setattr("tacit.transcripts.capture.Session.message", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            live.message(HOST, "user", "one", record="r1")
    live.message(HOST, "user", "two")
    if not same_process:
        crash(live)
        live = begun(home, clock)
    assert not live.message(HOST, "user", "one", record="r1").again
    assert said(home) == ["two", "one"]
    live.close()


def test_a_crash_after_the_record_is_written_makes_its_id_known(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begun(home, clock)
    with monkeypatch.context() as patch:
        patch.setattr(SessionRegistry, "_finish_event", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            live.message(MAIN, "user", "one", record="r1")
    crash(live)
    live = begun(home, clock)
    assert live.message(MAIN, "user", "one", record="r1").again
    assert said(home) == ["one"]
    live.close()


def test_two_threads_that_send_the_same_record_keep_it_once(home: Path, talking: SessionRegistry) -> None:
    kept: list[CaptureResult] = []
    threads = [
        threading.Thread(target=lambda: kept.append(talking.message(MAIN, "user", "hello", record="r1")))
        for _ in range(8)
    ]
    together(threads)
    assert sorted(one.again for one in kept) == [False] + [True] * 7
    assert said(home) == ["hello"]


def together(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


DRAIN = """
import itertools, sys, threading
from tacit.app import open_home
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.sessions.live_sessions import SessionServices
from tacit.sessions.registry import SessionRegistry
from tacit.transcripts import spool

memory = open_home(sys.argv[1])
served = OperationContext(memory, SessionRegistry(memory.services))

taken, most = itertools.count(1), int(sys.argv[2])

def take(record):
    if next(taken) > most:
        threading.Event().wait()  # to be killed
    HANDLERS[record.operation](served, record.body)
    print(record.id, flush=True)

print("ready", flush=True)
done = spool.drain(sys.argv[1], take)
assert done.stopped is None, done.stopped
served.live.close()
"""


def test_a_hundred_spooled_records_are_kept_once_however_often_the_drainer_is_killed(home: Path) -> None:
    wanted = [f"message {number}" for number in range(100)]
    for text in wanted:
        spool.add(home, "message", {"session_key": "agent:main:main", "role": "user", "text": text})
    rounds = 0
    while spool.count_waiting(home) and rounds < 30:
        rounds += 1
        killed_after = 10 + rounds if rounds < 6 else 100
        # It may be a little further when the signal comes, so that it dies anywhere in its work.
        command = [sys.executable, "-c", DRAIN, str(home), str(killed_after + 3)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for taken, _ in enumerate(process.stdout):
                if taken == killed_after and rounds < 6:
                    process.send_signal(signal.SIGKILL)
        assert process.returncode in (0, -signal.SIGKILL)
    assert rounds == 6
    assert said(home) == wanted
    assert len(list((home / "raw/conversations").rglob("*.md"))) == 1
    assert not spool.count_quarantined(home)


# ---------------------------------------------------------------- side by side


def test_a_line_is_entered_in_the_order_of_asking() -> None:
    line, order = FairLock(), []

    def wait(number: int) -> None:
        with line:
            order.append(number)

    line.__enter__()
    threads = []
    for number in range(20):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(line._waiting) <= number:
            time.sleep(0.001)
    assert not line.try_enter()
    line.__exit__()
    for thread in threads:
        thread.join()
    assert order == list(range(20))
    assert line.try_enter()


def test_many_sessions_at_once_lose_nothing_and_keep_their_order(home: Path, clock: Clock) -> None:
    live = begun(home, clock, most_open=3)  # fewer than there are: they are closed and opened all the time

    def talk(name: str) -> None:
        for number in range(12):
            live.message(
                SessionRef(f"agent:main:telegram:direct:{name}"),
                "user",
                f"{name} {number}",
                record=f"{name}{number}",
            )

    together([threading.Thread(target=talk, args=(str(name),)) for name in range(8)])
    assert len(live._table.with_file) <= 3 + 8
    live.close()
    files = list((home / "raw/conversations").rglob("*.md"))
    kept = sorted(texts(home, str(file.relative_to(home))) for file in files)
    assert kept == [[f"{name} {number}" for number in range(12)] for name in range(8)]


def test_a_session_that_waits_for_the_disk_does_not_hold_up_another(
    home: Path, talking: SessionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    talking.message(HOST, "user", "one")
    talking.message(SessionRef(session_id="host-2"), "user", "one")
    slow, go_on, real = threading.Event(), threading.Event(), os.fdatasync

    def fdatasync(fd: int) -> None:
        if threading.current_thread().name == "slow":
            slow.set()
            assert go_on.wait(60)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    thread = threading.Thread(name="slow", target=lambda: talking.message(HOST, "user", "two", record="r1"))
    thread.start()
    assert slow.wait(60)
    assert talking.message(SessionRef(session_id="host-2"), "user", "two", record="r2").number == 2
    go_on.set()
    thread.join()
    assert talking.message(HOST, "user", "three").number == 3


def test_only_so_many_files_are_open_at_once(home: Path, clock: Clock) -> None:
    live = begun(home, clock, most_open=4)
    for number in range(20):
        live.message(SessionRef(session_id=f"s{number}"), "user", "hello")
    assert len(live._table.with_file) == 4
    assert live.message(SessionRef(session_id="s0"), "user", "again").number == 2
    live.close()


def test_a_quiet_session_is_let_go_of_so_that_others_can_write_to_it(
    home: Path, tacit: Tacit, clock: Clock
) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "one")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    assert tacit("capture", "message", "host-1", "user", "two").code == 0
    assert live.message(HOST, "user", "three").number == 3
    live.close()


def test_a_session_that_somebody_else_writes_to_is_busy_and_then_not(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "one")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    theirs = product.open(home).session(session_id="host-1")
    monkeypatch.setattr("tacit.transcripts.writer.files.acquire_flock", busy)
    with pytest.raises(Busy):
        live.message(HOST, "user", "two", record="r1")
    monkeypatch.undo()
    theirs.detach()
    assert live.message(HOST, "user", "two", record="r1") == CaptureResult("host-1", 2, theirs.path)
    live.close()


def busy(*_: object) -> None:
    raise Busy("Session host-1 is being written elsewhere.")


# ---------------------------------------------------------------- the end


def test_the_end_seals_at_once_and_commits_later(
    home: Path, talking: SessionRegistry, git_log: GitLog
) -> None:
    talking.message(MAIN, "user", "hello")
    before = len(git_log())
    sealed = talking.end(MAIN, tags=("greeting",))
    assert sealed is not None
    file = home / sealed.path
    assert writer.is_sealed(file)
    assert digest(file.read_bytes()) == sealed.sha256
    assert (sealed.commit, len(git_log())) == (None, before)
    done = talking.commit_ended_sessions()
    assert done is not None
    assert len(done.commits) == 1
    assert git_log()[0].trailer("Transcript-SHA256") == [sealed.sha256]
    assert talking.commit_ended_sessions() is None
    assert records(home) == []


@pytest.mark.parametrize("about", [MAIN, HOST])
def test_ending_twice_gives_the_same_answer(home: Path, clock: Clock, about: SessionRef) -> None:
    live = begun(home, clock)
    live.message(about, "user", "hello")
    sealed = live.end(about)
    assert sealed is not None
    assert live.end(about) == sealed
    live.commit_ended_sessions()
    assert live.end(about) == sealed
    live.close()
    later = begun(home, clock).end(about._replace(session_id=sealed.session_id))
    assert later is not None
    assert (later.path, later.sha256) == (sealed.path, sealed.sha256)


def test_ending_what_never_spoke_gives_nothing_and_leaves_nothing(
    home: Path, talking: SessionRegistry
) -> None:
    for about in (MAIN, HOST):
        assert talking.end(about) is None
    services_of(talking).conversations.open(session_id="host-1", detached=True).detach()
    assert talking.end(HOST) is None
    assert records(home) == []


def test_what_is_said_after_the_end_begins_anew(home: Path, talking: SessionRegistry) -> None:
    first = talking.message(MAIN, "user", "one")
    talking.end(MAIN)
    second = talking.message(MAIN, "user", "two")
    assert second.session_id != first.session_id
    named = talking.message(HOST, "user", "three")
    talking.end(HOST)
    after = talking.message(HOST, "user", "four")
    assert after.session_id == "host-1"
    assert after.path != named.path
    ended = talking.end(HOST)
    assert ended is not None
    assert ended.path == after.path


def test_an_end_that_git_cannot_commit_now_is_committed_when_it_can(
    home: Path, talking: SessionRegistry, git_log: GitLog
) -> None:
    talking.message(MAIN, "user", "hello")
    talking.end(MAIN)
    (home / ".git/MERGE_HEAD").write_text("x")
    done = talking.commit_ended_sessions()
    assert done is not None
    assert "in progress" in done.waiting
    (home / ".git/MERGE_HEAD").unlink()
    done = talking.commit_ended_sessions()
    assert done is not None
    assert len(done.commits) == 1


def test_without_auto_commit_an_end_is_left_to_the_person(home: Path, clock: Clock) -> None:
    (home / "memory-config.yaml").write_text("git:\n  auto_commit: false\n")
    live = begun(home, clock)
    live.message(MAIN, "user", "hello")
    live.end(MAIN)
    done = live.commit_ended_sessions()
    assert done is not None
    assert done.commits == ()
    assert live.commit_ended_sessions() is None  # nobody asks again every second
    live.close()


def test_messages_and_ends_from_many_threads_lose_nothing(home: Path, talking: SessionRegistry) -> None:
    def talk(name: int) -> None:
        for number in range(10):
            talking.message(HOST, "user", f"{name}.{number}")
            if number % 5 == 4:
                talking.end(HOST)

    together([threading.Thread(target=talk, args=(name,)) for name in range(4)])
    assert sorted(said(home)) == sorted(f"{name}.{number}" for name in range(4) for number in range(10))


# ---------------------------------------------------------------- time


def seal_all(live: SessionRegistry) -> list[str]:
    """As the daemon does it, and as every command does when it opens the home."""
    recovered = services_of(live).recovery.recover()
    return [*recovered.sealed, *live.seal_idle()]


def test_a_session_is_sealed_after_the_idle_hours_and_ends_with_its_last_record(
    home: Path, clock: Clock
) -> None:
    live = begun(home, clock)
    kept = live.message(HOST, "user", "hello")
    assert seal_all(live) == []
    clock.pass_by(hours=11)
    assert seal_all(live) == []
    live.message(HOST, "user", "still there")
    last = clock.wall
    clock.pass_by(hours=11.9)
    assert seal_all(live) == []
    clock.pass_by(hours=0.2)
    assert seal_all(live) == [kept.path]
    ended = writer.read_end(home / (kept.path or ""))
    assert ended == last.replace(microsecond=0)
    assert live.message(HOST, "user", "after").path != kept.path
    live.close()


@pytest.mark.parametrize("jump", [timedelta(days=3653), timedelta(days=-2), timedelta(days=-20_000)])
def test_a_clock_that_jumps_seals_nothing_that_is_in_use(home: Path, clock: Clock, jump: timedelta) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "before")
    live.message(SessionRef("agent:main:telegram:direct:7"), "user", "let go of")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    clock.wall += jump
    assert seal_all(live) == []
    kept = live.message(HOST, "user", "after")
    assert kept.number == 2
    clock.steady += 13 * 3600  # the hours have passed, whatever the clock on the wall says
    assert len(seal_all(live)) == 2
    live.close()


def test_what_an_earlier_process_left_open_is_sealed_when_its_hours_are_over(
    home: Path, clock: Clock
) -> None:
    live = begun(home, clock)
    kept = live.message(HOST, "user", "hello")
    crash(live)
    clock.wall += timedelta(hours=11)
    clock.steady = 5.0  # the machine was started again
    live = begun(home, clock)
    assert seal_all(live) == []
    clock.pass_by(hours=2)
    assert seal_all(live) == [kept.path]
    live.close()


def test_what_another_process_writes_keeps_a_session_open(home: Path, tacit: Tacit, clock: Clock) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "one")
    seal_all(live)
    clock.pass_by(hours=11)
    live.let_go_quiet()
    assert tacit("capture", "message", "host-1", "user", "two").code == 0
    assert seal_all(live) == []
    clock.pass_by(hours=2)
    assert seal_all(live) == []
    clock.pass_by(hours=11)
    assert len(seal_all(live)) == 1
    live.close()


def test_one_session_that_cannot_be_sealed_does_not_keep_others_open(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    broken = live.message(SessionRef(session_id="a"), "user", "hello")
    fine = live.message(SessionRef(session_id="b"), "user", "hello")
    clock.pass_by(minutes=1)
    live.let_go_quiet()
    (home / (broken.path or "")).write_text("no head\n")
    assert live.seal_idle() == []
    clock.pass_by(hours=13)
    with pytest.raises(Exception, match="could not be sealed"):
        live.seal_idle()
    assert writer.is_sealed(home / (fine.path or ""))
    live.close()


# ---------------------------------------------------------------- disks


def test_a_home_that_is_gone_is_not_made_anew_and_goes_on_when_it_is_back(home: Path, clock: Clock) -> None:
    live = begun(home, clock)
    live.message(HOST, "user", "one")
    away = home.with_name("away")
    home.rename(away)
    for about in (HOST, MAIN):
        with pytest.raises(HomeError):
            live.message(about, "user", "lost?", record="r1")
    assert not home.exists()
    home.mkdir()  # the folder where the disk was
    with pytest.raises(HomeError):
        live.message(HOST, "user", "lost?", record="r1")
    assert list(home.iterdir()) == []
    home.rmdir()
    away.rename(home)
    assert live.message(HOST, "user", "two", record="r1").number == 2
    assert said(home) == ["one", "two"]
    live.close()


def test_a_full_disk_is_said_and_the_second_try_keeps_it_once(
    home: Path, talking: SessionRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    talking.message(HOST, "user", "one")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        for about, record in ((HOST, "r1"), (MAIN, "r2"), (HOST, "")):
            with pytest.raises(DiskError):
                talking.message(about, "user", "two", record=record)
    assert talking.message(HOST, "user", "two", record="r1") == CaptureResult(
        "host-1", 2, talking.message(HOST, "user", "3").path
    )


# ---------------------------------------------------------------- ids on disk


def test_ids_are_bounded_and_the_newest_are_known(home: Path) -> None:
    ids = EventIds(Home(home), most=2000)
    for number in range(200):
        ids.note(f"r{number}", NotedEvent("s", number + 1, "2026-03-10T09:30:00+00:00"))
    assert sum(file.stat().st_size for file in (home / ".tacit").glob("records*.jsonl")) < 5000
    for known in (ids, EventIds(Home(home), most=2000)):
        assert known.find("r199") == NotedEvent("s", 200, "2026-03-10T09:30:00+00:00")
        assert known.find("r190") is not None
        assert known.find("r0") is None
    ids.close()


def test_ids_that_another_process_notes_are_seen(home: Path) -> None:
    mine, theirs = EventIds(Home(home), most=2000), EventIds(Home(home), most=2000)
    mine.note("a", NotedEvent("s", 1, ""))
    for number in range(40):
        theirs.note(f"b{number}", NotedEvent("s", number, ""))
        assert mine.find(f"b{number}") == NotedEvent("s", number, "")
        mine.note(f"c{number}", NotedEvent("s", number, ""))
        assert theirs.find(f"c{number}") == NotedEvent("s", number, "")
    mine.close()
    theirs.close()


@pytest.mark.parametrize("damage", [b"{", b"[]\n", b"\xff\xfe\n", b"[1,2,3,4,5]\n", b"[" * 9000 + b"\n"])
def test_a_damaged_line_of_ids_is_passed_over(home: Path, damage: bytes) -> None:
    ids = EventIds(Home(home))
    ids.note("a", NotedEvent("s", 1, ""))
    ids.close()
    with (home / ".tacit/records.jsonl").open("ab") as file:
        file.write(damage)
    ids = EventIds(Home(home))
    ids.note("b", NotedEvent("s", 2, ""))
    assert ids.find("a") == NotedEvent("s", 1, "")
    assert ids.find("b") == NotedEvent("s", 2, "")
    ids.close()


def test_ids_outlive_the_private_folder_being_deleted_under_them(
    home: Path, talking: SessionRegistry
) -> None:
    talking.message(HOST, "user", "one", record="r1")
    shutil.rmtree(home / ".tacit")
    assert talking.message(HOST, "user", "two", record="r2").number == 2
    assert talking.message(HOST, "user", "two", record="r2").again
    assert replace(talking.end(HOST) or pytest.fail("ended"), waiting="").session_id == "host-1"
