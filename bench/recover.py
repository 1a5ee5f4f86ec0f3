"""Opening a home in which a crash left a hundred sessions open: sealed one by one, committed together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired
from bench.seal import add_and_commit, talk

_LEFT = 100


def measure(folder: Path) -> list[Measured]:
    crashed = folder / "crashed"
    memory = homes.empty(crashed)
    _die_talking(memory)
    assert len(memory.open_sessions()) == _LEFT
    what = f"recover: `tacit.open()`, {_LEFT} sessions left open"
    against = "replace each file durably, one `git add` + `git commit`"
    return [paired(what, against, _floor(crashed, folder), _ours(crashed, folder), samples=15, warm=1)]


def _die_talking(memory: tacit.Memory) -> None:
    """A process of its own that ends without sealing anything: only so are its sessions really left open."""
    child = os.fork()
    if child == 0:
        try:
            sessions = [talk(memory, 5) for _ in range(_LEFT)]  # kept: they hold their files until the end
            os._exit(0 if len(sessions) == _LEFT else 1)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def _ours(crashed: Path, folder: Path) -> Timed:
    def once() -> float:
        root = homes.copy(crashed, folder / "recover")
        began = perf_counter()
        memory = tacit.open(root)
        took = perf_counter() - began
        assert not memory.open_sessions()  # else it was not recovered, and not measured
        shutil.rmtree(root)
        return took

    return once


def _floor(crashed: Path, folder: Path) -> Timed:
    def once() -> float:
        root = homes.copy(crashed, folder / "recover-bare")
        found = sorted((root / "raw").glob("**/*.md"))
        began = perf_counter()
        for file in found:
            _replace(file)
        add_and_commit(root, *(str(file.relative_to(root)) for file in found))
        took = perf_counter() - began
        shutil.rmtree(root)
        return took

    return once


def _replace(file: Path) -> None:
    data = file.read_bytes()
    fresh = file.with_suffix(".new")
    with fresh.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.rename(file)
    fd = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
