"""Situations that are told one by one: each is tried in a folder of its own and returns what is broken."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.invariants import last_line
from tests.faults.machine import Impossible, workshop
from tests.faults.report import Figure, say


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    run: Callable[[Path], Iterable[str]]


def try_case(case: Case) -> list[str]:
    """What is broken; Impossible where this machine cannot try it."""
    with workshop() as folder:
        try:
            return list(case.run(folder))
        except Impossible:
            raise
        except Exception:  # noqa: BLE001 - an exception that nobody expected is a failure of the case
            return [last_line(traceback.format_exc())]


def try_cases(part: str, what: str, cases: Sequence[Case]) -> Figure:
    began = time.monotonic()
    failures: list[str] = []
    bad = tried = 0
    for case in cases:
        try:
            found = try_case(case)
        except Impossible as why:
            say(f"  {case.name}: skipped, {why}")
            continue
        say(f"  {case.name}: {'; '.join(found) or 'ok'}")
        tried += 1
        bad += bool(found)
        failures += [f"{case.name}: {failure}" for failure in found]
    if not tried:
        raise Impossible("none of its cases can be tried here")
    return Figure(part, what, "cases", bad, tried, time.monotonic() - began, {}, failures)


def picture(folder: Path, *left_out: str) -> dict[str, str]:
    """Every file below the folder and what is in it."""
    return {
        path: f"{file.stat().st_mode:o} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not (path := str(file.relative_to(folder))).startswith(left_out)
    }


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
