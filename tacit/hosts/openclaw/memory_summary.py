"""Drafts MEMORY_SUMMARY.md from the newest entries of MEMORY.md, for agents that do not look up MEMORY.md by
themselves. It is loaded whole, so it has at most thirty entries."""

from __future__ import annotations

import re
from typing import NamedTuple

from tacit.hosts.openclaw.wisdom.lessons import iter_items
from tacit.markdown.sections import split_sections

MAX_ENTRIES = 30
_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")


class _Entry(NamedTuple):
    title: str  # of its section
    text: str
    line: int
    day: str  # empty where it has none

    @property
    def written(self) -> str:
        return f"- {self.text}"


def summarize(memory: str) -> tuple[str, int]:
    """The text, and how many entries MEMORY.md has. Newest by date; entries without one by their place."""
    entries = [
        _Entry(section.title if section.level > 1 else "", text, line, _newest_day(text))
        for section in split_sections(memory)
        for line, text in iter_items(section.own(memory), section.line)
        if text.strip()
    ]
    # By place alone a section that lists the newest first would lose them.
    newest = sorted(
        sorted(entries, key=lambda entry: (entry.day, entry.line))[-MAX_ENTRIES:], key=lambda e: e.line
    )
    parts = ["# Memory, the newest"]
    for title in dict.fromkeys(entry.title for entry in newest):
        lines = [entry.written for entry in newest if entry.title == title]
        parts.append("\n".join((f"## {title}", *lines) if title else lines))
    return "\n\n".join(parts) + "\n", len(entries)


def count_entries(text: str) -> int:
    return sum(1 for _ in iter_items(text))


def _newest_day(text: str) -> str:
    return max(_DATE.findall(text), default="")
