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


class WisdomEntry(NamedTuple):
    name: str  # ends with a full stop
    text: str
    line: int = 0

    @property
    def written(self) -> str:
        return f"**{self.name}** {self.text}".rstrip()


# Without it an agent that no longer gets MEMORY.md whole would not know where to look.
MANDATORY = WisdomEntry(
    "When context feels incomplete, check your memory.",
    "Read `memory/YYYY-MM-DD.md` and `MEMORY.md` when historical knowledge is needed.",
)
_LOOKUP_VERB = re.compile(
    r"\b(?:read|check|open|look|search|consult|lies|lesen|schau|such)\w*", re.IGNORECASE
)


class Wisdom(NamedTuple):
    entries: tuple[WisdomEntry, ...]
    day: date | None = None  # when it was compressed
    lessons: int | None = None  # number of source lessons
    header_line: int | None = None
    stray: tuple[tuple[int, str], ...] = ()  # lines that are neither header nor entry


def is_mandatory(entry: WisdomEntry) -> bool:
    """Whether it sends the agent to the same two places, in these words or others."""
    text = f"{entry.name} {entry.text}"
    return "MEMORY.md" in text and "memory/" in text and _LOOKUP_VERB.search(text) is not None


def render(entries: Sequence[WisdomEntry], day: date, lessons: int) -> str:
    header = f"_Last compressed: {day.isoformat()} | Source lessons: {lessons}_"
    lines = "\n".join(entry.written for entry in entries)
    return f"{'#' * LEVEL} {TITLE}\n\n{header}\n\n{lines}\n"


def parse(section: str, first: int = 1) -> Wisdom:
    """Accepts any text that people made of it. `first` is the number of its first line."""
    entries: list[WisdomEntry] = []
    stray: list[tuple[int, str]] = []
    header_match: re.Match[str] | None = None
    header_line: int | None = None
    for number, line in enumerate(section.splitlines(), first):
        header, entry = _HEADER.fullmatch(line.strip()), _ENTRY.fullmatch(line)
        if header and header_match is None:
            header_match, header_line = header, number
        elif entry:
            entries.append(WisdomEntry(entry["name"].strip(), entry["text"], number))
        elif line.strip() and number > first:
            stray.append((number, line.strip()))
    day, count = (
        (_parse_day(header_match["day"]), int(header_match["count"])) if header_match else (None, None)
    )
    return Wisdom(tuple(entries), day, count, header_line, tuple(stray))


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


# The lessons behind each entry, in the notes for the reviewer


def coverage_notes(covers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, places in covers.items():
        yield f"{name} covers:"
        yield from (f"- {place}" for place in places)
        yield ""


def parse_coverage(notes: str) -> dict[str, int]:
    """The number of lessons that the notes name for each entry. A reviewer may have changed them."""
    counts: dict[str, int] = {}
    name = None
    for line in notes.splitlines():
        if line.endswith(" covers:"):
            name = line.removesuffix(" covers:")
            counts[name] = 0
        elif name is not None and line.startswith("- "):
            counts[name] += 1
        elif not line.strip():
            name = None
    return counts
