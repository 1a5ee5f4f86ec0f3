"""The client of a home: it asks the daemon, or opens the home itself if none runs. The answers are the same.

    client = tacit.client.connect("~/agent")
    print(client.turn("How hot do we fire?").text)

Each call asks the daemon. If none listens, the home is opened in this process and stays open for the next
call. As long as there is a daemon, nothing heavy is imported.

What must stay true:
- a turn is answered within its deadline and never raises: if it fails, it is empty, the notices of its
  receipt say why, and the session's ETHOS_CONTEXT.md is emptied;
- both ways go through the same operations (tacit.operations) and the same JSON;
- while a daemon runs, all writes go through it, because it holds the open conversations. Only reads go on
  without a daemon that does not respond;
- a message is kept exactly once, even if the daemon goes away while it is being sent.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast
from urllib.parse import quote, urlencode

from tacit import wire
from tacit.context.delivery.files import clear_context_file
from tacit.daemon_socket import Unreachable, is_listening, send_request, socket_path
from tacit.deadline import IS_ANSWERED
from tacit.errors import (
    Busy,
    DiskError,
    GitError,
    HomeError,
    SessionError,
    StoreError,
    TacitError,
    UsageError,
)
from tacit.home.layout import Home, find_home
from tacit.markdown.model import Remembered
from tacit.operations.catalog import OPERATIONS_BY_NAME, Operation
from tacit.transcripts import spool
from tacit.transcripts.model import Sealed
from tacit.version import VERSION

if TYPE_CHECKING:
    from tacit.context.model import Compiled, Receipt
    from tacit.home.categories import Category
    from tacit.operations.handlers import OperationContext
    from tacit.search.model import Found, Hit, Scope
    from tacit.topics.model import Event

JsonObject = dict[str, Any]
T = TypeVar("T")

_DEFAULT_KEY = "agent:main:main"
_DEFAULT_DEADLINE_MS = 250  # for a turn, if neither the caller nor the daemon names a deadline
_GRACE_S = 0.05  # seconds past the deadline for transport and a busy machine
_CALL_TIMEOUT_S = 90.0  # seconds for calls other than turns; a daemon gives up earlier
_PING_TIMEOUT_S = 2.0  # seconds to wait for a response to a ping, before a call that may take long
_PING_TTL_S = 5.0  # seconds that the result of a ping is valid
_RETRY_INTERVAL_S = 0.05  # seconds before a busy daemon is asked again
_ERROR_CLASSES: Mapping[str, type[TacitError]] = {
    "usage": UsageError,
    "too_large": UsageError,
    "busy": Busy,
    "stopping": Busy,
    "timeout": Busy,
    "disk": DiskError,
    "store": StoreError,
    "home": HomeError,
    "session": SessionError,
    "git": GitError,
}


class Kept(NamedTuple):
    """The result of keeping a message or a tool call."""

    session_id: str  # empty: conversations of this agent are not kept
    number: int  # 0: there was nothing to keep
    path: str | None
    again: bool = False  # it was already kept, under the same id


class NotServed(TacitError):
    """The daemon does not know the operation, because it is older than this client."""


def connect(
    home: str | os.PathLike[str] | None = None,
    *,
    warn: Callable[[str], None] | None = None,
    recover: bool = True,
    patience: float = _CALL_TIMEOUT_S,
) -> Client:
    """A client for the home given, else $TACIT_HOME, else ~/tacit.

    `warn` is called once if the daemon has another version. `recover`: whether to clean up after a crash if
    the home is opened in this process. `patience`: seconds for calls other than turns.
    """
    place = find_home(None if home is None else os.fspath(home), os.environ).require()
    return Client(place, warn=warn or _warn_by_default, recover=recover, patience=patience)


def _warn_by_default(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


class Client:
    """One home. Safe to use from several threads."""

    def __init__(
        self,
        home: Home,
        *,
        warn: Callable[[str], None],
        recover: bool = True,
        patience: float = _CALL_TIMEOUT_S,
    ) -> None:
        self.home = home
        self._warn, self._recover, self._patience = warn, recover, patience
        self._socket = socket_path(str(home.root))
        self._daemon: JsonObject = {}  # its daemon.json
        self._daemon_stamp: tuple[int, int] | None = None
        self._sent_warnings: set[str] = set()  # texts that went to `warn`
        self._last_answer = (
            self._last_silence
        ) = -_PING_TTL_S  # when the daemon last answered, and last did not
        self._local_home: OperationContext | None = None
        self._opening = threading.Lock()

    # ------------------------------------------------------------ turns

    def turn(self, message: str, **asked: Any) -> Compiled:
        """As Memory.turn, with the same arguments."""
        return self._compile_turn(message, "prompt", asked)

    def inject(self, message: str, **asked: Any) -> Compiled:
        """As Memory.inject: only what the host lacks for this turn; empty if it lacks nothing."""
        return self._compile_turn(message, "runtime", asked)

    def _compile_turn(self, message: str, lane: str, arguments: Mapping[str, Any]) -> Compiled:
        _require_known_arguments(arguments)
        began = time.time_ns()
        try:
            body = _turn_body(message, lane, arguments)
            return wire.compiled_from(self._run_operation("turn", body, self._turn_deadline(body)))
        except Exception as error:  # noqa: BLE001 - a turn never raises, whatever fails
            empty = _empty_answer(arguments, lane, error)
            if lane == "runtime":
                with suppress(Exception):
                    clear_context_file(self.home, None, empty["session_key"], began)
            return wire.compiled_from(empty)

    def look(self, message: str, *, at: str | None = None, **asked: Any) -> Compiled:
        """A dry run of a turn: nothing is recorded and no deadline holds. `at`: a date, a tag or a commit,
        to see the home as it was."""
        _require_known_arguments(asked)
        body = {**_turn_body(message, "prompt", asked), "at": at}
        return self._read_answer(wire.compiled_from, "look", body)

    def bootstrap(
        self,
        session_key: str,
        files: object,
        workspace: str | None = None,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        message: str = "",
    ) -> list[JsonObject] | None:
        """As Memory.bootstrap. If there is no answer, the host's own list is returned."""
        body: JsonObject = {"session_key": session_key, "workspace": workspace, "files": files}
        body |= {"agent": agent, "sender": sender, "trigger": trigger, "message": message}
        try:
            answer = self._run_operation("bootstrap", body, self._turn_deadline(body)).get("files")
        except Exception:  # noqa: BLE001 - as in a turn: the host goes on with what it has
            answer = None
        if isinstance(answer, list):
            return answer
        return list(files) if isinstance(files, list) else None

    # ------------------------------------------------------------ search

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: Category | None = None,
        session_key: str | None = None,
    ) -> list[Hit]:
        body: JsonObject = {"query": query, "limit": limit, "category": category, "session_key": session_key}
        return list(self._read_answer(wire.found_from, "search", body).hits)

    def find(self, query: str, scope: Scope | None = None, limit: int = 10) -> Found:
        body: JsonObject = {"query": query, "limit": limit, "scope": wire.scope_form(scope) if scope else {}}
        return self._read_answer(wire.found_from, "find", body)

    def remember(
        self, text: str, to: str = "journal", *, session_key: str | None = _DEFAULT_KEY, shared: bool = False
    ) -> Remembered:
        """As Memory.remember."""
        body: JsonObject = {
            "text": text,
            "to": to,
            **({} if session_key is None else {"session_key": session_key}),
        }
        body |= {"shared": True} if shared else {}
        return self._read_answer(_remembered_from, "remember", body)

    # ------------------------------------------------------------ conversations

    def message(
        self,
        role: str,
        text: str,
        *,
        session_key: str = _DEFAULT_KEY,
        session_id: str = "",
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        at: datetime | None = None,
        speaker: str | None = None,
        id: str = "",  # noqa: A002 - the word for it in a request
    ) -> Kept:
        """Keep a message in the session that is open under this key or has this id. `id` identifies the
        message: sent again with the same id, it is not kept twice."""
        about = _session_fields(session_key, session_id, agent, channel, model)
        return self._keep("message", {**about, "role": role, "text": text, "speaker": speaker}, at, id)

    def tool(
        self,
        name: str,
        summary: str,
        result: str = "",
        *,
        session_key: str = _DEFAULT_KEY,
        session_id: str = "",
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        at: datetime | None = None,
        id: str = "",  # noqa: A002 - the word for it in a request
    ) -> Kept:
        about = _session_fields(session_key, session_id, agent, channel, model)
        return self._keep("tool", {**about, "name": name, "summary": summary, "result": result}, at, id)

    def _keep(self, operation: str, body: JsonObject, at: datetime | None, record_id: str) -> Kept:
        body |= {"id": record_id or spool.make_event_id(), "at": at.isoformat() if at else None}
        return self._read_answer(_kept_from, operation, body)

    def end_session(
        self,
        session_key: str = _DEFAULT_KEY,
        *,
        session_id: str = "",
        at: datetime | None = None,
        tags: Sequence[str] = (),
        id: str = "",  # noqa: A002 - the word for it in a request
    ) -> Sealed | None:
        """Seal the transcript; its commit follows. None: nothing was said."""
        body: JsonObject = {"session_key": session_key, "session_id": session_id, "tags": list(tags)}
        body |= {"id": id or spool.make_event_id(), "at": at.isoformat() if at else None}
        return self._read_answer(_sealed_from, "end_session", body)

    # ------------------------------------------------------------ receipts and health

    def receipts(self, limit: int = 20, session_key: str | None = None) -> list[Receipt]:
        """Receipts, newest first; with a key only those of that session, as it may see them."""
        # The query of a request cannot hold a negative number.
        body: JsonObject = {
            "limit": max(1, limit) if type(limit) is int else limit,
            "session_key": session_key,
        }
        return self._read_answer(_receipts_from, "list_receipts", body)

    def receipt(self, name: str) -> Receipt:
        return self._read_answer(wire.receipt_from, "one_receipt", {"id": name})

    def health(self) -> JsonObject:
        """The daemon's health report; without a daemon, that there is none and what waits in the spool."""
        try:
            answer = self._send_request("GET", "/v1/health", {}, 10.0)
        except Unreachable as error:
            if error.kind not in ("absent", "foreign"):
                raise _error_from(error) from None
            return {
                "status": "no daemon",
                "why": str(error),
                "version": VERSION,
                "spool": spool.count_waiting(self.home.root),
            }
        return answer

    def close(self) -> None:
        """Close the home if it was opened in this process; sessions stay open."""
        with self._opening:
            local_home, self._local_home = self._local_home, None
        if local_home is not None:
            local_home.live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------ calls

    def daemon(self, operation: str, body: JsonObject) -> JsonObject | None:
        """The daemon's answer. None if there is no daemon or it does not know the operation; then nothing
        was done."""
        deadline, attempts = time.monotonic() + self._patience, 0
        if _is_record(operation):
            body = {"id": spool.make_event_id(), **body}

        def attempt() -> JsonObject | None:
            nonlocal attempts
            attempts += 1
            answer = self._ask_daemon(operation, body, deadline)
            if answer is None and attempts > 1 and _is_record(operation):
                return self._run_locally(operation, body)  # it may already be kept, under this id
            return answer

        try:
            return self._retry(attempt, deadline)
        except NotServed:
            return None
        except Unreachable as error:
            raise _error_from(error) from None

    def _read_answer(self, convert: Callable[[JsonObject], T], operation: str, body: JsonObject) -> T:
        answer = self._call(operation, body)
        try:
            return convert(answer)
        except (ValueError, KeyError) as error:
            raise TacitError(f"The daemon's answer makes no sense: {error!r}. {_RESTART_HINT}") from None

    def _call(self, operation: str, body: JsonObject) -> JsonObject:
        """The answer to a call other than a turn, or a TacitError."""
        deadline = time.monotonic() + self._patience
        try:
            return self._retry(lambda: self._run_operation(operation, body, deadline), deadline)
        except Unreachable as error:
            raise _error_from(error) from None
        except TacitError:
            raise
        except Exception as error:  # as the daemon reports it, so that callers see no difference
            raise TacitError(f"Something went wrong that should not: {error!r}.") from error

    def _retry(self, call: Callable[[], T], deadline: float) -> T:
        """Retry while the daemon is busy or goes away: with the same id nothing is kept twice."""
        while True:
            try:
                return call()
            except (Busy, Unreachable) as error:
                passes = isinstance(error, Busy) or error.kind == "gone"
                if not passes or time.monotonic() + _RETRY_INTERVAL_S > deadline:
                    raise
            time.sleep(_RETRY_INTERVAL_S)

    def _run_operation(self, operation: str, body: JsonObject, deadline: float) -> JsonObject:
        """Run an operation in the daemon, or in this process."""
        try:
            answer = self._ask_daemon(operation, body, deadline)
        except NotServed:
            if _is_record(operation):
                raise
            answer = None
        if answer is not None:
            return answer
        if "deadline_ms" in body:  # only a caller with a deadline prefers an empty answer to waiting
            return _wait_for(
                deadline,
                lambda is_abandoned: self._run_locally(operation, body, deadline - _GRACE_S, is_abandoned),
            )
        return self._run_locally(operation, body)

    def _ask_daemon(self, operation: str, body: JsonObject, deadline: float) -> JsonObject | None:
        """None: this home has no daemon, or, for a read, the daemon does not respond."""
        called = OPERATIONS_BY_NAME.get(operation) or Operation(
            operation, "POST", f"/v1/{operation}", "write"
        )
        if called.kind == "read" and not self._is_alive(deadline - time.monotonic()):
            return None
        if self._local_home is not None and is_listening(self._socket, deadline - time.monotonic()):
            self.close()  # a daemon started, and it needs the conversations that we hold
        try:
            return self._send_request(called.method, called.path, body, deadline - time.monotonic())
        except HomeError:
            self.home.require()
            return None  # our home is here and the daemon's is gone: it serves another place
        except Unreachable as error:
            if error.kind in ("absent", "foreign"):
                return None
            raise

    def _is_alive(self, seconds: float) -> bool:
        """Ping the daemon. Its event loop answers at once, even if all workers are busy."""
        now = time.monotonic()
        if now - max(self._last_answer, self._last_silence) < _PING_TTL_S:
            return self._last_answer > self._last_silence
        try:
            send_request(self._socket, "OPTIONS", "/v1/health", b"", min(_PING_TIMEOUT_S, seconds))
        except Unreachable as error:
            if error.kind == "late":
                self._last_silence = time.monotonic()
                self._warn_once(f"The daemon gives no sign of life, so it is not asked. {_RESTART_HINT}")
            return error.kind != "late"  # the call itself reports other errors
        return True

    def _send_request(self, method: str, path: str, body: JsonObject, seconds: float) -> JsonObject:
        fields = {name: value for name, value in body.items() if value is not None}
        if method == "GET":
            target, data = _target_of(path, fields), b""
        else:
            target, data = path, _encode(fields)
        status, answer = send_request(self._socket, method, target, data, seconds)
        self._last_answer = time.monotonic()
        self._read_daemon_info()
        return _parse_answer(status, answer)

    def _read_daemon_info(self) -> None:
        """Read daemon.json if it changed."""
        file = self.home.private / "daemon.json"
        try:
            info = file.stat()
            if self._daemon_stamp == (info.st_mtime_ns, info.st_ino):
                return
            daemon_info = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return
        self._daemon_stamp = info.st_mtime_ns, info.st_ino
        self._daemon = daemon_info if isinstance(daemon_info, dict) else {}
        if (version := self._daemon.get("version", VERSION)) != VERSION:
            self._warn_once(
                f"The daemon of this home is tacit {version}, and this is {VERSION}. "
                "Start it anew with: tacit stop, then tacit serve"
            )

    def _warn_once(self, text: str) -> None:
        if text not in self._sent_warnings:
            self._sent_warnings.add(text)
            self._warn(text)

    def _turn_deadline(self, body: JsonObject) -> float:
        """The monotonic time until which a turn is waited for."""
        began = time.monotonic()
        self._read_daemon_info()
        deadline_ms = body.get("deadline_ms")
        if deadline_ms is None:
            deadline_ms = self._daemon.get("deadline_ms") or _DEFAULT_DEADLINE_MS
        return (
            began + (deadline_ms if isinstance(deadline_ms, int) else _DEFAULT_DEADLINE_MS) / 1000 + _GRACE_S
        )

    # ------------------------------------------------------------ in this process

    def _run_locally(
        self,
        operation: str,
        body: JsonObject,
        deadline: float | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
    ) -> JsonObject:
        """`deadline`: of a turn, including opening the home. `is_abandoned`: whether nobody waits
        for the answer any more."""
        from tacit.operations.handlers import HANDLERS

        served = self._open_home()
        if deadline is not None:
            body = {**body, "deadline_ms": max(1, int((deadline - time.monotonic()) * 1000))}
        if _is_record(operation):
            self._drain_spool(served)
        # Through JSON, so that the answer is the same as from a daemon.
        fields = json.loads(_encode({name: value for name, value in body.items() if value is not None}))
        token = IS_ANSWERED.set(is_abandoned)
        try:
            answer: JsonObject = json.loads(json.dumps(HANDLERS[operation](served, fields)))
        finally:
            IS_ANSWERED.reset(token)
        if operation == "end_session":
            with suppress(
                TacitError, OSError
            ):  # it is sealed; the next process that opens the home commits it
                served.live.commit_ended()
        return answer

    def _open_home(self) -> OperationContext:
        with self._opening:
            if self._local_home is None:
                from tacit.app import open_home
                from tacit.operations.handlers import OperationContext
                from tacit.sessions.registry import SessionRegistry

                memory = open_home(self.home.root, recover=self._recover)
                self._local_home = OperationContext(memory, SessionRegistry(memory.services))
            return self._local_home

    def _drain_spool(self, served: OperationContext) -> None:
        """Take spooled messages of hooks first, as they are older."""
        from tacit.operations.handlers import take_spooled

        if spool.count_waiting(self.home.root):
            spool.drain(self.home.root, lambda record: take_spooled(served, record))


def _wait_for(deadline: float, call: Callable[[Callable[[], bool]], T]) -> T:
    """The result of the call, or Unreachable at `deadline`. A late call goes on, and can check whether it was
    abandoned: a home that is opened for this turn stays open for the next one."""
    results: Queue[tuple[T | None, Exception | None]] = Queue()
    abandoned = threading.Event()

    def run() -> None:
        try:
            results.put((call(abandoned.is_set), None))
        except Exception as error:  # noqa: BLE001 - a turn never raises, whatever fails
            results.put((None, error))

    threading.Thread(target=run, name="tacit-client", daemon=True).start()
    try:
        value, error = results.get(timeout=max(0.001, deadline - time.monotonic()))
    except Empty:
        abandoned.set()
        raise Unreachable("late", "there is no daemon, and without one it was not ready in time") from None
    if error is not None:
        raise error
    return cast(T, value)


def _is_record(operation: str) -> bool:
    """Whether the operation keeps what was said; then it has an id and is kept once."""
    return operation in OPERATIONS_BY_NAME and OPERATIONS_BY_NAME[operation].is_spooled


# ---------------------------------------------------------------- requests


_PLAIN_FIELDS = ("session_key", "agent", "budget", "sender", "trigger", "session_id", "tool", "keeps_text")


def _require_known_arguments(arguments: Mapping[str, Any]) -> None:
    unknown = set(arguments) - {*_PLAIN_FIELDS, "history", "event", "paths", "wake", "seconds"}
    if unknown:
        raise TypeError(f"a turn has no argument {min(unknown)!r}")


def _turn_body(message: str, lane: str, arguments: Mapping[str, Any]) -> JsonObject:
    body: JsonObject = {"message": message, "lane": lane, "full": True}
    body |= {name: arguments[name] for name in _PLAIN_FIELDS if arguments.get(name) is not None}
    body |= {name: list(arguments[name]) for name in ("paths", "wake") if arguments.get(name)}
    if arguments.get("seconds") is not None:
        body["deadline_ms"] = max(0, int(arguments["seconds"] * 1000))
    event: Event | None = arguments.get("event")
    if event is not None:
        body["event"] = wire.event_form(event)
    if (history := arguments.get("history")) is not None:
        body["history"] = _history_form(history)
    return body


def _history_form(history: object) -> list[Any]:
    """The history unchanged if it is JSON; else the messages that can be read."""
    if isinstance(history, (list, tuple)):
        try:
            json.dumps(history, allow_nan=False)
            return list(history)
        except (TypeError, ValueError, RecursionError):
            pass
    from tacit.context.history_window import normalize_history

    return [
        {"role": message.role, "content": message.text, "speaker": message.speaker}
        | ({"at": message.at.isoformat()} if message.at else {})
        for message in normalize_history(history)
    ]


def _session_fields(
    key: str, session_id: str, agent: str | None, channel: str | None, model: str | None
) -> JsonObject:
    return {
        "session_key": key,
        "session_id": session_id,
        "agent": agent,
        "channel": channel,
        "model": model,
    }


def _encode(body: JsonObject) -> bytes:
    try:
        return json.dumps(body).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A request can hold text, numbers and lists of them: {error}.") from None


def _target_of(path: str, fields: JsonObject) -> str:
    name = quote(str(fields.get("id", "")), safe="")
    query = {key: value for key, value in fields.items() if key not in ("id", "full")}
    return path.replace("{id}", name) + (f"?{urlencode(query)}" if query else "")


# ---------------------------------------------------------------- answers

_RESTART_HINT = "Look into .tacit/daemon.log, and start the daemon anew with: tacit stop, then tacit serve"


def _parse_answer(status: int, data: bytes) -> JsonObject:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable("garbage", f"the daemon's answer is no JSON object (status {status})")
    if 200 <= status < 300:
        return answer
    detail = answer.get("error")
    error = detail if isinstance(detail, dict) else {}
    code, text = str(error.get("code", "")), str(error.get("message", f"The daemon answered {status}."))
    if status == 404 and code == "not_found":
        raise NotServed(text)
    if status in (429, 503, 504):
        raise Busy(text)
    raise _ERROR_CLASSES.get(code, TacitError)(text)


def _error_from(error: Unreachable) -> TacitError:
    if error.kind == "late":
        return Busy(f"The daemon did not answer: {error}. {_RESTART_HINT}")
    if error.kind == "gone":
        return TacitError(f"There is no telling what was done: {error}. {_RESTART_HINT}")
    return TacitError(f"The daemon cannot be understood: {error}. {_RESTART_HINT}")


def _empty_answer(arguments: Mapping[str, Any], lane: str, error: Exception) -> JsonObject:
    """The answer to a turn that failed: empty, with the reason."""
    code = _error_code(error)
    reason = str(error).split("\n", 1)[0].rstrip(".") or type(error).__name__
    return {
        "text": "",
        "tokens": 0,
        "receipt": "",
        "skipped": code,
        "notices": [{"code": code, "text": f"{reason}. The turn goes on without."}],
        "session_key": str(arguments.get("session_key") or _DEFAULT_KEY),
        "lane": lane,
    }


def _error_code(error: Exception) -> str:
    if isinstance(error, Unreachable):
        return "deadline" if error.kind == "late" else "daemon"
    codes = ((Busy, "busy"), (UsageError, "usage"), (TacitError, "home"))
    return next((code for kind, code in codes if isinstance(error, kind)), "bug")


def _kept_from(answer: JsonObject) -> Kept:
    return Kept(str(answer["session_id"]), int(answer["number"]), answer["path"], answer.get("again") is True)


def _remembered_from(answer: JsonObject) -> Remembered:
    is_new = answer["is_new"] is True
    return Remembered(str(answer["path"]), str(answer["line"]), is_new, str(answer["said"]))


def _sealed_from(answer: JsonObject) -> Sealed | None:
    if answer["path"] is None:
        return None
    waiting = "it is committed in a moment"
    return Sealed(str(answer["session_id"]), str(answer["path"]), str(answer["sha256"]), None, waiting)


def _receipts_from(answer: JsonObject) -> list[Receipt]:
    records = answer.get("receipts")
    if not isinstance(records, list):
        raise ValueError("there is no list of receipts")
    return [wire.receipt_from(record) for record in records]
