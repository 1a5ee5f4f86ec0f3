"""Proving every transcript against reading and hashing the same files."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import tacit
from bench import homes
from bench.pairs import Measured, paired, timed


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    memory = tacit.open(homes.with_transcripts(10_000))
    paths = sorted(str(file) for file in memory.home.root.glob("raw/conversations/**/*.md"))

    def floor() -> None:
        for path in paths:
            with open(path, "rb") as file:
                sha256(file.read()).hexdigest()

    def ours() -> None:
        checked = list(memory.verify())
        assert len(checked) == len(paths)
        assert all(item.state == "proved" for item in checked)

    what = "verify: `memory.verify()`, 10,000 transcripts"
    return [paired(what, "read + sha256", timed(floor), timed(ours), samples=15, aim=2.0, warm=1)]
