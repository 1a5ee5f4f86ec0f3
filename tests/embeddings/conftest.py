"""Folders with tiny models, and a server on this machine that answers as a test tells it to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from tests.embeddings.tiny import write_model2vec, write_onnx

# Taken before the tests lose the network: see tests/conftest.py.
_REAL_INIT, _REAL_CONNECT = socket.socket.__init__, socket.socket.connect

CERTIFICATE = Path(__file__).parent / "data" / "self-signed.pem"


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    json: Any


class Reply(NamedTuple):
    """`body` is sent as it is if it is bytes, else as JSON."""

    body: object = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    drip: bool = False  # one byte after the other, until the server stops


class _Quiet(ThreadingHTTPServer):
    """Clients that leave in the middle are what these tests are about, and not worth a word."""

    def handle_error(self, *_: object) -> None:
        pass


class Server:
    """A real server on the loopback. Every request is kept; `reply` decides about the answer."""

    def __init__(self, reply: Callable[[Request], Reply], secure: bool = False) -> None:
        self.requests: list[Request] = []
        self.reply = reply
        self.stopped = threading.Event()
        self._http = _Quiet(("127.0.0.1", 0), self._handler())
        if secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "https" if secure else "http"
        self.base = f"{scheme}://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                try:
                    self._answer()
                except OSError:
                    self.close_connection = True  # the client left, which some tests want

            def _answer(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, content)
                server.requests.append(request)
                reply = server.reply(request)
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if not reply.drip:
                    self.wfile.write(body)
                    return
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    if server.stopped.wait(0.02):
                        return

            def log_message(self, *_: object) -> None:
                pass

        return Handler


Serve = Callable[..., Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers, and lets this test alone open sockets, to this machine alone."""

    def connect(self: socket.socket, address: Any) -> None:
        if address[0] != "127.0.0.1":
            self.close()
            raise AssertionError("a test tried to reach the network")
        _REAL_CONNECT(self, address)

    monkeypatch.setattr(socket.socket, "__init__", _REAL_INIT)
    monkeypatch.setattr(socket.socket, "connect", connect)
    running: list[Server] = []

    def start(reply: Callable[[Request], Reply], secure: bool = False) -> Server:
        running.append(Server(reply, secure).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture(scope="session")
def onnx_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that looks up a vector for each token, with a file of its own for how to use it."""
    pytest.importorskip("onnxruntime", reason="the extra tacit[onnx] is not installed")
    folder = tmp_path_factory.mktemp("onnx") / "tiny"
    write_onnx(folder)
    return folder


@pytest.fixture(scope="session")
def model2vec_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model2vec") / "tiny"
    write_model2vec(folder)
    return folder
