"""A server in a thread of its own, with the operations of a test, and a client that can be rude."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self

import h11
import pytest

from tacit.config.schema import ServeSettings
from tacit.operations.catalog import OPERATIONS, OPERATIONS_BY_NAME, Operation
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.server.router import Server

# Taken before the tests lose the network: see tests/conftest.py.
_REAL_INIT, _REAL_CONNECT = socket.socket.__init__, socket.socket.connect

TOKEN = "t" * 43
GENEROUS = 30.0  # seconds for what takes none on a quiet machine
CORES = 8
Body = Mapping[str, Any]
Run = Callable[[Body], dict[str, Any]]


class Runnable(NamedTuple):
    operation: Operation
    run: Run


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Line:
    """One connection. Bytes go out as they are given; answers are read by h11."""

    def __init__(self, address: str | tuple[str, int]) -> None:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(GENEROUS)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self._left = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        self.send(request(method, target, body, headers))
        return self.answer(method)

    def answer(self, method: str = "GET") -> Answer:
        """The next one. h11 wants to know what was asked, but not what it was."""
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        http.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        http.send(h11.EndOfMessage())
        http.receive_data(self._left) if self._left else None
        head: h11.Response | None = None
        body = b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(self.socket.recv(65536))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self._left = http.trailing_data[0]
                assert head is not None
                names = {name.decode(): value.decode() for name, value in head.headers}
                return Answer(head.status_code, names, body)
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError("there was no answer")

    def closed(self) -> bool:
        """Waits until the other side closes; what it sends before is of no interest."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True


def request(method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    given = {"Host": "localhost", **(headers or {})}
    if body and not any(name.lower() in ("content-length", "transfer-encoding") for name in given):
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Running:
    """A server that runs. It is the same on every machine: as if there were cores and time enough."""

    def __init__(
        self,
        folder: Path,
        operations: list[Runnable],
        *,
        tcp: bool = False,
        port: int = 0,
        token: str = TOKEN,
        serve: ServeSettings | None = None,
        deadline_ms: int = 20_000,
        **options: Any,
    ) -> None:
        self.path = str(folder / "s")
        self.metrics = Metrics()
        self.log_file = folder / "daemon.log"
        self.log = Log(self.log_file)
        self.port: int | None = None
        listed = [one.operation for one in operations]
        own = {"deadline_ms": deadline_ms, "operations": listed, "cores": CORES, "look": GENEROUS}
        self._options = {**own, **options}
        self._ahead = 0.0
        self._runs = {one.operation.name: one.run for one in operations}
        self._serve = serve or ServeSettings()
        self._tcp, self._port, self._token = tcp, port, token
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="server")
        self._thread.start()
        assert self._ready.wait(GENEROUS)
        self._raise_what_failed()

    def _raise_what_failed(self) -> None:
        if self._failed is not None:
            self._thread.join()
            raise self._failed

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            local.bind(self.path)
            await self._begin(local)
        except BaseException as error:  # noqa: BLE001 - the test is to see it
            local.close()
            self._failed = error
            return
        finally:
            self._ready.set()
        await self._end.wait()

    async def _begin(self, local: socket.socket) -> None:
        run = lambda name, body: self._runs[name](body)  # noqa: E731
        self.server = Server(run, self._serve, metrics=self.metrics, log=self.log, **self._options)
        try:
            self.port = await self.server.start(
                local, tcp_port=self._port if self._tcp else None, token=self._token
            )
        except BaseException:
            await self.server.stop(0)
            raise

    def line(self, *, tcp: bool = False) -> Line:
        return Line(("127.0.0.1", self.port or 0) if tcp else self.path)

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        tcp: bool = False,
    ) -> Answer:
        """One request on a connection of its own. A body that is not bytes goes as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        given = {"Connection": "close", **(headers or {})}
        if tcp:
            own = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {TOKEN}"}
            given = {**own, "Content-Type": "application/json", **given}
        with self.line(tcp=tcp) as line:
            return line.ask(method, target, data, given)

    def phases(self) -> list[str]:
        """What the connections are about, as the server sees it."""
        return sorted(one.phase for one in tuple(self.server._connections._open_connections))

    def pass_by(self, seconds: float) -> None:
        """Let this much time go by for all connections."""
        self._ahead += seconds
        self.server._connections.clock = lambda: time.monotonic() + self._ahead

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = self.log_file.read_text().splitlines() if self.log_file.exists() else []
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def stop(self, seconds: float = 5.0) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self.server.stop(seconds), self.loop).result()
            self.loop.call_soon_threadsafe(self._end.set)
            self._thread.join()


class Start(Protocol):
    def __call__(self, *operations: Runnable, **options: Any) -> Running: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(*operations: Runnable, **options: Any) -> Running:
        folder = tmp_path / f"server{len(running)}"
        folder.mkdir()
        running.append(Running(folder, list(operations), **options))
        return running[-1]

    yield begin
    for one in running:
        one.stop(0.5)


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this test open sockets, to this machine alone."""

    def connect(self: socket.socket, address: Any) -> None:
        if not isinstance(address, str) and address[0] != "127.0.0.1":
            self.close()
            raise AssertionError("a test tried to reach the network")
        _REAL_CONNECT(self, address)

    monkeypatch.setattr(socket.socket, "__init__", _REAL_INIT)
    monkeypatch.setattr(socket.socket, "connect", connect)


def operation(
    name: str,
    run: Run,
    *,
    is_turn: bool = False,
    method: Literal["GET", "POST"] = "POST",
    path: str = "",
) -> Runnable:
    known = OPERATIONS_BY_NAME.get(name)
    kind = known.kind if known else "turn" if is_turn else "read"
    return Runnable(Operation(name, method, path or f"/v1/{name}", kind), run)


def real_operations(served: OperationContext) -> list[Runnable]:
    return [Runnable(one, partial(HANDLERS[one.name], served)) for one in OPERATIONS]


def echo(body: Body) -> dict[str, Any]:
    return {"echo": dict(body)}


def noting(ran: list[str], name: str = "") -> Run:
    def run(body: Body) -> dict[str, Any]:
        ran.append(name)
        return {}

    return run


ECHO = operation("echo", echo)
LONG = 1000.0  # seconds: beyond every limit of a connection


class Held:
    """An operation that does not end before it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.ran = 0

    def __call__(self, body: Body) -> dict[str, Any]:
        self.begun.release()
        self.go.wait(GENEROUS)
        self.ran += 1
        return {"text": "made", "tokens": 3, "skipped": "", "notices": [], "echo": dict(body)}

    def wait_begun(self) -> None:
        assert self.begun.acquire(timeout=GENEROUS)


@pytest.fixture
def held() -> Iterator[Held]:
    one = Held()
    yield one
    one.go.set()


def in_background(call: Callable[[], Any]) -> Callable[[], Any]:
    """Begin it now; the result of the call that is returned is its result."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()

    def result() -> Any:
        thread.join(GENEROUS)
        assert found, "it did not end"
        return found[0]

    return result


def until(true: Callable[[], bool]) -> None:
    """Wait for what no event tells."""
    tick = threading.Event()
    for _ in range(int(GENEROUS / 0.01)):
        if true():
            return
        tick.wait(0.01)
    raise AssertionError("it did not happen")


def resident_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
