"""Starting a command against starting Python, and what the imports cost."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench import homes
from bench.pairs import Measured, paired
from bench.processes import BARE, PYTHON, TACIT, process


def measure(folder: Path) -> list[Measured]:
    home = str(homes.from_sample(folder / "start").home.root)
    commands = {
        "start: `tacit --version`": ("--version",),
        "start: `tacit status`, the sample's home": ("--home", home, "status"),
    }
    results = []
    for what, arguments in commands.items():
        ours = process(TACIT, *arguments)
        results.append(paired(what, "`python -c pass`", process(*BARE), ours, samples=150, aim=4.0, warm=10))
        print(f"\n{what}: slowest imports, self time in µs (those of `python -c pass` left out)")
        print("\n".join(f"  {took:>6}  {name}" for took, name in slowest_imports(*arguments)) + "\n")
    return results


def slowest_imports(*arguments: str, top: int = 8, runs: int = 5) -> list[tuple[int, str]]:
    """The fastest of a few runs for each module, without the modules that Python itself imports."""
    bare = _import_times(*BARE[1:])
    least = _import_times(TACIT, *arguments)
    for _ in range(runs - 1):
        times = _import_times(TACIT, *arguments)
        least = {name: min(took, times.get(name, took)) for name, took in least.items()}
    own_times = ((took, name) for name, took in least.items() if name not in bare)
    return sorted(own_times, reverse=True)[:top]


def _import_times(*arguments: str) -> dict[str, int]:
    process = subprocess.run(
        [PYTHON, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    rows = [line.removeprefix("import time:").split("|") for line in process.stderr.splitlines()]
    return {row[2].strip(): int(row[0]) for row in rows if len(row) == 3 and row[0].strip().isdigit()}
