"""The server that behaves badly behaves as it is told, and no worse."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

from tests.http.fake import hangs, listening


def test_who_leaves_before_the_end_leaves_no_thread_behind(tmp_path: Path) -> None:
    with listening(tmp_path / "s", hangs) as path:
        for said in (b"", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(path)
                line.sendall(said)
        until = time.monotonic() + 10
        while (left := _serving()) and time.monotonic() < until:
            time.sleep(0.01)
        assert left == []


def _serving() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.endswith("(one)")]
