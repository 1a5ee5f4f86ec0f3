"""The `## Wisdom` section as text, both ways, and which lessons stand behind each entry.

## Wisdom

_Last compressed: YYYY-MM-DD | Source lessons: N_

**Pattern name.** Wisdom in at most 15 words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

TITLE, LEVEL = "Wisdom", 2

_ENTRY = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[^*\n]{1,200}?)\*\*\s*(?P<text>.*?)\s*")
_HEADER = re.compile(r"_Last compressed: (?P<day>\d{4}-\d{2}-\d{2}) \| Source lessons: (?P<count>\d+)_")


class Entry(NamedTuple):
    name: str  # ends with a full stop
    text: str
    line: int = 0

    @property
    def written(self) -> str:
        return f"**{self.name}** {self.text}".rstrip()


# Without it an agent that no longer gets MEMORY.md whole would not know where to look.
MANDATORY = Entry(
    "When context feels incomplete, check your memory.",
    "Read `memory/YYYY-MM-DD.md` and `MEMORY.md` when historical knowledge is needed.",
)
_LOOKS = re.compile(r"\b(?:read|check|open|look|search|consult|lies|lesen|schau|such)\w*", re.IGNORECASE)


class Wisdom(NamedTuple):
    entries: tuple[Entry, ...]
    day: date | None = None  # when it was compressed
    lessons: int | None = None  # from so many
    header_line: int | None = None
    stray: tuple[tuple[int, str], ...] = ()  # lines that are neither


def is_mandatory(entry: Entry) -> bool:
    """In those words, or in others that send the agent to the same two places."""
    text = f"{entry.name} {entry.text}"
    return "MEMORY.md" in text and "memory/" in text and _LOOKS.search(text) is not None


def render(entries: Sequence[Entry], day: date, lessons: int) -> str:
    header = f"_Last compressed: {day.isoformat()} | Source lessons: {lessons}_"
    lines = "\n".join(entry.written for entry in entries)
    return f"{'#' * LEVEL} {TITLE}\n\n{header}\n\n{lines}\n"


def parse(section: str, first: int = 1) -> Wisdom:
    """Whatever somebody made of it. `first` is the number of its first line."""
    entries: list[Entry] = []
    stray: list[tuple[int, str]] = []
    found: re.Match[str] | None = None
    at: int | None = None
    for number, line in enumerate(section.splitlines(), first):
        header, entry = _HEADER.fullmatch(line.strip()), _ENTRY.fullmatch(line)
        if header and found is None:
            found, at = header, number
        elif entry:
            entries.append(Entry(entry["name"].strip(), entry["text"], number))
        elif line.strip() and number > first:
            stray.append((number, line.strip()))
    day, count = (_day(found["day"]), int(found["count"])) if found else (None, None)
    return Wisdom(tuple(entries), day, count, at, tuple(stray))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


# Which lessons stand behind it, as the reviewer is told


def coverage_notes(covers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, places in covers.items():
        yield f"{name} covers:"
        yield from (f"- {place}" for place in places)
        yield ""


def coverage(notes: str) -> dict[str, int]:
    """How many lessons the notes name for each entry. A reviewer may have changed them."""
    found: dict[str, int] = {}
    name = None
    for line in notes.splitlines():
        if line.endswith(" covers:"):
            name = line.removesuffix(" covers:")
            found[name] = 0
        elif name is not None and line.startswith("- "):
            found[name] += 1
        elif not line.strip():
            name = None
    return found
