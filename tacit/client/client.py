"""The client of a home: it asks the daemon, or opens the home itself if none runs. The answers are the same.

    client = tacit.client.connect("~/agent")
    print(client.turn("How hot do we fire?").text)

Each call asks the daemon. If none listens, the home is opened in this process and stays open for the next
call. As long as there is a daemon, nothing heavy is imported.

What must stay true:
- a turn is answered within its deadline and never raises: if it fails, it is empty, the notices of its
  receipt say why, and the session's ETHOS_CONTEXT.md is emptied;
- both ways go through the operations of tacit.operations and the same JSON;
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
from importlib import import_module
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from tacit import wire
from tacit.client.daemon import RESTART_HINT, DaemonConnection, NotServed, explain_unreachable
from tacit.context.delivery.files import clear_context_file
from tacit.daemon_socket import Unreachable
from tacit.errors import Busy, HomeError, TacitError, UsageError
from tacit.home.layout import Home, find_home
from tacit.markdown.notes import Remembered
from tacit.operations.catalog import DAEMON_OPERATIONS, OPERATIONS_BY_NAME, Operation
from tacit.transcripts import spool
from tacit.transcripts.model import Sealed
from tacit.version import VERSION
from tacit.wire import Json

if TYPE_CHECKING:
    from tacit.client.local import LocalHome
    from tacit.context.model import Compiled, Receipt
    from tacit.home.categories import Category
    from tacit.search.model import Found, Hit, Scope

T = TypeVar("T")

_DEFAULT_KEY = "agent:main:main"
_GRACE_S = 0.05  # past the deadline of a turn, for transport and a busy machine
_CALL_TIMEOUT_S = 90.0  # for calls other than turns; a daemon gives up earlier
_HEALTH_TIMEOUT_S = 10.0
_RETRY_INTERVAL_S = 0.05  # before a busy daemon is asked again
_HEALTH = next(operation for operation in DAEMON_OPERATIONS if operation.name == "health")
# The arguments of a turn that go into the request as they are; the others are converted.
_PLAIN_ARGUMENTS = ("session_key", "agent", "budget", "sender", "trigger", "session_id", "tool", "keeps_text")
_TURN_ARGUMENTS = frozenset((*_PLAIN_ARGUMENTS, "history", "event", "paths", "wake", "seconds"))


class Kept(NamedTuple):
    """The result of keeping a message or a tool call."""

    session_id: str  # empty: conversations of this agent are not kept
    number: int  # 0: there was nothing to keep
    path: str | None
    again: bool = False  # it was already kept, under the same id


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
    """One home. Safe to use from several threads. Each method sends its arguments as the fields of one
    operation in tacit.operations.catalog."""

    def __init__(
        self,
        home: Home,
        *,
        warn: Callable[[str], None],
        recover: bool = True,
        patience: float = _CALL_TIMEOUT_S,
    ) -> None:
        self.home = home
        self._recover, self._patience = recover, patience
        self._daemon = DaemonConnection(home, warn)
        self._local_home: LocalHome | None = None
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
            return wire.compiled_from(self._run("turn", body, self._turn_deadline(body)))
        except Exception as error:  # noqa: BLE001 - a turn never raises, it reports the error
            reason = str(error).split("\n", 1)[0].rstrip(".") or type(error).__name__
            key = str(arguments.get("session_key") or _DEFAULT_KEY)
            if lane == "runtime":
                with suppress(Exception):
                    clear_context_file(self.home, None, key, began)
            empty = wire.empty_turn(_error_code(error), f"{reason}.")
            return wire.compiled_from({**empty, "session_key": key, "lane": lane})

    def look(self, message: str, *, at: str | None = None, **asked: Any) -> Compiled:
        """A dry run of a turn: nothing is recorded and no deadline holds. `at`: a date, a tag or a commit,
        to see the home as it was."""
        _require_known_arguments(asked)
        return self._call("look", wire.compiled_from, {**_turn_body(message, "prompt", asked), "at": at})

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
    ) -> list[Json] | None:
        """As Memory.bootstrap. If there is no answer, the host's own list is returned."""
        body: Json = {"session_key": session_key, "workspace": workspace, "files": files}
        body |= {"agent": agent, "sender": sender, "trigger": trigger, "message": message}
        try:
            answer = self._run("bootstrap", body, self._turn_deadline(body)).get("files")
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
        body: Json = {"query": query, "limit": limit, "category": category, "session_key": session_key}
        return list(self._call("search", wire.found_from, body).hits)

    def find(self, query: str, scope: Scope | None = None, limit: int = 10) -> Found:
        body: Json = {"query": query, "limit": limit, "scope": wire.scope_form(scope) if scope else {}}
        return self._call("find", wire.found_from, body)

    def remember(
        self, text: str, to: str = "journal", *, session_key: str | None = _DEFAULT_KEY, shared: bool = False
    ) -> Remembered:
        """As Memory.remember."""
        body: Json = {"text": text, "to": to, "session_key": session_key, "shared": shared or None}
        return self._call("remember", _remembered_from, body)

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
        body = _record_fields(session_key, session_id, at, id, agent=agent, channel=channel, model=model)
        return self._call("message", _kept_from, {**body, "role": role, "text": text, "speaker": speaker})

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
        body = _record_fields(session_key, session_id, at, id, agent=agent, channel=channel, model=model)
        return self._call("tool", _kept_from, {**body, "name": name, "summary": summary, "result": result})

    def end_session(
        self,
        session_key: str = _DEFAULT_KEY,
        *,
        session_id: str = "",
        at: datetime | None = None,
        tags: Sequence[str] = (),
        id: str = "",  # noqa: A002 - the word for it in a request
    ) -> Sealed | None:
        """Finalize the transcript; its commit follows. None: there are no messages."""
        body = _record_fields(session_key, session_id, at, id, tags=list(tags))
        return self._call("end_session", _sealed_from, body)

    # ------------------------------------------------------------ receipts and health

    def receipts(self, limit: int = 20, session_key: str | None = None) -> list[Receipt]:
        """Receipts, newest first; with a key only those of that session, as it may see them."""
        if type(limit) is int:
            limit = max(1, limit)  # the query of a request cannot hold a negative number
        return self._call("list_receipts", _receipts_from, {"limit": limit, "session_key": session_key})

    def receipt(self, name: str) -> Receipt:
        return self._call("one_receipt", wire.receipt_from, {"id": name})

    def health(self) -> Json:
        """The daemon's health report; without a daemon, that there is none and what waits in the spool."""
        try:
            return self._daemon.request(_HEALTH, {}, _HEALTH_TIMEOUT_S)
        except Unreachable as error:
            if error.kind not in ("absent", "foreign"):
                raise explain_unreachable(error) from None
            waiting = spool.count_waiting(self.home.root)
            return {"status": "no daemon", "why": str(error), "version": VERSION, "spool": waiting}

    def close(self) -> None:
        """Close the home if it was opened in this process; sessions stay open."""
        with self._opening:
            local_home, self._local_home = self._local_home, None
        if local_home is not None:
            local_home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------ calls

    def daemon(self, operation: str, body: Json) -> Json | None:
        """The daemon's answer. None if there is no daemon or it does not know the operation; then nothing
        was done."""
        deadline, attempts = time.monotonic() + self._patience, 0
        if _is_record(operation):
            body = {"id": spool.make_event_id(), **body}

        def attempt() -> Json | None:
            nonlocal attempts
            attempts += 1
            answer = self._ask_daemon(operation, body, deadline)
            if answer is None and attempts > 1 and _is_record(operation):
                return self._run_locally(operation, body)  # it may already be kept, under this id
            return answer

        try:
            return _retry(attempt, deadline)
        except NotServed:
            return None
        except Unreachable as error:
            raise explain_unreachable(error) from None

    def _call(self, operation: str, decode: Callable[[Json], T], body: Json) -> T:
        """The value of an answer to a call other than a turn, or a TacitError."""
        deadline = time.monotonic() + self._patience
        try:
            answer = _retry(lambda: self._run(operation, body, deadline), deadline)
        except Unreachable as error:
            raise explain_unreachable(error) from None
        except TacitError:
            raise
        except Exception as error:  # as the daemon reports it, so that callers see no difference
            raise TacitError(f"An unexpected error happened: {error!r}.") from error
        try:
            return decode(answer)
        except (ValueError, KeyError) as error:
            raise TacitError(f"The daemon's answer has the wrong form: {error!r}. {RESTART_HINT}") from None

    def _run(self, operation: str, body: Json, deadline: float) -> Json:
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

    def _ask_daemon(self, operation: str, body: Json, deadline: float) -> Json | None:
        """None: this home has no daemon, or, for a read, the daemon does not respond."""
        unknown = Operation(operation, "POST", f"/v1/{operation}", "write")  # the daemon may be newer
        called = OPERATIONS_BY_NAME.get(operation, unknown)
        if called.kind == "read" and not self._daemon.is_responsive(deadline - time.monotonic()):
            return None
        if self._local_home is not None and self._daemon.is_listening(deadline - time.monotonic()):
            self.close()  # a daemon started, and it needs the conversations that we hold
        try:
            return self._daemon.request(called, body, deadline - time.monotonic())
        except HomeError:
            self.home.require()
            return None  # our home is here and the daemon's is gone: it serves another place
        except Unreachable as error:
            if error.kind in ("absent", "foreign"):
                return None
            raise

    def _run_locally(
        self,
        operation: str,
        body: Json,
        deadline: float | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
    ) -> Json:
        with self._opening:
            if self._local_home is None:
                local = import_module("tacit.client.local")
                self._local_home = local.LocalHome(self.home, recover=self._recover)
            local_home = cast("LocalHome", self._local_home)
        return local_home.run(operation, body, deadline, is_abandoned)

    def _turn_deadline(self, body: Json) -> float:
        """The monotonic time until which a turn is waited for."""
        began, deadline_ms = time.monotonic(), body.get("deadline_ms")
        if not isinstance(deadline_ms, int):
            deadline_ms = self._daemon.turn_deadline_ms()
        return began + deadline_ms / 1000 + _GRACE_S


def _retry(call: Callable[[], T], deadline: float) -> T:
    """Retry while the daemon is busy or goes away: with the same id nothing is kept twice."""
    while True:
        try:
            return call()
        except (Busy, Unreachable) as error:
            passes = isinstance(error, Busy) or error.kind == "gone"
            if not passes or time.monotonic() + _RETRY_INTERVAL_S > deadline:
                raise
        time.sleep(_RETRY_INTERVAL_S)


def _wait_for(deadline: float, call: Callable[[Callable[[], bool]], T]) -> T:
    """The result of the call, or Unreachable at `deadline`. A late call goes on, and can check whether it was
    abandoned: a home that is opened for this turn stays open for the next one."""
    results: Queue[tuple[T | None, Exception | None]] = Queue()
    abandoned = threading.Event()

    def run() -> None:
        try:
            results.put((call(abandoned.is_set), None))
        except Exception as error:  # noqa: BLE001 - the caller gets it
            results.put((None, error))

    threading.Thread(target=run, name="tacit-client", daemon=True).start()
    try:
        value, error = results.get(timeout=max(0.001, deadline - time.monotonic()))
    except Empty:
        abandoned.set()
        raise Unreachable("late", "no daemon runs, and the home was not open in time") from None
    if error is not None:
        raise error
    return cast(T, value)


# ---------------------------------------------------------------- requests


def _is_record(operation: str) -> bool:
    """Whether the operation keeps what was said; then it has an id and is kept once."""
    return operation in OPERATIONS_BY_NAME and OPERATIONS_BY_NAME[operation].is_spooled


def _require_known_arguments(arguments: Mapping[str, Any]) -> None:
    if unknown := arguments.keys() - _TURN_ARGUMENTS:
        raise TypeError(f"a turn has no argument {min(unknown)!r}")


def _turn_body(message: str, lane: str, arguments: Mapping[str, Any]) -> Json:
    body: Json = {"message": message, "lane": lane, "full": True}
    body |= {name: arguments[name] for name in _PLAIN_ARGUMENTS if arguments.get(name) is not None}
    body |= {name: list(arguments[name]) for name in ("paths", "wake") if arguments.get(name)}
    if (seconds := arguments.get("seconds")) is not None:
        body["deadline_ms"] = max(0, int(seconds * 1000))
    if (event := arguments.get("event")) is not None:
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
    messages: list[Any] = import_module("tacit.client.local").history_as_json(history)
    return messages


def _record_fields(key: str, session_id: str, at: datetime | None, record_id: str, **fields: Any) -> Json:
    return {
        "session_key": key,
        "session_id": session_id,
        "at": at.isoformat() if at else None,
        "id": record_id or spool.make_event_id(),
        **fields,
    }


# ---------------------------------------------------------------- answers


def _error_code(error: Exception) -> str:
    if isinstance(error, Unreachable):
        return "deadline" if error.kind == "late" else "daemon"
    codes = ((Busy, "busy"), (UsageError, "usage"), (TacitError, "home"))
    return next((code for kind, code in codes if isinstance(error, kind)), "bug")


def _kept_from(answer: Json) -> Kept:
    return Kept(str(answer["session_id"]), int(answer["number"]), answer["path"], answer.get("again") is True)


def _remembered_from(answer: Json) -> Remembered:
    is_new = answer["is_new"] is True
    return Remembered(str(answer["path"]), str(answer["line"]), is_new, str(answer["said"]))


def _sealed_from(answer: Json) -> Sealed | None:
    if answer["path"] is None:
        return None
    waiting = "it is committed in a moment"
    return Sealed(str(answer["session_id"]), str(answer["path"]), str(answer["sha256"]), None, waiting)


def _receipts_from(answer: Json) -> list[Receipt]:
    records = answer.get("receipts")
    if not isinstance(records, list):
        raise ValueError("there is no list of receipts")
    return [wire.receipt_from(record) for record in records]
