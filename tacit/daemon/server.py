"""From a request to an operation and back.

What must stay true:
- every route goes through the same door: who asks is checked before anything is read;
- a turn is answered by its deadline, whatever its worker does; the time it waited is taken off;
- what cannot be let in is refused at once, and what was let in is finished, also when the server stops;
- nothing that an operation does, or fails to do, ends the server. What nobody foresaw is in the log, with its
  trace, and the caller gets a reference to it and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import secrets
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from tacit.api import OPERATIONS, Operation, Served, session_key_of
from tacit.config.keys import Serve
from tacit.daemon import guard, read
from tacit.daemon.guard import Door
from tacit.daemon.http import RETRY, Connections, Head, Limits, Reply, problem
from tacit.daemon.log import Log
from tacit.daemon.metrics import CONTENT_TYPE, Metrics
from tacit.daemon.place import BACKLOG
from tacit.daemon.pool import Job, Kind, Outcome, Pool
from tacit.errors import (
    Busy,
    ConfigError,
    DiskError,
    GitError,
    HomeError,
    SessionError,
    StoreError,
    TacitError,
    UsageError,
)
from tacit.model.waiting import ANSWERED
from tacit.text.redact import clean
from tacit.text.wire import Json
from tacit.version import VERSION

GRACE = 0.05  # seconds that a turn may take beyond its deadline, for what lies between it and its answer
STUCK = 10.0  # seconds beyond the end of its time after which a worker is taken to hang
LOOK = 2.0  # seconds that /metrics and /v1/health wait for what others tell
# The loop shares the interpreter with its workers. With Python's own 5 ms, each of its steps may wait that
# long for a worker that computes; with this, turns beside a busy worker take a sixth of the time, and the
# worker a few percent more.
SWITCH = 0.0002
_LONGEST_TURN = 60_000  # milliseconds
_LARGE = 64 << 10  # bytes of JSON that are not read on the loop
_RESERVED = 256  # files that are not for connections: the index, git, logs, what is accepted in one go
# Notices that say the same at every turn of a session, and that its owner can do something about.
_ABOUT_A_SESSION = ("unknown-key", "nobodys", "main-thread", "not-owner", "several-senders")
_LOGGED = 120  # characters of a session key
_RECORDS = ("message", "tool", "end_session", "event", "renew")  # quick; they do not wait for what computes
_LARGEST_RECORD = 32 << 20  # bytes, as the relay takes them: what was said is kept, however long it is
_CODES: tuple[tuple[type[TacitError], str], ...] = (
    (DiskError, "disk"),
    (StoreError, "store"),
    (ConfigError, "config"),
    (HomeError, "home"),
    (SessionError, "session"),
    (GitError, "git"),
)


# Why a turn that no worker saw was skipped, for its receipt. One that a worker has leaves its own.
_UNTOLD = ("", "")
_BUSY = ("busy", "Too much was asked at the same time.")
_UNBEGUN = ("deadline", "No worker was free before its deadline.")


class Route(NamedTuple):
    """`operation` is None for what the server answers by itself."""

    name: str
    method: str
    path: str
    operation: Operation | None = None
    local: bool = False  # by the unix socket only


OWN = (
    Route("health", "GET", "/v1/health"),
    Route("metrics", "GET", "/metrics"),
    Route("stop", "POST", "/v1/stop", local=True),
)


class Matched(NamedTuple):
    route: Route
    parameters: dict[str, str]
    query: str


class _Turn(NamedTuple):
    """What the metrics want to know of an answer."""

    skipped: str
    codes: tuple[str, ...]
    tokens: int


class _Answer(NamedTuple):
    data: bytes
    turn: _Turn | None


# What was asked, when it arrived in nanoseconds; a code and why, where no worker ever saw it.
Skipped: TypeAlias = Callable[[Json, int, str, str], None]


class Server:
    """Answers for `served`. `about` adds to what /v1/health tells, and may take a moment."""

    def __init__(
        self,
        served: Served,
        serve: Serve,
        *,
        deadline_ms: int,
        metrics: Metrics,
        log: Log,
        operations: Sequence[Operation] = OPERATIONS,
        about: Callable[[], Json] | None = None,
        skipped: Skipped = lambda asked, began, code, reason: None,
        limits: Limits | None = None,
        stuck: float = STUCK,
        grace: float = GRACE,
        look: float = LOOK,
        cores: int = os.cpu_count() or 1,
    ) -> None:
        self._served, self._serve = served, serve
        self.deadline_ms = deadline_ms  # of a turn that names none; may be changed at any time
        self._metrics, self._log, self._about = metrics, log, about
        self._when_skipped = skipped  # told of each turn that was answered with nothing
        self._stuck_after, self._grace, self._look = stuck, grace, look
        self.routes: tuple[Route, ...] = (
            *(Route(one.name, one.method, one.path, one) for one in operations),
            *OWN,
        )
        limits = limits or Limits(body_bytes=serve.max_request_kb << 10)
        limits = limits._replace(connections=_room_for(limits.connections))
        self._connections = Connections(self, limits, time.monotonic)
        # Two at least: one of them may wait for a model on another machine.
        self._pool = Pool("tacit-worker", serve.workers, serve.waiting, at_once=max(2, cores))
        # For what must be answered even when all workers hang.
        self._aside = Pool("tacit-aside", 1, 16)
        self._reader = Pool("tacit-reader", 1, 64)
        self._pools = (self._pool, self._aside, self._reader)
        self._listeners: list[asyncio.Server] = []
        self._local: asyncio.Server | None = None  # the one of them at the unix socket
        self._door: Door | None = None
        self._started = time.time()
        self._begun = time.monotonic()
        self._given_up = 0
        self._switch = sys.getswitchinterval()
        self._tick: asyncio.TimerHandle | None = None
        self.asked = asyncio.Event()  # somebody asked us to stop
        self._gauges()

    # ------------------------------------------------ life

    async def start(
        self, local: socket.socket | None = None, *, tcp_port: int | None = None, token: str = ""
    ) -> int | None:
        """Listen; returns the TCP port. Port 0 is one that is free. After an error nothing listens."""
        self._loop = asyncio.get_running_loop()
        if tcp_port is not None:
            await self._open_port(tcp_port, token)
        if local is not None:
            await self.listen(local)
        sys.setswitchinterval(SWITCH)
        self._every()
        return self._door.port if self._door else None

    async def listen(self, local: socket.socket) -> None:
        """On this one from now on. Nobody finds the one before, but who came by it is still answered."""
        before = self._local
        self._local = await self._loop.create_unix_server(
            self._connections.local, sock=local, backlog=BACKLOG
        )
        self._listeners.append(self._local)
        if before is not None:
            before.close()
            self._listeners.remove(before)

    async def _open_port(self, port: int, token: str) -> None:
        if not token:
            raise UsageError("A port needs a token.")
        try:
            made = await self._loop.create_server(self._connections.tcp, "127.0.0.1", port, backlog=BACKLOG)
        except OSError as error:
            raise UsageError(
                f"Port {port} of 127.0.0.1 cannot be used: {error.strerror or error}. "
                "Name another one as serve.tcp_port, or none."
            ) from error
        self._listeners.append(made)
        self._door = Door(made.sockets[0].getsockname()[1], token)

    async def stop(self, seconds: float = 10.0) -> None:
        """Take no more, finish what was let in, for at most `seconds`, and close."""
        for listener in self._listeners:
            listener.close()
        self._connections.close_idle()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (self._pool.idle() and not self._connections.working()):
            await asyncio.sleep(0.005)
        if not self._pool.idle():
            self._log.say("warning", "stopped_early", running=self._pool.standing().running)
        if self._tick is not None:
            self._tick.cancel()
        for pool in self._pools:
            pool.close()
        self._connections.close_all()
        await asyncio.sleep(0)  # what was closed is told so
        sys.setswitchinterval(self._switch)

    def _every(self) -> None:
        """Twice a second, or more often where limits are shorter: close what is slow, give up what hangs."""
        limits = self._connections.limits
        shortest = min(limits.head_seconds, limits.body_seconds, limits.end_seconds, self._stuck_after)
        self._tick = self._loop.call_later(max(0.01, min(0.5, shortest / 4)), self._every)
        self._connections.sweep()
        for pool in self._pools:
            for job in pool.give_up_stuck(time.monotonic()):
                self._stuck(job, pool)

    def _stuck(self, job: Job, pool: Pool) -> None:
        self._given_up += 1
        self._metrics.stuck.add()
        self._log.say(
            "error",
            "stuck",
            operation=job.name,
            seconds=round(time.monotonic() - job.started, 1),
            workers=pool.standing().threads,
            stuck=pool.standing().stuck,
        )

    def _gauges(self) -> None:
        tell, standing = partial(self._metrics.gauge, quick=True), self._pool.standing
        tell("tacit_in_flight", "Requests that are worked on.", lambda: standing().running)
        tell("tacit_waiting", "Requests that wait for a worker.", lambda: standing().waiting)
        tell("tacit_workers", "Workers that can be counted on.", lambda: standing().threads)
        tell("tacit_workers_stuck", "Workers that hang now.", lambda: standing().stuck)
        tell("tacit_connections", "Connections that are open.", lambda: len(self._connections))

    # ------------------------------------------------ what a connection asks (http.App)

    def screen(self, head: Head) -> Reply | None:
        """Before the body is read. The order matters: who may not ask is not even told what there is."""
        refusal = guard.refuse(head, self._door) or self._misplaced(head)
        if refusal is not None:
            self._metrics.requests.add("none", str(refusal.status))
            if refusal.status in (401, 403, 421):
                self._metrics.refused.add("guard")
                self._log.sometimes("warning", "guard", status=refusal.status)
        return refusal

    def _misplaced(self, head: Head) -> Reply | None:
        if self._connections.stopping:
            return self._stopping()
        if head.target == "*" and head.method == "OPTIONS":
            return _allowed(("GET", "HEAD", "OPTIONS", "POST"))
        try:
            path, _ = read.address(head.target)
        except UsageError as error:
            return problem(400, "usage", str(error), close=True)
        found = [route for route in self.routes if _fits(route.path, path) is not None]
        if not found:
            return problem(404, "not_found", "There is nothing at this address.")
        methods = {route.method for route in found}
        methods |= {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        if head.method == "OPTIONS":
            return _allowed(sorted(methods))
        if head.method not in methods:
            allow = ", ".join(sorted(methods))
            return problem(405, "method", f"Use {allow} at this address.", ("Allow", allow))
        if head.tcp and all(route.local for route in found):
            return problem(403, "forbidden", "This is answered on the unix socket only.", close=True)
        return None

    def most(self, head: Head) -> int:
        path = head.target.partition("?")[0]
        is_record = any(route.path == path and route.name in _RECORDS for route in self.routes)
        asked = self._connections.limits.body_bytes
        return max(asked, _LARGEST_RECORD) if is_record else asked

    async def answer(self, head: Head, body: bytes) -> Reply:
        name = "none"
        try:
            matched = self._match(head)
            name = matched.route.name
            reply = await self._route(head, matched, body)
        except Exception as error:  # noqa: BLE001 - the caller gets an answer in any case
            reply = self._failure(name, error)
        self._metrics.requests.add(name, str(reply.status))
        self._metrics.seconds.add(time.monotonic() - head.arrived, name)
        return reply

    def opened(self) -> None:
        self._metrics.connections.add()

    def refused(self, reason: str, status: int = 0) -> None:
        if status:
            self._metrics.requests.add("none", str(status))
            self._metrics.refused.add(reason)
        else:
            self._metrics.closed.add(reason)
        if reason not in ("idle", "stopping"):
            self._log.sometimes("warning", reason, status=status)

    def crashed(self, error: Exception) -> None:
        self._bug("connection", error)

    # ------------------------------------------------ routes

    def _match(self, head: Head) -> Matched:
        path, query = read.address(head.target)
        method = "GET" if head.method == "HEAD" else head.method
        for route in self.routes:
            parameters = _fits(route.path, path) if route.method == method else None
            if parameters is not None:
                return Matched(route, parameters, query)
        raise UsageError("There is nothing at this address.")

    async def _route(self, head: Head, matched: Matched, body: bytes) -> Reply:
        if self._connections.stopping:
            return self._stopping()
        operation = matched.route.operation
        if operation is None:
            return await self._own_route(matched.route.name)
        if operation.method == "POST":
            asked = await self._parsed(body)
        else:
            asked = read.fields(matched.query)
        asked |= {name: read.segment(value) for name, value in matched.parameters.items()}
        try:
            reply = await self._operate(operation, asked, head.arrived)
        except Exception as error:  # noqa: BLE001 - the caller gets an answer in any case
            reply = self._failure(operation.name, error)
        if reply.status != 200:
            self._tell_skipped(operation, asked, head.arrived, _BUSY if reply.status == 503 else _UNTOLD)
        return reply

    async def _parsed(self, body: bytes) -> dict[str, Any]:
        if len(body) <= _LARGE:
            return read.json_object(body)
        made: dict[str, Any] = await self._beside(
            self._reader, "json", lambda: read.json_object(body), self._serve.request_seconds
        )
        return made

    async def _own_route(self, name: str) -> Reply:
        if name == "metrics":
            return Reply(200, (await self._metrics_text()).encode("utf-8"), CONTENT_TYPE)
        if name == "stop":
            self._log.say("info", "asked_to_stop")
            self.asked.set()
            return _json({"stopping": True, "pid": os.getpid()}, 202)
        return _json(await self._health())

    async def _metrics_text(self) -> str:
        try:
            text: str = await self._beside(self._aside, "metrics", self._metrics.text, self._look)
        except Busy:
            return self._metrics.text(quick=True)
        return text

    async def _health(self) -> Json:
        standing = self._pool.standing()
        told: Json = {
            "status": "ok",
            "version": VERSION,
            "pid": os.getpid(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self._started)),
            "uptime_seconds": round(time.monotonic() - self._begun, 1),
            "workers": {"count": standing.threads, "busy": standing.running, "stuck": standing.stuck},
            "given_up": self._given_up,
            "waiting": standing.waiting,
            "connections": len(self._connections),
            "refused": int(self._metrics.refused.value("busy")),
            "problems": [],
        }
        if standing.stuck:
            told["problems"].append(
                f"{standing.stuck} of the workers hang and were given up; {standing.threads} can work. "
                "See stuck in .tacit/daemon.log. A restart frees them."
            )
        more = await self._told_by_others()
        told["problems"] += more.pop("problems", [])
        if told["problems"]:
            told["status"] = "degraded"
        return {**more, **told}

    async def _told_by_others(self) -> Json:
        if self._about is None:
            return {}
        try:
            return dict(await self._beside(self._aside, "health", self._about, self._look))
        except Busy:
            return {"problems": ["What the home is doing could not be told in time."]}
        except Exception as error:  # noqa: BLE001 - half of an answer is better than none here
            return {
                "problems": [f"What the home is doing could not be told: see {self._bug('health', error)}."]
            }

    async def _beside(self, pool: Pool, name: str, call: Callable[[], Any], seconds: float) -> Any:
        """A short call outside of the loop that does not wait for the workers; Busy if it takes too long."""
        outcome = await self._run(pool, name, call, time.monotonic() + seconds, 0.0)
        if not isinstance(outcome, Outcome):
            raise Busy("This could not be looked up in time. Try again in a moment.")
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    # ------------------------------------------------ operations

    async def _operate(self, operation: Operation, asked: dict[str, Any], arrived: float) -> Reply:
        until = arrived + (self._turn_seconds(asked) if operation.is_turn else self._serve.request_seconds)
        in_time = time.monotonic() < until
        outcome = await self._run(
            self._pool,
            operation.name,
            lambda: self._call(operation, asked, until),
            until,
            self._grace if operation.is_turn else 0.0,
            "turn" if operation.is_turn else "record" if operation.name in _RECORDS else "long",
        )
        if isinstance(outcome, Outcome):
            if outcome.error is not None:
                return self._failure(operation.name, outcome.error)
            return self._success(operation, asked, outcome.value)
        if outcome == "full":
            self._metrics.refused.add("busy")
            self._log.sometimes("warning", "busy", operation=operation.name)
            return problem(503, "busy", "Too much is asked at the same time. Try again in a moment.", RETRY)
        whose = {"session_key": session_key_of(asked)[:_LOGGED]} if operation.is_turn else {}
        self._log.sometimes("warning", "deadline", operation=operation.name, begun=outcome == "late", **whose)
        if operation.is_turn:
            begun = outcome == "late"
            return self._skipped(
                operation, asked, arrived, _why_not(begun=begun, in_time=in_time), begun=begun
            )
        if outcome == "late":
            return problem(504, "timeout", "This took too long; it may still be done. Ask again.", RETRY)
        return problem(503, "busy", "No worker was free in time, so nothing was done. Try again.", RETRY)

    async def _run(
        self,
        pool: Pool,
        name: str,
        call: Callable[[], Any],
        until: float,
        grace: float,
        kind: Kind = "record",
    ) -> Outcome | str:
        """The outcome; or `full`: it was not let in; `waited`: its time was over before it began, and it will
        not begin; `late`: it is still at it."""
        answered: asyncio.Future[Outcome | str] = self._loop.create_future()

        def run() -> Any:
            mark = ANSWERED.set(answered.done)
            try:
                return call()
            finally:
                ANSWERED.reset(mark)

        job = Job(
            name,
            run,
            lambda outcome: self._tell(answered, outcome),
            latest=until,
            limit=until + grace + self._stuck_after,
            kind=kind,
        )
        if not pool.admit(job):
            return "full"
        timers = [
            self._loop.call_at(until, self._expire, pool, job, answered, False),
            self._loop.call_at(until + grace, self._expire, pool, job, answered, True),
        ]
        try:
            return await answered
        finally:
            for timer in timers:
                timer.cancel()

    def _expire(self, pool: Pool, job: Job, answered: asyncio.Future[Outcome | str], last: bool) -> None:
        if answered.done():
            return
        if pool.drop(job) or job.state == "dropped":
            answered.set_result("waited")
        elif last:
            answered.set_result("late")

    def _tell(self, answered: asyncio.Future[Outcome | str], outcome: Outcome) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._arrived, answered, outcome)

    def _arrived(self, answered: asyncio.Future[Outcome | str], outcome: Outcome) -> None:
        if answered.done():
            self._metrics.late.add()
            if outcome.error is not None and not isinstance(outcome.error, TacitError):
                self._bug("late", outcome.error)
        else:
            answered.set_result(outcome)

    def _call(self, operation: Operation, asked: dict[str, Any], until: float) -> _Answer:
        """In a worker."""
        if operation.is_turn:
            asked = {**asked, "deadline_ms": max(1, int((until - time.monotonic()) * 1000))}
        try:
            answer = operation.run(self._served, asked)
        except RecursionError:
            raise UsageError("The request is nested too deeply.") from None
        # ASCII: half a surrogate pair in a note or in a message cannot be written as UTF-8.
        return _Answer(json.dumps(answer).encode("ascii"), _turn(answer) if operation.is_turn else None)

    def _turn_seconds(self, asked: dict[str, Any]) -> float:
        given = asked.get("deadline_ms")
        if given is None:
            return self.deadline_ms / 1000
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise UsageError("'deadline_ms' must be a whole number of milliseconds.")
        return min(given, _LONGEST_TURN) / 1000

    def _success(self, operation: Operation, asked: dict[str, Any], answer: _Answer) -> Reply:
        if answer.turn is not None:
            self._count(operation, asked, answer.turn)
        return Reply(200, answer.data)

    def _skipped(
        self, operation: Operation, asked: dict[str, Any], arrived: float, why: str, *, begun: bool
    ) -> Reply:
        answer = _nothing(operation.name, asked, why)
        self._tell_skipped(operation, asked, arrived, _UNTOLD if begun else _UNBEGUN)
        self._count(operation, asked, _Turn("deadline", ("deadline",), 0))
        return _json(answer)

    def _tell_skipped(
        self, operation: Operation, asked: dict[str, Any], arrived: float, why: tuple[str, str]
    ) -> None:
        """Beside, and not at all where much is to be told: who answers nothing must not take long."""
        if operation.name != "turn":
            return
        now = time.monotonic()
        began = time.time_ns() - int((now - arrived) * 1e9)
        told = {**asked, "session_key": session_key_of(asked)}
        call = partial(self._when_skipped, told, began, *why)
        soon = now + self._look
        self._aside.admit(Job("skipped", call, lambda _: None, latest=soon, limit=soon + self._stuck_after))

    def _count(self, operation: Operation, asked: dict[str, Any], turn: _Turn) -> None:
        lane = "runtime" if asked.get("lane") == "runtime" else "prompt"
        self._metrics.turns.add(lane if operation.name == "turn" else operation.name, turn.skipped)
        for code in turn.codes:
            self._metrics.notices.add(code)
            if code in _ABOUT_A_SESSION:
                self._log.once("warning", code, session_key=str(asked.get("session_key", ""))[:_LOGGED])
        self._metrics.tokens.add(by=turn.tokens)

    # ------------------------------------------------ what went wrong

    def _failure(self, name: str, error: BaseException) -> Reply:
        if isinstance(error, UsageError):
            # Without its words: they may quote what was asked.
            self._log.sometimes("warning", "usage", operation=name)
            return problem(400, "usage", _said(error))
        if isinstance(error, Busy):
            self._log.sometimes("warning", "held", operation=name)
            return problem(503, "busy", _said(error), RETRY)
        if isinstance(error, TacitError):
            code = next((code for kind, code in _CODES if isinstance(error, kind)), "failed")
            self._log.sometimes("error", code, operation=name, error=_said(error))
            return problem(500, code, self._for_caller(name, error))
        if isinstance(error, OSError):
            self._log.sometimes(
                "error", "system", operation=name, error=error.strerror or type(error).__name__
            )
            return problem(500, "system", f"The system refused: {error.strerror or 'no reason given'}.")
        reference = self._bug(name, error)
        return problem(
            500, "bug", f"Something went wrong that should not. .tacit/daemon.log has it under {reference}."
        )

    def _for_caller(self, name: str, error: TacitError) -> str:
        """A host may show what it is told to whoever is in the session, so the answer to a turn names
        nothing of the home; the log does."""
        if any(route.name == name and route.operation and route.operation.is_turn for route in self.routes):
            return "The turn could not be made. See .tacit/daemon.log for why."
        return _said(error)

    def _bug(self, name: str, error: BaseException) -> str:
        reference = secrets.token_hex(4)
        self._metrics.bugs.add()
        trace = "".join(traceback.format_exception(error))
        self._log.say("error", "bug", operation=name, reference=reference, trace=trace)
        return reference

    def _stopping(self) -> Reply:
        return problem(
            503, "stopping", "The daemon is about to end. Start it again, or go on without.", RETRY
        )


# ---------------------------------------------------------------- values


def _fits(pattern: str, path: str) -> dict[str, str] | None:
    """The parameters of a path that a route is for."""
    if "{" not in pattern:
        return {} if path == pattern else None
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    parameters = {}
    for want, have in zip(wanted, given, strict=True):
        if want.startswith("{") and have:
            parameters[want[1:-1]] = have
        elif want != have:
            return None
    return parameters


def _allowed(methods: Sequence[str]) -> Reply:
    return Reply(204, headers=(("Allow", ", ".join(methods)),))


def _json(value: Json, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode("ascii"))


def _said(error: TacitError) -> str:
    """The first line of its message: what follows is what another program said."""
    return clean(str(error).split("\n", 1)[0]).text[:500]


def _turn(answer: Json) -> _Turn:
    notices = answer.get("notices") or []
    codes = tuple(str(one.get("code", "")) for one in notices if isinstance(one, dict))
    tokens = answer.get("tokens")
    return _Turn(str(answer.get("skipped") or ""), codes, tokens if isinstance(tokens, int) else 0)


def _why_not(*, begun: bool, in_time: bool) -> str:
    if begun:
        return "It was not ready by its deadline."
    if in_time:
        return "No worker was free before its deadline."
    return "Its deadline was over when all of the request was here."


def _nothing(name: str, asked: dict[str, Any], why: str) -> Json:
    """The answer to a turn that was not made in time."""
    common: Json = {
        "receipt": "",
        "tokens": 0,
        "session_type": "",
        "skipped": "deadline",
        "notices": [{"code": "deadline", "text": f"{why} The turn goes on without."}],
    }
    if name == "bootstrap":
        files = asked.get("files")
        own = files if isinstance(files, list) else None  # the host's own list is what it goes on with
        return {"files": own, "changed": False, "host_tokens": 0, "rule": "", **common}
    return {"text": "", "budget": 0, "sections": [], "dropped": [], "timings_ms": {}, **common}


def _room_for(connections: int) -> int:
    """Fewer than asked for where the system allows few open files."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return connections
    return min(connections, max(4, allowed - min(_RESERVED, allowed // 2)))
