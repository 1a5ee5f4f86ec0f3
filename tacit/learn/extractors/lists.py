"""Find lists and tables in a message, with the line above each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tacit.text.lines import scan

_ITEM = re.compile(r" {0,8}(?:(?P<number>[0-9]{1,3})[.)]|[-*+•])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_RULE = re.compile(r"[\s|:-]+\Z")
_MIN_ROWS, _MAX_ROWS = 2, 40  # items or rows
_MAX_CELLS = 8


class MessageList(NamedTuple):
    title: str  # the line above it, without its colon; empty if that line has none
    items: tuple[str, ...]
    is_numbered: bool


class MessageTable(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def find_lists(text: str) -> Iterator[MessageList]:
    """Lists of two items or more. Of items with several lines only the first line is read."""
    title, items, is_numbered = "", list[str](), True
    for line in scan(text):
        match = _ITEM.fullmatch(line.text) if line.kind == "text" else None
        if match:
            items.append(match["text"].strip())
            is_numbered = is_numbered and match["number"] is not None
        elif items and line.kind == "text" and line.text.startswith(" "):
            continue  # a continuation line
        elif line.kind != "blank":
            yield from _make_list(title, items, is_numbered)
            title, items, is_numbered = _title_of(line.text), [], True
    yield from _make_list(title, items, is_numbered)


def _make_list(title: str, items: list[str], is_numbered: bool) -> Iterator[MessageList]:
    if _MIN_ROWS <= len(items) <= _MAX_ROWS:
        yield MessageList(title, tuple(items), is_numbered)


def _title_of(line: str) -> str:
    line = line.strip()
    return line[:-1].strip() if line.endswith((":", "：")) else ""


def find_tables(text: str) -> Iterator[MessageTable]:
    title, above, rows = "", "", list[tuple[str, ...]]()
    for line in scan(text):
        is_row = line.kind == "text" and line.text.lstrip().startswith("|")
        if is_row and len(line.text) < 1_000:
            rows.append(_split_cells(line.text))
            continue
        yield from _make_table(title, rows)
        rows = []
        above = line.text if line.kind != "blank" else above
        title = _title_of(above)
    yield from _make_table(title, rows)


def _split_cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|")[:_MAX_CELLS])


def _make_table(title: str, rows: list[tuple[str, ...]]) -> Iterator[MessageTable]:
    if len(rows) > 2 and all(_RULE.match(cell) for cell in rows[1]) and len(rows) <= _MAX_ROWS + 2:
        yield MessageTable(title, rows[0], tuple(rows[2:]))
