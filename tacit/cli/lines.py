"""Lines for people: pieces with a style, made to fit the width of a terminal.

Plain in a pipe, in colour on a terminal. Text from outside goes through `one_line`, so that columns stay
columns whatever it holds.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from tacit.cli import output

_NARROW, _WIDE, _UNKNOWN_WIDTH = 60, 140, 100


class Piece(NamedTuple):
    text: str
    style: str = ""  # as rich writes it; only for terminals


Line: TypeAlias = list[Piece]


def put(lines: Iterable[Line]) -> None:
    if not sys.stdout.isatty():
        for line in lines:
            output.say("".join(_shown(piece) for piece in line).rstrip())
        return
    from rich.console import Console  # only a terminal needs it

    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
    for line in lines:
        for piece in line:
            console.print(output.safe(_shown(piece)), style=piece.style or None, end="")
        console.print()


def _shown(piece: Piece) -> str:
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in piece.text)


def terminal_width() -> int:
    columns = shutil.get_terminal_size((_UNKNOWN_WIDTH, 24)).columns
    return min(max(columns, _NARROW), _WIDE)


def one_line(text: str) -> str:
    """Without line breaks and control characters, whose width nobody knows."""
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in " ".join(text.split()))


def wrapped(text: str, width: int, style: str = "") -> Iterator[Line]:
    yield from ([Piece(line, style)] for line in wrap(text, width))


def wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def hanging(head: Piece, text: str, width: int) -> Iterator[Line]:
    """The text beside its head, as many lines as it needs."""
    indent = cells_of(head.text)
    first, *rest = wrap(one_line(text), width - indent)
    yield [head, Piece(first)]
    yield from ([Piece(" " * indent + line)] for line in rest)


def folded(
    parts: Iterable[str], between: str, width: int, indent: str = "", style: str = ""
) -> Iterator[Line]:
    """The parts in as few lines as they need; no part is broken."""
    line = ""
    for part in parts:
        if line and cells_of(f"{indent}{line}{between}{part}") > width:
            yield [Piece(indent + line, style)]
            line = ""
        line += (between if line else "") + clipped(one_line(part), width - len(indent))
    yield [Piece(indent + line, style)]


def cells_of(text: str) -> int:
    """Columns of a terminal: Chinese characters take two, accents that stand alone none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(ch) else 1 + (unicodedata.east_asian_width(ch) in "WF") for ch in text
    )


def padded(text: str, width: int) -> str:
    return text + " " * (width - cells_of(text))


def clipped(text: str, width: int) -> str:
    if cells_of(text) <= width:
        return text
    kept = text[:width]
    while kept and cells_of(kept) >= width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def clipped_left(text: str, width: int) -> str:
    """What names a file stands at its end."""
    if cells_of(text) <= width:
        return text
    kept = text[-width:]
    while kept and cells_of(kept) >= width:
        kept = kept[1:]
    return f"…{kept}"
