"""Keeping one message against the cheapest way to make as many bytes durable."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

from bench import homes
from bench.pairs import Measured, paired


def measure(folder: Path) -> list[Measured]:
    memory = homes.empty(folder / "append")
    session = memory.session(channel="bench", model="none")
    texts = homes.words(400)
    session.message("user", next(texts))
    transcript = memory.home.root / str(session.path)
    size = transcript.stat().st_size
    session.message("agent", next(texts))
    record = b"x" * (transcript.stat().st_size - size)
    bare = os.open(transcript.with_name("bare"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def floor() -> float:
        began = perf_counter()
        os.write(bare, record)
        os.fdatasync(bare)
        return perf_counter() - began

    def ours() -> float:
        text = next(texts)
        began = perf_counter()
        session.message("user", text)
        return perf_counter() - began

    os.sync()
    result = paired(
        "append: `session.message()` of 400 characters",
        f"write + fdatasync of {len(record)} bytes",
        floor,
        ours,
        samples=2000,
        aim=1.5,
        warm=100,
    )
    os.close(bare)
    session.detach()
    return [result]
