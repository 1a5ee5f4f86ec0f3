"""The async face: the same answers as the library, an event loop that nothing holds up, and a clean end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

import tacit as product
from tacit import aio
from tacit.context.model import Compiled
from tacit.errors import HomeError, SessionError, UsageError
from tacit.memory import Memory
from tacit.search.model import Scope
from tacit.transcripts.model import KnowledgeChange, Message
from tests.memory.homes import (
    GROUP,
    OWNER,
    OWNER_DM,
    OWNERS,
    QUESTION,
    STRANGER,
    everything,
    settle,
)
from tests.server.served import serving

T = TypeVar("T")
Serving = Callable[[Path], AbstractContextManager[object]]

AT = datetime(2026, 3, 10, 9, 30, tzinfo=UTC)
LONG = 60.0  # seconds: a slow machine must not change what a turn holds


def run(main: Coroutine[Any, Any, T]) -> T:
    """To its end, within a time that only who hangs would need."""

    async def bounded() -> T:
        return await asyncio.wait_for(main, 120)

    return asyncio.run(bounded())


def without(root: Path) -> AbstractContextManager[object]:
    return nullcontext()


either_way = pytest.mark.parametrize("daemon", [without, serving], ids=["alone", "beside a daemon"])


@contextmanager
def no_thread_left() -> Iterator[None]:
    yield
    assert [one.name for one in threading.enumerate() if one.name.startswith("tacit")] == []


def said(root: Path, path: str) -> list[str]:
    return [turn.text for turn in product.open(root).transcript(path).turns if isinstance(turn, Message)]


class Held:
    """A memory whose turns or searches do not end before they are told to."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.begun, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.memory, name)

    def find(self, *_: object) -> None:
        self.begun.set()
        self.go.wait(LONG)
        self.ended.set()

    async def until_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, LONG)


def held_memory(root: Path, threads: int = 4) -> tuple[Held, aio.AsyncMemory]:
    held = Held(product.open(root))
    return held, aio.AsyncMemory(lambda: held, threads)  # type: ignore[arg-type,return-value]


# ---------------------------------------------------------------- the same answers


@either_way
def test_aio_turns_are_those_of_the_library(another: Callable[[], Path], daemon: Serving) -> None:
    here, there = another(), another()

    async def ask() -> list[Compiled]:
        async with aio.open(there) as memory:
            return [
                await memory.turn(QUESTION, seconds=LONG),
                await memory.turn(QUESTION, session_key=GROUP, seconds=LONG),
                await memory.inject(QUESTION, session_key=OWNER_DM, seconds=LONG),
            ]

    library = product.open(here)
    mine = [
        library.turn(QUESTION, seconds=LONG),
        library.turn(QUESTION, session_key=GROUP, seconds=LONG),
        library.inject(QUESTION, session_key=OWNER_DM, seconds=LONG),
    ]
    with daemon(there), no_thread_left():
        its = run(ask())
    for one, other in zip(mine, its, strict=True):
        assert everything(other).replace(str(there), "") == everything(one).replace(str(here), "")
    assert "PROCEDUREWORD" in its[2].text


@either_way
def test_aio_searches_and_bootstraps_as_the_library_does(garden: Path, daemon: Serving) -> None:
    files = [{"name": "SOUL.md", "path": "/w/SOUL.md", "content": "I am.", "missing": False}]
    scope = Scope(categories=("procedure",))

    async def ask() -> None:
        async with aio.open(garden) as memory:
            assert await memory.search(QUESTION, limit=3) == library.search(QUESTION, limit=3)
            of_group = await memory.search(QUESTION, session_key=STRANGER, category="reference")
            assert of_group == library.search(QUESTION, session_key=STRANGER, category="reference")
            assert (await memory.find(QUESTION, scope, 2)).hits == library.find(QUESTION, scope, 2).hits
            for given in (files, None):
                assert await memory.bootstrap(OWNER, given) == library.bootstrap(OWNER, given)

    with daemon(garden):
        library = product.open(garden)
        run(ask())


@either_way
def test_aio_a_session_is_kept_in_order_sealed_and_committed(garden: Path, daemon: Serving) -> None:
    async def talk() -> tuple[str, list[int]]:
        async with aio.open(garden) as memory:
            async with memory.session(channel="chat", session_id="ses_a") as session:
                assert (session.session_id, session.path) == ("ses_a", None)
                numbers = await asyncio.gather(
                    *(session.message("user", f"Said {number}", AT) for number in range(8))
                )
                await session.tool("valve", "open", "ok", AT)
                await session.knowledge("updated", "knowledge/procedures/watering.md", "slower", AT)
                await session.attachment("attachments/bed.png", at=AT)
                path = session.path
            assert path is not None
            return path, list(numbers)

    with daemon(garden), no_thread_left():
        path, numbers = run(talk())
    assert numbers == list(range(1, 9))
    transcript = product.open(garden).transcript(path)
    assert transcript.sealed
    assert said(garden, path) == [f"Said {number}" for number in range(8)]
    assert any(isinstance(turn, KnowledgeChange) for turn in transcript.turns)


def test_aio_a_block_that_raises_seals_what_was_said(garden: Path) -> None:
    paths: list[str | None] = []

    async def talk() -> None:
        async with aio.open(garden) as memory, memory.session() as session:
            await session.message("user", "Before it broke")
            paths.append(session.path)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(talk())
    assert paths[0] is not None
    assert product.open(garden).transcript(paths[0]).sealed


def test_aio_a_session_that_is_let_go_is_gone_on_with_elsewhere(garden: Path) -> None:
    async def begin() -> None:
        async with aio.open(garden) as memory:
            session = memory.session(session_id="ses_a")
            assert await session.message("user", "First") == 1
            await session.detach()
            with pytest.raises(SessionError):
                await session.message("user", "Too late")

    run(begin())
    session = product.open(garden).session(session_id="ses_a")
    assert session.message("user", "Second") == 2
    sealed = session.end()
    assert sealed is not None
    assert said(garden, sealed.path) == ["First", "Second"]


def test_aio_does_the_work_that_is_due(garden: Path) -> None:
    async def work() -> bool:
        async with aio.open(garden) as memory:
            (garden / "knowledge/reference/new.md").write_text("# New\n\nA note.\n")
            return (await memory.commit()).changed

    assert run(work())


# ---------------------------------------------------------------- many at once


@either_way
def test_aio_many_tasks_at_once_get_what_is_theirs(garden: Path, daemon: Serving) -> None:
    async def one(memory: aio.AsyncMemory, number: int) -> tuple[str, str]:
        key = f"agent:main:telegram:group:-{number}"
        async with memory.session(key, session_id=f"ses_{number}x") as session:
            for part in range(3):
                await session.message("user", f"{number} says {part}")
            compiled = await memory.turn(QUESTION, session_key=key, seconds=LONG)
            assert compiled.receipt.session_key == key
            path = session.path
        assert path is not None
        return str(number), path

    async def all_of_them() -> list[tuple[str, str]]:
        async with aio.open(garden) as memory:
            return await asyncio.gather(*(one(memory, number) for number in range(12)))

    with daemon(garden), no_thread_left():
        found = run(all_of_them())
    for number, path in found:
        assert said(garden, path) == [f"{number} says {part}" for part in range(3)]


def test_aio_the_home_is_opened_once_and_by_the_first_call(garden: Path) -> None:
    opened: list[int] = []

    def slowly() -> Memory:
        opened.append(1)
        time.sleep(0.05)
        return product.open(garden)

    async def ask() -> None:
        memory = aio.AsyncMemory(slowly)
        assert opened == []
        await asyncio.gather(*(memory.turn("ok") for _ in range(4)), memory.search("water"))
        await memory.close()

    run(ask())
    assert opened == [1]


def test_aio_the_event_loop_goes_on_while_a_call_takes_its_time(garden: Path) -> None:
    async def ask() -> None:
        held, memory = held_memory(garden)
        asking = asyncio.create_task(memory.find("water"))
        await held.until_begun()
        for _ in range(100):
            await asyncio.sleep(0)  # the loop turns, and the call is not done
        assert not asking.done()
        held.go.set()
        await asking
        await memory.close()

    run(ask())


def test_aio_a_turn_does_not_wait_for_what_is_no_turn(garden: Path) -> None:
    async def ask() -> None:
        held, memory = held_memory(garden, threads=1)
        asking = asyncio.create_task(memory.find("water"))
        await held.until_begun()
        assert (await memory.turn(QUESTION, seconds=LONG)).text
        assert not asking.done()
        held.go.set()
        await asking
        await memory.close()

    run(ask())


def test_aio_the_time_that_a_turn_waited_is_taken_off(garden: Path) -> None:
    given: list[float] = []

    class Slow(Held):
        def turn(self, message: str, *, seconds: float) -> float:
            given.append(seconds)
            if message == "first":
                self.begun.set()
                self.go.wait(LONG)
            return seconds

    async def ask() -> None:
        held = Slow(product.open(garden))
        memory = aio.AsyncMemory(lambda: held, 1)  # type: ignore[arg-type,return-value]
        first = asyncio.create_task(memory.turn("first", seconds=30))
        await held.until_begun()
        second = asyncio.create_task(memory.turn("second", seconds=0.05))
        await asyncio.sleep(0.1)
        held.go.set()
        await asyncio.gather(first, second)
        await memory.close()

    run(ask())
    assert 0 < given[0] <= 30
    assert given[1] == 0


def test_aio_a_turn_that_names_no_time_has_that_of_the_config(garden: Path) -> None:
    """Less what it waited for other turns; opening the home is not taken off."""
    settle(garden, f"{OWNERS}inject: {{deadline_ms: 150}}\n")
    given: list[float] = []

    class Slow(Held):
        def inject(self, message: str, *, seconds: float) -> float:
            given.append(seconds)
            if message == "first":
                self.begun.set()
                self.go.wait(LONG)
            return seconds

    async def ask() -> None:
        held = Slow(product.open(garden))

        def slowly() -> Slow:
            time.sleep(0.3)
            return held

        memory = aio.AsyncMemory(slowly, 1)  # type: ignore[arg-type]
        first = asyncio.create_task(memory.inject("first"))
        await held.until_begun()
        second = asyncio.create_task(memory.inject("second"))
        await asyncio.sleep(0.2)
        held.go.set()
        await asyncio.gather(first, second)
        await memory.close()

    run(ask())
    assert 0 < given[0] <= 0.15
    assert given[1] == 0


def test_aio_what_a_caller_keeps_in_its_context_goes_with_the_call(garden: Path) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    def opened() -> Memory:
        seen.append(who.get())
        return product.open(garden)

    async def ask() -> None:
        who.set("the caller")
        async with aio.AsyncMemory(opened):
            pass

    run(ask())
    assert seen == ["the caller"]


# ---------------------------------------------------------------- being cancelled


def test_aio_who_is_cancelled_gets_away_at_once_and_the_next_call_is_like_any_other(garden: Path) -> None:
    async def ask() -> None:
        held, memory = held_memory(garden)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.find("water"), 0.05)
        assert not held.ended.is_set()  # nobody waited for it
        assert (await memory.turn(QUESTION, seconds=LONG)).text
        held.go.set()
        await memory.close()
        assert held.ended.is_set()  # and it was finished

    run(ask())


def test_aio_a_message_that_was_begun_is_kept_though_nobody_waits_for_it(garden: Path) -> None:
    """Cancelled in the middle of the disk's work: kept whole, and what is said next comes after it."""
    begun, go = threading.Event(), threading.Event()

    async def talk() -> str:
        async with aio.open(garden) as memory, memory.session(session_id="ses_a") as session:
            await session.message("user", "First")
            assert session._session is not None
            keep = session._session.message

            def slowly(*arguments: Any) -> int:
                begun.set()
                go.wait(LONG)
                return keep(*arguments)

            session._session.message = slowly  # type: ignore[assignment,method-assign]
            saying = asyncio.create_task(session.message("user", "Second"))
            assert await asyncio.to_thread(begun.wait, LONG)
            saying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saying
            go.set()
            assert await session.message("user", "Third") == 3
            assert session.path is not None
            return session.path

    path = run(talk())
    assert said(garden, path) == ["First", "Second", "Third"]


def test_aio_a_task_that_is_cancelled_in_a_session_leaves_it_sealed(garden: Path) -> None:
    paths: list[str] = []

    async def talk(memory: aio.AsyncMemory) -> None:
        async with memory.session() as session:
            await session.message("user", "Said before")
            assert session.path is not None
            paths.append(session.path)
            await asyncio.sleep(LONG)

    async def cancel() -> None:
        async with aio.open(garden) as memory:
            talking = asyncio.create_task(talk(memory))
            while not paths:
                await asyncio.sleep(0.01)
            talking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await talking

    run(cancel())
    assert product.open(garden).transcript(paths[0]).sealed


@either_way
def test_aio_a_turn_keeps_its_deadline(garden: Path, daemon: Serving) -> None:
    async def ask() -> Compiled:
        async with aio.open(garden) as memory:
            return await memory.turn(QUESTION, seconds=0)

    with daemon(garden):
        compiled = run(ask())
    assert "deadline" in [notice.code for notice in compiled.receipt.notices]


# ---------------------------------------------------------------- the end


def test_aio_a_closed_memory_says_so(garden: Path) -> None:
    async def ask() -> None:
        memory = await aio.open(garden)
        session = memory.session(session_id="ses_a")
        await session.message("user", "First")
        await memory.close()
        await memory.close()  # twice is no harm
        for call in (memory.turn("x"), memory.search("x"), memory.bootstrap(OWNER, [])):
            with pytest.raises(UsageError, match="closed"):
                await call
        with pytest.raises(UsageError, match="closed"):
            memory.session()
        with pytest.raises(SessionError, match="closed"):
            await session.message("user", "Second")

    with no_thread_left():
        run(ask())
    # Nobody sealed it, and nobody holds it.
    session = product.open(garden).session(session_id="ses_a")
    assert session.message("user", "Second") == 2
    session.end()


def test_aio_a_memory_that_is_closed_in_the_block_of_a_session_leaves_it_open(garden: Path) -> None:
    async def talk() -> None:
        memory = aio.open(garden)
        async with memory.session(session_id="ses_a") as session:
            await session.message("user", "First")
            await memory.close()

    run(talk())
    session = product.open(garden).session(session_id="ses_a")
    assert session.message("user", "Second") == 2
    session.end()


def test_aio_where_there_is_no_home_the_first_call_says_what_to_do(tmp_path: Path) -> None:
    async def ask() -> None:
        async with aio.open(tmp_path / "nothing"):
            raise AssertionError("there is nothing to open")

    with pytest.raises(HomeError, match="tacit init"):
        run(ask())


def test_aio_an_error_is_that_of_the_library(garden: Path) -> None:
    async def ask() -> None:
        async with aio.open(garden) as memory, memory.session() as session:
            with pytest.raises(UsageError, match="robot"):
                await session.message("robot", "x")
            assert await session.message("user", "It goes on") == 1

    run(ask())


def test_aio_nothing_heavy_is_held_after_the_end(garden: Path) -> None:
    async def ask() -> Memory:
        async with aio.open(garden) as memory:
            assert await memory.search("water")
            assert memory._memory is not None
            return memory._memory

    assert run(ask()).services.searcher._index._open is None
