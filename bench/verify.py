"""Proving every transcript against reading and hashing the same files."""

from __future__ import annotations

import resource
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import median

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
    found = paired(what, "read + sha256", timed(floor), timed(ours), samples=25, aim=2.0, warm=1)
    # git works on another core meanwhile, which the floor does not, so the clock alone would flatter us.
    ratio = median(cpu(ours) / cpu(floor) for _ in range(9))
    return [replace(found, remark=f"CPU with git {ratio:.2f} × floor")]


def cpu(work: Callable[[], None]) -> float:
    """Seconds of processor time, ours and our children's."""
    before = _used()
    work()
    return _used() - before


def _used() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)
