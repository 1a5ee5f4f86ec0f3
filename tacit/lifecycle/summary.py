"""MEMORY.md → a proposal for MEMORY_SUMMARY.md: its newest entries, for agents that do not look MEMORY.md
up by themselves. It is loaded whole, so it is the last thirty and never more."""

from __future__ import annotations

import re
from typing import NamedTuple

from tacit.lifecycle.wisdom.lessons import items
from tacit.text.sections import sections

MOST_ENTRIES = 30
_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")


class _Entry(NamedTuple):
    title: str  # of its section
    text: str
    line: int
    day: str  # empty where it has none

    @property
    def written(self) -> str:
        return f"- {self.text}"


def summary(memory: str) -> tuple[str, int]:
    """The text, and how many entries MEMORY.md has. Newest by their dates; what has none, by its place."""
    found = [
        _Entry(section.title if section.level > 1 else "", text, line, _newest_day(text))
        for section in sections(memory)
        for line, text in items(section.own(memory), section.line)
        if text.strip()
    ]
    # A section that lists the newest first would lose them if only places counted.
    kept = sorted(
        sorted(found, key=lambda entry: (entry.day, entry.line))[-MOST_ENTRIES:], key=lambda e: e.line
    )
    parts = ["# Memory, the newest"]
    for title in dict.fromkeys(entry.title for entry in kept):
        lines = [entry.written for entry in kept if entry.title == title]
        parts.append("\n".join((f"## {title}", *lines) if title else lines))
    return "\n\n".join(parts) + "\n", len(found)


def entries_in(text: str) -> int:
    return sum(1 for _ in items(text))


def _newest_day(text: str) -> str:
    return max(_DATE.findall(text), default="")
