"""Faults beside the real OpenClaw: how long turns are held up, and whether what was said is there once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from tests.e2e.conftest import Gateway, added
from tests.e2e.faults import ALLOWED, FAULTS, Fault, Said, go_through, say, say_often
from tests.e2e.npm import Missing, installed
from tests.faults.machine import Impossible, workshop
from tests.faults.report import Figure


def trials(turns: int) -> Iterator[Callable[[], Figure]]:
    """All with one gateway."""
    try:
        host = installed()
    except Missing as why:
        raise Impossible(str(why)) from None
    with workshop() as folder, added(host, folder) as gateway:
        say(gateway)  # the first one after a start takes longer
        for fault in FAULTS:
            yield lambda fault=fault: _figure(gateway, fault, say_often(gateway, turns))  # type: ignore[misc]


def _figure(gateway: Gateway, fault: Fault, healthy: Sequence[Said]) -> Figure:
    began = time.monotonic()
    done = go_through(gateway, fault, healthy)
    problems = list(done.problems)
    if not done.is_in_time:
        problems.append(f"turns are held up by more than {ALLOWED} s")
    details = {
        "held up by": f"{done.held * 1000:.0f} ms at most",
        "later by": f"{median(done.delays) * 1000:.0f} ms (median)",
        "without tacit": f"{sum(not one.is_tiered for one in (*done.during, *done.after))} turns",
    }
    what = f"OpenClaw: {fault.name}"
    return Figure(
        "openclaw",
        what,
        "turns",
        len(problems),
        len(done.during),
        time.monotonic() - began,
        details,
        problems,
    )
