"""A command with kill -9 at each of its file calls in turn, and then the same command once more."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.faults import inject
from tests.faults.inject import Call, Fault
from tests.faults.machine import ROOT, environment, workshop
from tests.faults.report import Figure, say


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    what: str
    furnish: Callable[[Path], None]
    command: Callable[[Path], Sequence[str]]
    state: Callable[[Path], object]  # of the home, before
    broken: Callable[[Path, object], list[str]]  # after the kill, given that state: mends it, and looks


def run(trial: Trial, home: Path, fault: Fault) -> inject.Ran:
    return inject.run_module(["tacit", *trial.command(home), "--home", str(home)], home, fault)


def again(trial: Trial, home: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tacit", *trial.command(home), "--home", str(home)],
        env=environment(home.parent),
        cwd=ROOT,
        capture_output=True,
    )


def try_point(trial: Trial, base: Path, number: int) -> tuple[Call | None, list[str]]:
    home = base.parent / f"at{number}" / "home"
    home.parent.mkdir()
    shutil.copytree(base, home, symlinks=True)
    try:
        before = trial.state(home)
        ran = run(trial, home, Fault("kill", number))
        if len(ran.calls) < number:
            return None, []
        hung = ["it hung"] if ran.code is None else []
        return ran.calls[number - 1], hung + trial.broken(home, before)
    finally:
        shutil.rmtree(home.parent)


def scan(trial: Trial, step: int = 1, first: int = 1, workers: int = 2) -> Figure:
    began = time.monotonic()
    with workshop() as folder:
        base = folder / "base"
        trial.furnish(base)
        copy = folder / "trial"
        shutil.copytree(base, copy, symlinks=True)
        ran = run(trial, copy, Fault())
        if ran.code:
            raise RuntimeError(f"it fails without any fault: {ran.error}")
        numbers = range(first, len(ran.calls) + 5, step)
        say(f"{trial.what}: about {len(ran.calls)} calls, {len(numbers)} of them tried")
        with ProcessPoolExecutor(workers) as pool:
            points = list(pool.map(try_point, [trial] * len(numbers), [base] * len(numbers), numbers))
    fired = [(call, found) for call, found in points if call]
    failures = [f"{call.name} {call.path}: {'; '.join(found)}" for call, found in fired if found]
    what = f"kill at every file call: {trial.what}"
    return Figure(
        trial.name, what, "points", len(failures), len(fired), time.monotonic() - began, {}, failures
    )
