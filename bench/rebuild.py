"""Rebuilding all knowledge without a model, against reading and parsing the same transcripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured

COUNTS = (1_000, 10_000)


def measure(folder: Path) -> list[Measured]:
    return [_measure_count(folder / str(count), count) for count in COUNTS]


def _measure_count(root: Path, count: int) -> Measured:
    home = homes.copy(homes.with_transcripts(count), root)
    what = f"rebuild: {count:,} transcripts without a model"
    print(f"{what}: 1 pair", file=sys.stderr)
    floor = _time_reading(home)
    ours, peak = _time_rebuild(home)
    remark = f"{count / ours:,.0f} files/s, peak {peak / 1024:,.0f} MB"
    ratio = ours / floor
    return Measured(what, "read + parse", floor, ours, ratio, (ratio, ratio), 1, remark=remark)


def _time_reading(home: Path) -> float:
    memory = tacit.open(home)
    paths = [str(file.relative_to(home)) for file in sorted(home.glob("raw/conversations/**/*.md"))]
    began = perf_counter()
    for path in paths:
        memory.transcript(path)
    return perf_counter() - began


def _time_rebuild(home: Path) -> tuple[float, int]:
    """The seconds and the peak kilobytes of one `tacit rebuild`."""
    command = [sys.executable, "-m", "tacit", "rebuild", "--name", "bench", "--quiet", "--home", str(home)]
    began = perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "TACIT_HOME": str(home)})
    _, status, usage = os.wait4(process.pid, 0)
    took = perf_counter() - began
    if status:
        raise RuntimeError(f"tacit rebuild ended with {status}")
    return took, usage.ru_maxrss
