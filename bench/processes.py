"""Times programs from start to end, and discards their output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter

from bench.pairs import Timed

BIN = Path(sys.executable).parent
PYTHON = str(BIN / "python")
TACIT = str(BIN / "tacit")
BARE = (PYTHON, "-c", "pass")


def process(*command: str) -> Timed:
    return lambda: run(command)


def run(command: tuple[str, ...]) -> float:
    """Seconds of one run. The program is started in the cheapest way, so that the start counts least."""
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    began = perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=null)
    _, status = os.waitpid(child, 0)
    took = perf_counter() - began
    if status:
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:])} failed: {status}")
    return took
