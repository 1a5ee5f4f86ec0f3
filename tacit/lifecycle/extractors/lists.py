"""Lists and tables in a message, with the line that stands above each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tacit.text.lines import scan

_ITEM = re.compile(r" {0,8}(?:(?P<number>[0-9]{1,3})[.)]|[-*+•])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_RULE = re.compile(r"[\s|:-]+\Z")
_FEWEST, _MOST = 2, 40  # items or rows
_MOST_CELLS = 8


class Listed(NamedTuple):
    title: str  # the last line above it, without its colon; empty if another stands between
    items: tuple[str, ...]
    is_numbered: bool


class Table(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def lists_of(text: str) -> Iterator[Listed]:
    """Of two items or more. Items of several lines are read as far as their first."""
    title, items, numbered = "", list[str](), True
    for line in scan(text):
        found = _ITEM.fullmatch(line.text) if line.kind == "text" else None
        if found:
            items.append(found["text"].strip())
            numbered = numbered and found["number"] is not None
        elif items and line.kind == "text" and line.text.startswith(" "):
            continue  # goes on
        elif line.kind != "blank":
            yield from _listed(title, items, numbered)
            title, items, numbered = _title(line.text), [], True
    yield from _listed(title, items, numbered)


def _listed(title: str, items: list[str], numbered: bool) -> Iterator[Listed]:
    if _FEWEST <= len(items) <= _MOST:
        yield Listed(title, tuple(items), numbered)


def _title(line: str) -> str:
    line = line.strip()
    return line[:-1].strip() if line.endswith((":", "：")) else ""


def tables_of(text: str) -> Iterator[Table]:
    title, above, rows = "", "", list[tuple[str, ...]]()
    for line in scan(text):
        is_row = line.kind == "text" and line.text.lstrip().startswith("|")
        if is_row and len(line.text) < 1_000:
            rows.append(_cells(line.text))
            continue
        yield from _table(title, rows)
        rows = []
        above = line.text if line.kind != "blank" else above
        title = _title(above)
    yield from _table(title, rows)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|")[:_MOST_CELLS])


def _table(title: str, rows: list[tuple[str, ...]]) -> Iterator[Table]:
    if len(rows) > 2 and all(_RULE.match(cell) for cell in rows[1]) and len(rows) <= _MOST + 2:
        yield Table(title, rows[0], tuple(rows[2:]))
