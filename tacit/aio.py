"""The same memory for agents that are async: a thin layer that hands each call to a thread.

    async with tacit.aio.open("~/agent") as memory:
        print((await memory.turn("How hot do we fire?")).text)
        async with memory.session(channel="chat") as session:
            await session.message("user", "What did we decide?")

What must stay true:
- the event loop is never held up: whatever touches the disk, the index or a model happens in a thread;
- a turn waits for other turns and for nothing else, and the time that it waited is taken off;
- who is cancelled gets away at once. What was begun is finished in its thread, so that nothing is left half
  done, and the next call is a call like any other;
- the messages of one session are kept in the order in which they were awaited.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

from tacit.app import open_home
from tacit.capture import Session
from tacit.errors import SessionError, UsageError
from tacit.memory import Memory
from tacit.memory.memory import Worked
from tacit.model.context import Compiled
from tacit.model.notes import Remembered
from tacit.model.search import EVERYTHING, Category, Found, Hit, Scope
from tacit.model.turns import Sealed

T = TypeVar("T")

_THREADS = 4


def open(home: str | os.PathLike[str] | None = None, *, threads: int = _THREADS) -> AsyncMemory:  # noqa: A001
    """A home: the one given, else $TACIT_HOME, else ~/tacit. It is opened by its first call, or when it is
    waited for: `memory = await tacit.aio.open(home)`."""
    return AsyncMemory(lambda: open_home(home), threads)


async def _in_thread(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """With the context variables of the caller: what it traces or logs by them stays together."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, call))


class AsyncMemory:
    """One home."""

    def __init__(self, opened: Callable[[], Memory], threads: int = _THREADS) -> None:
        self._open = opened
        self._memory: Memory | None = None
        self._opening = threading.Lock()
        self._turns = ThreadPoolExecutor(threads, thread_name_prefix="tacit-turn")
        self._rest = ThreadPoolExecutor(threads, thread_name_prefix="tacit")
        self._sessions: WeakSet[AsyncSession] = WeakSet()
        self._closed = False

    def _opened(self) -> Memory:
        """In a thread."""
        with self._opening:
            if self._memory is None:
                self._memory = self._open()
            return self._memory

    async def turn(self, message: str, **asked: Any) -> Compiled:
        """As Memory.turn, with the same arguments."""
        return await self._run_timed(asked, lambda memory, left: memory.turn(message, **left))

    async def inject(self, message: str, **asked: Any) -> Compiled:
        """As Memory.inject: only what the host lacks for this turn, empty where that is nothing."""
        return await self._run_timed(asked, lambda memory, left: memory.inject(message, **left))

    async def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        return await self._run_turn(lambda memory: memory.bootstrap(session_key, files, workspace, **asked))

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: Category | None = None,
        session_key: str | None = None,
    ) -> list[Hit]:
        return await self._run(
            lambda memory: memory.search(query, limit=limit, category=category, session_key=session_key)
        )

    async def find(self, query: str, scope: Scope = EVERYTHING, limit: int = 10) -> Found:
        return await self._run(lambda memory: memory.find(query, scope, limit))

    async def remember(
        self, text: str, to: str = "journal", *, session_key: str | None = "agent:main:main"
    ) -> Remembered:
        return await self._run(lambda memory: memory.remember(text, to, session_key=session_key))

    def session(self, *arguments: Any, **named: Any) -> AsyncSession:
        """As Memory.session. It begins when it is entered, or with the first that is said."""
        self._require_open()
        session = AsyncSession(lambda: self._opened().session(*arguments, **named))
        self._sessions.add(session)
        return session

    async def work(self) -> Worked:
        return await self._run(lambda memory: memory.work())

    async def commit(self) -> Worked:
        return await self._run(lambda memory: memory.commit())

    async def close(self) -> None:
        """Wait for what was begun. Sessions that are open stay so, for whoever goes on with them."""
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        for session in list(self._sessions):
            session.let_go()
        for pool in (self._turns, self._rest):
            pool.shutdown()
        with self._opening:
            if self._memory is not None and "searcher" in self._memory.__dict__:
                self._memory.searcher.close()

    async def __aenter__(self) -> Self:
        await self._run(lambda memory: None)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Callable[[Memory], T]) -> T:
        self._require_open()
        return await _in_thread(self._rest, lambda: call(self._opened()))

    async def _run_timed(
        self, asked: dict[str, Any], call: Callable[[Memory, dict[str, Any]], Compiled]
    ) -> Compiled:
        self._require_open()
        began = time.monotonic()

        def run() -> Compiled:
            waited = time.monotonic() - began
            memory = self._opened()
            return call(memory, _left(asked, began, waited, memory.config.inject.deadline_ms / 1000))

        return await _in_thread(self._turns, run)

    async def _run_turn(self, call: Callable[[Memory], T]) -> T:
        self._require_open()
        return await _in_thread(self._turns, lambda: call(self._opened()))

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("This memory was closed. Open it again with: tacit.aio.open(home)")


def _left(asked: dict[str, Any], began: float, waited: float, usual: float) -> dict[str, Any]:
    """In a thread: what was asked, with the seconds that are left. Of the usual time only that is taken off
    which was spent waiting for other turns: opening the home is nobody's turn."""
    seconds = asked.get("seconds")
    if seconds is None:
        return {**asked, "seconds": max(0.0, usual - waited)}
    if not isinstance(seconds, int | float):
        return asked
    return {**asked, "seconds": max(0.0, seconds - (time.monotonic() - began))}


class AsyncSession:
    """One conversation. Leaving the block seals the transcript, also when the block raised."""

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._begin = begin
        self._session: Session | None = None
        # One thread of its own keeps the order, also behind a call whose caller did not wait for it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-session")
        self._closed = False

    @property
    def session_id(self) -> str:
        return self._session.session_id if self._session else ""

    @property
    def path(self) -> str | None:
        return self._session.path if self._session else None

    async def message(
        self, role: str, text: str, at: datetime | None = None, speaker: str | None = None
    ) -> int:
        return await self._run(lambda session: session.message(role, text, at, speaker))

    async def tool(self, name: str, summary: str, result: str = "", at: datetime | None = None) -> int:
        return await self._run(lambda session: session.tool(name, summary, result, at))

    async def knowledge(self, action: str, path: str, summary: str = "", at: datetime | None = None) -> int:
        return await self._run(lambda session: session.knowledge(action, path, summary, at))

    async def attachment(self, path: str, role: str = "user", at: datetime | None = None) -> int:
        return await self._run(lambda session: session.attachment(path, role, at))

    async def end(self, at: datetime | None = None, **named: Any) -> Sealed | None:
        """Seal and commit. None when nothing was said."""
        return await self._run(lambda session: session.end(at, **named))

    async def detach(self) -> None:
        """Let go without sealing: another process goes on with this session."""
        await self._run(lambda session: session.detach())

    def let_go(self) -> None:
        """Wait for what was begun, and keep nothing open. Not in the thread of an event loop."""
        self._closed = True
        self._thread.shutdown()
        if self._session is not None:
            self._session.detach()

    async def __aenter__(self) -> Self:
        await self._run(lambda session: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:  # else the memory was closed in the block, and the session stays open
            await self._run(lambda session: session.__exit__(kind, error, trace))

    async def _run(self, call: Callable[[Session], T]) -> T:
        if self._closed:
            raise SessionError("The memory of this session was closed. Open it again to go on.")
        return await _in_thread(self._thread, lambda: self._on_session(call))

    def _on_session(self, call: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = self._begin()
        return call(self._session)
