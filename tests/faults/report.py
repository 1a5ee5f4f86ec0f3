"""Figures: what was broken of how many tries. A zero without its count says nothing."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    part: str
    what: str
    unit: str  # of what was tried: points, cuts, rounds …
    broken: int
    tried: int
    seconds: float = 0.0
    details: Mapping[str, object] = field(default_factory=dict)
    failures: Sequence[str] = ()
    skipped: str = ""  # why this machine could not run it

    @property
    def line(self) -> str:
        if self.skipped:
            return f"{self.what}: skipped, {self.skipped}"
        more = "".join(f", {key} {value}" for key, value in self.details.items())
        return f"{self.what}: {self.broken} of {self.tried} {self.unit} broken{more} ({self.seconds:.0f} s)"


def skip(part: str, why: str) -> Figure:
    return Figure(part, part, "", 0, 0, skipped=why)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def tell(figure: Figure) -> Figure:
    """The last line of a part, with the first few failures above it."""
    for failure in figure.failures[:10]:
        say(f"  ! {failure}")
    if len(figure.failures) > 10:
        say(f"  ! … and {len(figure.failures) - 10} more")
    say(figure.line)
    return figure


def markdown(figures: Sequence[Figure]) -> str:
    rows = ["| Fault | Broken | More | Command |", "|---|---|---|---|"]
    for figure in figures:
        result = figure.skipped or f"{figure.broken} of {figure.tried} {figure.unit}"
        more = ", ".join(f"{key} {value}" for key, value in figure.details.items())
        rows.append(f"| {figure.what} | {result} | {more} | `python -m tests.faults {figure.part}` |")
    return "\n".join(rows)


def save(figures: Sequence[Figure], file: Path) -> None:
    """Keep the figures of the parts that ran, and of others from earlier runs."""
    ran = {figure.part for figure in figures}
    before = json.loads(file.read_text())["figures"] if file.exists() else []
    kept = [figure for figure in before if figure["part"] not in ran]
    value = {
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "git": _git_version(),
        },
        "figures": kept
        + [{**asdict(figure), "when": time.strftime("%Y-%m-%dT%H:%M:%S")} for figure in figures],
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value, indent=1))


def _git_version() -> str:
    return subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[-1]
