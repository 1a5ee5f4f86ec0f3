"""The records of a transcript: a turn's heading, and the comment with a checksum that ends each record.

`transcripts.format` reads and writes them. This is what is needed to tell a conversation about merge
conflicts from a file that is in one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit.markdown import conflict_markers, notes
from tacit.text.lines import MarkdownLine

HEADING = re.compile(
    r"^## (?:(?P<date>\d{4}-\d\d-\d\d) )?(?P<time>\d\d:\d\d) — (?P<role>user|agent|system)"
    r"(?: \[(?P<kind>[a-z]+)\])?(?: \((?P<speaker>[^()\n]*)\))?\r?$"
)
# Groups 1 to 3 are set for a checksum line, none for the line that closes off a truncated record.
_RECORD_END = re.compile(
    r"^<!-- (?:(\d{1,18}) ((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?) ([0-9a-f]{8})|torn) -->(\r?)\n",
    re.MULTILINE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Region:
    """Text between two checksum lines; `mark` is None for text that was never acknowledged."""

    text: str
    start: int
    mark: re.Match[str] | None


def checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode('utf-8', 'surrogateescape')):08x}"


def split_regions(text: str, start: int) -> Iterable[Region]:
    position = start + _title_length(text, start)
    for mark in _RECORD_END.finditer(text, position):
        region = text[position : mark.start()]
        if mark[4]:  # we never write such a line ending: an editor changed them all
            region = region.replace("\r\n", "\n")
        yield Region(region, position, mark if mark[1] else None)
        position = mark.end()
    if position < len(text):
        yield Region(text[position:], position, None)


def _title_length(text: str, start: int) -> int:
    heading = re.compile(r"\r?\n?# .*\n").match(text, start)
    return len(heading[0]) if heading else 0


def find_conflict_line(text: str) -> int:
    """The first line with a marker of a merge conflict, 0 if there is none. People also talk about conflicts,
    so text that matches its checksum does not count, nor, without checksums, markers within one turn."""
    head, _ = notes.split(text)
    if "\nmarks: crc32" in head:
        return conflict_markers.find_marker_line(_blank_intact_records(text, len(head)))
    return conflict_markers.find_marker_line(text, _turn_starts)


def _turn_starts(lines: Sequence[MarkdownLine]) -> list[int | None]:
    """For each line of a transcript without checksums, the line that begins its turn."""
    starts: list[int | None] = []
    start: int | None = None
    for index, line in enumerate(lines):
        start = index if HEADING.match(line.text) else start
        starts.append(start)
    return starts


def _blank_intact_records(text: str, start: int) -> str:
    """The same lines, empty where a record matches its checksum."""
    pieces, position = [], 0
    for region in split_regions(text, start):
        if region.mark is not None and checksum(region.text) == region.mark[3]:
            end = region.mark.end()
            pieces += [text[position : region.start], "\n" * text.count("\n", region.start, end)]
            position = end
    return "".join((*pieces, text[position:]))
