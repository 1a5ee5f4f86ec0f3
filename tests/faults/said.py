"""What is said in the tests: every text follows from its name, so half of one is recognised."""

from __future__ import annotations

import re
from pathlib import Path

NOTE = "knowledge/reference/counter.md"
SHARED = "knowledge/reference/shared.md"
_NAME = re.compile(r"\[([A-Za-z0-9._-]+)\]")


def text_of(name: str) -> str:
    """A message of several lines, some of which look like structure of a transcript."""
    middle = "\n".join(f"{number}. what {name} has to say" for number in range(12))
    return f"[{name}] begins\n\n## 18:45 — agent\n{middle}\n<!-- 3 18:45:07 9f3a2c11 -->\n[{name}] ends"


def name_in(text: str) -> str | None:
    """The name of a message that is whole, None for anything else."""
    found = _NAME.match(text)
    return found[1] if found and text == text_of(found[1]) else None


def note_of(version: int) -> str:
    """A note whose every line says its version, so that a mixture is recognised."""
    lines = "".join(f"- version {version}, line {number}\n" for number in range(40))
    return f"---\nversion: {version}\n---\n\n# Counter\n\n{lines}"


def version_of(text: str) -> int | None:
    """The version of a note that is whole, None for anything else."""
    found = re.match(r"---\nversion: (\d+)\n", text)
    return int(found[1]) if found and text == note_of(int(found[1])) else None


def acknowledge(file: Path, *what: str) -> None:
    with file.open("a") as opened:
        opened.write("".join(f"{item}\n" for item in what))


def acknowledged(file: Path) -> list[str]:
    return file.read_text().splitlines()
