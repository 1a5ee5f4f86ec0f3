"""Many processes write to one home at the same time; every one also edits the same note."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tacit
from tests.faults import homes, invariants
from tests.faults.inject import end_group, start
from tests.faults.invariants import Kept
from tests.faults.machine import acknowledgements, workshop
from tests.faults.report import Figure
from tests.faults.said import SHARED, acknowledged

_ENDS_WITHIN = 60.0


def write_together(processes: int, seconds: float) -> Figure:
    began = time.monotonic()
    with workshop() as folder, acknowledgements() as acks:
        home = folder / "home"
        homes.furnish(home)
        tacit.open(home).write(SHARED, "# Shared\n\n", replacing=None)
        own = homes.own_work(home)
        failures = _crowd(home, acks, processes, seconds)
        kept = Kept(tuple(acknowledged(acks)), own)
        failures += invariants.broken(home, kept)
        failures += _lost_edits(home, kept.acks)
    tally = _tally(kept.acks)
    return Figure(
        part="writers",
        what=f"{processes} processes on one home for {seconds:.0f} s",
        unit="turns and edits",
        broken=len(failures),
        tried=tally.turns + tally.edits + tally.conflicts,
        seconds=time.monotonic() - began,
        details={
            "turns": tally.turns,
            "turns/s": round(tally.turns / seconds, 1),
            "turn p95 ms": tally.turn_p95,
            "message p95 ms": tally.message_p95,
            "edits applied": tally.edits,
            "conflicts reported": tally.conflicts,
        },
        failures=failures,
    )


def _crowd(home: Path, acks: Path, processes: int, seconds: float) -> list[str]:
    crowd = [start(["crowd", str(home), str(acks), f"w{number}"], home.parent) for number in range(processes)]
    time.sleep(seconds)
    acks.with_name("STOP").touch()
    return [failure for process in crowd for failure in _ended_well(process)]


def _ended_well(process: subprocess.Popen[bytes]) -> list[str]:
    try:
        _, error = process.communicate(timeout=_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        end_group(process)
        return ["a writer hung"]
    text = invariants.last_line(error.decode("utf-8", "replace"))
    return [f"a writer failed: {text}"] if process.returncode else []


def _lost_edits(home: Path, acks: tuple[str, ...]) -> list[str]:
    lines = Counter((home / SHARED).read_text().splitlines())
    applied = [ack.split()[1] for ack in acks if ack.startswith("edit ")]
    refused = [ack.split()[1] for ack in acks if ack.startswith("conflict ")]
    lost = [f"LOST: edit {name} was applied and is gone" for name in applied if not lines[f"- {name}"]]
    return lost + [f"edit {name} was refused and is there" for name in refused if lines[f"- {name}"]]


@dataclass(frozen=True, slots=True)
class Tally:
    turns: int
    edits: int
    conflicts: int
    turn_p95: float
    message_p95: float


def _tally(acks: tuple[str, ...]) -> Tally:
    kinds = Counter(ack.split()[0] for ack in acks)
    return Tally(
        kinds["turn-ms"],
        kinds["edit"],
        kinds["conflict"],
        _percentile([float(ack.split()[1]) for ack in acks if ack.startswith("turn-ms ")], 0.95),
        _percentile([float(ack.split()[1]) for ack in acks if ack.startswith("message-ms ")], 0.95),
    )


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0
