"""Hooks of Claude Code and Codex: what is said is kept, in its own session, and nothing else is.

The events in tests/data/hooks were recorded from Claude Code 2.1.325 and Codex 0.166.0.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tacit as product
from tacit.cli.main import main
from tacit.context import receipts
from tacit.daemon_socket import socket_path
from tacit.home.layout import Home
from tacit.hosts.hooks.hook_events import IGNORED_EVENTS
from tacit.operations.handlers import OperationContext, take_spooled
from tacit.transcripts import spool
from tacit.transcripts.model import Message, ToolCall, Turn
from tests.client.relay.conftest import RELAY, Relay, Said
from tests.client.serving import serving
from tests.http.fake import answers, listening, read_request, reply
from tests.memory.homes import QUESTION

DATA = Path(__file__).parents[2] / "data" / "hooks"
PROMPT = "Which glaze did we take?"
REPLY = "The matt one."
# Values in the place of a prompt that nobody can read as one.
NO_TEXT: dict[str, object] = {
    "null": None,
    "an object": {"text": "in an object"},
    "nested JSON": {"role": "assistant", "content": [{"type": "text", "text": "not the user's"}]},
    "true": True,
    "a fraction": 1.5,
    "messages in a list": [{"role": "assistant", "content": "not the user's"}],
    "a part of an unknown kind": [{"type": "text", "text": "a"}, {"type": "hologram", "data": "b"}],
    "a part without text": [{"type": "text", "text": None}],
    "a list of numbers": [1, 2],
}


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]


CLAUDE, CODEX, (NOTIFY,) = recorded("claude-code"), recorded("codex"), recorded("codex-notify")


def event_of(name: str, events: list[dict[str, Any]] = CLAUDE, **more: object) -> dict[str, Any]:
    """The first event of this name, with some fields changed."""
    return {**next(event for event in events if event["hook_event_name"] == name), **more}


def hook_answer(said: Said) -> dict[str, Any]:
    """What the host reads; nothing printed is an answer too."""
    found: dict[str, Any] = json.loads(said.stdout) if said.stdout else {}
    assert found.keys() <= {"hookSpecificOutput", "systemMessage"}, (
        "Codex refuses an answer with other fields"
    )
    return found


def turns_of(home: Path) -> dict[str, tuple[Turn, ...]]:
    """What each transcript of a hook holds, by session key. The garden has others, under other keys."""
    memory = product.open(home)
    found: dict[str, tuple[Turn, ...]] = {}
    for file in transcripts(home):
        transcript = memory.transcript(str(file.relative_to(home)))
        key = str(transcript.fields["session_key"])
        if ":session:" in key or ":subagent:" in key:
            found[key] = found.get(key, ()) + transcript.turns
    return found


def said_in(turns: tuple[Turn, ...]) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in turns if isinstance(turn, Message)]


def drain(served: OperationContext, home: Path) -> spool.DrainResult:
    return spool.drain(home, lambda record: take_spooled(served, record))


def transcripts(home: Path) -> list[Path]:
    return sorted((home / "raw" / "conversations").rglob("*.md"))


# ---------------------------------------------------------------- what is said is kept


@pytest.mark.parametrize("events", [CLAUDE, CODEX], ids=["Claude Code", "Codex"])
@pytest.mark.parametrize("is_up", [True, False], ids=["with a daemon", "without a daemon"])
def test_relay_keeps_the_prompt_and_the_answer_of_a_coding_agent(
    relay: Relay, events: list[dict[str, Any]], is_up: bool
) -> None:
    def send() -> None:
        assert hook_answer(relay("message", event_of("UserPromptSubmit", events))) == {}
        assert hook_answer(relay("tool", event_of("PostToolUse", events))) == {}
        assert hook_answer(relay("message", event_of("Stop", events))) == {}
        assert hook_answer(relay("session-end", event_of("SessionEnd", events))) == {}

    if not is_up:
        send()
        assert spool.count_waiting(relay.home) == 4
    with serving(relay.home) as served:
        if is_up:
            send()
        assert drain(served, relay.home).aside == []
    ((key, turns),) = turns_of(relay.home).items()
    assert key == f"agent:main:main:session:{events[0]['session_id']}"
    assert said_in(turns) == [("user", PROMPT), ("agent", REPLY)]
    assert [(turn.name, turn.result) for turn in turns if isinstance(turn, ToolCall)] == [
        ("Bash", "tool-ran")
    ]


def test_relay_keeps_all_that_a_coding_agent_says_by_one_operation(relay: Relay) -> None:
    with serving(relay.home):
        for event in CLAUDE:
            assert hook_answer(relay("event", event)) == {}
    found = turns_of(relay.home)
    session = CLAUDE[0]["session_id"]
    main, other = f"agent:main:main:session:{session}", f"agent:main:subagent:{session}-a1c7f7de38e7cdf60"
    assert set(found) == {main, other}
    assert said_in(found[main]) == [("user", PROMPT), ("agent", REPLY)]
    calls = [(turn.summary, turn.result) for turn in found[main] if isinstance(turn, ToolCall)]
    # The second call came after the end of the session, so it stands in another part.
    assert sorted(calls) == [("command=echo tool-ran", "tool-ran"), ("command=false", "error: Exit code 1")]
    assert said_in(found[other]) == [("agent", "Three glazes are on the shelf.")]
    assert spool.count_waiting(relay.home) == 0


def test_relay_takes_the_notice_of_codex_out_of_the_spool(relay: Relay) -> None:
    relay("event", b"", json.dumps(NOTIFY))
    with serving(relay.home) as served:
        assert drain(served, relay.home).aside == []
    ((_, turns),) = turns_of(relay.home).items()
    assert said_in(turns) == [("user", PROMPT), ("agent", REPLY)]


def test_relay_takes_the_notice_of_codex_from_the_command_line(relay: Relay) -> None:
    """Codex runs `notify` with the event as the last argument, and with nothing on standard input."""
    with serving(relay.home):
        said = relay("message", b"", json.dumps(NOTIFY))
        assert hook_answer(said) == {}
        # A hook that tells the same turn adds nothing to it.
        relay("message", event_of("UserPromptSubmit", CODEX))
        relay("message", event_of("Stop", CODEX))
    ((key, turns),) = turns_of(relay.home).items()
    assert key.endswith(NOTIFY["thread-id"])
    assert said_in(turns) == [("user", PROMPT), ("agent", REPLY)]


def test_relay_keeps_an_event_that_comes_twice_once_and_two_prompts_of_one_turn_both(relay: Relay) -> None:
    with serving(relay.home):
        for prompt in ("One", "One", "Two"):
            relay("message", event_of("UserPromptSubmit", prompt=prompt))
    assert [said_in(turns) for turns in turns_of(relay.home).values()] == [[("user", "One"), ("user", "Two")]]


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ([{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}], "One\nTwo"),
        ([{"type": "input_text", "text": "One"}, {"type": "image", "source": {}}], "One\n[image]"),
        (["One", {"text": "Two"}], "One\nTwo"),
        (42, "42"),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_hook", [True, False], ids=["hook", "plain"])
def test_relay_reads_a_prompt_in_parts(relay: Relay, is_hook: bool, prompt: object, text: str) -> None:
    event = event_of("UserPromptSubmit", prompt=prompt)
    if not is_hook:
        event = {"prompt": prompt, "session_key": "agent:main:main:session:p", "session_id": "p"}
    with serving(relay.home):
        assert relay("message", event).code == 0
    assert [said_in(turns) for turns in turns_of(relay.home).values()] == [[("user", text)]]


@pytest.mark.parametrize("name", ["text", "prompt", "message", "content"])
def test_relay_finds_the_text_of_a_message_by_any_of_its_names(relay: Relay, name: str) -> None:
    with serving(relay.home) as served:
        relay("message", {name: "Keep this", "text" if name != "text" else "x": "", "session_id": "ses_n"})
        path = served.memory.services.conversations.find_last_part("ses_n")
    assert path is not None
    assert said_in(product.open(relay.home).transcript(path).turns) == [("user", "Keep this")]


def test_relay_takes_private_parts_out_across_the_parts_of_a_prompt(relay: Relay) -> None:
    parts = [
        {"type": "text", "text": "Before <private>my"},
        {"type": "text", "text": "diary</private> after"},
    ]
    relay("message", event_of("UserPromptSubmit", prompt=parts))
    kept = b"".join(file.read_bytes() for file in (relay.home / spool.FOLDER).glob("*.jsonl"))
    assert b"after" in kept
    assert b"diary" not in kept


def test_relay_keeps_what_the_host_says_in_a_users_place_as_no_users_word(relay: Relay) -> None:
    notice = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    with serving(relay.home):
        relay("message", event_of("UserPromptSubmit", prompt=notice))
        assert hook_answer(relay("turn", event_of("UserPromptSubmit", prompt=notice))) == {}
    ((_, turns),) = turns_of(relay.home).items()
    assert [role for role, _ in said_in(turns)] == ["system"]


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\n\xef\xbb\xbf "], ids=["BOM", "BOM and space"])
def test_relay_reads_an_event_with_a_byte_order_mark(relay: Relay, start: bytes) -> None:
    with serving(relay.home):
        said = relay("turn", start + json.dumps(event_of("UserPromptSubmit", prompt=QUESTION)).encode())
        relay("message", start + json.dumps(event_of("UserPromptSubmit")).encode())
    assert "hookSpecificOutput" in hook_answer(said)
    assert [said_in(turns) for turns in turns_of(relay.home).values()] == [[("user", PROMPT)]]


def test_relay_keeps_a_prompt_with_bytes_that_are_no_text(relay: Relay) -> None:
    data = json.dumps(event_of("UserPromptSubmit", prompt="One XX two")).encode().replace(b"XX", b"\xff\xfe")
    with serving(relay.home):
        relay("message", data)
    assert [said_in(turns) for turns in turns_of(relay.home).values()] == [[("user", "One \ufffd\ufffd two")]]


def test_relay_keeps_a_prompt_of_10_mb(relay: Relay) -> None:
    text = "line of a log\n" * 750_000
    with serving(relay.home) as served:
        relay("message", event_of("UserPromptSubmit", prompt=text))
        until = time.monotonic() + 30
        while not spool.count_waiting(relay.home) and time.monotonic() < until:
            time.sleep(0.1)
        assert drain(served, relay.home).aside == []
    ((_, turns),) = turns_of(relay.home).items()
    assert len(said_in(turns)[0][1]) > 10_000_000


# ---------------------------------------------------------------- never in another session


def test_relay_keeps_two_sessions_apart_and_both_from_those_that_name_none(relay: Relay) -> None:
    """OpenClaw's main session comes without an id, and would join whatever is open under its key."""
    with serving(relay.home) as served:
        for number in (1, 2):
            relay(
                "message", event_of("UserPromptSubmit", session_id=f"s-{number}", prompt=f"Said in {number}")
            )
            relay("message", {"text": f"Elsewhere {number}", "session_key": "agent:main:main"})
        relay("session-end", {"session_key": "agent:main:main"})
        relay("message", event_of("Stop", session_id="s-1", last_assistant_message="Answer in 1"))
        assert drain(served, relay.home).aside == []
    found = {key: said_in(turns) for key, turns in turns_of(relay.home).items()}
    assert found == {
        "agent:main:main:session:s-1": [("user", "Said in 1"), ("agent", "Answer in 1")],
        "agent:main:main:session:s-2": [("user", "Said in 2")],
    }


@pytest.mark.parametrize(
    "session",
    [None, "", 7, ["s"], "a:b", "../s", "s\n", "x" * 200, "missing"],
    ids=lambda one: repr(one)[:12],
)
@pytest.mark.parametrize("operation", ["message", "event"])
def test_relay_keeps_an_event_without_a_readable_session_in_no_transcript(
    relay: Relay, operation: str, session: object
) -> None:
    event = event_of("UserPromptSubmit", session_id=session)
    if session == "missing":
        del event["session_id"]
    before = transcripts(relay.home)
    with serving(relay.home) as served:
        said = relay(operation, event)
        done = drain(served, relay.home)
    assert "session" in hook_answer(said)["systemMessage"]
    assert transcripts(relay.home) == before
    assert len(done.aside) == 1
    assert PROMPT in (relay.home / spool.FOLDER / spool.QUARANTINE).read_text()


def test_relay_gives_a_session_the_same_passage_once_and_again_after_its_host_cut_it(relay: Relay) -> None:
    asked = count(1)

    def is_given(session: str) -> bool:
        prompt = (
            f"{QUESTION} For the {next(asked)}th time"  # the same words would be a turn that is tried again
        )
        said = relay("turn", event_of("UserPromptSubmit", session_id=session, prompt=prompt))
        return "CONTEXTWORD" in hook_answer(said).get("hookSpecificOutput", {}).get("additionalContext", "")

    with serving(relay.home):
        assert is_given("s-1")
        assert not is_given("s-1")
        assert is_given("s-2")
        relay("event", event_of("SessionStart", session_id="s-1", source="compact"))
        assert is_given("s-1")
        assert not is_given("s-2")


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize("events", [CLAUDE, CODEX], ids=["Claude Code", "Codex"])
def test_relay_answers_a_hook_where_its_host_reads_it(relay: Relay, events: list[dict[str, Any]]) -> None:
    with serving(relay.home):
        said = hook_answer(relay("turn", event_of("UserPromptSubmit", events, prompt=QUESTION)))
    assert said.keys() == {"hookSpecificOutput"}
    assert said["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "COREWORD" in said["hookSpecificOutput"]["additionalContext"]  # it is the owner's session


def test_relay_gives_a_subagent_no_more_than_a_subagent_may_see(relay: Relay) -> None:
    with serving(relay.home):
        said = relay("turn", event_of("UserPromptSubmit", CODEX, prompt=QUESTION, agent_id="a1"))
    assert "COREWORD" not in said.stdout.decode()


def test_relay_says_to_the_user_of_a_hook_what_went_wrong(relay: Relay) -> None:
    said = hook_answer(relay("turn", event_of("UserPromptSubmit")))
    assert "not running" in said["systemMessage"]


@pytest.mark.parametrize("operation", ["turn", "message", "tool", "session-end", "event"])
@pytest.mark.parametrize("name", ["PreCompact", "PostCompact"])
def test_relay_prints_nothing_where_a_host_reads_everything_as_instructions(
    relay: Relay, operation: str, name: str
) -> None:
    """Claude Code gives the summariser whatever a hook of PreCompact prints."""
    assert relay(operation, event_of(name)).stdout == b""


FITS = {
    "turn": {"UserPromptSubmit"},
    "message": {"UserPromptSubmit", "Stop", "SubagentStop"},
    "tool": {"PostToolUse", "PostToolUseFailure", "PostToolBatch"},
    "session-end": {"SessionEnd", "SubagentStop"},
}


@pytest.mark.parametrize("operation", FITS)
def test_relay_refuses_an_event_that_is_not_for_the_operation(relay: Relay, operation: str) -> None:
    before, written = transcripts(relay.home), list(receipts.recent(Home(relay.home), 5))
    names = {event["hook_event_name"] for event in CLAUDE} | {"PreToolUse", "Notification", "SubagentStart"}
    with serving(relay.home):
        for name in sorted(names - FITS[operation]):
            event = {**CLAUDE[1], "hook_event_name": name}
            said = hook_answer(relay(operation, event))
            if name not in ("PreCompact", "PostCompact"):
                assert f"{name} is not for `tacit-relay {operation}`" in said["systemMessage"]
    assert transcripts(relay.home) == before
    assert spool.count_waiting(relay.home) == 0
    assert list(receipts.recent(Home(relay.home), 5)) == written


def test_relay_takes_every_event_of_the_hosts_that_holds_nothing_to_keep(relay: Relay) -> None:
    before = transcripts(relay.home)
    with serving(relay.home) as served:
        for name in sorted(IGNORED_EVENTS):
            assert hook_answer(relay("event", {**CLAUDE[0], "hook_event_name": name})) == {}
        assert drain(served, relay.home).aside == []
    assert transcripts(relay.home) == before


def test_relay_keeps_no_summary_that_the_host_made_for_itself(relay: Relay) -> None:
    """The summariser of Claude Code ends as a subagent without a type."""
    before = transcripts(relay.home)
    with serving(relay.home):
        for operation in ("message", "event", "session-end"):
            assert hook_answer(relay(operation, event_of("SubagentStop", agent_type=""))) == {}
    assert transcripts(relay.home) == before


# ---------------------------------------------------------------- what nobody understands


@pytest.mark.parametrize("prompt", NO_TEXT.values(), ids=NO_TEXT)
@pytest.mark.parametrize("is_hook", [True, False], ids=["hook", "plain"])
@pytest.mark.parametrize("operation", ["message", "turn"])
@pytest.mark.parametrize("is_up", [True, False], ids=["with a daemon", "without a daemon"])
def test_relay_makes_no_empty_turn_of_a_prompt_that_it_cannot_read(
    relay: Relay, operation: str, is_hook: bool, is_up: bool, prompt: object
) -> None:
    event = event_of("UserPromptSubmit", prompt=prompt, mark="REMAINS")
    if not is_hook:
        event = {"prompt": prompt, "mark": "REMAINS"}
    before = transcripts(relay.home)
    if not is_up:
        said = relay(operation, event)
    with serving(relay.home) as served:
        if is_up:
            said = relay(operation, event)
        done = drain(served, relay.home)
    assert "kept" in (hook_answer(said)["systemMessage"] if is_hook else said.reason)
    assert transcripts(relay.home) == before
    assert (len(done.aside), done.taken) == (1, 0)
    assert "REMAINS" in (relay.home / spool.FOLDER / spool.QUARANTINE).read_text()


@pytest.mark.parametrize(
    ("name", "operation", "place", "empty"),
    [
        ("UserPromptSubmit", "turn", "prompt", ""),
        ("UserPromptSubmit", "message", "prompt", []),
        ("Stop", "message", "last_assistant_message", None),
        ("Stop", "event", "last_assistant_message", " "),
        ("SubagentStop", "event", "last_assistant_message", None),
        ("PostToolUse", "tool", "tool_response", None),
    ],
)
def test_relay_drops_no_words_that_a_host_put_in_another_field(
    relay: Relay, name: str, operation: str, place: str, empty: object
) -> None:
    before = transcripts(relay.home)
    with serving(relay.home) as served:
        for words in ("REMAINS", [{"type": "text", "text": "REMAINS"}], {"text": "REMAINS"}):
            said = hook_answer(relay(operation, {**event_of(name), place: empty, "wording": words}))
            assert "'wording'" in said["systemMessage"]
        assert len(drain(served, relay.home).aside) == 3
        # With nothing that could be words, it is an event without any.
        relay("message" if operation == "turn" else operation, {**event_of(name), place: empty, "wording": 7})
        assert drain(served, relay.home).aside == []
    if name != "PostToolUse":
        assert transcripts(relay.home) == before
    assert (relay.home / spool.FOLDER / spool.QUARANTINE).read_text().count("REMAINS") == 3


@pytest.mark.parametrize("depth", [500, 700, 980])
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("is_up", [True, False], ids=["with a daemon", "without a daemon"])
def test_relay_keeps_an_event_that_nests_deeper_than_cleaning_can_follow(
    relay: Relay, depth: int, is_known: bool, is_up: bool
) -> None:
    name = "UserPromptSubmit" if is_known else "PromptTelepathy"
    prompt = f"{PROMPT} <private>diary</private>"
    event = json.dumps(event_of("UserPromptSubmit", hook_event_name=name, prompt=prompt))
    event = f'{event[:-1]}, "more": {"[" * depth}{"]" * depth}}}'
    if not is_up:
        relay("message", event.encode())
    with serving(relay.home) as served:
        if is_up:
            relay("message", event.encode())
        drain(served, relay.home)
    folder = relay.home / spool.FOLDER
    aside = (folder / spool.QUARANTINE).read_text() if (folder / spool.QUARANTINE).exists() else ""
    kept = aside + "".join(file.read_text() for file in transcripts(relay.home))
    assert kept.count(PROMPT) >= 1
    assert "diary" not in kept


UNKNOWN: dict[str, bytes] = {
    "an unknown event": json.dumps({**CLAUDE[1], "hook_event_name": "PromptTelepathy"}).encode(),
    "a name that is no text": json.dumps({**CLAUDE[1], "hook_event_name": 7}).encode(),
    "another shape": b'{"utterance": "Which glaze did we take?", "speaker_id": 7}',
    "not JSON": b"Which glaze did we take?",
    "half of it": b'{"prompt": "Which glaze did we take?',
    "a list": b'["Which glaze did we take?"]',
    "two objects": b'{"prompt": "Which glaze did we take?"}{}',
}


@pytest.mark.parametrize("event", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("operation", ["turn", "message", "event"])
def test_relay_keeps_a_shape_that_it_does_not_know_and_reports_it(
    relay: Relay, operation: str, event: bytes
) -> None:
    before = transcripts(relay.home)
    relay(operation, event)
    assert spool.count_waiting(relay.home) == 1
    with serving(relay.home) as served:
        assert len(drain(served, relay.home).aside) == 1
    assert transcripts(relay.home) == before
    assert PROMPT in (relay.home / spool.FOLDER / spool.QUARANTINE).read_text()


@pytest.mark.parametrize("name", ["UserPromptSubmit", "PromptTelepathy"])
def test_relay_keeps_nothing_private_and_no_secret_of_an_event_that_it_does_not_understand(
    relay: Relay, name: str
) -> None:
    parts = ["Before <private>my", {"type": "hologram"}, "diary</private> and AKIAIOSFODNN7EXAMPLE after"]
    relay("message", {**CLAUDE[1], "hook_event_name": name, "prompt": parts})
    kept = b"".join(file.read_bytes() for file in (relay.home / spool.FOLDER).glob("*.jsonl"))
    assert b"after" in kept
    assert b"diary" not in kept
    assert b"AKIAIOSFODNN7EXAMPLE" not in kept


def test_status_and_doctor_name_what_a_host_sent_that_nobody_understands(
    relay: Relay, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        relay("message", UNKNOWN["an unknown event"])
    relay("message", UNKNOWN["another shape"])
    with serving(relay.home) as served:
        drain(served, relay.home)
    main(["status", "--home", str(relay.home)])
    told = " ".join(capsys.readouterr().out.split())
    assert "3 events" in told
    assert "PromptTelepathy" in told
    assert "speaker_id, utterance" in told
    assert ".tacit/spool/set-aside" in told
    main(["doctor", "--home", str(relay.home)])
    checked = capsys.readouterr().out
    assert "PromptTelepathy" in checked
    assert PROMPT not in told + checked


@pytest.mark.parametrize("operation", ["turn", "message", "event"])
def test_relay_has_nothing_to_keep_of_an_input_that_is_empty(relay: Relay, operation: str) -> None:
    assert "standard input is empty" in relay(operation, b" \n").reason
    assert spool.count_waiting(relay.home) == 0


def test_relay_keeps_the_part_of_an_event_that_came_before_the_deadline(relay: Relay) -> None:
    command = [*RELAY, "message", "--home", str(relay.home), "--deadline-ms", "300"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b'{"prompt": "Half of what')
        running.stdin.flush()
        said = json.loads(running.stdout.read())
    assert "being spooled" in said["reason"]
    until = time.monotonic() + 15
    while not spool.count_waiting(relay.home) and time.monotonic() < until:
        time.sleep(0.02)
    records: list[spool.SpooledEvent] = []
    spool.drain(relay.home, records.append)
    assert "Half of what" in json.dumps(records[0].body)


def test_a_program_that_tacit_itself_started_leaves_nothing_that_nobody_understands(relay: Relay) -> None:
    for event in (*UNKNOWN.values(), json.dumps(CLAUDE[1]).encode()):
        relay("message", event, env={"TACIT_WORKER": "1"})
    assert spool.count_waiting(relay.home) == 0


def test_relay_sends_a_hook_as_it_came(relay: Relay) -> None:
    seen: list[Any] = []

    def look(line: socket.socket, over: threading.Event) -> None:
        head, _, body = read_request(line).partition(b"\r\n\r\n")
        seen.append((head.split(b" ")[1].decode(), json.loads(body)))
        line.sendall(reply(b'{"text": "", "session_id": ""}'))

    with listening(Path(socket_path(str(relay.home))), look):
        relay("turn", event_of("UserPromptSubmit"))
        relay("message", event_of("UserPromptSubmit"))
    (turn, first), (event, second) = seen
    assert (turn, event) == ("/v1/turn", "/v1/event")
    assert CLAUDE[1].items() <= first.items()
    assert (first["message"], first["lane"]) == (PROMPT, "runtime")
    assert CLAUDE[1].items() <= second.items()
    assert (second["host"], second["operation"]) == ("hooks", "message")


def test_relay_adds_nothing_to_a_hook_that_the_daemon_answers_with_nothing(relay: Relay) -> None:
    with listening(Path(socket_path(str(relay.home))), answers(b'{"text": ""}')):
        assert relay("turn", event_of("UserPromptSubmit")).stdout == b""
