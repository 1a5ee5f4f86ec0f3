"""From a request to an operation and back.

What must stay true:
- every route has the same access check, and it runs before the body is read;
- a turn is answered by its deadline, even if its worker hangs; the time it waited in the queue counts;
- a request that cannot be admitted is refused at once; an admitted one is finished, even if the server stops;
- no operation can end the server. An unexpected error is logged with its trace, and the caller gets only a
  reference to the log entry.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from tacit.config.schema import ServeSettings
from tacit.errors import (
    UsageError,
)
from tacit.operations.catalog import DAEMON_OPERATIONS, OPERATIONS, Operation
from tacit.operations.fields import session_key_of
from tacit.server import request
from tacit.server.executor import Executor
from tacit.server.failures import FailureReporter
from tacit.server.health import HealthReporter
from tacit.server.http import RETRY_AFTER, ConnectionLimits, Connections, Reply, RequestHead, error_reply
from tacit.server.instance import LISTEN_BACKLOG
from tacit.server.log import Log
from tacit.server.metrics import CONTENT_TYPE, Metrics
from tacit.server.pool import WorkKind, WorkResult
from tacit.server.request import TcpAccess
from tacit.wire import Json, empty_turn

TURN_GRACE_S = 0.05  # seconds that a turn may take beyond its deadline, to pass its answer on
HANG_AFTER_S = 10.0  # seconds past its time limit after which a worker counts as hung
DIAGNOSTICS_TIMEOUT_S = 2.0  # seconds that /metrics and /v1/health wait for values from other threads
# The loop shares the interpreter with its workers. With Python's default of 5 ms, each step of the loop may
# wait that long for a busy worker; with this, turns beside a busy worker take a sixth of the time, and the
# worker takes a few percent more.
SWITCH_INTERVAL_S = 0.0002
_MAX_TURN_MS = 60_000
_MAX_LOOP_JSON_BYTES = 64 << 10  # larger JSON is parsed in a thread
_LARGE_RECORD_BYTES = 512 << 10  # a larger record takes longer than others
_RESERVED_FILES = 256  # file descriptors that are not for connections but for the index, git, logs
# Notices that repeat at every turn of a session and that its owner can act on.
_SESSION_NOTICES = ("unknown-key", "nobodys", "main-thread", "not-owner", "several-senders")
_MAX_LOGGED_KEY_CHARS = 120  # characters of a session key
_MAX_RECORD_BYTES = 32 << 20  # bytes, the same limit as the relay's: long messages are kept too
# The code and reason for the receipt of a skipped turn that no worker saw. A worker writes its own receipt.
_NO_REASON = ("", "")
_BUSY_REASON = ("busy", "Too much was asked at the same time.")
_NOT_STARTED_REASON = ("deadline", "No worker was free before its deadline.")


class RouteMatch(NamedTuple):
    operation: Operation
    parameters: dict[str, str]
    query: str


class _TurnStats(NamedTuple):
    """The numbers of a turn's answer that the metrics count."""

    skipped: str
    codes: tuple[str, ...]
    tokens: int


class _EncodedAnswer(NamedTuple):
    data: bytes
    turn: _TurnStats | None


# The request, its arrival in nanoseconds, and a code and a reason if no worker ever saw it.
SkippedCallback: TypeAlias = Callable[[Json, int, str, str], None]


class Server:
    """Answers requests. `run` runs an operation by its name; it is called in worker threads. `about` adds
    fields to /v1/health, and may take a moment."""

    def __init__(
        self,
        run: Callable[[str, Json], Json],
        serve: ServeSettings,
        *,
        deadline_ms: int,
        metrics: Metrics,
        log: Log,
        operations: Sequence[Operation] = OPERATIONS,
        about: Callable[[], Json] | None = None,
        skipped: SkippedCallback = lambda fields, began, code, reason: None,
        limits: ConnectionLimits | None = None,
        stuck: float = HANG_AFTER_S,
        grace: float = TURN_GRACE_S,
        look: float = DIAGNOSTICS_TIMEOUT_S,
        cores: int = os.cpu_count() or 1,
    ) -> None:
        self._run, self._settings = run, serve
        self.deadline_ms = deadline_ms  # for turns that name none; may be changed at any time
        self._metrics, self._log = metrics, log
        self._on_skipped = skipped  # called for each turn that got an empty answer
        self._stuck_after, self._grace, self._diagnostics_timeout = stuck, grace, look
        self.routes = (*operations, *DAEMON_OPERATIONS)
        limits = limits or ConnectionLimits(body_bytes=serve.max_request_kb << 10)
        limits = limits._replace(connections=_connection_limit(limits.connections))
        self._connections = Connections(self, limits, time.monotonic)
        self._failures = FailureReporter(metrics, log)
        self._executor = Executor(
            serve.workers,
            serve.waiting,
            cores,
            stuck_after=stuck,
            metrics=metrics,
            log=log,
            failures=self._failures,
        )
        self._health = HealthReporter(
            self._executor,
            self._failures,
            metrics,
            describe_home=about,
            count_connections=lambda: len(self._connections),
            timeout=look,
        )
        self._listeners: list[asyncio.Server] = []
        self._local_listener: asyncio.Server | None = None  # the one on the unix socket
        self._tcp_access: TcpAccess | None = None
        self._previous_switch_interval = sys.getswitchinterval()
        self._housekeeping_timer: asyncio.TimerHandle | None = None
        self.stop_requested = asyncio.Event()  # set by POST /v1/stop
        metrics.gauge(
            "tacit_connections", "Connections that are open.", lambda: len(self._connections), quick=True
        )

    # ------------------------------------------------ life

    async def start(
        self, local: socket.socket | None = None, *, tcp_port: int | None = None, token: str = ""
    ) -> int | None:
        """Listen, and return the TCP port. Port 0 picks a free one. After an error nothing listens."""
        self._loop = asyncio.get_running_loop()
        if tcp_port is not None:
            await self._open_port(tcp_port, token)
        if local is not None:
            await self.listen(local)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._run_housekeeping()
        return self._tcp_access.port if self._tcp_access else None

    async def listen(self, local: socket.socket) -> None:
        """Switch to this unix socket. The previous one's open connections are still served."""
        previous = self._local_listener
        self._local_listener = await self._loop.create_unix_server(
            self._connections.local, sock=local, backlog=LISTEN_BACKLOG
        )
        self._listeners.append(self._local_listener)
        if previous is not None:
            previous.close()
            self._listeners.remove(previous)

    async def _open_port(self, port: int, token: str) -> None:
        if not token:
            raise UsageError("A port needs a token.")
        try:
            listener = await self._loop.create_server(
                self._connections.tcp, "127.0.0.1", port, backlog=LISTEN_BACKLOG
            )
        except OSError as error:
            raise UsageError(
                f"Port {port} of 127.0.0.1 cannot be used: {error.strerror or error}. "
                "Name another one as serve.tcp_port, or none."
            ) from error
        self._listeners.append(listener)
        self._tcp_access = TcpAccess(listener.sockets[0].getsockname()[1], token)

    async def stop(self, seconds: float = 10.0) -> None:
        """Accept no more requests, finish the admitted ones for at most `seconds`, and close."""
        for listener in self._listeners:
            listener.close()
        self._connections.close_idle()
        deadline = time.monotonic() + seconds
        workers = self._executor.workers
        while time.monotonic() < deadline and not (workers.idle() and not self._connections.working()):
            await asyncio.sleep(0.005)
        if not workers.idle():
            self._log.say("warning", "stopped_early", running=workers.standing().running)
        if self._housekeeping_timer is not None:
            self._housekeeping_timer.cancel()
        self._executor.close()
        self._connections.close_all()
        await asyncio.sleep(0)  # lets the closed connections run their callbacks
        sys.setswitchinterval(self._previous_switch_interval)

    def _run_housekeeping(self) -> None:
        """Close slow connections and give up hung jobs, twice a second, or more often for shorter limits."""
        limits = self._connections.limits
        shortest = min(limits.head_seconds, limits.body_seconds, limits.end_seconds, self._stuck_after)
        self._housekeeping_timer = self._loop.call_later(
            max(0.01, min(0.5, shortest / 4)), self._run_housekeeping
        )
        self._connections.sweep()
        self._executor.give_up_stuck()

    # ------------------------------------------------ callbacks of connections (http.App)

    def screen(self, head: RequestHead) -> Reply | None:
        """Runs before the body is read. Access comes first: an unauthorized caller learns no addresses."""
        refusal = request.refuse(head, self._tcp_access) or self._check_route(head)
        if refusal is not None:
            self._metrics.requests.add("none", str(refusal.status))
            if refusal.status in (401, 403, 421):
                self._metrics.refused.add("guard")
                self._log.sometimes("warning", "guard", status=refusal.status)
        return refusal

    def _check_route(self, head: RequestHead) -> Reply | None:
        if self._connections.stopping:
            return _stopping_reply()
        if head.target == "*" and head.method == "OPTIONS":
            return _options_reply(("GET", "HEAD", "OPTIONS", "POST"))
        try:
            path, _ = request.split_target(head.target)
        except UsageError as error:
            return error_reply(400, "usage", str(error), close=True)
        routes = [route for route in self.routes if _match_path(route.path, path) is not None]
        if not routes:
            return error_reply(404, "not_found", "There is nothing at this address.")
        methods: set[str] = {route.method for route in routes}
        methods |= {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        if head.method == "OPTIONS":
            return _options_reply(sorted(methods))
        if head.method not in methods:
            allow = ", ".join(sorted(methods))
            return error_reply(405, "method", f"Use {allow} at this address.", ("Allow", allow))
        if head.tcp and all(route.is_local for route in routes):
            return error_reply(403, "forbidden", "This is answered on the unix socket only.", close=True)
        return None

    def max_body_bytes(self, head: RequestHead) -> int:
        path = head.target.partition("?")[0]
        is_record = any(route.path == path and route.kind == "record" for route in self.routes)
        limit = self._connections.limits.body_bytes
        return max(limit, _MAX_RECORD_BYTES) if is_record else limit

    async def answer(self, head: RequestHead, body: bytes) -> Reply:
        name, is_turn = "none", False
        try:
            matched = self._match(head)
            name, is_turn = matched.operation.name, matched.operation.is_turn
            reply = await self._route(head, matched, body)
        except Exception as error:  # noqa: BLE001 - the caller gets an answer in any case
            reply = self._failures.reply(name, error, is_turn=is_turn)
        self._metrics.requests.add(name, str(reply.status))
        self._metrics.seconds.add(time.monotonic() - head.arrived, name)
        return reply

    def count_connection(self) -> None:
        self._metrics.connections.add()

    def note_refusal(self, reason: str, status: int = 0) -> None:
        if status:
            self._metrics.requests.add("none", str(status))
            self._metrics.refused.add(reason)
        else:
            self._metrics.closed.add(reason)
        if reason not in ("idle", "stopping"):
            self._log.sometimes("warning", reason, status=status)

    def report_crash(self, error: Exception) -> None:
        self._failures.log_bug("connection", error)

    # ------------------------------------------------ routes

    def _match(self, head: RequestHead) -> RouteMatch:
        path, query = request.split_target(head.target)
        method = "GET" if head.method == "HEAD" else head.method
        for route in self.routes:
            parameters = _match_path(route.path, path) if route.method == method else None
            if parameters is not None:
                return RouteMatch(route, parameters, query)
        raise UsageError("There is nothing at this address.")

    async def _route(self, head: RequestHead, matched: RouteMatch, body: bytes) -> Reply:
        if self._connections.stopping:
            return _stopping_reply()
        operation = matched.operation
        if operation in DAEMON_OPERATIONS:
            return await self._answer_own_route(operation.name)
        if operation.method == "POST":
            fields = await self._parse_body(body)
        else:
            fields = request.parse_query(matched.query)
        fields |= {name: request.decode_segment(value) for name, value in matched.parameters.items()}
        try:
            kind = _kind_of(operation, len(body))
            reply = await self._run_operation(operation, fields, head.arrived, kind)
        except Exception as error:  # noqa: BLE001 - the caller gets an answer in any case
            reply = self._failures.reply(operation.name, error, is_turn=operation.is_turn)
        if reply.status != 200:
            self._report_skip(
                operation, fields, head.arrived, _BUSY_REASON if reply.status == 503 else _NO_REASON
            )
        return reply

    async def _parse_body(self, body: bytes) -> dict[str, Any]:
        if len(body) <= _MAX_LOOP_JSON_BYTES:
            return request.parse_object(body)
        parsed: dict[str, Any] = await self._executor.run_aside(
            self._executor.reader,
            "json",
            lambda: request.parse_object(body),
            self._settings.request_seconds,
        )
        return parsed

    async def _answer_own_route(self, name: str) -> Reply:
        if name == "metrics":
            return Reply(200, (await self._health.metrics_text()).encode("utf-8"), CONTENT_TYPE)
        if name == "stop":
            self._log.say("info", "asked_to_stop")
            self.stop_requested.set()
            return _json_reply({"stopping": True, "pid": os.getpid()}, 202)
        return _json_reply(await self._health.report())

    # ------------------------------------------------ operations

    async def _run_operation(
        self, operation: Operation, fields: dict[str, Any], arrived: float, kind: WorkKind
    ) -> Reply:
        deadline = arrived + (
            self._turn_seconds(fields) if operation.is_turn else self._settings.request_seconds
        )
        in_time = time.monotonic() < deadline
        outcome = await self._executor.run(
            self._executor.workers,
            operation.name,
            lambda: self._call_operation(operation, fields, deadline),
            deadline,
            self._grace if operation.is_turn else 0.0,
            kind,
        )
        if isinstance(outcome, WorkResult):
            if outcome.error is not None:
                return self._failures.reply(operation.name, outcome.error, is_turn=operation.is_turn)
            answer: _EncodedAnswer = outcome.value
            if answer.turn is not None:
                self._count_turn(operation, fields, answer.turn)
            return Reply(200, answer.data)
        if outcome == "full":
            self._metrics.refused.add("busy")
            self._log.sometimes("warning", "busy", operation=operation.name)
            return error_reply(
                503, "busy", "Too much is asked at the same time. Try again in a moment.", RETRY_AFTER
            )
        log_fields = (
            {"session_key": session_key_of(fields)[:_MAX_LOGGED_KEY_CHARS]} if operation.is_turn else {}
        )
        self._log.sometimes(
            "warning", "deadline", operation=operation.name, begun=outcome == "late", **log_fields
        )
        if operation.is_turn:
            begun = outcome == "late"
            return self._skipped_reply(
                operation, fields, arrived, _late_reason(begun=begun, in_time=in_time), begun=begun
            )
        if outcome == "late":
            return error_reply(
                504, "timeout", "This took too long; it may still be done. Ask again.", RETRY_AFTER
            )
        return error_reply(
            503, "busy", "No worker was free in time, so nothing was done. Try again.", RETRY_AFTER
        )

    def _call_operation(
        self, operation: Operation, fields: dict[str, Any], deadline: float
    ) -> _EncodedAnswer:
        """Runs in a worker."""
        if operation.is_turn:
            fields = {**fields, "deadline_ms": max(1, int((deadline - time.monotonic()) * 1000))}
        try:
            answer = self._run(operation.name, fields)
        except RecursionError:
            raise UsageError("The request is nested too deeply.") from None
        # ASCII: half a surrogate pair in a note or in a message cannot be written as UTF-8.
        return _EncodedAnswer(
            json.dumps(answer).encode("ascii"), _turn_stats(answer) if operation.is_turn else None
        )

    def _turn_seconds(self, fields: dict[str, Any]) -> float:
        deadline_ms = fields.get("deadline_ms")
        if deadline_ms is None:
            return self.deadline_ms / 1000
        if not isinstance(deadline_ms, int) or isinstance(deadline_ms, bool) or deadline_ms < 0:
            raise UsageError("'deadline_ms' must be a whole number of milliseconds.")
        return min(deadline_ms, _MAX_TURN_MS) / 1000

    def _skipped_reply(
        self, operation: Operation, fields: dict[str, Any], arrived: float, reason: str, *, begun: bool
    ) -> Reply:
        answer = _empty_answer(operation.name, fields, reason)
        self._report_skip(operation, fields, arrived, _NO_REASON if begun else _NOT_STARTED_REASON)
        self._count_turn(operation, fields, _TurnStats("deadline", ("deadline",), 0))
        return _json_reply(answer)

    def _report_skip(
        self, operation: Operation, fields: dict[str, Any], arrived: float, reason: tuple[str, str]
    ) -> None:
        """Report in another thread, or not at all if many wait: skipping a turn must not take long."""
        if operation.name != "turn":
            return
        began = time.time_ns() - int((time.monotonic() - arrived) * 1e9)
        turn_fields = {**fields, "session_key": session_key_of(fields)}
        call = partial(self._on_skipped, turn_fields, began, *reason)
        self._executor.run_later("skipped", call, self._diagnostics_timeout)

    def _count_turn(self, operation: Operation, fields: dict[str, Any], turn: _TurnStats) -> None:
        lane = "runtime" if fields.get("lane") == "runtime" else "prompt"
        self._metrics.turns.add(lane if operation.name == "turn" else operation.name, turn.skipped)
        for code in turn.codes:
            self._metrics.notices.add(code)
            if code in _SESSION_NOTICES:
                self._log.once(
                    "warning", code, session_key=str(fields.get("session_key", ""))[:_MAX_LOGGED_KEY_CHARS]
                )
        self._metrics.tokens.add(by=turn.tokens)


# ---------------------------------------------------------------- values


def _stopping_reply() -> Reply:
    return error_reply(
        503, "stopping", "The daemon is stopping. Start it again, or go on without it.", RETRY_AFTER
    )


def _kind_of(operation: Operation, size: int) -> WorkKind:
    if operation.is_turn:
        return "turn"
    if operation.kind != "record":
        return "long"
    return "large" if size > _LARGE_RECORD_BYTES else "record"


def _match_path(pattern: str, path: str) -> dict[str, str] | None:
    """The parameters in `path` if it matches the pattern of a route, else None."""
    if "{" not in pattern:
        return {} if path == pattern else None
    pattern_parts, path_parts = pattern.split("/"), path.split("/")
    if len(pattern_parts) != len(path_parts):
        return None
    parameters = {}
    for part, value in zip(pattern_parts, path_parts, strict=True):
        if part.startswith("{") and value:
            parameters[part[1:-1]] = value
        elif part != value:
            return None
    return parameters


def _options_reply(methods: Sequence[str]) -> Reply:
    return Reply(204, headers=(("Allow", ", ".join(methods)),))


def _json_reply(value: Json, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode("ascii"))


def _turn_stats(answer: Json) -> _TurnStats:
    notices = answer.get("notices") or []
    codes = tuple(str(notice.get("code", "")) for notice in notices if isinstance(notice, dict))
    tokens = answer.get("tokens")
    return _TurnStats(str(answer.get("skipped") or ""), codes, tokens if isinstance(tokens, int) else 0)


def _late_reason(*, begun: bool, in_time: bool) -> str:
    if begun:
        return "It was not ready by its deadline."
    if in_time:
        return "No worker was free before its deadline."
    return "Its deadline was over when all of the request was here."


def _empty_answer(name: str, fields: dict[str, Any], reason: str) -> Json:
    """The answer to a turn or a bootstrap that missed its deadline."""
    empty = empty_turn("deadline", reason)
    if name != "bootstrap":
        return empty
    files = fields.get("files")
    host_files = files if isinstance(files, list) else None  # the host goes on with its own list
    common = {name: empty[name] for name in ("receipt", "tokens", "session_type", "skipped", "notices")}
    return {"files": host_files, "changed": False, "host_tokens": 0, "rule": "", **common}


def _connection_limit(connections: int) -> int:
    """The number of connections, lowered if the system allows few open files."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return connections
    return min(connections, max(4, allowed - min(_RESERVED_FILES, allowed // 2)))
