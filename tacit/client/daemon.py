"""Requests to the daemon of a home: the JSON that goes over its socket, and the errors that come back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

from tacit.daemon_socket import Unreachable, is_listening, send_request, socket_path
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
from tacit.home.layout import Home
from tacit.operations.catalog import Operation
from tacit.version import VERSION
from tacit.wire import Json

RESTART_HINT = "Look into .tacit/daemon.log, and restart the daemon with: tacit stop, then tacit serve"
_DEFAULT_DEADLINE_MS = 250  # for a turn, if neither the caller nor the daemon names a deadline
_PING_TIMEOUT_S = 2.0  # to wait for a response to a ping, before a call that may take long
_PING_TTL_S = 5.0  # that the result of a ping is valid
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


class NotServed(TacitError):
    """The daemon does not know the operation, because it is older than this client."""


class DaemonConnection:
    """The daemon of one home, whether it runs or not. Safe to use from several threads."""

    def __init__(self, home: Home, warn: Callable[[str], None]) -> None:
        self._info_file = home.private / "daemon.json"
        self._warn = warn
        self._socket = socket_path(str(home.root))
        self._info: Json = {}
        self._info_stamp: tuple[int, int] | None = None
        self._sent_warnings: set[str] = set()
        self._last_answer = self._last_silence = -_PING_TTL_S  # when the daemon last answered, and did not

    def request(self, operation: Operation, body: Json, seconds: float) -> Json:
        """The answer; Unreachable if there is none, and a TacitError if it is an error."""
        target, data = operation.path, b""
        if operation.method == "GET":
            target = _make_target(operation.path, body)
        else:
            data = encode_body(body)
        status, answer = send_request(self._socket, operation.method, target, data, seconds)
        self._last_answer = time.monotonic()
        self._read_info()
        return _parse_answer(status, answer)

    def is_listening(self, seconds: float) -> bool:
        return is_listening(self._socket, seconds)

    def is_responsive(self, seconds: float) -> bool:
        """Ping the daemon. Its event loop answers at once, even if all workers are busy."""
        now = time.monotonic()
        if now - max(self._last_answer, self._last_silence) < _PING_TTL_S:
            return self._last_answer > self._last_silence
        try:
            send_request(self._socket, "OPTIONS", "/v1/health", b"", min(_PING_TIMEOUT_S, seconds))
        except Unreachable as error:
            if error.kind == "late":
                self._last_silence = time.monotonic()
                self._warn_once(
                    f"The daemon does not respond, so the files are read directly. {RESTART_HINT}"
                )
            return error.kind != "late"  # the call itself reports other errors
        return True

    def turn_deadline_ms(self) -> int:
        """The deadline of turns that name none, as the daemon announced it."""
        self._read_info()
        deadline_ms = self._info.get("deadline_ms") or _DEFAULT_DEADLINE_MS
        return deadline_ms if isinstance(deadline_ms, int) else _DEFAULT_DEADLINE_MS

    def _read_info(self) -> None:
        """Read daemon.json if it changed."""
        try:
            status = self._info_file.stat()
            if self._info_stamp == (status.st_mtime_ns, status.st_ino):
                return
            info = json.loads(self._info_file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return
        self._info_stamp = status.st_mtime_ns, status.st_ino
        self._info = info if isinstance(info, dict) else {}
        if (version := self._info.get("version", VERSION)) != VERSION:
            self._warn_once(
                f"The daemon of this home is tacit {version}, and this is {VERSION}. "
                "Restart it with: tacit stop, then tacit serve"
            )

    def _warn_once(self, text: str) -> None:
        if text not in self._sent_warnings:
            self._sent_warnings.add(text)
            self._warn(text)


def encode_body(body: Json) -> bytes:
    """The fields that have a value, as JSON."""
    try:
        return json.dumps(_without_null(body)).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A request can hold text, numbers and lists of them: {error}.") from None


def _without_null(body: Json) -> Json:
    return {name: value for name, value in body.items() if value is not None}


def _make_target(path: str, body: Json) -> str:
    fields = _without_null(body)
    name = quote(str(fields.get("id", "")), safe="")
    query = {key: value for key, value in fields.items() if key != "id"}
    return path.replace("{id}", name) + (f"?{urlencode(query)}" if query else "")


def _parse_answer(status: int, data: bytes) -> Json:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable("garbage", f"the daemon's answer is not a JSON object (status {status})")
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


def explain_unreachable(error: Unreachable) -> TacitError:
    """The same as an error that says what to do."""
    if error.kind == "late":
        return Busy(f"The daemon did not answer: {error}. {RESTART_HINT}")
    if error.kind == "gone":
        return TacitError(f"It is unknown what the daemon did: {error}. {RESTART_HINT}")
    return TacitError(f"The daemon's answer cannot be read: {error}. {RESTART_HINT}")
