"""The same memory for agents that are async: a thin layer that hands each call to a thread.

    async with tacit.aio.open("~/agent") as memory:
        print((await memory.turn("How hot do we fire?")).text)
        async with memory.session(channel="chat") as session:
            await session.message("user", "What did we decide?")

What must stay true:
- the event loop is never held up: whatever touches the disk, the index or a model happens in a thread;
- who is cancelled gets away at once. What was begun is finished in its thread, so that nothing is left half
  done, and the next call is a call like any other;
- the messages of one session are kept in the order in which they were awaited.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from tacit.app import open_home
from tacit.capture import Session
from tacit.memory import Memory
from tacit.memory.memory import Worked
from tacit.model.context import Compiled
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
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tacit")

    def _opened(self) -> Memory:
        """In a thread."""
        with self._opening:
            if self._memory is None:
                self._memory = self._open()
            return self._memory

    async def turn(self, message: str, **asked: Any) -> Compiled:
        """As Memory.turn, with the same arguments."""
        return await self._run(lambda memory: memory.turn(message, **asked))

    async def inject(self, message: str, **asked: Any) -> Compiled:
        return await self._run(lambda memory: memory.inject(message, **asked))

    async def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        return await self._run(lambda memory: memory.bootstrap(session_key, files, workspace, **asked))

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

    def session(self, *arguments: Any, **named: Any) -> AsyncSession:
        """As Memory.session. It begins when it is entered, or with the first that is said."""
        return AsyncSession(lambda: self._opened().session(*arguments, **named))

    async def work(self) -> Worked:
        return await self._run(lambda memory: memory.work())

    async def close(self) -> None:
        """Wait for what was begun. Sessions that are open stay so."""
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)

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
        return await _in_thread(self._pool, lambda: call(self._opened()))


class AsyncSession:
    """One conversation. Leaving the block seals the transcript, also when the block raised."""

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._begin = begin
        self._session: Session | None = None
        # One thread of its own keeps the order, also behind a call whose caller did not wait for it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-session")

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

    async def end(self, at: datetime | None = None, **named: Any) -> Sealed | None:
        """Seal and commit. None when nothing was said."""
        return await self._run(lambda session: session.end(at, **named))

    async def detach(self) -> None:
        """Let go without sealing: another process goes on with this session."""
        await self._run(lambda session: session.detach())

    async def __aenter__(self) -> Self:
        await self._run(lambda session: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._run(lambda session: session.__exit__(kind, error, trace))

    async def _run(self, call: Callable[[Session], T]) -> T:
        return await _in_thread(self._thread, lambda: self._on_session(call))

    def _on_session(self, call: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = self._begin()
        return call(self._session)
