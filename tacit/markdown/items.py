"""The items of a note's lists, by their lines, so that some can be removed and every other byte stays.

Lines that are indented below an item, or continue its paragraph, belong to it. Prose, tables, code and
headings are not items and are never removed here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.markdown import comment, notes
from tacit.markdown.comment import Provenance, Trust
from tacit.text.lines import MarkdownLine, scan
from tacit.text.words import fold

_BULLET = re.compile(
    r" ?(?:[-*+•]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\**([0-9]{4}-[0-9]{2}-[0-9]{2})\**:?\s+)?"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


class NoteItem(NamedTuple):
    number: int  # from 1, in the order of the note
    start: int  # its lines, counted from 0
    stop: int
    raw: str  # as written in the note, without the last line end
    said: str  # its first line without bullet, day, mark and what it is superseded by
    day: str  # empty where it has none
    section: str  # titles from the second rank on: Key Decisions / Shop
    mark: Provenance | None

    @property
    def is_generated(self) -> bool:
        """Whether tacit wrote it and it is unchanged since; lines added below it count as a change."""
        return self.stop == self.start + 1 and comment.is_generated(self.raw)

    @property
    def is_superseded(self) -> bool:
        return comment.is_superseded(self.raw.split("\n", 1)[0].rstrip("\r"))

    @property
    def trust(self) -> Trust:
        """Text that a person wrote into the home is trusted like the owner."""
        return self.mark.trust if self.mark is not None and self.is_generated else "owner"


def read_items(text: str) -> list[NoteItem]:
    lines = split_lines(text)
    head = notes.split(text)[0].count("\n")
    note_items: list[NoteItem] = []
    for start, stop, titles in _item_spans(text, head):
        raw = "".join(lines[start:stop]).rstrip("\r\n")
        note_items.append(_make_item(len(note_items) + 1, start, stop, raw, " / ".join(titles)))
    return note_items


def split_lines(text: str) -> list[str]:
    """The lines with their line ends."""
    return _LINE.findall(text)


def remove_items(text: str, removed: Collection[NoteItem], instead: Mapping[int, str] | None = None) -> str:
    """The note without these items; `instead` maps numbers of items to new lines."""
    lines = split_lines(text)
    dropped = {index for item in removed for index in range(item.start, item.stop)}
    changed = {item.start: line for item in read_items(text) if (line := (instead or {}).get(item.number))}
    remaining = (
        changed[index] + line[len(line.rstrip("\r\n")) :] if index in changed else line
        for index, line in enumerate(lines)
        if index not in dropped
    )
    return "".join(remaining)


def update_dates(text: str, now: datetime) -> str:
    """MEMORY.md with its fields `updated` and `line_count` brought up to date, if it has them."""
    note = notes.parse(text)
    updates: dict[str, object] = {}
    if "updated" in note.fields:
        updates["updated"] = now.replace(microsecond=0)
    if "line_count" in note.fields:
        updates["line_count"] = line_count(text)
    try:
        return notes.set_fields(note, updates).text
    except StoreError:  # the frontmatter is broken: doctor reports it, and these two fields can wait
        return text


def line_count(text: str) -> int:
    """Number of lines of a note, as its cap counts them."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def collect_item_texts(texts: Iterable[str]) -> set[str]:
    """The texts of all current items, folded, to look up whether notes already have a text."""
    return {fold(item.said) for text in texts for item in read_items(text) if not item.is_superseded}


def _make_item(number: int, start: int, stop: int, raw: str, section: str) -> NoteItem:
    first = raw.split("\n", 1)[0].rstrip("\r")
    bullet = _BULLET.match(first)
    item_text, mark = comment.read(first[bullet.end() if bullet else 0 :])
    day = (bullet[1] if bullet else "") or ""
    return NoteItem(number, start, stop, raw, comment.strip_superseded(item_text).strip(), day, section, mark)


def _item_spans(text: str, head: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """First line, line after the last, and the titles above."""
    titles: list[tuple[int, str]] = []
    start = stop = -1
    for line in scan("".join(split_lines(text)[head:]), head):
        if start >= 0 and _continues_item(line, is_next=stop == line.number):
            stop = line.number + 1 if line.kind != "blank" else stop
            continue
        if start >= 0 and line.kind != "blank":
            yield start, stop, tuple(title for _, title in titles)
            start = -1
        if line.kind == "heading":
            titles = [above for above in titles if above[0] < line.level]
            titles += [(line.level, line.title)] if line.level > 1 else []
        elif line.kind == "text" and _BULLET.match(line.text):
            start, stop = line.number, line.number + 1
    if start >= 0:
        yield start, stop, tuple(title for _, title in titles)


def _continues_item(line: MarkdownLine, *, is_next: bool) -> bool:
    """Whether a line belongs to the item above: indented, or the same paragraph."""
    if line.kind == "heading":
        return False
    if line.kind == "blank" or line.text.startswith(("  ", "\t")):
        return True
    return is_next and line.kind == "text" and not _BULLET.match(line.text)
