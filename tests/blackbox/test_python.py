"""The public Python contract: names, signatures, and what the calls do.

Signatures hold names, kinds and defaults of parameters. Annotations are left out, since they may name inner
types. Of Memory and Session only what users call is listed; how they are made is not public.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import tacit
import tacit.aio
import tacit.client
from tests.blackbox.outside import Commands, copy_home, messages_of
from tests.blackbox.small_home import QUESTION, STRANGER
from tests.blackbox.snapshots import Snapshots

METHODS = {
    "Memory": [
        "bootstrap",
        "commit",
        "find",
        "inject",
        "links",
        "read",
        "remember",
        "search",
        "session",
        "transcript",
        "turn",
        "verify",
        "why_known",
        "work",
        "write",
    ],
    "Session": ["attachment", "detach", "end", "knowledge", "message", "path", "session_id", "tool", "turns"],
    "Client": [
        "bootstrap",
        "close",
        "end_session",
        "find",
        "health",
        "inject",
        "look",
        "message",
        "receipt",
        "receipts",
        "remember",
        "search",
        "tool",
        "turn",
    ],
    "AsyncMemory": [
        "bootstrap",
        "close",
        "commit",
        "find",
        "inject",
        "remember",
        "search",
        "session",
        "turn",
        "work",
    ],
    "AsyncSession": ["attachment", "detach", "end", "knowledge", "message", "path", "session_id", "tool"],
}


def signature(call: Any) -> str:
    parameters = inspect.signature(call).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    text = str(inspect.Signature(plain))
    return re.sub(r"<function .*? at 0x[0-9a-f]+>", "<function>", text)


def members(owner: type) -> dict[str, str]:
    found = {}
    for name in METHODS[owner.__name__]:
        value = inspect.getattr_static(owner, name)
        found[name] = signature(value) if inspect.isfunction(value) else "attribute"
    return found


def fields(owner: Any) -> list[str]:
    """Names and defaults of a value's fields, in order."""
    return [
        entry.name
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        else f"{entry.name} = {'<new>' if entry.default is dataclasses.MISSING else repr(entry.default)}"
        for entry in dataclasses.fields(owner)
    ]


def describe(value: Any) -> Any:
    if inspect.isclass(value) and issubclass(value, Exception):
        return [base.__name__ for base in value.__mro__ if base not in (object, BaseException)]
    if inspect.isclass(value) and value.__name__ in METHODS:
        return members(value)
    if value is tacit.Config:  # its defaults are in the snapshot of settings
        return [entry.name for entry in dataclasses.fields(value)]
    if dataclasses.is_dataclass(value):
        return fields(value)
    return signature(value) if inspect.isfunction(value) else type(value).__name__


def test_public_names_and_signatures_stay(snapshots: Snapshots) -> None:
    found = {f"tacit.{name}": describe(getattr(tacit, name)) for name in tacit.__all__}
    found["tacit.client.connect"] = signature(tacit.client.connect)
    found["tacit.client.Client"] = members(tacit.client.Client)
    found["tacit.client.Kept"] = list(tacit.client.Kept._fields)
    found["tacit.aio.open"] = signature(tacit.aio.open)
    found["tacit.aio.AsyncMemory"] = members(tacit.aio.AsyncMemory)
    found["tacit.aio.AsyncSession"] = members(tacit.aio.AsyncSession)
    snapshots.check_json("python", found)


@pytest.fixture
def home(prepared: Commands, tmp_path: Path) -> Path:
    return copy_home(prepared.home, tmp_path / "copy").home


@pytest.fixture
def memory(home: Path) -> tacit.Memory:
    return tacit.open(home)


def at(minute: int) -> datetime:
    return datetime.fromisoformat(f"2026-03-09T12:{minute:02}:00+01:00")


def test_init_makes_a_home_that_open_opens(tmp_path: Path) -> None:
    assert isinstance(tacit.init(tmp_path / "new"), tacit.Memory)
    assert isinstance(tacit.open(tmp_path / "new"), tacit.Memory)
    with pytest.raises(tacit.HomeError):
        tacit.open(tmp_path / "nowhere")


def test_a_turn_has_text_tokens_sections_dropped_and_a_receipt(memory: tacit.Memory) -> None:
    compiled = memory.turn(QUESTION)
    assert isinstance(compiled, tacit.Compiled)
    assert compiled.tokens <= compiled.receipt.budget
    assert "I am Moss" in compiled.text
    assert "slowly, at the root" in compiled.text
    assert {section.slot for section in compiled.sections} >= {"identity", "projects", "knowledge"}
    assert "topic:watering" in {section.label for section in compiled.sections}
    assert compiled.receipt.session_type == "main_session"
    assert compiled.receipt.tokens == compiled.tokens
    assert all(entry.label and entry.code for entry in compiled.dropped)
    assert memory.turn(QUESTION, budget=300).tokens <= 300


def test_a_turn_of_a_stranger_holds_nothing_of_the_owner(memory: tacit.Memory) -> None:
    compiled = memory.turn(QUESTION, session_key=STRANGER)
    assert compiled.receipt.session_type == "external_dm"
    assert "tomatoes at dawn" not in compiled.text
    assert "Gardena" not in compiled.text


def test_inject_gives_only_what_the_host_lacks(memory: tacit.Memory) -> None:
    compiled = memory.inject(QUESTION, session_key="agent:main:main")
    assert "I am Moss" not in compiled.text
    assert compiled.receipt.lane == "runtime"
    assert memory.inject("ok thanks", session_key="agent:main:main").text == ""


def test_search_ranks_and_filters(memory: tacit.Memory) -> None:
    hits = memory.search("water tomatoes slowly at the root", limit=3)
    assert hits[0].path == "knowledge/procedures/watering.md"
    assert len(hits) == 3
    assert hits == sorted(hits, key=lambda hit: -hit.why.standing)
    people = memory.search("tomatoes", category="person")
    assert {hit.category for hit in people} == {"person"}
    seen = memory.search("tomatoes", session_key=STRANGER)
    assert "knowledge/people/mira-olsen.md" not in {hit.path for hit in seen}


def test_a_session_is_sealed_and_committed_when_it_ends(home: Path, memory: tacit.Memory) -> None:
    with memory.session(session_id="ses_0000eeee", channel="chat", started=at(0)) as session:
        assert session.message("user", "The kettle is broken.", at=at(0), speaker="Ines") == 1
        assert session.tool("read", "manual.md", "3 lines", at=at(1)) == 2
        assert session.message("agent", "I wrote it down.", at=at(2)) == 3
        sealed = session.end(at=at(3), tags=["kitchen"])
    assert sealed is not None
    assert sealed.path.startswith("raw/conversations/2026/03/09/1200-ses_0000eeee-")
    transcript = memory.transcript(sealed.path)
    assert [type(turn).__name__ for turn in transcript.turns] == ["Message", "ToolCall", "Message"]
    assert messages_of(home)[0].startswith("conversation: the-kettle-is-broken")
    assert memory.search("kettle broken")[0].path == sealed.path


def test_a_session_that_ended_takes_no_more(memory: tacit.Memory) -> None:
    session = memory.session(started=at(0))
    session.message("user", "One.", at=at(0))
    session.end(at=at(1))
    with pytest.raises(tacit.SessionError):
        session.message("user", "Two.", at=at(2))


def test_remember_keeps_a_line_once_and_is_found(home: Path, memory: tacit.Memory) -> None:
    line = "The ladder stands behind the barn."
    memory.remember(line, to="memory")
    memory.remember(line, to="memory")
    assert (home / "knowledge/memory/MEMORY.md").read_text().count(line) == 1
    assert line in memory.search("where is the ladder")[0].text


def test_bootstrap_chooses_the_files_of_a_session(memory: tacit.Memory) -> None:
    files = [
        {"name": name, "path": f"/workspace/{name}", "content": f"# {name}\n"}
        for name in ("SOUL.md", "USER.md", "MEMORY.md", "AGENTS.md")
    ]
    chosen = memory.bootstrap("agent:main:main", files, "/workspace")
    assert chosen is not None
    assert {"SOUL.md", "USER.md"} <= {entry["name"] for entry in chosen}
    assert "MEMORY.md" not in {entry["name"] for entry in chosen}
    for_others = memory.bootstrap(STRANGER, files, "/workspace")
    assert for_others is not None
    assert [entry["name"] for entry in for_others] == ["SOUL.md"]


def test_work_learns_once(home: Path, memory: tacit.Memory) -> None:
    with memory.session(started=at(10)) as session:
        session.message("user", "Lesson learned: mulch keeps the soil wet.", at=at(10))
        session.end(at=at(11))
    memory.work()
    learned = messages_of(home)
    assert any(message.startswith("memory: learned from") for message in learned)
    assert "mulch keeps the soil wet" in (home / "knowledge/memory/MEMORY.md").read_text()
    memory.work()
    assert messages_of(home) == learned


def test_errors_are_of_the_products_own_kind(memory: tacit.Memory) -> None:
    with pytest.raises(tacit.TacitError):
        memory.read("../outside.md")
    with pytest.raises(tacit.UsageError):
        memory.remember("")
    with pytest.raises(tacit.TacitError):
        memory.session().message("king", "x")


def test_the_client_answers_as_the_library_does(home: Path, memory: tacit.Memory) -> None:
    with tacit.client.connect(home) as client:
        assert client.look(QUESTION).text == memory.turn(QUESTION, keeps_text=False).text
        assert [hit.path for hit in client.search("tomatoes")] == [
            hit.path for hit in memory.search("tomatoes")
        ]
        kept = client.message("user", "Hello.", at=at(20))
        assert kept.number == 1
        assert client.message("agent", "Hi.", at=at(21)).session_id == kept.session_id
        assert client.tool("read", "a.md", "1 line", at=at(22)).number == 3
        sealed = client.end_session(at=at(23))
        assert sealed is not None
        assert sealed.session_id == kept.session_id
        receipts = client.receipts(limit=5)
        assert client.receipt(receipts[0].id).id == receipts[0].id
        client.remember("The gate squeaks.")
        assert client.inject("ok thanks").text == ""


def test_the_async_twin_answers_as_the_library_does(home: Path, memory: tacit.Memory) -> None:
    async def use() -> tuple[str, list[str], str]:
        async with tacit.aio.open(home) as twin:
            turn = await twin.turn(QUESTION, keeps_text=False)
            hits = await twin.search("tomatoes")
            async with twin.session(started=at(30)) as session:
                await session.message("user", "Good evening.", at=at(30))
                sealed = await session.end(at=at(31))
            assert sealed is not None
            return turn.text, [hit.path for hit in hits], sealed.path

    expected = memory.turn(QUESTION, keeps_text=False).text
    paths = [hit.path for hit in memory.search("tomatoes")]
    text, found, sealed = asyncio.run(use())
    assert (text, found) == (expected, paths)
    assert (home / sealed).exists()
