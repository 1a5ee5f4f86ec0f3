"""The measurements as a markdown table and as JSON. Facts about the machine leave out its name and paths."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.pairs import Measured


def facts(folder: Path) -> dict[str, str]:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "python": platform.python_version(),
        "git": git.split()[2],
        "file system": file_system(folder),
        "system": platform.system(),
        "cores": str(os.cpu_count()),
    }


def file_system(folder: Path) -> str:
    """The type of the file system that holds the folder, if the system tells."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    place = str(folder.resolve()) + "/"
    holding = [
        (len(mount_point), kind)
        for _, mount_point, kind, *_ in mounts
        if place.startswith(mount_point.rstrip("/") + "/")
    ]
    return max(holding)[1] if holding else "unknown"


def table(found: Sequence[Measured]) -> str:
    rows: list[tuple[str, ...]] = [
        ("what", "floor", "ours", "ratio", "middle half", "aim", "samples"),
        ("---",) * 7,
    ]
    rows += [_table_row(item) for item in found]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _table_row(item: Measured) -> tuple[str, ...]:
    low, high = item.middle
    return (
        item.what,
        f"{item.against}: {duration(item.floor)}",
        duration(item.ours) + (f" ({item.remark})" if item.remark else ""),
        f"**{number(item.ratio)}**",
        f"{number(low)} – {number(high)}",
        f"under {item.aim:g}" if item.aim else "–",
        str(item.samples),
    )


def number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:.0f}"


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def save(file: Path, found: Sequence[Measured], about: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    value = {"machine": about, "measured": [asdict(item) for item in found]}
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
