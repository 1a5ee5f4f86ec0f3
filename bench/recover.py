"""Opening a home with a hundred sessions that a crash left open: sealed one by one, committed together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired
from bench.seal import add_and_commit, talk

_OPEN_SESSIONS = 100


def measure(folder: Path) -> list[Measured]:
    crashed = folder / "crashed"
    memory = homes.empty(crashed)
    _crash_while_talking(memory)
    assert len(memory.services.conversations.list_open()) == _OPEN_SESSIONS
    what = f"recover: `tacit.open()`, {_OPEN_SESSIONS} sessions left open"
    against = "replace each file durably, one `git add` + `git commit`"
    return [
        paired(
            what,
            against,
            _time_replacing(crashed, folder),
            _time_recovery(crashed, folder),
            samples=15,
            warm=1,
        )
    ]


def _crash_while_talking(memory: tacit.Memory) -> None:
    """Leave sessions open, by a separate process that ends without sealing."""
    child = os.fork()
    if child == 0:
        try:
            sessions = [
                talk(memory, 5) for _ in range(_OPEN_SESSIONS)
            ]  # referenced, so that their files stay open
            os._exit(0 if len(sessions) == _OPEN_SESSIONS else 1)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def _time_recovery(crashed: Path, folder: Path) -> Timed:
    def once() -> float:
        root = homes.copy(crashed, folder / "recover")
        began = perf_counter()
        memory = tacit.open(root)
        took = perf_counter() - began
        assert not memory.services.conversations.list_open()  # otherwise nothing was recovered or measured
        shutil.rmtree(root)
        return took

    return once


def _time_replacing(crashed: Path, folder: Path) -> Timed:
    def once() -> float:
        root = homes.copy(crashed, folder / "recover-bare")
        transcripts = sorted((root / "raw").glob("**/*.md"))
        began = perf_counter()
        for file in transcripts:
            _replace_durably(file)
        add_and_commit(root, *(str(file.relative_to(root)) for file in transcripts))
        took = perf_counter() - began
        shutil.rmtree(root)
        return took

    return once


def _replace_durably(file: Path) -> None:
    data = file.read_bytes()
    new_file = file.with_suffix(".new")
    with new_file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    new_file.rename(file)
    fd = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
