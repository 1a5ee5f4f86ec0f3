"""A home, and the hook helper as a host would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tacit
from tests.client.conftest import _garden, another, garden

__all__ = ["_garden", "another", "garden"]

# By its path, with a fixed interpreter that looks for nothing: the way the integrations run it.
PYTHON = os.path.realpath(sys.executable)
RELAY = (PYTHON, "-S", "-E", "-B", str(Path(tacit.__file__).parent / "relay.py"))


class Said(NamedTuple):
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def json(self) -> dict[str, Any]:
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        assert value["continue"] is True
        return value

    @property
    def reason(self) -> str:
        assert "additionalContext" not in self.json
        return str(self.json["reason"])


class Relay:
    """Runs it in one home, with all the time there is unless told otherwise."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(
        self,
        operation: str,
        event: object = b"",
        *more: str,
        env: Mapping[str, str] | None = None,
        deadline_ms: int = 20_000,
    ) -> Said:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        command = [*RELAY, operation, "--home", str(self.home), "--deadline-ms", str(deadline_ms), *more]
        done = subprocess.run(
            command, input=data, capture_output=True, env={**os.environ, **(env or {})}, timeout=60, cwd="/"
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def relay(garden: Path) -> Relay:
    return Relay(garden)
