"""A turn that nobody waits for any more was given to nobody: it counts as nothing and leaves no copy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.client import connect
from tacit.context import receipts
from tacit.context.delivery.files import context_file_path
from tacit.deadline import IS_ANSWERED
from tacit.memory import Memory
from tacit.operations.handlers import OperationContext
from tacit.sessions.registry import SessionRegistry
from tests.memory.homes import OWNER, OWNERS, QUESTION, opened, settle
from tests.server.conftest import Running, real_operations, until

SETTINGS = "inject: {deadline_ms: 60000, debounce_ms: 0, lanes: [runtime, file, daily]}\n" + OWNERS
PAGE = "knowledge/journal/2026-03-10.md"


class Search:
    """The search of a home, which can be held up."""

    def __init__(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        memory.services.turns.warm()
        self.go, self.begun = threading.Event(), threading.Event()
        find = memory.services.searcher.find

        def held(*args: Any, **more: Any) -> Any:
            found = find(*args, **more)
            self.begun.set()
            assert self.go.wait(30)
            return found

        monkeypatch.setattr(memory.services.searcher, "find", held)


@pytest.fixture
def memory(garden: Path) -> Memory:
    settle(garden, SETTINGS)
    return opened(garden)


def copy_of(memory: Memory) -> Path:
    return context_file_path(memory.home, None, OWNER)


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(memory: Memory, tmp_path: Path) -> Iterator[Ask]:
    served = OperationContext(memory, SessionRegistry(memory.services))
    running = Running(tmp_path, real_operations(served), skipped=memory.services.turns.note_skip)

    def asked(message: object, **more: Any) -> dict[str, Any]:
        body = {"message": message, "lane": "runtime", "session_key": OWNER, **more}
        return dict(running.ask("POST", "/v1/turn", body).json)

    yield asked
    running.stop(0.5)


def kept(memory: Memory) -> list[tuple[str, int]]:
    return [(one.skipped, len(one.sections)) for one in receipts.recent(memory.home, 10)]


def test_a_turn_that_was_answered_as_late_counts_as_nothing(
    memory: Memory, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(memory, monkeypatch)
    late = ask(QUESTION, deadline_ms=300)
    assert (late["skipped"], late["text"]) == ("deadline", "")
    search.go.set()
    until(lambda: kept(memory) == [("deadline", 0)])
    assert not (memory.home.root / PAGE).exists()
    assert not copy_of(memory).exists() or copy_of(memory).read_bytes() == b""
    again = ask(QUESTION)
    assert "CONTEXTWORD" in again["text"]
    assert "repeated" not in {one["code"] for one in again["dropped"]}
    assert (memory.home.root / PAGE).exists()


def test_a_late_turn_does_not_bring_its_copy_back_over_later_ones(
    memory: Memory, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(memory, monkeypatch)
    assert ask(QUESTION, deadline_ms=300)["skipped"] == "deadline"
    assert ask("ok thanks")["skipped"] == "acknowledgement"
    search.go.set()
    until(lambda: ("deadline", 0) in kept(memory))
    assert copy_of(memory).read_bytes() == b""


def test_a_late_turn_does_not_use_up_the_first_search(garden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(garden, "inject: {deadline_ms: 60000, mode: first, debounce_ms: 60000}\n" + OWNERS)
    memory = opened(garden)
    answered = IS_ANSWERED.set(lambda: True)
    late = memory.inject(QUESTION)
    IS_ANSWERED.reset(answered)
    assert (late.text, late.given, late.receipt.skipped) == ("", (), "deadline")
    assert "CONTEXTWORD" in memory.inject(QUESTION).text


@pytest.mark.parametrize("wrong", [{"message": 5}, {"history": "x"}, {"deadline_ms": -1}, {"lane": "x"}])
def test_what_is_no_turn_empties_the_file_too(memory: Memory, ask: Ask, wrong: dict[str, Any]) -> None:
    assert ask(QUESTION)["text"]
    assert copy_of(memory).stat().st_size
    assert "error" in ask(**{"message": "Hello there", **wrong})
    until(lambda: copy_of(memory).stat().st_size == 0)


def test_a_turn_that_no_worker_could_take_leaves_a_receipt(memory: Memory) -> None:
    memory.services.turns.note_skip(
        {"message": "Hello <private>HIDDENWORD</private>"}, 0, "busy", "Too much."
    )
    [one] = receipts.recent(memory.home, 1)
    assert (one.skipped, one.session_key, one.notices[0].text) == ("busy", OWNER, "Too much.")
    assert "HIDDENWORD" not in one.message
    first = memory.inject(QUESTION)
    assert first.receipt.session_id, "a receipt without a session begins none"


def test_a_turn_that_the_client_gave_up_counts_as_nothing(
    garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(garden, SETTINGS)
    with connect(garden) as client:
        client.inject("ok", seconds=60)  # the home is open now
        assert client._local_home is not None
        memory = client._local_home._context.memory
        search = Search(memory, monkeypatch)
        assert client.inject(QUESTION, seconds=0.2).receipt.skipped == "deadline"
        search.go.set()
        until(lambda: kept(memory)[0] == ("deadline", 0))
        assert copy_of(memory).read_bytes() == b""
        assert "CONTEXTWORD" in client.inject(QUESTION, seconds=60).text
