"""What must not be kept is in no file below the home, through whichever door it came.

Secrets of 24 forms and what somebody marked as private go in by each door: what is said, names, tags, tools,
turns, lanes, the files of a host, the operations of a daemon, the spool. Then the conversations end, are
committed and indexed, and every byte that is on the disk is looked at: files and their names, the database
and its log, receipts, logs, the spool, and what git packed away.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tacit.client import connect
from tacit.errors import TacitError
from tacit.memory import Memory
from tacit.operations import handlers as operations
from tacit.operations.handlers import OperationContext
from tacit.sessions.registry import SessionRegistry
from tacit.topics.model import Event
from tacit.transcripts import spool
from tests.client.serving import serving
from tests.conftest import Tacit
from tests.memory.conftest import _copy, _lived, garden
from tests.memory.homes import GROUP, OWNER, OWNERS, PATIENT, QUESTION, opened, settle, write
from tests.privacy.test_redaction import drawn, published, values

__all__ = ["_lived", "garden"]

ALL_LANES = PATIENT.replace("inject: {", "inject: {lanes: [bootstrap, runtime, file, daily], ") + OWNERS
KEY_LINES = "\n".join(drawn(line, 64) for line in range(90, 94))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\n-----END RSA PRIVATE KEY-----"
SECRETS: Mapping[str, str] = {**published(7), "pem": PEM}
HIDDEN: Mapping[str, str] = {
    "private": "<private>amber0HUSHONE</private>",
    "private in capitals": '<PRIVATE why="a > b">basil1HUSHTWO</Private >',
    "private, escaped": "&lt;private&gt;cedar2HUSHTHREE&lt;/private&gt;",
    "private, unseen letters": "<pri\u200bvate>delta3HUSHFOUR</\u2060private>",
    "private, nested": "<private>ember4HUSHFIVE <private>x</private> fjord5HUSHSIX</private>",
    "private to the start": "grove6HUSHSEVEN</private>",
    "private to the end": "<private>heath7HUSHEIGHT",
}
CANARIES: Mapping[str, str] = {**SECRETS, **HIDDEN}
PIECE = 10  # letters: so much of one is already too much
STEP = 3


def said(name: str) -> str:
    """With words that the notes know, so that it is searched for and given something."""
    if name == "private to the start":
        return f"{CANARIES[name]} How do we water the tomatoes in the greenhouse?"
    return f"How do we water the tomatoes in the greenhouse? {CANARIES[name]}"


TEXTS: Sequence[str] = tuple(map(said, CANARIES))


# ---------------------------------------------------------------- looking


def pieces_of(value: str) -> Iterator[bytes]:
    """As they may stand anywhere: an index keeps small letters, and cuts at signs."""
    for at in range(0, len(value) - PIECE + 1, STEP):
        yield value[at : at + PIECE].lower().encode()


def everything_in(root: Path) -> dict[str, bytes]:
    """Every file with its name, and every object of git, in small letters."""
    found = {}
    for here, folders, names in os.walk(root):
        found[f"names in {here}"] = "\n".join([*folders, *names]).encode("utf-8", "surrogateescape").lower()
        for file in (Path(here, name) for name in names):
            if file.is_symlink():
                found[str(file)] = os.fsencode(os.readlink(file)).lower()
            elif file.is_file():
                found[str(file)] = file.read_bytes().lower()
    command = ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    for folder in {Path(here) for here, folders, _ in os.walk(root) if ".git" in folders}:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
        found[f"objects of {folder}"] = done.stdout.lower()
    return found


def leaks(root: Path) -> list[str]:
    """Which of them are where."""
    places = everything_in(root)
    whole = b"\0".join(places.values())
    found = []
    for name, canary in CANARIES.items():
        needles = [piece for value in values(canary) for piece in pieces_of(value)]
        assert needles, name
        met = [needle for needle in needles if needle in whole]
        found += [f"{name}: {place}" for place, data in places.items() if any(one in data for one in met)]
    return found


def settled(root: Path, memory: Memory | None = None) -> None:
    """All that would be done later is done now: commits, tags, the index."""
    memory = memory or opened(root)
    memory.commit()
    memory.find(QUESTION)


def test_the_look_would_find_each_of_them_in_a_file_in_a_name_in_the_index_and_in_git(garden: Path) -> None:
    for number, canary in enumerate(CANARIES.values()):
        write(garden, f"knowledge/reference/planted-{number}.md", f"# Planted\n\n{canary}\n")
    settled(garden)
    found = leaks(garden)
    for name in CANARIES:
        assert any(one.startswith(f"{name}: ") and "/planted-" in one for one in found), name
        assert any(one.startswith(f"{name}: ") and "objects of" in one for one in found), name
        assert any(one.startswith(f"{name}: ") and ".db" in one for one in found), name
    write(garden, f"knowledge/reference/{drawn(7, 36)}.md", "# Name\n")
    assert any("names in" in one for one in leaks(garden))


# ---------------------------------------------------------------- a session


def test_nothing_that_is_said_is_kept_of_them(garden: Path) -> None:
    for role in ("user", "agent", "system"):
        with opened(garden).session(OWNER) as session:
            for number, text in enumerate(TEXTS):
                session.message(role, text, speaker=f"speaker {number}")
    settled(garden)
    assert leaks(garden) == []


def test_a_first_message_names_no_file_after_them(garden: Path) -> None:
    for canary in CANARIES.values():
        with opened(garden).session(OWNER) as session:
            session.message("user", canary)
    settled(garden)
    assert leaks(garden) == []


def test_no_tool_call_keeps_them(garden: Path) -> None:
    for text in TEXTS:
        with opened(garden).session(OWNER) as session:
            session.tool(text, "x", "y")
            session.tool("shell", text, "y")
            session.tool("shell", "x", text)
            session.tool("shell", "x", json.dumps({"output": text}))
    settled(garden)
    assert leaks(garden) == []


def test_no_name_of_a_speaker_and_no_tag_keeps_them(garden: Path) -> None:
    for text in TEXTS:
        session = opened(garden).session(OWNER)
        session.message("user", "Hello", speaker=text)
        session.message("user", "Hello again", speaker=text)
        session.end(tags=["garden", text])
    settled(garden)
    assert leaks(garden) == []


def test_no_change_no_attachment_and_nothing_about_the_session_keeps_them(garden: Path) -> None:
    for text in TEXTS:
        with opened(garden).session(OWNER, channel=text, model=text) as session:
            session.knowledge(text, "knowledge/a.md", "x")
            session.knowledge("updated", text, "x")
            session.knowledge("updated", "knowledge/a.md", text)
            session.attachment(text)
    settled(garden)
    assert leaks(garden) == []


PARTS = (
    "The diary <private>amber0HUSHONE begins",
    "basil1HUSHTWO goes on",
    "heath7HUSHEIGHT</private> end.",
)


def test_a_private_part_that_reaches_over_three_messages_is_private_in_all_of_them(garden: Path) -> None:
    with opened(garden).session(OWNER) as session:
        for part in PARTS:
            session.message("user", part, speaker="Ines")
        session.message("user", "Now the tomatoes.", speaker="Ines")
        texts = [getattr(turn, "text", "") for turn in session.turns()]
    settled(garden)
    assert leaks(garden) == []
    assert texts == ["The diary [private …]", "[private …]", "[private] end.", "Now the tomatoes."]


def test_it_is_private_also_where_each_message_is_kept_by_another_process(garden: Path) -> None:
    for number, part in enumerate(PARTS):
        session = opened(garden).session(OWNER, session_id="ses_parts", detached=True)
        session.message("user", part)
        if number < len(PARTS) - 1:
            session.detach()
    session.end()
    settled(garden)
    assert leaks(garden) == []


def test_what_somebody_else_says_after_an_open_tag_is_kept(garden: Path) -> None:
    with opened(garden).session(GROUP) as session:
        session.message("user", PARTS[0], speaker="Ines")
        session.message("user", "I am here too.", speaker="Mira")
        session.message("agent", "Hello Mira.")
        texts = [getattr(turn, "text", "") for turn in session.turns()]
    assert texts[1:] == ["I am here too.", "Hello Mira."]


# ---------------------------------------------------------------- turns


def test_a_message_that_goes_on_with_a_private_one_is_not_searched_for(garden: Path) -> None:
    memory = opened(garden)
    for said_before in ([], [("user", "Hello"), ("agent", "Good morning")]):
        history = [*said_before, ("user", PARTS[0])]
        given = memory.inject(f"tomatoes {PARTS[1]}", history=history)
        assert given.receipt.message == "[private …]"
    assert (
        "tomatoes"
        in memory.inject("tomatoes", history=[("user", PARTS[0]), ("agent", "Yes?")]).receipt.message
    )
    assert leaks(garden) == []


CURIOUS = (  # whatever the agent says and whatever file is touched wakes it, and the log says by what
    "---\ntriggers:\n  - type: pattern\n    match: '\\S{8,}(?:.|\\n)*'\n    scope: output\n"
    "    correction_hint: Say less.\n  - type: glob\n    match: '**'\nactivation: auto\nsteering_pause: 0\n"
    "---\n# Curious\n\nLook at everything.\n"
)


def asked_in_all_ways(memory: Memory, text: str, number: int) -> Iterator[Any]:
    history = [("user", text), ("agent", text), {"role": "tool", "content": f"cat /srv/{text}"}]
    more: dict[str, Any] = {"history": history, "paths": (text,), "wake": (text,)}
    key = f"agent:main:telegram:direct:{number}"
    yield memory.inject(text, session_key=OWNER)
    yield memory.inject(text, session_key=GROUP)
    yield memory.turn(text, session_key=key)
    yield memory.inject(QUESTION, session_key=OWNER, **more)
    yield memory.turn(QUESTION, session_key=key, budget=60, **more)
    yield memory.turn(QUESTION, event=Event("webhook", text, text, text), trigger=text, tool=text)


def test_no_turn_leaves_a_trace_of_them(garden: Path) -> None:
    """Neither in receipts, in the log of what woke, in proposals nor in the copies that lanes write."""
    settle(garden, ALL_LANES)
    write(garden, "topics/curious.md", CURIOUS)
    memory = opened(garden)
    for number, text in enumerate(TEXTS):
        assert all(compiled.receipt.id for compiled in asked_in_all_ways(memory, text, number))
    settled(garden, memory)
    assert (garden / "knowledge/journal/2026-03-10.md").is_file()
    log = (garden / ".tacit/gate/decisions.jsonl").read_text()
    assert "the agent said" in log
    assert "path " in log
    assert leaks(garden) == []


def test_no_receipt_that_a_host_is_sent_has_them(garden: Path) -> None:
    memory = opened(garden)
    receipts = [
        repr(compiled.receipt).lower().encode()
        for number, text in enumerate(TEXTS)
        for compiled in asked_in_all_ways(memory, text, number)
    ]
    whole = b"\0".join(receipts)
    for name, canary in CANARIES.items():
        assert not [one for value in values(canary) for one in pieces_of(value) if one in whole], name


def test_no_search_and_no_look_leaves_a_trace_of_them(garden: Path) -> None:
    served = OperationContext(memory := opened(garden), SessionRegistry(memory.services))
    for text in TEXTS:
        memory.search(text)
        memory.search(text, session_key=GROUP)
        operations.dry_run(served, {"message": text, "full": True})
    settled(garden, memory)
    assert leaks(garden) == []


def test_no_file_that_a_host_loads_leaves_a_trace_of_them(garden: Path) -> None:
    memory = opened(garden)
    for text in TEXTS:
        files = [
            {"name": "USER.md", "path": "/ws/USER.md", "content": text, "missing": False},
            {"name": text, "path": f"/ws/{text}", "content": text, "missing": False},
            {"name": "NOTES.md", "path": text, "content": "x", "missing": False},
            {"name": text},
            text,
        ]
        for key in (OWNER, GROUP, "whatever:this:is"):
            memory.bootstrap(key, files, f"/nowhere/{text}")
            memory.bootstrap(key, text)
    settled(garden, memory)
    assert leaks(garden) == []


# ---------------------------------------------------------------- the daemon and the spool


def bodies(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation, with it in every field that holds text of somebody."""
    yield "message", {"text": text}
    yield "message", {"text": "Hello", "speaker": text, "channel": text, "model": text}
    yield "message", {"text": "Hello", "role": text}
    yield "message", {"text": {"a": text}}
    yield "tool", {"name": text, "summary": text, "result": text}
    yield "turn", {"message": text}
    yield "turn", {"message": text, "lane": "runtime", "history": [{"role": "user", "content": text}]}
    yield "turn", {"message": QUESTION, "wake": [text], "paths": [text], "trigger": text, "tool": text}
    yield "turn", {"message": QUESTION, "lane": text}
    yield "look", {"message": text}
    yield "look", {"message": text, "at": text}
    yield "bootstrap", {"files": [{"name": text, "path": text, "content": text}], "workspace": text}
    yield "search", {"query": text}
    yield "search", {"query": text, "category": text}
    yield "find", {"query": text, "scope": {"under": text, "since": text}}
    yield "ipc", {"action": "search", "payload": {"query": text}}
    yield "ipc", {"action": text}
    told = {"host": "openclaw", "name": "message", "session_key": "agent:main:main", "id": "e1"}
    for role in ("user", "assistant", "toolResult"):
        record = {"role": role, "toolName": text, "content": [{"type": "text", "text": text}], "timestamp": 1}
        person = {"senderId": "7", "senderName": text, "transport": {"channel": "telegram"}}
        yield "event", {**told, "record": {**record, "__openclaw": person}, "arguments": {"path": text}}
    yield "event", {"host": "openclaw", "name": text, "record": {"reason": text}}
    yield "renew", {"session_key": "agent:main:main"}
    yield "read", {"path": text}
    yield "remember", {"text": text}
    yield "remember", {"text": f"The door is blue. {text}", "to": text}
    yield "remember", {"text": f"Moss. {text}", "session_key": "agent:main:telegram:group:-100"}
    yield "why", {"session_key": "agent:main:main", "limit": 1}
    yield "list_receipts", {"limit": text}
    yield "one_receipt", {"id": text}
    yield "due", {"session_key": text}
    yield "done_due", {"topic": text, "at": text}
    yield "end_session", {"tags": [text], "at": text}
    yield "end_session", {"tags": [text]}


def test_every_operation_is_among_them() -> None:
    assert {name for name, _ in bodies("x")} == set(operations.HANDLERS)


def test_no_operation_leaves_a_trace_of_them(garden: Path) -> None:
    settle(garden, ALL_LANES)
    served = OperationContext(memory := opened(garden), SessionRegistry(memory.services))
    run = operations.HANDLERS
    for text in TEXTS:
        for name, body in bodies(text):
            try:
                run[name](served, body)
            except (TacitError, ValueError):
                continue  # refused; what is refused may be logged, which the next test looks at
    served.live.close()
    settled(garden, memory)
    assert leaks(garden) == []


@pytest.fixture
def near(_lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy whose path is short enough for a socket."""
    return _copy(_lived, tmp_path_factory.mktemp("n") / "h")


def test_a_daemon_keeps_and_logs_nothing_of_them(near: Path) -> None:
    settle(near, ALL_LANES)
    with serving(near) as served, connect(near, warn=lambda text: None) as client:
        for text in TEXTS:
            for name, body in bodies(text):
                try:
                    client.daemon(name, body)
                except TacitError:
                    continue
        assert leaks(near) == []  # while it runs: nothing waits to be cleaned later
        served.live.commit_ended_sessions()
    assert (near / ".tacit/daemon.log").read_bytes()
    settled(near)
    assert leaks(near) == []


def test_nothing_of_them_is_in_the_spool_nor_in_what_becomes_of_it(garden: Path) -> None:
    for text in TEXTS:
        spool.add(garden, "message", {"text": text, "speaker": text})
        spool.add(garden, "tool", {"name": "shell", "summary": text, "result": json.dumps({"a": [text]})})
        spool.add(garden, "message", {"text": "x", "more": {text: [text, {"deep": text}]}})
        spool.add(garden, "end_session", {"tags": [text]})
        spool.add(garden, "no such operation", {"text": text})
    assert leaks(garden) == []
    served = OperationContext(memory := opened(garden), SessionRegistry(memory.services))
    run = operations.HANDLERS

    def take(record: spool.SpooledEvent) -> None:
        if record.operation not in run:
            raise TacitError(f"There is no operation {record.operation}.")
        run[record.operation](served, record.body)

    done = spool.drain(garden, take)
    assert (done.taken, len(done.aside)) == (4 * len(TEXTS), len(TEXTS))
    served.live.close()
    settled(garden, memory)
    assert leaks(garden) == []


def test_commands_leave_no_trace_of_them(garden: Path) -> None:
    run = Tacit(garden)
    whole = "\n\n".join(SECRETS.values())
    begun = run("capture", "start", "--channel", "chat")
    name = begun.stdout.strip()
    done = [
        run("capture", "message", name, "user", "-", stdin=whole),
        run("capture", "message", name, "user", *CANARIES["private to the end"].split(), "--speaker", whole),
        run("capture", "tool", name, "shell", "ls", "--result", "-", stdin=whole),
        run("capture", "end", name),
        run("search", whole),
        run("compile", whole),
    ]
    assert [ran.code for ran in done] == [0] * len(done), [ran.stderr for ran in done]
    settled(garden)
    assert leaks(garden) == []
