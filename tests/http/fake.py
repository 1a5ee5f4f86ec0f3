"""Something that listens at a unix socket and behaves as badly as it is told to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Behave = Callable[[socket.socket, threading.Event], None]


def read_request(line: socket.socket) -> bytes:
    """The whole of one request. ConnectionError where whoever asks leaves before its end: a thread that went
    on reading would spin for the rest of all tests."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(line)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += _more(line)
    return head + b"\r\n\r\n" + body


def _more(line: socket.socket) -> bytes:
    data = line.recv(65536)
    if not data:
        raise ConnectionError("it left")
    return data


def reply(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def sends(data: bytes) -> Behave:
    """Read the request, send this, and close."""

    def behave(line: socket.socket, over: threading.Event) -> None:
        read_request(line)
        line.sendall(data)

    return behave


def answers(body: bytes, status: bytes = b"200 OK") -> Behave:
    return sends(reply(body, status))


def hangs(line: socket.socket, over: threading.Event) -> None:
    read_request(line)
    over.wait()


def drips(line: socket.socket, over: threading.Event) -> None:
    """A good answer, one byte at a time: each of them comes soon, the last one never."""
    read_request(line)
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000:
        line.sendall(bytes([byte]))
        if over.wait(0.02):
            return


def floods(line: socket.socket, over: threading.Event) -> None:
    """An answer that does not end."""
    read_request(line)
    line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        line.sendall(b"x" * 65536)


def resets(line: socket.socket, over: threading.Event) -> None:
    line.recv(1)  # what is left unread makes it a reset


@contextmanager
def listening(path: Path, behave: Behave, backlog: int = 16) -> Iterator[str]:
    over = threading.Event()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(backlog)

    def one(line: socket.socket) -> None:
        with suppress(OSError, ValueError), line:
            behave(line, over)

    def all_of_them() -> None:
        while not over.is_set():
            with suppress(OSError):
                line, _ = listener.accept()
                if over.is_set():
                    line.close()
                    return
                threading.Thread(target=one, args=(line,), daemon=True).start()

    thread = threading.Thread(target=all_of_them, daemon=True)
    thread.start()
    try:
        yield str(path)
    finally:
        over.set()
        with suppress(OSError), socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))  # wakes the one that waits to accept
        thread.join(10)
        listener.close()
        path.unlink(missing_ok=True)
