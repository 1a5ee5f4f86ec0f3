"""class Client: a home by way of its daemon, and by itself where there is none. The answers are the same.

    client = tacit.client.connect("~/agent")
    print(client.turn("How hot do we fire?").text)

Each call asks the daemon. Where nobody listens, the home is opened in this process, and stays open for the
next call. As long as there is a daemon nothing heavy is imported.

What must stay true:
- a turn is answered within its deadline and raises nothing: where it could not be made, it is empty, the
  notices of its receipt say why, and the session's ETHOS_CONTEXT.md is emptied;
- both ways go through the same operations (tacit.api) and the same JSON;
- while there is a daemon, nothing is kept beside it: it holds the open conversations. Only who reads does
  not wait for one that gives no sign of life;
- what is to be kept is kept once, also when the daemon goes away while it is told.
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
from tacit.model.notes import Remembered
from tacit.model.turns import Sealed
from tacit.model.waiting import ANSWERED
from tacit.net.local import Unreachable, ask, listens, socket_path
from tacit.store import spool
from tacit.store.home import Home, locate
from tacit.store.mirrors import empty_mirror
from tacit.text import wire
from tacit.version import VERSION

if TYPE_CHECKING:
    from tacit.api import Served
    from tacit.model.context import Compiled, Receipt
    from tacit.model.search import Category, Found, Hit, Scope
    from tacit.model.topics import Event

Json = dict[str, Any]
T = TypeVar("T")

_KEY = "agent:main:main"
_DEADLINE_MS = 250  # of a turn, where neither the caller nor the daemon names another
_GRACE = 0.05  # seconds that the answer may come later than that: the way here, and a machine that is busy
_PATIENCE = 90.0  # seconds for what is no turn; a daemon gives up before
_LOOK = 2.0  # seconds for a sign of life, before it is asked what may take its time
_FRESH = 5.0  # seconds that such a sign holds
_RETRY = 0.05  # seconds until a busy daemon is asked again
_WHERE = {  # as in tacit.api, which is not imported for this: it imports most of the package
    "turn": ("POST", "/v1/turn"),
    "look": ("POST", "/v1/look"),
    "bootstrap": ("POST", "/v1/bootstrap"),
    "search": ("POST", "/v1/search"),
    "find": ("POST", "/v1/find"),
    "message": ("POST", "/v1/message"),
    "tool": ("POST", "/v1/tool"),
    "end_session": ("POST", "/v1/session/end"),
    "remember": ("POST", "/v1/remember"),
    "list_receipts": ("GET", "/v1/receipts"),
    "one_receipt": ("GET", "/v1/receipts/{id}"),
}
_KEEPING = ("message", "tool", "end_session")
_READING = ("look", "search", "find", "list_receipts", "one_receipt")
_ERRORS: Mapping[str, type[TacitError]] = {
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
    """What became of a message or a tool call."""

    session_id: str  # empty: this agent's conversations are not kept
    number: int  # 0: there was nothing to keep
    path: str | None
    again: bool = False  # it was kept before, under the same id


class NotServed(TacitError):
    """The daemon has no such operation: it is older than we are."""


def connect(
    home: str | os.PathLike[str] | None = None,
    *,
    warn: Callable[[str], None] | None = None,
    recover: bool = True,
    patience: float = _PATIENCE,
) -> Client:
    """The home given, else $TACIT_HOME, else ~/tacit.

    `warn`: who is told, once, that the daemon is of another version. `recover`: whether to put in order what
    a crash left behind, if the home is opened in this process. `patience`: seconds for what is no turn.
    """
    place = locate(None if home is None else os.fspath(home), os.environ).require()
    return Client(place, warn=warn or _warned, recover=recover, patience=patience)


def _warned(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


class Client:
    """One home. Safe to use from several threads."""

    def __init__(
        self, home: Home, *, warn: Callable[[str], None], recover: bool = True, patience: float = _PATIENCE
    ) -> None:
        self.home = home
        self._warn, self._recover, self._patience = warn, recover, patience
        self._socket = socket_path(str(home.root))
        self._daemon: Json = {}  # what it wrote about itself
        self._daemon_stamp: tuple[int, int] | None = None
        self._told: set[str] = set()  # what `warn` was told
        self._heard = self._missed = -_FRESH  # when the daemon last answered, and when it gave no sign
        self._here: Served | None = None
        self._opening = threading.Lock()

    # ------------------------------------------------------------ turns

    def turn(self, message: str, **asked: Any) -> Compiled:
        """As Memory.turn, with the same arguments."""
        return self._turn(message, "prompt", asked)

    def inject(self, message: str, **asked: Any) -> Compiled:
        """As Memory.inject: only what the host lacks for this turn, empty where that is nothing."""
        return self._turn(message, "runtime", asked)

    def _turn(self, message: str, lane: str, asked: Mapping[str, Any]) -> Compiled:
        _require_known(asked)
        began = time.time_ns()
        try:
            body = _turn_body(message, lane, asked)
            return wire.compiled_from(self._run("turn", body, self._end_of(body)))
        except Exception as error:  # noqa: BLE001 - a turn never breaks, whatever is wrong with us
            nothing = _nothing(asked, lane, error)
            if lane == "runtime":
                with suppress(Exception):
                    empty_mirror(self.home, None, nothing["session_key"], began)
            return wire.compiled_from(nothing)

    def look(self, message: str, *, at: str | None = None, **asked: Any) -> Compiled:
        """A turn to look at: it counts as none and takes the time it needs. `at`: a date, a tag or a commit;
        then of the home as it was."""
        _require_known(asked)
        body = {**_turn_body(message, "prompt", asked), "at": at}
        return self._read(wire.compiled_from, "look", body)

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
        """As Memory.bootstrap. Where there is no answer, it is the host's own list."""
        body: Json = {"session_key": session_key, "workspace": workspace, "files": files}
        body |= {"agent": agent, "sender": sender, "trigger": trigger, "message": message}
        try:
            found = self._run("bootstrap", body, self._end_of(body)).get("files")
        except Exception:  # noqa: BLE001 - as in a turn: the host goes on with what it has
            found = None
        if isinstance(found, list):
            return found
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
        return list(self._read(wire.found_from, "search", body).hits)

    def find(self, query: str, scope: Scope | None = None, limit: int = 10) -> Found:
        body: Json = {"query": query, "limit": limit, "scope": wire.scope_form(scope) if scope else {}}
        return self._read(wire.found_from, "find", body)

    def remember(self, text: str, to: str = "journal", *, session_key: str | None = _KEY) -> Remembered:
        """As Memory.remember."""
        body: Json = {"text": text, "to": to, **({} if session_key is None else {"session_key": session_key})}
        return self._read(_remembered, "remember", body)

    # ------------------------------------------------------------ conversations

    def message(
        self,
        role: str,
        text: str,
        *,
        session_key: str = _KEY,
        session_id: str = "",
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        at: datetime | None = None,
        speaker: str | None = None,
        id: str = "",  # noqa: A002 - the word for it in a request
    ) -> Kept:
        """Keep what was said, in the session that is open under this key or has this id. `id`: of the record;
        one that is sent again with the same id is not kept again."""
        about = _about(session_key, session_id, agent, channel, model)
        return self._keep("message", {**about, "role": role, "text": text, "speaker": speaker}, at, id)

    def tool(
        self,
        name: str,
        summary: str,
        result: str = "",
        *,
        session_key: str = _KEY,
        session_id: str = "",
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        at: datetime | None = None,
        id: str = "",  # noqa: A002
    ) -> Kept:
        about = _about(session_key, session_id, agent, channel, model)
        return self._keep("tool", {**about, "name": name, "summary": summary, "result": result}, at, id)

    def _keep(self, operation: str, body: Json, at: datetime | None, name: str) -> Kept:
        body |= {"id": name or spool.new_id(), "at": at.isoformat() if at else None}
        return self._read(_kept, operation, body)

    def end_session(
        self,
        session_key: str = _KEY,
        *,
        session_id: str = "",
        at: datetime | None = None,
        tags: Sequence[str] = (),
        id: str = "",  # noqa: A002
    ) -> Sealed | None:
        """Seal the transcript; its commit follows. None: nothing was said."""
        body: Json = {"session_key": session_key, "session_id": session_id, "tags": list(tags)}
        body |= {"id": id or spool.new_id(), "at": at.isoformat() if at else None}
        return self._read(_sealed, "end_session", body)

    # ------------------------------------------------------------ what was, what is

    def receipts(self, limit: int = 20, session_key: str | None = None) -> list[Receipt]:
        """The newest first; with a key only those of that session, as it may see them."""
        # In the address of a request there is no number below zero.
        body: Json = {"limit": max(1, limit) if type(limit) is int else limit, "session_key": session_key}
        return self._read(_receipts, "list_receipts", body)

    def receipt(self, name: str) -> Receipt:
        return self._read(wire.receipt_from, "one_receipt", {"id": name})

    def health(self) -> Json:
        """What the daemon says of itself; without one, that there is none, and what waits for it."""
        try:
            answer = self._ask("GET", "/v1/health", {}, 10.0)
        except Unreachable as error:
            if error.kind not in ("nobody", "foreign"):
                raise _as_error(error) from None
            return {
                "status": "no daemon",
                "why": str(error),
                "version": VERSION,
                "spool": spool.waiting(self.home.root),
            }
        return answer

    def close(self) -> None:
        """Let go of what was opened in this process; the sessions go on."""
        with self._opening:
            here, self._here = self._here, None
        if here is not None:
            here.live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------ the way there

    def daemon(self, operation: str, body: Json) -> Json | None:
        """What the daemon answers; None where there is none, or it does not know the operation: then nothing
        was done."""
        until, tries = time.monotonic() + self._patience, 0
        if operation in _KEEPING:
            body = {"id": spool.new_id(), **body}

        def once() -> Json | None:
            nonlocal tries
            tries += 1
            answer = self._by_daemon(operation, body, until)
            if answer is None and tries > 1 and operation in _KEEPING:
                return self._run_here(operation, body)  # it may have been kept already, under this id
            return answer

        try:
            return self._patiently(once, until)
        except NotServed:
            return None
        except Unreachable as error:
            raise _as_error(error) from None

    def _read(self, made: Callable[[Json], T], operation: str, body: Json) -> T:
        answer = self._asked(operation, body)
        try:
            return made(answer)
        except (ValueError, KeyError) as error:
            raise TacitError(f"The daemon's answer makes no sense: {error!r}. {_WHAT_TO_DO}") from None

    def _asked(self, operation: str, body: Json) -> Json:
        """The answer to what is no turn, or a TacitError."""
        until = time.monotonic() + self._patience
        try:
            return self._patiently(lambda: self._run(operation, body, until), until)
        except Unreachable as error:
            raise _as_error(error) from None
        except TacitError:
            raise
        except Exception as error:  # as a daemon has it: whoever asks need not know who was asked
            raise TacitError(f"Something went wrong that should not: {error!r}.") from error

    def _patiently(self, call: Callable[[], T], until: float) -> T:
        """Again while it is busy, or goes away: with the same id nothing is kept twice."""
        while True:
            try:
                return call()
            except (Busy, Unreachable) as error:
                passes = isinstance(error, Busy) or error.kind == "gone"
                if not passes or time.monotonic() + _RETRY > until:
                    raise
            time.sleep(_RETRY)

    def _run(self, operation: str, body: Json, until: float) -> Json:
        """By the daemon, or in this process."""
        try:
            answer = self._by_daemon(operation, body, until)
        except NotServed:
            if operation in _KEEPING:
                raise
            answer = None
        if answer is not None:
            return answer
        if "deadline_ms" in body:  # only who names a time would rather have nothing than wait for it
            return _by(until, lambda gone: self._run_here(operation, body, until - _GRACE, gone))
        return self._run_here(operation, body)

    def _by_daemon(self, operation: str, body: Json, until: float) -> Json | None:
        """None: there is no daemon for this home, or one that gives no sign of life to who only reads."""
        method, path = _WHERE.get(operation, ("POST", f"/v1/{operation}"))
        if operation in _READING and not self._is_alive(until - time.monotonic()):
            return None
        if self._here is not None and listens(self._socket, until - time.monotonic()):
            self.close()  # a daemon came up, and it needs the conversations that we hold
        try:
            return self._ask(method, path, body, until - time.monotonic())
        except HomeError:
            self.home.require()
            return None  # ours is here, and the daemon's is gone: it is the daemon of another place
        except Unreachable as error:
            if error.kind in ("nobody", "foreign"):
                return None
            raise

    def _is_alive(self, seconds: float) -> bool:
        """This is answered by the daemon's loop alone, at once, whatever its workers do."""
        now = time.monotonic()
        if now - max(self._heard, self._missed) < _FRESH:
            return self._heard > self._missed
        try:
            ask(self._socket, "OPTIONS", "/v1/health", b"", min(_LOOK, seconds))
        except Unreachable as error:
            if error.kind == "late":
                self._missed = time.monotonic()
                self._tell_once(f"The daemon gives no sign of life, so it is not asked. {_WHAT_TO_DO}")
            return error.kind != "late"  # the others are told by who asks
        return True

    def _ask(self, method: str, path: str, body: Json, seconds: float) -> Json:
        given = {name: value for name, value in body.items() if value is not None}
        if method == "GET":
            target, data = _address(path, given), b""
        else:
            target, data = path, _encoded(given)
        status, answer = ask(self._socket, method, target, data, seconds)
        self._heard = time.monotonic()
        self._look_at_daemon()
        return _answer(status, answer)

    def _look_at_daemon(self) -> None:
        """At what it wrote about itself, when that is new."""
        file = self.home.private / "daemon.json"
        try:
            info = file.stat()
            if self._daemon_stamp == (info.st_mtime_ns, info.st_ino):
                return
            said = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return
        self._daemon_stamp = info.st_mtime_ns, info.st_ino
        self._daemon = said if isinstance(said, dict) else {}
        if (version := self._daemon.get("version", VERSION)) != VERSION:
            self._tell_once(
                f"The daemon of this home is tacit {version}, and this is {VERSION}. "
                "Start it anew with: tacit stop, then tacit serve"
            )

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._warn(text)

    def _end_of(self, body: Json) -> float:
        """Until when a turn is waited for."""
        began = time.monotonic()
        self._look_at_daemon()
        given = body.get("deadline_ms")
        if given is None:
            given = self._daemon.get("deadline_ms") or _DEADLINE_MS
        return began + (given if isinstance(given, int) else _DEADLINE_MS) / 1000 + _GRACE

    # ------------------------------------------------------------ in this process

    def _run_here(
        self,
        operation: str,
        body: Json,
        until: float | None = None,
        gone: Callable[[], bool] = lambda: False,
    ) -> Json:
        """`until`: when a turn must be made; what opening the home took is taken off. `gone`: whether nobody
        waits for it any more."""
        from tacit.api import OPERATIONS

        served = self._opened()
        if until is not None:
            body = {**body, "deadline_ms": max(1, int((until - time.monotonic()) * 1000))}
        if operation in _KEEPING:
            self._drain(served)
        run = next(one.run for one in OPERATIONS if one.name == operation)
        # By way of JSON, as it would come from a daemon: nobody shall be able to tell the difference.
        given = json.loads(_encoded({name: value for name, value in body.items() if value is not None}))
        mark = ANSWERED.set(gone)
        try:
            answer: Json = json.loads(json.dumps(run(served, given)))
        finally:
            ANSWERED.reset(mark)
        if operation == "end_session":
            with suppress(TacitError, OSError):  # sealed it is; who opens the home next commits it
                served.live.commit_ended()
        return answer

    def _opened(self) -> Served:
        with self._opening:
            if self._here is None:
                from tacit.api import Served
                from tacit.app import open_home
                from tacit.memory.live import Conversations

                memory = open_home(self.home.root, recover=self._recover)
                self._here = Served(memory, Conversations(memory))
            return self._here

    def _drain(self, served: Served) -> None:
        """What hooks spooled comes before what is said now."""
        from tacit.api import take_spooled

        if spool.waiting(self.home.root):
            spool.drain(self.home.root, lambda record: take_spooled(served, record))


def _by(until: float, call: Callable[[Callable[[], bool]], T]) -> T:
    """What it returns by then. What takes longer goes on, and can ask whether nobody waits any more: a home
    that is opened for this turn is open for the next one."""
    done: Queue[tuple[T | None, Exception | None]] = Queue()
    gone = threading.Event()

    def run() -> None:
        try:
            done.put((call(gone.is_set), None))
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits for it
            done.put((None, error))

    threading.Thread(target=run, name="tacit-client", daemon=True).start()
    try:
        value, error = done.get(timeout=max(0.001, until - time.monotonic()))
    except Empty:
        gone.set()
        raise Unreachable("late", "there is no daemon, and without one it was not ready in time") from None
    if error is not None:
        raise error
    return cast(T, value)


# ---------------------------------------------------------------- requests


_AS_THEY_ARE = ("session_key", "agent", "budget", "sender", "trigger", "session_id", "tool", "keeps_text")


def _require_known(asked: Mapping[str, Any]) -> None:
    unknown = set(asked) - {*_AS_THEY_ARE, "history", "event", "paths", "wake", "seconds"}
    if unknown:
        raise TypeError(f"a turn has no argument {min(unknown)!r}")


def _turn_body(message: str, lane: str, asked: Mapping[str, Any]) -> Json:
    body: Json = {"message": message, "lane": lane, "full": True}
    body |= {name: asked[name] for name in _AS_THEY_ARE if asked.get(name) is not None}
    body |= {name: list(asked[name]) for name in ("paths", "wake") if asked.get(name)}
    if asked.get("seconds") is not None:
        body["deadline_ms"] = max(0, int(asked["seconds"] * 1000))
    event: Event | None = asked.get("event")
    if event is not None:
        body["event"] = wire.event_form(event)
    if (history := asked.get("history")) is not None:
        body["history"] = _history(history)
    return body


def _history(history: object) -> list[Any]:
    """As it is where it is JSON; else what can be read of it."""
    if isinstance(history, (list, tuple)):
        try:
            json.dumps(history, allow_nan=False)
            return list(history)
        except (TypeError, ValueError, RecursionError):
            pass
    from tacit.context.history import normal

    return [
        {"role": said.role, "content": said.text, "speaker": said.speaker}
        | ({"at": said.at.isoformat()} if said.at else {})
        for said in normal(history)
    ]


def _about(key: str, session_id: str, agent: str | None, channel: str | None, model: str | None) -> Json:
    return {
        "session_key": key,
        "session_id": session_id,
        "agent": agent,
        "channel": channel,
        "model": model,
    }


def _encoded(body: Json) -> bytes:
    try:
        return json.dumps(body).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A request can hold text, numbers and lists of them: {error}.") from None


def _address(path: str, fields: Json) -> str:
    name = quote(str(fields.get("id", "")), safe="")
    rest = {key: value for key, value in fields.items() if key not in ("id", "full")}
    return path.replace("{id}", name) + (f"?{urlencode(rest)}" if rest else "")


# ---------------------------------------------------------------- answers

_WHAT_TO_DO = "Look into .tacit/daemon.log, and start the daemon anew with: tacit stop, then tacit serve"


def _answer(status: int, data: bytes) -> Json:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreachable("garbage", f"the daemon's answer is no JSON object (status {status})")
    if 200 <= status < 300:
        return found
    said = found.get("error")
    error = said if isinstance(said, dict) else {}
    code, text = str(error.get("code", "")), str(error.get("message", f"The daemon answered {status}."))
    if status == 404 and code == "not_found":
        raise NotServed(text)
    if status in (429, 503, 504):
        raise Busy(text)
    raise _ERRORS.get(code, TacitError)(text)


def _as_error(error: Unreachable) -> TacitError:
    if error.kind == "late":
        return Busy(f"The daemon did not answer: {error}. {_WHAT_TO_DO}")
    if error.kind == "gone":
        return TacitError(f"There is no telling what was done: {error}. {_WHAT_TO_DO}")
    return TacitError(f"The daemon cannot be understood: {error}. {_WHAT_TO_DO}")


def _nothing(asked: Mapping[str, Any], lane: str, error: Exception) -> Json:
    """The answer to a turn that was not made: empty, and why."""
    code = _code_of(error)
    why = str(error).split("\n", 1)[0].rstrip(".") or type(error).__name__
    return {
        "text": "",
        "tokens": 0,
        "receipt": "",
        "skipped": code,
        "notices": [{"code": code, "text": f"{why}. The turn goes on without."}],
        "session_key": str(asked.get("session_key") or _KEY),
        "lane": lane,
    }


def _code_of(error: Exception) -> str:
    if isinstance(error, Unreachable):
        return "deadline" if error.kind == "late" else "daemon"
    codes = ((Busy, "busy"), (UsageError, "usage"), (TacitError, "home"))
    return next((code for kind, code in codes if isinstance(error, kind)), "bug")


def _kept(answer: Json) -> Kept:
    return Kept(str(answer["session_id"]), int(answer["number"]), answer["path"], answer.get("again") is True)


def _remembered(answer: Json) -> Remembered:
    new = answer["is_new"] is True
    return Remembered(str(answer["path"]), str(answer["line"]), new, str(answer["said"]))


def _sealed(answer: Json) -> Sealed | None:
    if answer["path"] is None:
        return None
    waiting = "it is committed in a moment"
    return Sealed(str(answer["session_id"]), str(answer["path"]), str(answer["sha256"]), None, waiting)


def _receipts(answer: Json) -> list[Receipt]:
    found = answer.get("receipts")
    if not isinstance(found, list):
        raise ValueError("there is no list of receipts")
    return [wire.receipt_from(one) for one in found]
