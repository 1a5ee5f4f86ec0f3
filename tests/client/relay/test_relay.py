"""The hook helper: whatever is wrong, one JSON object, exit 0, in time; and nothing that was said is lost."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import tacit as product
from tacit.context.delivery.files import context_file_path, write_context_file
from tacit.daemon_socket import socket_path
from tacit.home.layout import Home
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.sessions.registry import SessionRegistry
from tacit.transcripts import spool
from tacit.transcripts.model import Message, ToolCall
from tests.client.relay.conftest import RELAY, Relay
from tests.client.serving import serving
from tests.conftest import plain_user
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
from tests.memory.homes import QUESTION

GENEROUS = 15.0  # seconds; its own deadline is far below, and the machine may be busy
EVENT = {"prompt": "hello", "sessionKey": "agent:main:main"}
DAEMONS: dict[str, Behave] = {
    "accepts and never answers": hangs,
    "drips": drips,
    "floods": floods,
    "resets": resets,
    "closes at once": lambda line, over: None,
    "garbage": sends(b"\xff\xfe<html>\n"),
    "truncated JSON": answers(b'{"text":"'),
    "wrong type": answers(b'{"text":[1]}'),
    "no text": answers(b"{}"),
    "a list": answers(b"[1]"),
    "half an answer": sends(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"),
    "a long answer": answers(b'{"text":"' + b"x" * 2_000_000 + b'"}'),
    "a deep answer": answers(b"[" * 200_000),
    "busy": answers(b'{"error":{"code":"busy","message":"Too much."}}', b"503 Busy"),
    "a bug": answers(b'{"error":{"code":"bug","message":"Oh."}}', b"500 Oh"),
    "late": answers(b'{"text":"","skipped":"deadline"}'),
}
EVENTS = {
    "empty": b"",
    "not JSON": b"{",
    "two objects": b"{}{}",
    "binary": bytes(range(256)),
    "a list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "depth bomb": b"[" * 200_000,
    "depth bomb in an object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "a number without end": b'{"a":' + b"9" * 10_000 + b"}",
    "40 MB": b'{"prompt":"' + b"x" * 40_000_000 + b'"}',
    "20 MB": b'{"prompt":"' + b"x" * 20_000_000 + b'"}',
}


@pytest.fixture
def at(garden: Path) -> Path:
    return Path(socket_path(str(garden)))


def mirror(home: Path, key: str = "agent:main:main") -> Path:
    name = sha256(key.encode()).hexdigest()[:16]
    file = home / ".tacit" / "context" / name / "ETHOS_CONTEXT.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("what an earlier turn was given")
    return file


def messages(home: Path, path: str) -> list[str]:
    turns = product.open(home).transcript(path).turns
    return [turn.text for turn in turns if isinstance(turn, Message)]


# ---------------------------------------------------------------- a daemon that works


def test_relay_gives_a_turn_what_the_host_lacks(relay: Relay) -> None:
    with serving(relay.home) as served:
        said = relay("turn", {"prompt": QUESTION, "sessionKey": "agent:main:telegram:direct:7"})
        mine = served.memory.inject(QUESTION, session_key="agent:main:telegram:direct:8x", seconds=30)
    assert "PROCEDUREWORD" in said.json["additionalContext"]
    assert said.json.keys() == {"continue", "additionalContext"}
    assert "PROCEDUREWORD" not in mine.text  # another session may see less


def test_relay_gives_a_passage_again_where_the_host_keeps_none(relay: Relay) -> None:
    def given(**more: Any) -> bool:
        return "CONTEXTWORD" in relay("turn", {"prompt": QUESTION, **more}).json.get("additionalContext", "")

    with serving(relay.home):
        assert given()
        assert not given(history=[{"role": "user", "content": "Hello"}])
        assert given(keeps_text=False, history=[{"role": "user", "content": "Hello again"}])


def test_relay_says_nothing_where_there_is_nothing(relay: Relay) -> None:
    with serving(relay.home):
        assert relay("turn", {"message": "ok"}).json == {"continue": True}


def test_relay_passes_an_event_on_as_it_is_and_adds_what_it_lacks(relay: Relay, at: Path) -> None:
    seen: list[Any] = []

    def look(line: socket.socket, over: threading.Event) -> None:
        head, _, body = read_request(line).partition(b"\r\n\r\n")
        seen.append((head.split(b" ")[1].decode(), json.loads(body)))
        line.sendall(reply(b'{"text": "", "session_id": "", "number": 0, "path": null}'))

    with listening(at, look):
        relay("turn", b' {"prompt": "h\xc3\xa9 \\ud83d", "sessionKey": "k", "deep": [{"a": [1.5, null]}]} \n')
        relay("turn", {"message": "m", "prompt": "p", "lane": "prompt", "deadline_ms": 7})
        relay("message", {"text": "x", "id": "mine", "sessionId": "s"})
        relay("tool", {"name": "read"})
        relay("session-end", b"{}")
    (turn, first), (_, second), (message, third), (tool, fourth), (end, fifth) = seen
    assert (turn, message, tool, end) == ("/v1/turn", "/v1/message", "/v1/tool", "/v1/session/end")
    assert (first["message"], first["session_key"]) == ("hé \ud83d", "k")
    assert (first["lane"], first["deep"]) == ("runtime", [{"a": [1.5, None]}])
    assert 0 < first["deadline_ms"] < 20_000
    assert second == {"message": "m", "prompt": "p", "lane": "prompt", "deadline_ms": 7}
    assert third == {"text": "x", "id": "mine", "sessionId": "s", "session_id": "s"}
    assert len({fourth["id"], fifth["id"], "mine"}) == 3


def test_relay_sends_what_hosts_call_otherwise_by_our_names(relay: Relay, at: Path) -> None:
    seen: list[Any] = []

    def look(line: socket.socket, over: threading.Event) -> None:
        seen.append(json.loads(read_request(line).partition(b"\r\n\r\n")[2]))
        line.sendall(reply(b'{"text": ""}'))

    sent: list[tuple[dict[str, object], dict[str, object]]] = [
        (
            {"sessionKey": "k", "senderId": "7", "agentId": "shop"},
            {"session_key": "k", "sender": "7", "agent": "shop"},
        ),
        ({"sessionKey": 12}, {"session_key": ""}),
        ({"session_key": ["k"]}, {"session_key": ""}),
        ({"session_key": None}, {"session_key": ""}),
        ({"session_key": None, "sessionKey": "k"}, {"session_key": "k"}),
        ({"session_key": "mine", "sessionKey": "k"}, {"session_key": "mine"}),
        ({"senderId": 99, "channel": "telegram"}, {"sender": "telegram:99"}),
        ({"from": "slack:U1", "channel": "slack"}, {"sender": "slack:U1"}),
        ({"from": "slack:U1", "channel": "telegram"}, {"sender": "telegram:slack:U1"}),
        ({"sender": "slack:U1", "channel": "telegram"}, {"sender": "telegram:slack:U1"}),
        ({"sender": "slack:U1", "channel": 5}, {"sender": "?:slack:U1"}),
        ({"sender": 99, "channel": "telegram"}, {"sender": "telegram:99"}),
        ({"sender": "a", "senderId": "b", "from": "c"}, {"sender": "a"}),
        ({"sender": None, "from": {"id": 7}}, {"sender": "*"}),
    ]
    with listening(at, look):
        for event, _ in sent:
            relay("turn", {"prompt": "p", **event})
    for got, (event, expected) in zip(seen, sent, strict=True):
        assert {name: got[name] for name in expected} == expected, event
        assert got["message"] == "p"


@pytest.mark.parametrize(
    "event",
    [
        {"sessionKey": 12},
        {"session_key": None, "sessionKey": "agent:main:telegram:direct:99"},
        {"senderId": 99, "channel": "telegram"},
        {"from": "telegram:99"},
    ],
    ids=str,
)
def test_relay_gives_the_owners_words_to_nobody_whom_it_cannot_read(
    relay: Relay, event: dict[str, object]
) -> None:
    with serving(relay.home):
        said = relay("turn", {"prompt": QUESTION, **event})
        own = relay("turn", {"prompt": QUESTION, "sessionKey": "agent:main:telegram:direct:7"})
    assert "TAPSWORD" in said.json["additionalContext"]
    assert "COREWORD" not in said.json["additionalContext"]
    assert "COREWORD" in own.json["additionalContext"]


def test_relay_keeps_a_conversation(relay: Relay) -> None:
    with serving(relay.home) as served:
        for text in ("One", "Two"):
            assert relay("message", {"text": text, "session_id": "ses_r"}).json == {"continue": True}
        relay("tool", {"name": "valve", "summary": "open", "session_id": "ses_r"})
        relay("session-end", {"session_id": "ses_r"})
        path = served.memory.services.conversations.find_last_part("ses_r")
        assert path is not None
    turns = product.open(relay.home).transcript(path)
    assert turns.sealed
    assert [type(turn) for turn in turns.turns] == [Message, Message, ToolCall]
    assert spool.count_waiting(relay.home) == 0


def test_relay_needs_no_end_of_its_input(relay: Relay, at: Path) -> None:
    """A host may write the event and keep the pipe open."""
    with listening(at, answers(b'{"text": "found"}')):
        command = [*RELAY, "turn", "--home", str(relay.home), "--deadline-ms", "20000"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(b'{"prompt": "hello"}\n')
            running.stdin.flush()
            assert json.loads(running.stdout.read())["additionalContext"] == "found"


@pytest.mark.parametrize("text", ['"\\\n\t', "ä 🌱 \u2028", "\ud800", "x" * 500_000, "</script>"])
def test_relay_prints_any_text_as_one_line_of_ascii(relay: Relay, at: Path, text: str) -> None:
    with listening(at, answers(json.dumps({"text": text}).encode())):
        said = relay("turn", EVENT)
    assert said.json["additionalContext"] == text
    assert said.stdout.isascii()
    assert said.stdout.count(b"\n") == 1


# ---------------------------------------------------------------- bad daemons


@pytest.mark.parametrize("behave", DAEMONS.values(), ids=DAEMONS)
def test_relay_a_bad_daemon_costs_a_turn_nothing_but_its_context(
    relay: Relay, at: Path, behave: Behave
) -> None:
    stale, other = mirror(relay.home), mirror(relay.home, "agent:main:other")
    began = time.monotonic()
    with listening(at, behave):
        said = relay("turn", EVENT, deadline_ms=400)
    assert time.monotonic() - began < GENEROUS
    assert said.reason.startswith("tacit: ")
    assert stale.read_text() == ""
    assert other.read_text() != ""


@pytest.mark.parametrize("event", [EVENT, b"{"], ids=["of a session", "that cannot be read"])
def test_relay_empties_the_file_also_where_the_config_has_another_folder_for_it(
    relay: Relay, tmp_path: Path, event: dict[str, str] | bytes
) -> None:
    home, there = Home(relay.home), str(tmp_path / "there")
    write_context_file(home, there, "agent:main:main", "what an earlier turn was given")
    theirs = tmp_path / "there" / "notes" / "ETHOS_CONTEXT.md"
    theirs.parent.mkdir()
    theirs.write_text("of somebody else")
    relay("turn", event)
    assert context_file_path(home, there, "agent:main:main").read_bytes() == b""
    assert theirs.read_text() == "of somebody else"


@pytest.mark.parametrize("behave", DAEMONS.values(), ids=DAEMONS)
def test_relay_what_a_bad_daemon_did_not_acknowledge_is_spooled(
    relay: Relay, at: Path, behave: Behave
) -> None:
    with listening(at, behave):
        said = relay("message", {"text": "Keep this", "session_id": "ses_r"}, deadline_ms=3000)
    assert said.json == {"continue": True, "spooled": True}
    assert spool.count_waiting(relay.home) == 1


def test_relay_a_stopped_daemon_is_not_waited_for(relay: Relay, at: Path) -> None:
    code = (
        "import os, signal, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8);"
        "print('up', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(at)], stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        began = time.monotonic()
        try:
            reason = relay("turn", EVENT, deadline_ms=300).reason
        finally:
            daemon.kill()
    assert "no answer" in reason or "deadline" in reason
    assert time.monotonic() - began < GENEROUS


def test_relay_nobody_is_there_in_many_ways(relay: Relay, at: Path) -> None:
    assert "not running: it has no socket" in relay("turn", EVENT).reason
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(at))
    assert "not running: Connection refused" in relay("turn", EVENT).reason
    at.unlink()
    at.mkdir()
    assert "not a socket" in relay("turn", EVENT).reason


def test_relay_asks_at_the_socket_that_it_is_told(
    relay: Relay, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("s") / "d.sock"
    with listening(other, answers(b'{"text": "from there"}')):
        said = relay("turn", EVENT, env={"TACIT_SOCKET": str(other)})
    assert said.json["additionalContext"] == "from there"


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("operation", ["turn", "message"])
def test_relay_any_input_is_answered(relay: Relay, at: Path, operation: str, event: bytes) -> None:
    if operation == "message" and event == EVENTS["20 MB"]:
        event = event[:3_000_000] + b'"}'  # all of it would be cleaned, in seconds that nobody waits for
    with listening(at, answers(b'{"text": ""}')):
        said = relay(operation, event, deadline_ms=5000)
    assert said.json["continue"] is True


def test_relay_an_input_that_never_comes_is_not_waited_for(relay: Relay) -> None:
    command = [*RELAY, "turn", "--home", str(relay.home), "--deadline-ms", "200"]
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        said = json.loads(running.stdout.read())
        assert running.wait(GENEROUS) == 0
    assert time.monotonic() - began < GENEROUS
    assert "standard input" in said["reason"]


def test_relay_a_turn_that_is_too_long_empties_the_mirror_of_its_session(relay: Relay) -> None:
    stale = mirror(relay.home, "agent:main:long")
    event = b'{"sessionKey": "agent:main:long", "prompt": "' + b"x" * 10_000_000 + b'"}'
    assert "more than" in relay("turn", event).reason
    assert stale.read_text() == ""


@pytest.mark.parametrize(
    "event",
    [b"{", b'{"prompt": "' + b"x" * 5_000_000 + b'", "sessionKey": "agent:main:other"}'],
    ids=["not JSON", "too long"],
)
def test_relay_where_the_session_cannot_be_told_no_session_keeps_what_it_was_given(
    relay: Relay, event: bytes
) -> None:
    mirrors = [mirror(relay.home), mirror(relay.home, "agent:main:other")]
    assert relay("turn", event).reason
    assert [one.read_text() for one in mirrors] == ["", ""]


@pytest.mark.parametrize("fds", ["0<&-", "0<&- 1>&-", "1>&-", "1>/dev/full", "2>&-"])
def test_relay_needs_neither_input_nor_output(relay: Relay, fds: str) -> None:
    command = f"exec {' '.join(RELAY)} turn --home {relay.home} {fds}"
    assert subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, timeout=60).returncode == 0


def test_relay_one_who_never_reads_cannot_keep_it(relay: Relay, at: Path) -> None:
    """More than fits into a pipe, and nobody at its other end."""
    with listening(at, answers(json.dumps({"text": "x" * 300_000}).encode())):
        command = [*RELAY, "turn", "--home", str(relay.home)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            assert running.stdin is not None
            running.stdin.write(b'{"prompt": "hello"}')
            running.stdin.close()
            assert running.wait(GENEROUS) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "dance",
        "turn turn",
        "turn --colour",
        "turn --deadline-ms soon",
        "turn --deadline-ms",
        "turn --deadline-ms 0",
        "turn --home",
    ],
)
def test_relay_a_wrong_command_line_is_answered_too(arguments: str) -> None:
    done = subprocess.run([*RELAY, *arguments.split()], input=b"{}", capture_output=True, timeout=60)
    assert done.returncode == 0
    assert json.loads(done.stdout)["reason"]


@pytest.mark.parametrize(
    "env", [{"HOME": "", "PATH": ""}, {"LC_ALL": "C", "TZ": "no/where"}, {"PYTHONHOME": "/nowhere"}], ids=str
)
def test_relay_needs_nothing_of_the_environment(relay: Relay, at: Path, env: dict[str, str]) -> None:
    with listening(at, answers(b'{"text": "found"}')):
        assert relay("turn", EVENT, env=env).json["additionalContext"] == "found"


def test_relay_finds_the_home_by_itself(garden: Path, at: Path) -> None:
    with listening(at, answers(b'{"text": "found"}')):
        for env in ({"TACIT_HOME": str(garden)}, {"HOME": str(garden.parent)}):
            if "HOME" in env:
                (garden.parent / "tacit").symlink_to(garden)
            done = subprocess.run(
                [*RELAY, "turn", "--deadline-ms=20000"], input=b"{}", capture_output=True, env=env, timeout=60
            )
            assert json.loads(done.stdout)["additionalContext"] == "found"


# ---------------------------------------------------------------- the spool


def test_relay_what_was_said_without_a_daemon_is_all_kept_once_when_it_is_back(relay: Relay) -> None:
    """Each is said by a process of its own, as a host would start it."""
    for number in range(10):
        said = relay("message", {"text": f"Said {number}", "session_id": "ses_r"})
        assert said.json == {"continue": True, "spooled": True}
    relay("session-end", {"session_id": "ses_r"})
    assert spool.count_waiting(relay.home) == 11
    with serving(relay.home) as served:
        done = spool.drain(relay.home, lambda record: HANDLERS[record.operation](served, record.body))
        assert (done.taken, done.stopped, done.aside) == (11, None, [])
        path = served.memory.services.conversations.find_last_part("ses_r")
    assert path is not None
    assert messages(relay.home, path) == [f"Said {number}" for number in range(10)]
    assert spool.count_waiting(relay.home) == 0


def test_relay_what_the_daemon_took_without_saying_so_is_not_kept_twice(relay: Relay, at: Path) -> None:
    """It dies after it kept the message and before it answered; the relay spools it with the same id."""
    memory = product.open(relay.home)
    served = OperationContext(memory, SessionRegistry(memory.services))

    def keep_and_die(line: socket.socket, over: threading.Event) -> None:
        HANDLERS["message"](served, json.loads(read_request(line).partition(b"\r\n\r\n")[2]))

    with listening(at, keep_and_die):
        assert relay("message", {"text": "Once", "session_id": "ses_r"}).json["spooled"] is True
    spool.drain(relay.home, lambda record: HANDLERS["message"](served, record.body))
    path = served.memory.services.conversations.find_last_part("ses_r")
    served.live.close()
    assert path is not None
    assert messages(relay.home, path) == ["Once"]


def test_relay_spools_no_secret_and_nothing_private(relay: Relay) -> None:
    text = "The key is AKIAIOSFODNN7EXAMPLE and <private>my diary</private> and so on"
    assert relay("message", {"text": text}).json["spooled"] is True
    (file,) = (relay.home / spool.FOLDER).glob("*.jsonl")
    kept = file.read_bytes()
    assert b"and so on" in kept
    assert b"diary" not in kept
    assert b"AKIAIOSFODNN7EXAMPLE" not in kept


def test_relay_what_takes_longer_than_the_host_waits_is_spooled_behind_it(relay: Relay) -> None:
    """A disk that is slow, or a text that takes long to clean: a child goes on with it."""
    event = {"text": "word " * 600_000}
    began = time.monotonic()
    said = relay("message", event, deadline_ms=200)
    assert time.monotonic() - began < GENEROUS
    assert said.json.get("spooled") or "which goes on" in said.reason
    while not spool.count_waiting(relay.home) and time.monotonic() - began < 2 * GENEROUS:
        time.sleep(0.05)
    assert spool.count_waiting(relay.home) == 1


def test_relay_what_the_deadline_cuts_off_is_spooled_behind_it(
    relay: Relay, at: Path, tmp_path: Path
) -> None:
    """A machine so busy that the time is over while the daemon is still waited for."""
    script = tmp_path / "late.py"
    script.write_text(
        "import tacit.client.relay as event\n"
        "from tacit.transcripts import spool\n"
        "import sys\n"
        "event.RelayRun.seconds_left = lambda self: 0.2 if self.activity == 'starting' else 60.0\n"
        "event.forward_event(sys.argv[1:], spool.add)\n"
    )
    with listening(at, hangs):
        command = [sys.executable, str(script), "message", "--home", str(relay.home)]
        event = json.dumps({"text": "Keep this", "session_id": "ses_r", "id": "mine"}).encode()
        done = subprocess.run(command, input=event, capture_output=True, timeout=60)
        said = json.loads(done.stdout)
    assert "the deadline passed while waiting for the daemon; it is being spooled" in said["reason"]
    began = time.monotonic()
    while not spool.count_waiting(relay.home) and time.monotonic() - began < GENEROUS:
        time.sleep(0.02)
    records: list[spool.SpooledEvent] = []
    spool.drain(relay.home, records.append)
    assert [(record.id, record.body["text"]) for record in records] == [("mine", "Keep this")]


def test_relay_without_a_home_nothing_is_begun(tmp_path: Path) -> None:
    relay = Relay(tmp_path / "nothing")
    assert "not kept" in relay("message", {"text": "x"}).reason
    assert list(tmp_path.iterdir()) == []


def test_relay_a_home_that_cannot_be_written_is_told(relay: Relay) -> None:
    (relay.home / ".tacit").chmod(0o500)
    command = plain_user(*RELAY, "message", "--home", relay.home, "--deadline-ms", "20000")
    done = subprocess.run(command, input=b'{"text": "x"}', capture_output=True, timeout=60)
    assert done.returncode == 0
    assert "not kept" in json.loads(done.stdout)["reason"]


# ---------------------------------------------------------------- cost


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_relay_tells_a_person_how_it_is_used(asked: str) -> None:
    done = subprocess.run([*RELAY, asked], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Operations: turn, message, tool, session-end" in done.stdout


def test_relay_imports_next_to_nothing(relay: Relay, at: Path) -> None:
    command = [*RELAY[:-1], "-X", "importtime", RELAY[-1], "turn", "--home", str(relay.home)]
    with listening(at, answers(b'{"text": "found"}')):
        done = subprocess.run(command, input='{"prompt": "x"}', capture_output=True, text=True, timeout=60)
    assert "found" in done.stdout
    bare = subprocess.run(
        [*RELAY[:-1], "-X", "importtime", "-c", "import os"], capture_output=True, text=True
    )
    own = imported(done.stderr) - imported(bare.stderr)
    ours = {"tacit.client", "tacit.client.relay", "tacit.daemon_socket"}
    hosts = {"tacit.hosts", "tacit.hosts.fields", "tacit.hosts.hooks", "tacit.hosts.hooks.hook_events"}
    assert own == ours | hosts | {"_json", "_socket"}


def test_relay_imports_nothing_heavy_as_a_console_script_either(relay: Relay, at: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-c"]
    script = "from tacit.relay import entry; entry()"
    with listening(at, answers(b'{"text": "found"}')):
        done = subprocess.run(
            [*command, script, "turn", "--home", str(relay.home), "--deadline-ms", "20000"],
            input='{"prompt": "x"}', capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert "found" in done.stdout
    bare = subprocess.run([*command, "import os"], capture_output=True, text=True)
    own = {name.partition(".")[0] for name in imported(done.stderr) - imported(bare.stderr)}
    heavy = {"yaml", "apsw", "numpy", "rich", "splintr", "dataclasses", "typing", "asyncio", "http", "re"}
    assert own & (heavy | {"json", "socket", "subprocess", "hashlib", "argparse", "pathlib"}) == set()
    assert "tacit" in own


def imported(told: str) -> set[str]:
    return {line.split("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}


def test_relay_is_also_a_console_script(garden: Path, at: Path) -> None:
    """With the package, when it is installed so."""
    with listening(at, answers(b'{"text": "found"}')):
        command = [sys.executable, "-c", "from tacit.relay import entry; entry()", "turn"]
        command += ["--home", str(garden), "--deadline-ms", "20000"]
        done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60)
    assert json.loads(done.stdout)["additionalContext"] == "found"


def test_a_program_that_tacit_itself_started_is_neither_kept_nor_given_anything(
    home: Path, relay: Relay
) -> None:
    ours = {"TACIT_WORKER": "1"}
    body = {"session_key": "agent:main:main", "role": "user", "text": "Extract the decisions"}
    assert relay("message", body, env=ours).json == {"continue": True}
    assert relay("turn", EVENT, env=ours).json == {"continue": True}
    assert not list((home / ".tacit").glob("spool/*"))
    assert relay("message", body).json == {"continue": True, "spooled": True}
