"""The items of a note's lists, by the lines that they stand on, so that some can be taken out and every other
byte stays.

What is indented below an item, or goes on in the next line, belongs to it. Prose, tables, code and headings
are no items: nothing here ever takes them out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.lifecycle.apply import lines_of
from tacit.model.changes import Trust
from tacit.text import marks, notes
from tacit.text.lines import Line, scan
from tacit.text.marks import Mark
from tacit.text.words import fold

_BULLET = re.compile(
    r" ?(?:[-*+•]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\**([0-9]{4}-[0-9]{2}-[0-9]{2})\**:?\s+)?"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


class Item(NamedTuple):
    number: int  # from 1, in the order of the note
    start: int  # its lines, counted from 0
    stop: int
    raw: str  # as it stands in the note, without the last line end
    said: str  # its first line without bullet, day, mark and what it is superseded by
    day: str  # empty where it has none
    section: str  # titles from the second rank on: Key Decisions / Shop
    mark: Mark | None

    @property
    def is_generated(self) -> bool:
        """Whether tacit wrote it and nobody has changed it since; what somebody put below it counts too."""
        return self.stop == self.start + 1 and marks.is_generated(self.raw)

    @property
    def is_superseded(self) -> bool:
        return marks.is_superseded(self.raw.split("\n", 1)[0].rstrip("\r"))

    @property
    def trust(self) -> Trust:
        """What a person wrote into the home is the owner's word."""
        return self.mark.trust if self.mark is not None and self.is_generated else "owner"


def items(text: str) -> list[Item]:
    lines = lines_in(text)
    head = notes.split(text)[0].count("\n")
    found: list[Item] = []
    for start, stop, titles in _spans(text, head):
        raw = "".join(lines[start:stop]).rstrip("\r\n")
        found.append(_item(len(found) + 1, start, stop, raw, " / ".join(titles)))
    return found


def lines_in(text: str) -> list[str]:
    """With their ends."""
    return _LINE.findall(text)


def without(text: str, gone: Collection[Item], instead: Mapping[int, str] | None = None) -> str:
    """The note without these items, and with other lines for some, by their numbers."""
    lines = lines_in(text)
    dropped = {at for one in gone for at in range(one.start, one.stop)}
    changed = {one.start: line for one in items(text) if (line := (instead or {}).get(one.number))}
    kept = (
        changed[at] + line[len(line.rstrip("\r\n")) :] if at in changed else line
        for at, line in enumerate(lines)
        if at not in dropped
    )
    return "".join(kept)


def dated(text: str, now: datetime) -> str:
    """MEMORY.md with the fields that tell of itself made true, where it has them."""
    note = notes.parse(text)
    wanted: dict[str, object] = {}
    if "updated" in note.fields:
        wanted["updated"] = now.replace(microsecond=0)
    if "line_count" in note.fields:
        wanted["line_count"] = lines_of(text)
    try:
        return notes.with_fields(note, wanted).text
    except StoreError:  # somebody's frontmatter is broken: doctor tells, and nobody needs these two
        return text


def said_in(texts: Iterable[str]) -> set[str]:
    """What notes say, item by item, for looking up whether they say something."""
    return {fold(one.said) for text in texts for one in items(text) if not one.is_superseded}


def _item(number: int, start: int, stop: int, raw: str, section: str) -> Item:
    first = raw.split("\n", 1)[0].rstrip("\r")
    bullet = _BULLET.match(first)
    said, mark = marks.read(first[bullet.end() if bullet else 0 :])
    day = (bullet[1] if bullet else "") or ""
    return Item(number, start, stop, raw, marks.as_it_held(said).strip(), day, section, mark)


def _spans(text: str, head: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """First line, line after the last, and titles above."""
    titles: list[tuple[int, str]] = []
    start = stop = -1
    for line in scan("".join(lines_in(text)[head:]), head):
        if start >= 0 and _goes_on(line, is_next=stop == line.number):
            stop = line.number + 1 if line.kind != "blank" else stop
            continue
        if start >= 0 and line.kind != "blank":
            yield start, stop, tuple(title for _, title in titles)
            start = -1
        if line.kind == "heading":
            titles = [one for one in titles if one[0] < line.level]
            titles += [(line.level, line.title)] if line.level > 1 else []
        elif line.kind == "text" and _BULLET.match(line.text):
            start, stop = line.number, line.number + 1
    if start >= 0:
        yield start, stop, tuple(title for _, title in titles)


def _goes_on(line: Line, *, is_next: bool) -> bool:
    """Whether a line belongs to the item above: indented, or the same paragraph."""
    if line.kind == "heading":
        return False
    if line.kind == "blank" or line.text.startswith(("  ", "\t")):
        return True
    return is_next and line.kind == "text" and not _BULLET.match(line.text)
