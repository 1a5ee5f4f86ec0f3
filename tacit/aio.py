"""Memory for async agents: the methods of Memory and Session, each run in a thread.

    async with tacit.aio.open("~/agent") as memory:
        print((await memory.turn("How hot do we fire?")).text)
        async with memory.session(channel="chat") as session:
            await session.message("user", "What did we decide?")

What must stay true:
- the event loop is never blocked: access to the disk, the index or a model happens in a thread;
- a turn waits only for other turns, and that time counts against its deadline;
- a cancelled call returns at once. Its work is finished in the thread, so that nothing is left half done, and
  the next call works as usual;
- the messages of one session are kept in the order in which they were awaited.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakSet

from tacit.app import open_home
from tacit.context.model import Compiled
from tacit.errors import SessionError, UsageError
from tacit.maintenance import WorkResult
from tacit.memory import Memory
from tacit.transcripts.capture import Session
from tacit.transcripts.model import Sealed

P = ParamSpec("P")
T = TypeVar("T")
Owner = TypeVar("Owner")
Owner_co = TypeVar("Owner_co", covariant=True)

_DEFAULT_THREADS = 4


def open(home: str | os.PathLike[str] | None = None, *, threads: int = _DEFAULT_THREADS) -> AsyncMemory:  # noqa: A001
    """A home: the one given, else $TACIT_HOME, else ~/tacit. It is opened by the first call, or when it is
    awaited: `memory = await tacit.aio.open(home)`."""
    return AsyncMemory(lambda: open_home(home), threads)


async def _run_in_thread(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """Run the call with the context variables of the caller, so that its traces and logs stay together."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, partial(context.run, call))


class _ThreadRunner(Protocol[Owner_co]):
    async def _run(self, call: Callable[[Owner_co], T]) -> T:
        """Run the call in a thread with the object that has the methods."""


def _in_thread(
    method: Callable[Concatenate[Owner, P], T],
) -> Callable[Concatenate[_ThreadRunner[Owner], P], Coroutine[Any, Any, T]]:
    """The async twin of a method: the same name, arguments, types and docstring."""

    async def call(self: _ThreadRunner[Owner], /, *arguments: P.args, **named: P.kwargs) -> T:
        result: T = await self._run(lambda owner: getattr(owner, method.__name__)(*arguments, **named))
        return result

    update_wrapper(call, method)
    return call


class AsyncMemory:
    """One home."""

    def __init__(self, open_memory: Callable[[], Memory], threads: int = _DEFAULT_THREADS) -> None:
        self._open_memory = open_memory
        self._memory: Memory | None = None
        self._opening = threading.Lock()
        self._turn_pool = ThreadPoolExecutor(threads, thread_name_prefix="tacit-turn")
        self._general_pool = ThreadPoolExecutor(threads, thread_name_prefix="tacit")
        self._sessions: WeakSet[AsyncSession] = WeakSet()
        self._is_closed = False

    def _get_memory(self) -> Memory:
        """Runs in a thread."""
        with self._opening:
            if self._memory is None:
                self._memory = self._open_memory()
            return self._memory

    async def turn(self, message: str, **asked: Any) -> Compiled:
        """Like Memory.turn, with the same arguments."""
        return await self._run_turn(asked, lambda memory, arguments: memory.turn(message, **arguments))

    async def inject(self, message: str, **asked: Any) -> Compiled:
        """Like Memory.inject: only what the host lacks for this turn; empty if it lacks nothing."""
        return await self._run_turn(asked, lambda memory, arguments: memory.inject(message, **arguments))

    async def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        return await self._run_as_turn(
            lambda memory: memory.bootstrap(session_key, files, workspace, **asked)
        )

    search = _in_thread(Memory.search)
    find = _in_thread(Memory.find)
    remember = _in_thread(Memory.remember)
    commit = _in_thread(Memory.commit)

    def session(self, *arguments: Any, **named: Any) -> AsyncSession:
        """Like Memory.session. It begins when it is entered, or with the first message."""
        self._require_open()
        session = AsyncSession(lambda: self._get_memory().session(*arguments, **named))
        self._sessions.add(session)
        return session

    async def work(self) -> WorkResult:
        return await self._run(lambda memory: memory.work())

    async def close(self) -> None:
        """Wait for running calls. Open sessions stay open, so that they can be continued."""
        self._is_closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._close_in_thread)

    def _close_in_thread(self) -> None:
        for session in list(self._sessions):
            session.let_go()
        for pool in (self._turn_pool, self._general_pool):
            pool.shutdown()
        with self._opening:
            if self._memory is not None:
                self._memory.services.close()

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
        return await _run_in_thread(self._general_pool, lambda: call(self._get_memory()))

    async def _run_turn(
        self, arguments: dict[str, Any], call: Callable[[Memory, dict[str, Any]], Compiled]
    ) -> Compiled:
        self._require_open()
        began = time.monotonic()

        def run() -> Compiled:
            waited = time.monotonic() - began
            memory = self._get_memory()
            return call(
                memory, _with_time_left(arguments, began, waited, memory.config.inject.deadline_ms / 1000)
            )

        return await _run_in_thread(self._turn_pool, run)

    async def _run_as_turn(self, call: Callable[[Memory], T]) -> T:
        self._require_open()
        return await _run_in_thread(self._turn_pool, lambda: call(self._get_memory()))

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsageError("This memory was closed. Open it again with: tacit.aio.open(home)")


def _with_time_left(arguments: dict[str, Any], began: float, waited: float, usual: float) -> dict[str, Any]:
    """The arguments with the seconds that are left; runs in a thread. From the default time only the wait for
    other turns is subtracted, not the opening of the home."""
    seconds = arguments.get("seconds")
    if seconds is None:
        return {**arguments, "seconds": max(0.0, usual - waited)}
    if not isinstance(seconds, int | float):
        return arguments
    return {**arguments, "seconds": max(0.0, seconds - (time.monotonic() - began))}


class AsyncSession:
    """One conversation. Leaving the block finalizes the transcript, even if the block raised."""

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._begin_session = begin
        self._session: Session | None = None
        # A single thread keeps the order, even after a call that was cancelled.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-session")
        self._is_closed = False

    @property
    def session_id(self) -> str:
        return self._session.session_id if self._session else ""

    @property
    def path(self) -> str | None:
        return self._session.path if self._session else None

    message = _in_thread(Session.message)
    tool = _in_thread(Session.tool)
    knowledge = _in_thread(Session.knowledge)
    attachment = _in_thread(Session.attachment)
    detach = _in_thread(Session.detach)

    async def end(self, at: datetime | None = None, **named: Any) -> Sealed | None:
        """Finalize the transcript and commit it. None if there are no messages."""
        return await self._run(lambda session: session.end(at, **named))

    def let_go(self) -> None:
        """Wait for running calls and close everything. Not for the thread of an event loop."""
        self._is_closed = True
        self._thread.shutdown()
        if self._session is not None:
            self._session.detach()

    async def __aenter__(self) -> Self:
        await self._run(lambda session: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_closed:  # if the memory was closed inside the block, the session stays open
            await self._run(lambda session: session.__exit__(kind, error, trace))

    async def _run(self, call: Callable[[Session], T]) -> T:
        if self._is_closed:
            raise SessionError("The memory of this session was closed. Open it again to go on.")
        return await _run_in_thread(self._thread, lambda: self._call_session(call))

    def _call_session(self, call: Callable[[Session], T]) -> T:
        if self._session is None:
            self._session = self._begin_session()
        return call(self._session)
