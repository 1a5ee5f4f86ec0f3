"""Verifying every transcript against reading and hashing the same files."""

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
    result = paired(what, "read + sha256", timed(floor), timed(ours), samples=25, aim=2.0, warm=1)
    # git uses another core at the same time, which the floor does not, so the clock alone would flatter us.
    ratio = median(cpu(ours) / cpu(floor) for _ in range(9))
    return [replace(result, remark=f"CPU with git {ratio:.2f} × floor")]


def cpu(work: Callable[[], None]) -> float:
    """Seconds of processor time, ours and our children's."""
    start = _cpu_seconds()
    work()
    return _cpu_seconds() - start


def _cpu_seconds() -> float:
    usages = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
