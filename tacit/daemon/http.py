"""HTTP/1.1 on one connection, and how many connections there may be.

h11 reads and writes the protocol; this module moves the bytes and sets the limits. What must stay true:
- nothing that a client sends, or does not send, holds memory without a bound or a connection for ever;
- a body is read only when the app let its head in, and never beyond the limit;
- one request of a connection is worked on at a time, in the order they came;
- whatever happens here, the other connections go on.
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

JSON = "application/json"
RETRY = ("Retry-After", "1")
_EARLY = 64 << 10  # bytes of the next requests that are taken while one is worked on
_HEADERS = 100
_PIECES = 4096  # of a chunked body; smaller ones than this makes cost more than they carry
_DISCARDED = 64 << 20  # bytes that are read and dropped, so that a client gets to read why it was refused

# new: no byte yet. head, body: a request is coming in. work: it is answered. write: the client does not take
# the answer. idle: between two requests. end: the answer is out, and the rest of the request is dropped.
Phase: TypeAlias = Literal["new", "head", "body", "work", "write", "idle", "end", "closed"]


class Limits(NamedTuple):
    head_bytes: int = 16 << 10
    body_bytes: int = 1 << 20
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 75.0
    write_seconds: float = 30.0
    end_seconds: float = 3.0
    connections: int = 1024

    def seconds(self, phase: Phase) -> float | None:
        """How long a connection may be in this phase; None: its request has a limit of its own."""
        return {
            "new": self.head_seconds,
            "head": self.head_seconds,
            "body": self.body_seconds,
            "idle": self.idle_seconds,
            "write": self.write_seconds,
            "end": self.end_seconds,
        }.get(phase)


class Head(NamedTuple):
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
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    close: bool = False


class App(Protocol):
    def screen(self, head: Head) -> Reply | None:
        """Asked before the body is read; a reply ends it there."""

    def most(self, head: Head) -> int:
        """Bytes that its body may have."""

    async def answer(self, head: Head, body: bytes) -> Reply:
        """Must not raise."""

    def opened(self) -> None:
        """Told of each connection."""

    def refused(self, reason: str, status: int = 0) -> None:
        """Told when a connection or request ended here, without an answer of the app."""

    def crashed(self, error: Exception) -> None:
        """Told of what nobody foresaw. The connection is gone then, and the only one that is."""


def problem(status: int, code: str, message: str, *headers: tuple[str, str], close: bool = False) -> Reply:
    body = json.dumps({"error": {"code": code, "message": message}}).encode("ascii")
    return Reply(status, body, headers=headers, close=close)


class Connections:
    """All connections of a server. When there are too many, the one that has been about its present phase
    for longest goes, so that connections on which nothing happens never keep a new one out."""

    def __init__(self, app: App, limits: Limits, clock: Callable[[], float]) -> None:
        self.app, self.limits, self.clock = app, limits, clock
        self.stopping = False
        self._open: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def local(self) -> Connection:
        return Connection(self, tcp=False)

    def tcp(self) -> Connection:
        return Connection(self, tcp=True)

    def enter(self, one: Connection) -> bool:
        if self.stopping:
            return False
        if len(self._open) >= self.limits.connections:
            spare = min((other for other in self._open if other.phase != "work"), key=_since, default=None)
            if spare is None:
                return False
            spare.drop("crowded")
        self._open.add(one)
        return True

    def leave(self, one: Connection) -> None:
        self._open.discard(one)

    def sweep(self) -> None:
        """Close what has taken too long."""
        now = self.clock()
        for one in tuple(self._open):
            limit = self.limits.seconds("write" if one.phase == "end" and one.unsent() else one.phase)
            if limit is not None and now - one.since > limit:
                one.overdue()

    def working(self) -> int:
        """Requests whose answer is not out yet."""
        return sum(one.phase in ("work", "write") or one.unsent() for one in self._open)

    def close_idle(self) -> None:
        """The server is about to end: what is not a request by now will not be one."""
        self.stopping = True
        for one in tuple(self._open):
            if one.phase in ("new", "idle", "head", "body") and not one.unsent():
                one.drop("stopping")

    def close_all(self) -> None:
        for one in tuple(self._open):
            one.drop("stopping")


class Connection(asyncio.Protocol):
    def __init__(self, house: Connections, *, tcp: bool) -> None:
        self._house, self._app, self._limits, self._tcp = house, house.app, house.limits, tcp
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=house.limits.head_bytes)
        self.phase: Phase = "new"
        self.since = house.clock()
        self._early = bytearray()  # what came in while a request was worked on
        self._ended = False  # the client sends no more
        self._full = False  # the client does not read
        self._discarded = 0  # bytes
        self._task: asyncio.Task[None] | None = None
        self._begin_request()

    def _begin_request(self) -> None:
        self._head: Head | None = None
        self._refusal: Reply | None = None
        self._body = bytearray()
        self._pieces = 0

    def _enter(self, phase: Phase) -> None:
        self.phase, self.since = phase, self._house.clock()

    # ------------------------------------------------ what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._app.opened()
        if not self._tcp and not _of_our_user(transport.get_extra_info("socket")):
            self.drop("foreign")
        elif not self._house.enter(self):
            self._app.refused("crowded", 503)
            crowded = problem(503, "busy", "There are too many connections. Try again.", RETRY, close=True)
            self._reply(crowded)
            self._transport.close()  # nobody looks after this one, so it cannot be given time

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self.phase = "closed"
        self._house.leave(self)
        self._early.clear()
        self._body.clear()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self.phase == "write":
            self._next_phase()
            self._guarded(self._go_on)

    def data_received(self, data: bytes) -> None:
        if self.phase == "end":
            self._discard(len(data))
        elif self.phase in ("work", "write"):
            self._early += data
            if len(self._early) > _EARLY:
                self._transport.pause_reading()
        elif self.phase != "closed":
            self._guarded(lambda: self._read(data))

    def eof_received(self) -> bool:
        """True keeps the connection open: a client may send its request, end, and wait for the answer."""
        self._ended = True
        return self.phase in ("work", "write")

    # ------------------------------------------------ reading

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            self._refuse("malformed", status, "malformed", "This is not a request that can be read.")
        except Exception as error:  # noqa: BLE001 - a single connection must not end the server
            self._app.crashed(error)
            self.drop("crashed")

    def _read(self, data: bytes) -> None:
        if self.phase in ("new", "idle"):
            self._enter("head")
        self._http.receive_data(data)
        self._events()

    def _events(self) -> None:
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
        self._enter("body")
        self._head = Head(
            event.method.decode("ascii"),
            event.target.decode("ascii"),
            list(event.headers),
            self._house.clock(),
            self._tcp,
        )
        refusal = self._wrong(event) or self._app.screen(self._head)
        if refusal is None:
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
        elif _has_body(self._head):
            self._reply(refusal._replace(close=True))
        else:
            self._refusal = refusal

    def _wrong(self, event: h11.Request) -> Reply | None:
        """What h11 lets pass and we do not."""
        head = cast(Head, self._head)
        if event.http_version not in (b"1.0", b"1.1"):
            return self._problem("malformed", 505, "version", "Speak HTTP/1.1.")._replace(close=True)
        size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in head.headers)
        if size > self._limits.head_bytes or len(head.headers) > _HEADERS:
            return self._problem("large", 431, "too_large", "The head of this request is too large.")
        lengths, codings = head.values(b"content-length"), head.values(b"transfer-encoding")
        if codings and (lengths or event.http_version != b"1.1"):
            # Whoever stands between us and the client may see the other one of two lengths.
            return self._problem("malformed", 400, "malformed", "The request has two lengths. Send one.")
        if lengths and int(lengths[0]) > self._app.most(head):
            return self._too_large()
        if any(value.strip().lower() not in ("", "identity") for value in head.values(b"content-encoding")):
            return self._problem("encoded", 415, "encoding", "Send the body as it is, not compressed.")
        return None

    def _take_body(self, data: bytes | bytearray) -> None:
        self._pieces += 1
        if self._pieces > _PIECES and self._pieces * 64 > len(self._body):
            refusal = self._problem("malformed", 400, "malformed", "The body comes in too many small pieces.")
            self._reply(refusal._replace(close=True))
        elif len(self._body) + len(data) > self._app.most(cast(Head, self._head)):
            self._reply(self._too_large()._replace(close=True))
        elif self._refusal is None:
            self._body += data

    def _take_end(self) -> None:
        if self._refusal is not None:
            self._reply(self._refusal)
            return
        self._enter("work")
        self._task = asyncio.get_running_loop().create_task(
            self._work(cast(Head, self._head), bytes(self._body))
        )
        self._body.clear()

    def _too_large(self) -> Reply:
        most = self._app.most(cast(Head, self._head)) >> 10
        return self._problem(
            "large", 413, "too_large", f"A request has at most {most} kB (serve.max_request_kb). Send less."
        )

    def _problem(self, reason: str, status: int, code: str, message: str) -> Reply:
        self._app.refused(reason, status)
        return problem(status, code, message)

    # ------------------------------------------------ answering

    async def _work(self, head: Head, body: bytes) -> None:
        reply = await self._app.answer(head, body)
        if self.phase != "closed":
            self._guarded(lambda: self._finish(reply))

    def _finish(self, reply: Reply) -> None:
        self._reply(reply)
        self._go_on()

    def _reply(self, reply: Reply) -> None:
        """Write the answer, and make ready for the next request or for the end."""
        close = reply.close or self._house.stopping
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
        self._after(close)

    def _write(self, *events: h11.Event) -> None:
        self._transport.write(b"".join(self._http.send(event) or b"" for event in events))

    def _after(self, close: bool) -> None:
        if close or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._end()
            return
        self._http.start_next_cycle()
        self._begin_request()
        self._next_phase()

    def _next_phase(self) -> None:
        # A part of the next request may have come with this one; then h11 has it.
        self._enter("write" if self._full else "head" if self._http.trailing_data[0] else "idle")

    def _go_on(self) -> None:
        """With what came in meanwhile."""
        if self.phase not in ("idle", "head"):
            return
        early = bytes(self._early)
        self._early.clear()
        if early:
            self._read(early)
        else:
            self._events()
        if self.phase in ("idle", "head", "body"):
            if self._ended:
                self._transport.close()
            else:
                self._transport.resume_reading()

    # ------------------------------------------------ ending

    def _refuse(self, reason: str, status: int, code: str, message: str) -> None:
        """For a request that cannot be read, or must not be read further."""
        if self.phase in ("end", "closed"):
            return
        self._app.refused(reason, status)
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._reply(problem(status, code, message, close=True))
        else:
            self.drop(reason)

    def _end(self) -> None:
        """Close when the answer is out. A client that is still sending would lose it by that: it may first
        send for a while, to nobody."""
        whole = self._http.their_state not in (h11.SEND_BODY, h11.ERROR, h11.IDLE)
        self._enter("end")
        if whole or self._ended or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.write_eof()
            self._transport.resume_reading()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _DISCARDED:
            self.drop("large")

    def overdue(self) -> None:
        if self.phase in ("head", "body") and not self._transport.is_closing():
            self._guarded(lambda: self._refuse("slow", 408, "slow", "The request took too long to arrive."))
        else:
            self.drop("idle" if self.phase == "idle" else "slow")

    def drop(self, reason: str) -> None:
        """At once, whatever is on its way."""
        if self.phase not in ("end", "idle"):
            self._app.refused(reason)
        self.phase = "closed"
        self._house.leave(self)
        self._transport.abort()

    def unsent(self) -> bool:
        return self.phase != "closed" and self._transport.get_write_buffer_size() > 0


def _of_our_user(line: socket.socket) -> bool:
    """The mode of the socket keeps others out; this is for when somebody widened it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("iII", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user in (os.geteuid(), 0)


def _since(one: Connection) -> float:
    return one.since


def _has_body(head: Head) -> bool:
    lengths = head.values(b"content-length")
    return bool(head.values(b"transfer-encoding")) or (bool(lengths) and lengths[0] != "0")
