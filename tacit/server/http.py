"""HTTP/1.1 on one connection, and the limit on connections.

h11 reads and writes the protocol; this module moves the bytes and sets the limits. What must stay true:
- no client can hold unlimited memory, or a connection for ever, with what it sends or leaves out;
- a body is read only after the app accepted its head, and never beyond the limit;
- a connection handles one request at a time, in order of arrival;
- an error on one connection leaves the others alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, cast

import h11

JSON_TYPE = "application/json"
RETRY_AFTER = ("Retry-After", "1")
_MAX_EARLY_BYTES = 64 << 10  # bytes of later requests that are buffered while one is answered
_MAX_HEADERS = 100
_MAX_BODY_PIECES = 4096  # of a chunked body; if there are more, they must not be tiny
_MAX_DISCARDED_BYTES = 64 << 20  # bytes read and dropped so that a refused client can read the reason

# new: no byte yet. head, body: a request is arriving. work: it is being answered. write: the client is not
# reading the answer. idle: between two requests. end: the answer is sent, the rest of the request is dropped.
Phase: TypeAlias = Literal["new", "head", "body", "work", "write", "idle", "end", "closed"]


class ConnectionLimits(NamedTuple):
    head_bytes: int = 16 << 10
    body_bytes: int = 1 << 20
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    write_seconds: float = 30.0
    end_seconds: float = 3.0
    connections: int = 1024

    def seconds(self, phase: Phase) -> float | None:
        """How long a connection may stay in this phase; None: the request has a limit of its own."""
        return {
            "new": self.head_seconds,
            "head": self.head_seconds,
            "body": self.body_seconds,
            "idle": self.idle_seconds,
            "write": self.write_seconds,
            "end": self.end_seconds,
        }.get(phase)


class RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    target: str
    headers: Sequence[tuple[bytes, bytes]]  # names in lower case
    arrived: float  # by the clock of the loop
    tcp: bool

    def values(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self.headers if key == name]


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    kind: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False


class App(Protocol):
    def screen(self, head: RequestHead) -> Reply | None:
        """Called before the body is read; a reply refuses the request."""

    def max_body_bytes(self, head: RequestHead) -> int:
        """The maximum size of the request's body."""

    async def answer(self, head: RequestHead, body: bytes) -> Reply:
        """Must not raise."""

    def count_connection(self) -> None:
        """Called for each new connection."""

    def note_refusal(self, reason: str, status: int = 0) -> None:
        """Called when a connection or request ended here, without an answer from the app."""

    def report_crash(self, error: Exception) -> None:
        """Called for an unexpected error. Only this connection is closed."""


def error_reply(
    status: int, code: str, message: str, *headers: tuple[str, str], close: bool = False
) -> Reply:
    body = json.dumps({"error": {"code": code, "message": message}}).encode("ascii")
    return Reply(status, body, headers=headers, close=close)


class Connections:
    """All connections of a server. When there are too many, the one that has been longest in its phase is
    closed, so that inactive connections never keep a new one out."""

    def __init__(self, app: App, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self.app, self.limits, self.clock = app, limits, clock
        self.stopping = False
        self._open_connections: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._open_connections)

    def local(self) -> Connection:
        return Connection(self, tcp=False)

    def tcp(self) -> Connection:
        return Connection(self, tcp=True)

    def enter(self, one: Connection) -> bool:
        if self.stopping:
            return False
        if len(self._open_connections) >= self.limits.connections:
            oldest = min(
                (other for other in self._open_connections if other.phase != "work"),
                key=_phase_start,
                default=None,
            )
            if oldest is None:
                return False
            oldest.drop("crowded")
        self._open_connections.add(one)
        return True

    def leave(self, one: Connection) -> None:
        self._open_connections.discard(one)

    def sweep(self) -> None:
        """Close connections that have taken too long."""
        now = self.clock()
        for connection in tuple(self._open_connections):
            limit = self.limits.seconds(
                "write" if connection.phase == "end" and connection.unsent() else connection.phase
            )
            if limit is not None and now - connection.since > limit:
                connection.overdue()

    def working(self) -> int:
        """The number of requests whose answer is not sent yet."""
        return sum(
            connection.phase in ("work", "write") or connection.unsent()
            for connection in self._open_connections
        )

    def close_idle(self) -> None:
        """The server is about to stop: close connections without a complete request."""
        self.stopping = True
        for connection in tuple(self._open_connections):
            if connection.phase in ("new", "idle", "head", "body") and not connection.unsent():
                connection.drop("stopping")

    def close_all(self) -> None:
        for connection in tuple(self._open_connections):
            connection.drop("stopping")


class Connection(asyncio.Protocol):
    def __init__(self, house: Connections, *, tcp: bool) -> None:
        self._connections, self._app, self._limits, self._tcp = house, house.app, house.limits, tcp
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=house.limits.head_bytes)
        self.phase: Phase = "new"
        self.since = house.clock()
        self._early_data = bytearray()  # received while a request was being answered
        self._client_ended = False  # the client sends no more
        self._is_write_blocked = False  # the client does not read
        self._discarded = 0  # bytes
        self._task: asyncio.Task[None] | None = None
        self._begin_request()

    def _begin_request(self) -> None:
        self._head: RequestHead | None = None
        self._refusal: Reply | None = None
        self._body = bytearray()
        self._pieces = 0

    def _enter_phase(self, phase: Phase) -> None:
        self.phase, self.since = phase, self._connections.clock()

    # ------------------------------------------------ callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._app.count_connection()
        if not self._tcp and not _is_own_user(transport.get_extra_info("socket")):
            self.drop("foreign")
        elif not self._connections.enter(self):
            self._app.note_refusal("crowded", 503)
            crowded = error_reply(
                503, "busy", "There are too many connections. Try again.", RETRY_AFTER, close=True
            )
            self._send_reply(crowded)
            self._transport.close()  # not in the set that sweep() checks, so nothing would time it out

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self.phase = "closed"
        self._connections.leave(self)
        self._early_data.clear()
        self._body.clear()

    def pause_writing(self) -> None:
        self._is_write_blocked = True

    def resume_writing(self) -> None:
        self._is_write_blocked = False
        if self.phase == "write":
            self._next_phase()
            self._run_guarded(self._resume)

    def data_received(self, data: bytes) -> None:
        if self.phase == "end":
            self._discard(len(data))
        elif self.phase in ("work", "write"):
            self._early_data += data
            if len(self._early_data) > _MAX_EARLY_BYTES:
                self._transport.pause_reading()
        elif self.phase != "closed":
            self._run_guarded(lambda: self._feed(data))

    def eof_received(self) -> bool:
        """True keeps the connection open: a client may send its request, end, and wait for the answer."""
        self._client_ended = True
        return self.phase in ("work", "write")

    # ------------------------------------------------ reading

    def _run_guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            self._refuse("malformed", status, "malformed", "This is not a request that can be read.")
        except Exception as error:  # noqa: BLE001 - one connection must not end the server
            self._app.report_crash(error)
            self.drop("crashed")

    def _feed(self, data: bytes) -> None:
        if self.phase in ("new", "idle"):
            self._enter_phase("head")
        self._http.receive_data(data)
        self._process_events()

    def _process_events(self) -> None:
        while self.phase in ("head", "body"):
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._take_head(event)
            elif isinstance(event, h11.Data):
                self._take_body(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._take_end()
            elif isinstance(event, h11.ConnectionClosed):
                self._transport.close()
                return

    def _take_head(self, event: h11.Request) -> None:
        self._enter_phase("body")
        self._head = RequestHead(
            event.method.decode("ascii"),
            event.target.decode("ascii"),
            list(event.headers),
            self._connections.clock(),
            self._tcp,
        )
        refusal = self._check_head(event) or self._app.screen(self._head)
        if refusal is None:
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
        elif _has_body(self._head):
            self._send_reply(refusal._replace(close=True))
        else:
            self._refusal = refusal

    def _check_head(self, event: h11.Request) -> Reply | None:
        """Refuse what h11 accepts and we do not."""
        head = cast(RequestHead, self._head)
        if event.http_version not in (b"1.0", b"1.1"):
            return self._refused_reply("malformed", 505, "version", "Speak HTTP/1.1.")._replace(close=True)
        size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in head.headers)
        if size > self._limits.head_bytes or len(head.headers) > _MAX_HEADERS:
            return self._refused_reply("large", 431, "too_large", "The head of this request is too large.")
        lengths, codings = head.values(b"content-length"), head.values(b"transfer-encoding")
        if codings and (lengths or event.http_version != b"1.1"):
            # A proxy between us and the client may go by the other of the two lengths.
            return self._refused_reply(
                "malformed", 400, "malformed", "The request has two lengths. Send one."
            )
        if lengths and int(lengths[0]) > self._app.max_body_bytes(head):
            return self._too_large_reply()
        if any(value.strip().lower() not in ("", "identity") for value in head.values(b"content-encoding")):
            return self._refused_reply("encoded", 415, "encoding", "Send the body as it is, not compressed.")
        return None

    def _take_body(self, data: bytes | bytearray) -> None:
        self._pieces += 1
        if self._pieces > _MAX_BODY_PIECES and self._pieces * 64 > len(self._body):
            refusal = self._refused_reply(
                "malformed", 400, "malformed", "The body comes in too many small pieces."
            )
            self._send_reply(refusal._replace(close=True))
        elif len(self._body) + len(data) > self._app.max_body_bytes(cast(RequestHead, self._head)):
            self._send_reply(self._too_large_reply()._replace(close=True))
        elif self._refusal is None:
            self._body += data

    def _take_end(self) -> None:
        if self._refusal is not None:
            self._send_reply(self._refusal)
            return
        self._enter_phase("work")
        self._task = asyncio.get_running_loop().create_task(
            self._answer_request(cast(RequestHead, self._head), bytes(self._body))
        )
        self._body.clear()

    def _too_large_reply(self) -> Reply:
        max_kb = self._app.max_body_bytes(cast(RequestHead, self._head)) >> 10
        return self._refused_reply(
            "large", 413, "too_large", f"A request has at most {max_kb} kB (serve.max_request_kb). Send less."
        )

    def _refused_reply(self, reason: str, status: int, code: str, message: str) -> Reply:
        self._app.note_refusal(reason, status)
        return error_reply(status, code, message)

    # ------------------------------------------------ answering

    async def _answer_request(self, head: RequestHead, body: bytes) -> None:
        reply = await self._app.answer(head, body)
        if self.phase != "closed":
            self._run_guarded(lambda: self._finish(reply))

    def _finish(self, reply: Reply) -> None:
        self._send_reply(reply)
        self._resume()

    def _send_reply(self, reply: Reply) -> None:
        """Send the answer, then prepare for the next request or close."""
        close = reply.close or self._connections.stopping
        headers = [
            ("Content-Type", reply.kind),
            ("Content-Length", str(len(reply.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            *reply.headers,
            *([("Connection", "close")] if close else []),
        ]
        if reply.status == 204:
            del headers[:2]
        events: list[h11.Event] = [h11.Response(status_code=reply.status, headers=headers)]
        bodiless = reply.status == 204 or (self._head is not None and self._head.method == "HEAD")
        if reply.body and not bodiless:
            events.append(h11.Data(data=reply.body))
        self._write(*events, h11.EndOfMessage())
        self._prepare_next(close)

    def _write(self, *events: h11.Event) -> None:
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))

    def _prepare_next(self, close: bool) -> None:
        if close or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._close_gracefully()
            return
        self._http.start_next_cycle()
        self._begin_request()
        self._next_phase()

    def _next_phase(self) -> None:
        # A part of the next request may have come with this one; then h11 has it.
        self._enter_phase(
            "write" if self._is_write_blocked else "head" if self._http.trailing_data[0] else "idle"
        )

    def _resume(self) -> None:
        """Go on with the data that arrived meanwhile."""
        if self.phase not in ("idle", "head"):
            return
        early = bytes(self._early_data)
        self._early_data.clear()
        if early:
            self._feed(early)
        else:
            self._process_events()
        if self.phase in ("idle", "head", "body"):
            if self._client_ended:
                self._transport.close()
            else:
                self._transport.resume_reading()

    # ------------------------------------------------ ending

    def _refuse(self, reason: str, status: int, code: str, message: str) -> None:
        """Refuse a request that cannot be read, or must not be read further."""
        if self.phase in ("end", "closed"):
            return
        self._app.note_refusal(reason, status)
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send_reply(error_reply(status, code, message, close=True))
        else:
            self.drop(reason)

    def _close_gracefully(self) -> None:
        """Close when the answer is sent. A client that is still sending would lose it, so its data is
        read and dropped for a while first."""
        is_complete = self._http.their_state not in (h11.SEND_BODY, h11.ERROR, h11.IDLE)
        self._enter_phase("end")
        if is_complete or self._client_ended or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.write_eof()
            self._transport.resume_reading()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _MAX_DISCARDED_BYTES:
            self.drop("large")

    def overdue(self) -> None:
        if self.phase in ("head", "body") and not self._transport.is_closing():
            self._run_guarded(
                lambda: self._refuse("slow", 408, "slow", "The request took too long to arrive.")
            )
        else:
            self.drop("idle" if self.phase == "idle" else "slow")

    def drop(self, reason: str) -> None:
        """Close at once, even if data is still in transit."""
        if self.phase not in ("end", "idle"):
            self._app.note_refusal(reason)
        self.phase = "closed"
        self._connections.leave(self)
        self._transport.abort()

    def unsent(self) -> bool:
        return self.phase != "closed" and self._transport.get_write_buffer_size() > 0


def _is_own_user(sock: socket.socket) -> bool:
    """The mode of the socket keeps other users out; this check helps if the mode was widened."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user in (os.geteuid(), 0)


def _phase_start(connection: Connection) -> float:
    return connection.since


def _has_body(head: RequestHead) -> bool:
    lengths = head.values(b"content-length")
    return bool(head.values(b"transfer-encoding")) or (bool(lengths) and lengths[0] != "0")
