"""Keeping a message from the command line, with a process for each."""

from __future__ import annotations

from pathlib import Path

from bench import homes
from bench.pairs import Measured, paired
from bench.processes import BARE, TACIT, process


def measure(folder: Path) -> list[Measured]:
    memory = homes.from_sample(folder / "capture")
    session = memory.session(channel="bench", detached=True)
    text = next(homes.words(400))
    session.message("user", text)
    session.detach()
    home = str(memory.home.root)
    ours = process(TACIT, "--home", home, "capture", "message", session.session_id, "agent", text)
    what = "capture: `tacit capture message`"
    return [paired(what, "`python -c pass`", process(*BARE), ours, samples=100, warm=5)]
