"""When something is looked for: at each turn or at the first one, and never for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.context.model import Compiled
from tacit.context.state import ExpiringCache, TurnCache
from tacit.memory import Memory
from tests.memory.homes import GROUP, NOW, OWNER, OWNERS, PATIENT, QUESTION, opened, settle, write
from tests.search.fakes import Meaning

OTHER = "What did we say about drip hoses and litres?"


class Clock:
    """Of the cache, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


Once = Callable[..., tuple[Memory, Clock]]


@pytest.fixture
def once(garden: Path) -> Once:
    def made(debounce_ms: int = 500) -> tuple[Memory, Clock]:
        changed = PATIENT.replace("inject: {", f"inject: {{mode: first, debounce_ms: {debounce_ms}, ")
        settle(garden, changed + OWNERS)
        memory, clock = opened(garden), Clock()
        memory.services.turns._state.recent = TurnCache(clock)
        return memory, clock

    return made


def why(given: Compiled) -> str:
    return given.receipt.skipped


def test_in_the_first_mode_a_session_is_searched_for_once_also_after_a_restart(
    garden: Path, once: Once
) -> None:
    memory, clock = once()
    assert "CONTEXTWORD" in memory.inject(QUESTION).text
    clock.now += 60
    assert why(memory.inject(OTHER)) == "not-first"
    assert why(opened(garden).inject(OTHER)) == "not-first"
    assert not why(memory.inject(OTHER, session_key=GROUP))


def test_in_the_first_mode_the_next_session_is_searched_for_again(once: Once) -> None:
    memory, _ = once()
    memory.inject(QUESTION)
    memory.session_ended(OWNER)
    again = memory.inject(QUESTION)
    assert not why(again)
    assert "CONTEXTWORD" in again.text


def test_what_asks_for_nothing_does_not_use_up_the_first_search(once: Once) -> None:
    memory, _ = once(debounce_ms=60_000)
    for message in ("ok", "", "/status", "ok"):
        assert why(memory.inject(message)) not in ("", "debounced")
    assert "CONTEXTWORD" in memory.inject(QUESTION).text


@pytest.mark.parametrize(("fails", "code"), [(True, "search"), (False, "deadline")])
def test_a_search_that_failed_or_had_no_time_does_not_use_up_the_first(
    once: Once, monkeypatch: pytest.MonkeyPatch, fails: bool, code: str
) -> None:
    memory, _ = once(debounce_ms=60_000)
    memory.services.turns.warm()

    def down(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(memory.services.searcher, "find", down)
        assert why(memory.inject(QUESTION, seconds=60.0 if fails else 0.0)) == code
    assert "CONTEXTWORD" in memory.inject(QUESTION).text


def test_messages_that_come_while_the_first_is_searched_for_are_debounced(
    once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = once()
    memory.services.turns.warm()
    begun, go = threading.Event(), threading.Event()
    find = memory.services.searcher.find

    def slow(*args: Any, **more: Any) -> Any:
        begun.set()
        assert go.wait(30)
        return find(*args, **more)

    monkeypatch.setattr(memory.services.searcher, "find", slow)
    made: list[Compiled] = []
    first = threading.Thread(target=lambda: made.append(memory.inject(QUESTION)))
    first.start()
    assert begun.wait(30)
    try:
        assert [why(memory.inject(f"{OTHER} {number}")) for number in range(3)] == ["debounced"] * 3
    finally:
        go.set()
        first.join()
    assert "CONTEXTWORD" in made[0].text


@pytest.mark.parametrize(
    "asked",
    [
        {"trigger": "heartbeat"},
        {"session_key": "agent:main:heartbeat"},
        {"session_key": "agent:main:main:heartbeat"},
    ],
)
def test_what_the_host_calls_a_heartbeat_is_one_whatever_it_says(garden: Path, asked: dict[str, str]) -> None:
    assert why(opened(garden).inject(QUESTION, **asked)) == "heartbeat"


def test_messages_that_were_debounced_do_not_put_off_the_next(once: Once) -> None:
    memory, clock = once()
    memory.inject(QUESTION)
    seen = []
    for _ in range(3):
        clock.now += 0.3
        seen.append(why(memory.inject(OTHER + str(clock.now))))
    assert seen == ["debounced", "not-first", "not-first"]


def test_the_same_message_at_once_is_the_same_turn_and_later_it_is_another(garden: Path) -> None:
    memory, clock = opened(garden), Clock()
    memory.services.turns._state.recent = TurnCache(clock)
    first = memory.inject(QUESTION)
    clock.now += 0.4
    assert memory.inject(QUESTION) == first
    clock.now += 0.4
    assert memory.inject(QUESTION).receipt.id != first.receipt.id


@pytest.mark.parametrize("message", ["", "  ", "HEARTBEAT_OK", "ok", "/new", "👍"])
def test_what_is_skipped_costs_no_vector(garden: Path, message: str) -> None:
    embedder = Meaning(senses=["water tomatoes"])
    memory = opened(garden, parts=lambda parts: replace(parts, embedder=lambda: embedder))
    memory.services.turns.warm()
    embedder.asked.clear()
    assert memory.inject(message).receipt.skipped
    assert embedder.asked == []
    memory.inject(QUESTION)
    assert len(embedder.asked) == 1


def test_a_search_is_remembered_for_its_time_and_no_longer(garden: Path) -> None:
    memory, clock = opened(garden), Clock()
    memory.services.turns._state.recent = TurnCache(clock)

    def noticed(history: str) -> list[str]:
        given = memory.inject(QUESTION, history=[("user", history)])
        return [notice.code for notice in given.receipt.notices]

    assert "cache" not in noticed("one")
    clock.now += 59
    assert "cache" in noticed("two")
    clock.now += 2
    assert "cache" not in noticed("three")


def test_the_cache_is_bounded_and_the_oldest_goes_first() -> None:
    clock = Clock()
    kept: ExpiringCache[int] = ExpiringCache(256, clock)
    for number in range(1000):
        kept.put(number, number + 1)
    assert len(kept) == 256
    assert kept.get(743, 60) is None
    assert kept.get(744, 60) == 745


def test_files_that_no_session_loads_are_found_by_a_question(garden: Path) -> None:
    write(garden, "knowledge/identity/IDENTITY.md", "# Name\n\nAfter the zebra grass. IDENTITYWORD\n")
    write(garden, "knowledge/identity/TOOLS.md", "# Tools\n\nThe quagga camera listens on 8123. PORTWORD\n")
    memory = opened(garden, NOW + timedelta(days=1))
    assert "IDENTITYWORD" in memory.inject("What is the zebra grass?").text
    assert "PORTWORD" in memory.inject("Where does the quagga camera listen?").text
    assert "PORTWORD" not in repr(memory.inject("Where does the quagga camera listen?", session_key=GROUP))
