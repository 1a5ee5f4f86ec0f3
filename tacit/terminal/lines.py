"""Lines for people: pieces with a style, made to fit the width of a terminal.

Plain in a pipe, in colour on a terminal. Text from outside goes through `one_line`, so that it cannot
break columns.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from tacit.terminal import output

_MIN_WIDTH, _MAX_WIDTH, _DEFAULT_WIDTH = 60, 140, 100


class StyledText(NamedTuple):
    text: str
    style: str = ""  # as rich writes it; only for terminals


Line: TypeAlias = list[StyledText]


def print_lines(lines: Iterable[Line]) -> None:
    if not sys.stdout.isatty():
        for line in lines:
            output.say("".join(_sanitize(piece) for piece in line).rstrip())
        return
    from rich.console import Console  # only a terminal needs it

    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        for piece in line:
            console.print(output.sanitize(_sanitize(piece)), style=piece.style or None, end="")
        console.print()


def _sanitize(piece: StyledText) -> str:
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in piece.text)


def terminal_width() -> int:
    columns = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    return min(max(columns, _MIN_WIDTH), _MAX_WIDTH)


def one_line(text: str) -> str:
    """The text without line breaks and control characters, whose width is unknown."""
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in " ".join(text.split()))


def wrap_styled(text: str, width: int, style: str = "") -> Iterator[Line]:
    yield from ([StyledText(line, style)] for line in wrap(text, width))


def wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def wrap_beside(head: StyledText, text: str, width: int) -> Iterator[Line]:
    """The text beside its head, in as many lines as it needs."""
    indent = count_cells(head.text)
    first, *rest = wrap(one_line(text), width - indent)
    yield [head, StyledText(first)]
    yield from ([StyledText(" " * indent + line)] for line in rest)


def fold_parts(
    parts: Iterable[str], between: str, width: int, indent: str = "", style: str = ""
) -> Iterator[Line]:
    """The parts in as few lines as they need; no part is broken."""
    line = ""
    for part in parts:
        if line and count_cells(f"{indent}{line}{between}{part}") > width:
            yield [StyledText(indent + line, style)]
            line = ""
        line += (between if line else "") + clip(one_line(part), width - len(indent))
    yield [StyledText(indent + line, style)]


def count_cells(text: str) -> int:
    """Columns of a terminal: Chinese characters take two, accents that stand alone none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(ch) else 1 + (unicodedata.east_asian_width(ch) in "WF") for ch in text
    )


def pad(text: str, width: int) -> str:
    return text + " " * (width - count_cells(text))


def clip(text: str, width: int) -> str:
    if count_cells(text) <= width:
        return text
    start = text[:width]
    while start and count_cells(start) >= width:
        start = start[:-1]
    return f"{start.rstrip()}…"


def clip_left(text: str, width: int) -> str:
    """Cut the beginning, because the end of a path names the file."""
    if count_cells(text) <= width:
        return text
    end = text[-width:]
    while end and count_cells(end) >= width:
        end = end[1:]
    return f"…{end}"
