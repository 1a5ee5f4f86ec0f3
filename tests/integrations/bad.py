"""Somebody who listens where the daemon should, and does not behave as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

WAYS = ("hangs", "garbage", "503", "slow", "closes", "half")
_WAITS = {"hangs": 30.0, "slow": 1.5}  # seconds: more than any deadline here
_SAYS = {
    "garbage": (200, b"<html>no</html>"),
    "503": (503, b'{"error": {"code": "busy", "message": "too much"}}'),
    "slow": (200, b'{"session_id": "", "text": "Too late.", "files": [], "changed": true}'),
}


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, path: Path, way: str) -> None:
        self.way = way
        super().__init__(str(path), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *shown: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        way = self.server.way
        self.rfile.read(int(self.headers.get("content-length") or 0))
        threading.Event().wait(_WAITS.get(way, 0))
        if way in _SAYS:
            self._say(*_SAYS[way])
        elif way == "half":
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{")
            threading.Event().wait(30)
        self.close_connection = True

    def _say(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # who asked has gone meanwhile
            self.close_connection = True


@contextmanager
def listening(path: Path, way: str) -> Iterator[None]:
    server = _Server(path, way)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)
