"""A home by way of its daemon and without one: the same answers, and a turn that nothing can break."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import tacit as product
from tacit.app import open_home
from tacit.client import Client, Kept, connect, local
from tacit.context.delivery.files import context_file_path, write_context_file
from tacit.context.model import Compiled
from tacit.daemon_socket import socket_path
from tacit.errors import Busy, HomeError, SessionError, TacitError, UsageError
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.operations.catalog import OPERATIONS_BY_NAME
from tacit.search.model import Scope
from tacit.topics.model import Event
from tacit.transcripts import spool
from tacit.transcripts.model import Message, ToolCall
from tests.client.serving import serving
from tests.conftest import eventually
from tests.http.fake import Behave, answers, drips, floods, hangs, listening, read_request, resets, sends
from tests.memory.homes import (
    GROUP,
    OWNER,
    OWNER_DM,
    OWNERS,
    QUESTION,
    STRANGER,
    everything,
    notice_codes,
    settle,
)
from tests.server.served import serving as daemon

AT = datetime(2026, 3, 10, 9, 30, tzinfo=UTC)
LONG = 30.0  # seconds: a slow machine must not change what a turn holds
GENEROUS = 20.0
BAD: dict[str, Behave] = {
    "hangs": hangs,
    "drips": drips,
    "floods": floods,
    "resets": resets,
    "garbage": sends(b"\xff\xfe<html>"),
    "not JSON": answers(b"{"),
    "a list": answers(b"[]"),
    "wrong types": answers(b'{"text": [1], "hits": 7}'),
    "half a receipt": answers(b'{"text": "x", "record": {"id": 5}}'),
    "a bug": answers(b'{"error": {"code": "bug", "message": "Oh."}}', b"500 Oh"),
    "an error without words": answers(b"{}", b"500 Oh"),
    "deep": answers(b"[" * 100_000),
}


def quiet(text: str) -> None:
    raise AssertionError(f"nobody should be told: {text}")


def at(root: Path, **how: Any) -> Client:
    return connect(root, **{"warn": quiet, **how})


@contextmanager
def behaving(root: Path, behave: Behave) -> Iterator[None]:
    with listening(Path(socket_path(str(root))), behave):
        yield


# ---------------------------------------------------------------- the same answers

TURNS: dict[str, Callable[[Client], Compiled]] = {
    "a question": lambda client: client.turn(QUESTION, seconds=LONG),
    "of a group": lambda client: client.turn(QUESTION, session_key=GROUP, seconds=LONG),
    "of a stranger": lambda client: client.turn(QUESTION, session_key=STRANGER, seconds=LONG),
    "what the host lacks": lambda client: client.inject(QUESTION, session_key=OWNER_DM, seconds=LONG),
    "what the host did not keep": lambda client: client.inject(
        f"{QUESTION} Again.", session_key=OWNER_DM, keeps_text=False, seconds=LONG
    ),
    "with a history": lambda client: client.turn(
        QUESTION,
        history=[
            {"role": "user", "content": "Hello"},
            ("agent", "Good morning"),
            Message(3, AT, "user", "The bed is dry", "Ines"),
            ToolCall(4, AT, "valve", "open", "ok"),
        ],
        seconds=LONG,
    ),
    "with all there is": lambda client: client.turn(
        QUESTION,
        agent="pumpkin",
        budget=900,
        event=Event("cron", topic="watering"),
        paths=["knowledge/reference/hoses.md"],
        wake=["pump"],
        sender="7",
        trigger="user",
        session_id="ses_x",
        seconds=LONG,
    ),
    "empty": lambda client: client.turn("", seconds=LONG),
    "any letters": lambda client: client.turn("water \ud800 \0 \u202e tomatoes", seconds=LONG),
}


def test_client_turns_are_the_same_with_and_without_a_daemon(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    with serving(there), at(here) as alone, at(there) as asking:
        for name, turn in TURNS.items():
            mine, its = turn(alone), turn(asking)
            assert everything(its) == everything(mine), name
            assert (its.standing, its.given) == (mine.standing, mine.given), name
            assert its.receipt.id, name
        assert QUESTION in TURNS["a question"](asking).text


def test_client_turns_are_those_of_the_library(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    with serving(there), at(there) as asking:
        memory = product.open(here)
        for message in (QUESTION, "ok", "And the hoses?"):
            mine = memory.inject(message, session_key=OWNER_DM, seconds=LONG)
            assert everything(asking.inject(message, session_key=OWNER_DM, seconds=LONG)) == everything(mine)


def test_client_looks_are_the_same_and_leave_no_trace_in_a_session(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    with serving(there), at(here) as alone, at(there) as asking:
        for when in (None, "HEAD"):
            mine, its = alone.look(QUESTION, at=when), asking.look(QUESTION, at=when)
            assert its.receipt.trial
            blank = [replace(one, receipt=replace(one.receipt, past="")) for one in (mine, its)]
            assert everything(blank[1]) == everything(blank[0])
        with pytest.raises(UsageError):
            asking.look(QUESTION, at="no such moment")


def test_client_searches_are_the_same(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    scopes = [
        None,
        Scope(),
        Scope(categories=("procedure", "person"), archived=False),
        Scope(audience="group", conversation=GROUP),
        Scope(agents=("pumpkin",), since=date(2026, 1, 1), until=date(2027, 1, 1), under="knowledge"),
        Scope(without=("knowledge/procedures/watering.md",)),
    ]
    with serving(there), at(here) as alone, at(there) as asking:
        for scope in scopes:
            mine, its = alone.find(QUESTION, scope, 7), asking.find(QUESTION, scope, 7)
            assert (its.hits, its.channels, its.degraded) == (mine.hits, mine.channels, mine.degraded)
            assert its.trace.keys() == mine.trace.keys()
            assert its.hits
        for key in (None, GROUP, STRANGER):
            for category in (None, "conversation"):
                found = [
                    one.search(QUESTION, limit=5, category=category, session_key=key)
                    for one in (alone, asking)
                ]
                assert found[0] == found[1]
    library = product.open(here).find(QUESTION, Scope(categories=("procedure",)))
    assert alone.find(QUESTION, Scope(categories=("procedure",))).hits == library.hits


def test_client_bootstrap_is_the_same(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    files = [{"name": "SOUL.md", "path": "/w/SOUL.md", "content": "I am.", "missing": False}]
    with serving(there), at(here) as alone, at(there) as asking:
        for given in (files, [], None, "x"):
            mine = alone.bootstrap(OWNER, given)
            its = asking.bootstrap(OWNER, given)
            assert json.dumps(its).replace(str(there), "") == json.dumps(mine).replace(str(here), "")


def test_client_keeps_a_conversation_either_way(another: Callable[[], Path]) -> None:
    here, there = another(), another()

    def talk(client: Client, root: Path) -> str:
        first = client.message("user", "Is the bed dry?", session_id="ses_t", at=AT, speaker="Ines")
        again = client.message("user", "And now?", session_id="ses_t", at=AT, id="one")
        assert client.message("user", "And now?", session_id="ses_t", at=AT, id="one").again
        tool = client.tool("valve", "open", "ok", session_id="ses_t", at=AT)
        assert [first.number, again.number, tool.number] == [1, 2, 3]
        assert (first.session_id, again.again) == ("ses_t", False)
        sealed = client.end_session(session_id="ses_t", at=AT, tags=["bed"])
        assert sealed is not None
        assert sealed.path == first.path
        return (root / sealed.path).read_text()

    with serving(there), at(here) as alone, at(there) as asking:
        assert talk(asking, there) == talk(alone, here)
        for client in (alone, asking):
            assert client.end_session("agent:main:nobody:said:anything") is None


def test_client_receipts_are_the_same_and_found_by_their_id(garden: Path) -> None:
    with at(garden) as client:
        with serving(garden):
            made = client.turn(QUESTION, seconds=LONG)
            client.turn(QUESTION, session_key=GROUP, seconds=LONG)
            there = client.receipts(5)
            of_group = client.receipts(5, GROUP)
            one = client.receipt(made.receipt.id)
        assert client.receipts(5) == there
        assert client.receipts(5, GROUP) == of_group
        assert client.receipt(made.receipt.id) == one
        assert one.id == made.receipt.id == there[1].id
        assert [receipt.session_key for receipt in of_group] == [GROUP]
        with pytest.raises(UsageError):
            client.receipt("../no-such")


@pytest.mark.parametrize("served", [True, False])
def test_client_errors_are_the_same(garden: Path, served: bool) -> None:
    with at(garden) as client:
        client.look(QUESTION)

        def wrong() -> None:
            with pytest.raises(UsageError, match="robot"):
                client.message("robot", "x")
            with pytest.raises(UsageError, match="no receipt"):
                client.receipt("nothing")
            with pytest.raises(UsageError, match="bytes"):
                client.look(b"x")  # type: ignore[arg-type]
            with pytest.raises(UsageError, match="message"):
                client.look(7)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="colour"):
                client.turn("x", colour="red")
            with pytest.raises(TacitError):
                client.find("water", Scope(audience="nobody"))  # type: ignore[arg-type]
            assert len(client.receipts(-1)) == 1

        if served:
            with serving(garden):
                wrong()
        else:
            wrong()


def test_client_sends_only_fields_that_the_list_of_operations_has(
    garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, set[str]] = {}
    run = Client._run

    def note(client: Client, operation: str, body: dict[str, Any], deadline: float) -> dict[str, Any]:
        sent[operation] = set(body)
        return run(client, operation, body, deadline)

    monkeypatch.setattr(Client, "_run", note)
    with at(garden) as client:
        client.turn(QUESTION, session_key=OWNER, seconds=LONG, paths=["a"], history=[{"role": "user"}])
        client.look(QUESTION, event=Event("cron", topic="morning"), at="HEAD")
        client.bootstrap(OWNER, [], sender="telegram:7")
        client.search("water", session_key=OWNER)
        client.find("water", Scope(archived=False))
        client.remember("The pump is new.", shared=False)
        client.message("user", "Hello", speaker="Mira")
        client.tool("grep", "water")
        client.end_session(tags=["pump"])
        client.receipt(client.receipts()[0].id)
    assert len(sent) == 11
    for operation, fields in sent.items():
        assert fields <= set(OPERATIONS_BY_NAME[operation].fields.split()), operation


def test_client_health_says_whether_there_is_a_daemon(garden: Path) -> None:
    with at(garden) as client:
        spool.add(garden, "message", {"text": "x"})
        health = client.health()
        assert (health["status"], health["spool"]) == ("no daemon", 1)
        with serving(garden):
            assert client.health()["status"] == "ok"


# ---------------------------------------------------------------- a daemon that is no help


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD)
def test_client_a_bad_daemon_breaks_no_turn(garden: Path, behave: Behave) -> None:
    with behaving(garden, behave), at(garden, patience=1.0) as client:
        began = time.monotonic()
        for turn in (client.turn, client.inject):
            compiled = turn(QUESTION, session_key=GROUP, seconds=0.2)
            assert (compiled.text, compiled.tokens, compiled.sections) == ("", 0, ())
            assert notice_codes(compiled)
            assert compiled.receipt.skipped == notice_codes(compiled)[0]
            assert compiled.receipt.session_key == GROUP
        given = [{"name": "SOUL.md", "path": "SOUL.md", "content": "x", "missing": False}]
        assert client.bootstrap(OWNER, given) == given
        assert time.monotonic() - began < GENEROUS
        assert client._local_home is None  # nothing was done beside it


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD)
def test_client_a_bad_daemon_is_an_error_that_says_what_to_do(garden: Path, behave: Behave) -> None:
    with behaving(garden, behave), at(garden, patience=0.3) as client:
        calls: list[Callable[[], object]] = [lambda: client.message("user", "x"), client.end_session]
        if behave not in (hangs, drips):
            calls += [lambda: client.find("water"), lambda: client.look("water"), client.receipts]
        for call in calls:
            with pytest.raises(TacitError) as caught:
                call()
            assert str(caught.value)


@pytest.mark.parametrize("behave", [hangs, drips], ids=["hangs", "drips"])
def test_client_who_reads_does_not_wait_for_a_daemon_without_a_sign_of_life(
    garden: Path, behave: Behave, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.client.daemon._PING_TIMEOUT_S", 0.1)
    told: list[str] = []
    with at(garden, warn=told.append) as client:
        client.turn(QUESTION, seconds=LONG)
        with behaving(garden, behave):
            assert client.find("water").hits
            opened = client._local_home
            assert opened is not None
            assert client.look(QUESTION).text
            assert len(client.receipts()) == 2
            assert client._local_home is opened
    assert len(told) == 1
    assert "does not respond" in told[0]
    assert "tacit stop" in told[0]


def waited(compiled: Compiled) -> float:
    """Seconds in which a daemon did not answer, by the notice of a turn."""
    assert compiled.receipt.skipped == "deadline"
    found = re.search(r"no answer within (\S+) seconds", compiled.receipt.notices[0].text)
    assert found is not None
    return float(found[1])


@pytest.mark.parametrize("is_open", [False, True], ids=["", "and the home is open here"])
def test_client_a_turn_is_given_up_at_its_deadline(garden: Path, is_open: bool) -> None:
    with at(garden) as client:
        if is_open:
            assert client.find("water").hits
        with behaving(garden, hangs):
            assert waited(client.turn(QUESTION, seconds=0.2)) <= 0.25


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD)
def test_client_a_bad_daemon_leaves_no_file_of_an_earlier_turn(
    garden: Path, tmp_path: Path, behave: Behave
) -> None:
    for directory in (None, str(tmp_path)):
        write_context_file(Home(garden), directory, OWNER, "what an earlier turn was given")
        with behaving(garden, behave), at(garden) as client:
            client.inject(QUESTION, session_key=OWNER, seconds=0.1)
        assert context_file_path(Home(garden), directory, OWNER).read_bytes() == b""


def test_client_a_home_that_takes_long_to_open_is_open_for_the_next_turn(
    garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a daemon the first turn opens the home, which may take longer than a turn may."""
    go, done = threading.Event(), threading.Event()
    real = open_home

    def slowly(*arguments: Any, **named: Any) -> Memory:
        assert go.wait(GENEROUS)
        memory = real(*arguments, **named)
        done.set()
        return memory

    monkeypatch.setattr(local, "open_home", slowly)
    with at(garden) as client:
        began = time.monotonic()
        compiled = client.turn(QUESTION, seconds=0.05)
        assert time.monotonic() - began < GENEROUS / 2
        assert (compiled.text, compiled.receipt.skipped) == ("", "deadline")
        assert "no daemon" in compiled.receipt.notices[0].text
        go.set()
        assert done.wait(GENEROUS)
        assert QUESTION in client.turn(QUESTION, seconds=LONG).text


def test_client_a_busy_daemon_is_not_helped_by_doing_it_twice(garden: Path) -> None:
    busy = answers(b'{"error": {"code": "busy", "message": "Too much."}}', b"503 Busy")
    with behaving(garden, busy), at(garden, patience=0.2) as client:
        compiled = client.turn(QUESTION, seconds=5)
        assert (compiled.text, compiled.receipt.skipped) == ("", "busy")
        assert "Too much" in compiled.receipt.notices[0].text
        with pytest.raises(Busy, match="Too much"):
            client.find("water")
        assert client._local_home is None


def test_client_waits_for_a_daemon_that_is_busy_for_a_moment(garden: Path) -> None:
    calls: list[int] = []

    def behave(line: Any, over: threading.Event) -> None:
        calls.append(1)
        if len(calls) < 3:
            answers(b'{"error": {"code": "busy", "message": "Too much."}}', b"503 Busy")(line, over)
        else:
            answers(b'{"session_id": "s", "number": 4, "path": "p"}')(line, over)

    with behaving(garden, behave), at(garden, patience=GENEROUS) as client:
        assert client.message("user", "x").number == 4


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("usage", b"400 Bad", UsageError),
        ("session", b"500 Oh", SessionError),
        ("timeout", b"504 Late", Busy),
        ("something new", b"500 Oh", TacitError),
    ],
)
def test_client_errors_of_a_daemon_are_ours(
    garden: Path, code: str, status: bytes, kind: type[Exception]
) -> None:
    body = json.dumps({"error": {"code": code, "message": "So it is."}}).encode()
    with (
        behaving(garden, answers(body, status)),
        at(garden, patience=0.1) as client,
        pytest.raises(kind, match="So it is"),
    ):
        client.find("water")


def test_client_a_daemon_whose_home_is_gone_is_that_of_another_place(garden: Path) -> None:
    body = json.dumps({"error": {"code": "home", "message": "It is gone."}}).encode()
    with behaving(garden, answers(body, b"500 Oh")), at(garden) as client:
        assert client.find("water").hits
        assert client.message("user", "x", session_id="ses_t").number == 1
        assert QUESTION in client.turn(QUESTION, seconds=LONG).text
        shutil.move(garden, garden.with_name("moved"))
    with pytest.raises(HomeError):
        client.find("water")


def test_client_what_was_told_to_a_daemon_that_went_away_is_kept_once(garden: Path) -> None:
    """It kept the message, and died before it said so."""
    told: list[bytes] = []

    def keeps_and_dies(line: Any, over: threading.Event) -> None:
        body = json.loads(read_request(line).partition(b"\r\n\r\n")[2])
        told.append(body["id"])
        with product_client(garden) as other:
            other._run_locally("message", body)

    with at(garden) as client:
        with behaving(garden, keeps_and_dies):
            saying = threading.Thread(target=lambda: kept.append(client.message("user", "Once")))
            kept: list[Kept] = []
            saying.start()
            assert eventually(lambda: len(told) >= 2)
        saying.join(GENEROUS)
        assert [(one.number, one.again) for one in kept] == [(1, True)]
        assert len(set(told)) == 1
        assert kept[0].path is not None
    assert texts_in(garden, kept[0].path) == ["Once"]


def product_client(root: Path) -> Client:
    return at(root, recover=False)


def texts_in(root: Path, path: str) -> list[str]:
    return [turn.text for turn in product.open(root).transcript(path).turns if isinstance(turn, Message)]


@pytest.mark.parametrize("served", [True, False])
def test_client_a_long_message_is_kept_either_way(garden: Path, served: bool) -> None:
    with serving(garden) if served else nullcontext(), at(garden) as client:
        kept = client.message("user", "long " * 300_000)
    assert kept.path is not None
    assert len(texts_in(garden, kept.path)[0]) > 1_499_000


def test_client_does_itself_what_an_older_daemon_does_not_know(garden: Path) -> None:
    unknown = answers(b'{"error": {"code": "not_found", "message": "There is nothing."}}', b"404 No")
    with behaving(garden, unknown), at(garden) as client:
        assert client.find("water").hits
        assert client.look(QUESTION).text
        with pytest.raises(TacitError):  # it may hold the transcript
            client.message("user", "x")


def test_client_says_once_that_the_daemon_is_of_another_version(garden: Path) -> None:
    told: list[str] = []
    with serving(garden), at(garden, warn=told.append) as client:
        (garden / ".tacit" / "daemon.json").write_text('{"version": "9.9.9", "colour": "red"}')
        for _ in range(3):
            assert client.turn(QUESTION, seconds=LONG).receipt.id
    assert len(told) == 1
    assert "9.9.9" in told[0]
    assert "tacit stop" in told[0]


def test_client_passes_over_fields_that_it_does_not_know(garden: Path) -> None:
    with serving(garden), at(garden) as client:
        compiled = client.turn(QUESTION, seconds=LONG)
    form = {"text": "new", "tokens": 3, "colour": "red", "notices": [{"code": "x", "text": "y", "z": 1}]}
    with behaving(garden, answers(json.dumps(form).encode())), at(garden) as client:
        other = client.turn(QUESTION, seconds=LONG)
    assert other.text == "new"
    assert compiled.text
    assert notice_codes(other) == ["x"]


def test_client_takes_the_time_of_a_turn_from_the_daemon(garden: Path) -> None:
    """From a real one: it says so at its start, and again when the config changes."""
    settle(garden, f"{OWNERS}inject: {{deadline_ms: 900}}\n")
    with daemon(garden) as process, at(garden) as client:
        process.popen.send_signal(signal.SIGSTOP)
        assert 0.5 < waited(client.turn(QUESTION)) <= 0.95
        process.popen.send_signal(signal.SIGCONT)
        settle(garden, f"{OWNERS}inject: {{deadline_ms: 100}}\n")
        process.popen.send_signal(signal.SIGHUP)
        assert eventually(lambda: '"deadline_ms": 100' in (garden / ".tacit/daemon.json").read_text())
        process.popen.send_signal(signal.SIGSTOP)
        assert waited(client.turn(QUESTION)) <= 0.15
        process.popen.send_signal(signal.SIGCONT)


def test_client_a_socket_that_was_left_behind_is_nobody(garden: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(socket_path(str(garden)))
    with at(garden) as client:
        assert QUESTION in client.turn(QUESTION, seconds=LONG).text
        opened = client._local_home
        assert client.find("water").hits
        assert client._local_home is opened  # and it is not opened again each time


# ---------------------------------------------------------------- coming and going


def test_client_lets_go_of_its_conversations_when_a_daemon_comes_up(garden: Path) -> None:
    """The daemon needs the transcript that the client had open."""
    with at(garden) as client:
        assert client.message("user", "First", session_id="ses_t").number == 1
        with serving(garden):
            assert client.message("user", "Second", session_id="ses_t").number == 2
        assert client.message("user", "Third", session_id="ses_t").number == 3
        sealed = client.end_session(session_id="ses_t")
    assert sealed is not None
    turns = product.open(garden).transcript(sealed.path).turns
    assert [turn.text for turn in turns if isinstance(turn, Message)] == ["First", "Second", "Third"]


def test_client_commits_what_it_ended_itself(garden: Path) -> None:
    with at(garden) as client:
        client.message("user", "First", session_id="ses_t")
        sealed = client.end_session(session_id="ses_t")
    assert sealed is not None
    log = ["git", "-C", str(garden), "log", "--format=%s", "--", sealed.path]
    assert subprocess.run(log, capture_output=True, check=True).stdout.startswith(b"conversation: ")


def test_client_what_hooks_spooled_comes_before_what_is_said_now(garden: Path) -> None:
    for number, text in enumerate(["one", "two"]):
        spool.add(garden, "message", {"session_id": "ses_t", "text": text, "id": f"id{number}"})
    with at(garden) as client:
        assert client.message("user", "three", session_id="ses_t").number == 3
        assert client.message("user", "two", session_id="ses_t", id="id1").again
    assert spool.count_waiting(garden) == 0


def test_client_takes_nothing_from_the_spool_but_what_was_said(garden: Path) -> None:
    spool.add(garden, "turn", {"message": "nothing for the spool"})
    spool.add(garden, "message", {"session_id": "ses_t", "text": "one"})
    with at(garden) as client:
        assert client.message("user", "two", session_id="ses_t").number == 2
    assert (spool.count_waiting(garden), spool.count_quarantined(garden)) == (0, 1)


def test_client_a_home_that_goes_away_breaks_no_turn(garden: Path) -> None:
    with at(garden) as client:
        shutil.move(garden, garden.with_name("moved"))
        compiled = client.turn(QUESTION, seconds=LONG)
        assert (compiled.text, compiled.receipt.skipped) == ("", "home")
        assert "no home" in compiled.receipt.notices[0].text
        with pytest.raises(HomeError):
            client.find("water")


def test_client_there_must_be_a_home_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="tacit init"):
        connect(tmp_path / "nothing")


@pytest.mark.parametrize(
    "asked",
    [
        {"history": object},
        {"history": [object, float("nan")]},
        {"history": "Hello"},
        {"seconds": "soon"},
        {"paths": 7},
        {"event": "cron"},
        {"budget": "much"},
        {"session_key": 5},
    ],
    ids=str,
)
def test_client_whatever_a_host_gives_breaks_no_turn(garden: Path, asked: dict[str, Any]) -> None:
    with serving(garden), at(garden) as client:
        compiled = client.turn(QUESTION, **asked)
        assert isinstance(compiled, Compiled)
        assert compiled.text or notice_codes(compiled)


def test_client_serves_many_threads_at_once(garden: Path) -> None:
    with serving(garden), at(garden) as client:
        found: list[str] = []

        def one(number: int) -> None:
            key = f"agent:main:telegram:group:-{number}"
            found.append(client.turn(QUESTION, session_key=key, seconds=LONG).receipt.session_key)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == [f"agent:main:telegram:group:-{number}" for number in range(8)]


def test_client_loads_nothing_heavy_as_long_as_there_is_a_daemon(garden: Path) -> None:
    code = (
        "import sys; from tacit.client import connect; client = connect(sys.argv[1]);"
        "assert client.turn('How do we water tomatoes?', seconds=30).receipt.id;"
        "assert client.find('water').hits;"
        "client.message('user', 'x', session_id='ses_q'); client.end_session(session_id='ses_q');"
        "heavy = {'yaml', 'numpy', 'apsw', 'splintr', 'subprocess', 'tacit.memory'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    with serving(garden):
        done = subprocess.run(
            [sys.executable, "-c", code, str(garden)], capture_output=True, text=True, env=os.environ
        )
    assert (done.stderr, done.stdout.strip()) == ("", "")
