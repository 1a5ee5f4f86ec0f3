"""What 10,000 transcripts cost calls that do not need them; the floor is the same call in an empty home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired, timed
from bench.processes import TACIT, process
from bench.seal import talk


def measure(folder: Path) -> list[Measured]:
    full = homes.with_transcripts(10_000)
    empty = homes.empty(folder / "many-empty").home.root
    copy = homes.copy(full, folder / "many-full")

    def pair(what: str, work: Callable[[Path], Timed], large: Path, samples: int) -> Measured:
        label = f"10,000 transcripts: {what}"
        return paired(label, "empty home", work(empty), work(large), samples=samples)

    return [
        pair("`tacit.open()`", lambda home: timed(lambda: tacit.open(home)), full, 200),
        pair("`tacit status`", lambda home: process(TACIT, "--home", str(home), "status"), full, 30),
        pair("first message of a session", _first_message, copy, 50),
        pair("`session.end()`", _end, copy, 30),
    ]


def _first_message(home: Path) -> Timed:
    memory = tacit.open(home)

    def once() -> float:
        began = perf_counter()
        session = memory.session(channel="bench")
        session.message("user", "What did we decide about the kiln?")
        took = perf_counter() - began
        session.detach()
        return took

    return once


def _end(home: Path) -> Timed:
    memory = tacit.open(home)

    def once() -> float:
        session = talk(memory, 5)
        began = perf_counter()
        session.end()
        return perf_counter() - began

    return once
