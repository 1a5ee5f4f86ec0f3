"""`tacit serve` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.daemon_socket import Unreachable, send_request, socket_path

PATIENCE = 90.0  # seconds for what takes one or two on a quiet machine


class Process:
    def __init__(self, home: Path, *options: str, env: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tacit", "serve", "--home", str(home), *options],
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> str:
        """The line that it prints once it answers."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert "listening on" in line, self.popen.communicate(timeout=PATIENCE)
        return line

    def ask(self, method: str, target: str, **body: object) -> Any:
        status, answer = send_request(
            socket_path(str(self.home)), method, target, json.dumps(body).encode() if body else b"", PATIENCE
        )
        assert status < 300, answer
        return json.loads(answer)

    def message(self, text: str, **more: object) -> Any:
        return self.ask("POST", "/v1/message", text=text, role="user", **more)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        self.popen.send_signal(number)
        _, errors = self.popen.communicate(timeout=PATIENCE)
        return self.popen.returncode, errors


@contextmanager
def serving(home: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    process = Process(home, *options, env=env)
    try:
        process.ready()
        yield process
    finally:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.communicate()
        for pipe in (process.popen.stdout, process.popen.stderr):
            assert pipe is not None
            pipe.close()


def answers(home: Path) -> bool:
    try:
        return send_request(socket_path(str(home)), "GET", "/v1/health", b"", 5.0)[0] == 200
    except Unreachable:
        return False
