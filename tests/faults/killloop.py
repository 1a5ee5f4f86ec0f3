"""kill -9 at random moments, many times, on one home that keeps living.

A writer makes whole turns. Half of the kills take the whole process tree, as a reboot would; the others only
the writer itself, as the out-of-memory killer would, so that its git goes on without it. Beside it a
conversation stays open through all rounds: recovery must leave what is alive alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import tacit
from tests.faults import homes, invariants
from tests.faults.inject import end_group, start
from tests.faults.invariants import Kept
from tests.faults.machine import acknowledgements, workshop
from tests.faults.report import Figure, say
from tests.faults.said import acknowledge, acknowledged, text_of

WHAT = "kill -9 at random moments, one home"


def kill_loop(rounds: int, seed: int = 7) -> Figure:
    chance = random.Random(seed)
    began = time.monotonic()
    failures: list[str] = []
    with workshop() as folder, acknowledgements() as acks:
        home = folder / "home"
        homes.furnish(home)
        kept = Kept(own=homes.own_work(home))
        bystander = tacit.open(home).session(session_id="bystander")
        for number in range(rounds):
            _one_kill(home, acks, f"r{number}", chance)
            bystander.message("user", text_of(f"bystander.{number}"))
            acknowledge(acks, f"bystander.{number}")
            kept = replace(kept, acks=tuple(acknowledged(acks)), live=frozenset({bystander.path or ""}))
            failures += [f"round {number}: {what}" for what in invariants.broken(home, kept)]
            if number % 25 == 24:
                say(f"  {number + 1} of {rounds} rounds, {len(kept.names)} acknowledged messages")
        bystander.end()
        failures += [
            f"at the end: {what}" for what in invariants.broken(home, replace(kept, live=frozenset()))
        ]
    details = {"acknowledged messages": len(kept.names)}
    bad = len({failure.split(":")[0] for failure in failures})
    return Figure("loop", WHAT, "rounds", bad, rounds, time.monotonic() - began, details, failures)


def _one_kill(home: Path, acks: Path, name: str, chance: random.Random) -> None:
    process = start(["turns", str(home), str(acks), name], home.parent)
    time.sleep(chance.uniform(0.1, 1.2))
    if chance.random() < 0.5:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        _let_it_finish(process)
    end_group(process)


def _let_it_finish(process: subprocess.Popen[bytes], seconds: float = 0.3) -> None:
    """What the writer started goes on for a moment."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
