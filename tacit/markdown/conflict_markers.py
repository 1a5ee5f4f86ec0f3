"""Merge conflict markers in a file: it contains both sides of a merge that is not resolved yet.

A marker is a line that begins with seven or more of one sign, alone or before a label:

    <<<<<<< HEAD          ours
    ||||||| 1a2b3c        the common base (diff3, zdiff3)
    =======
    >>>>>>> theirs

A line `=======` alone underlines a heading, and `|||||||` is a row of a table, so only `<` and `>` count by
themselves, as a marker that was left behind. A note that explains conflicts quotes them in a fenced
code block: a conflict that begins and ends within one closed block is a quotation. Mail that is quoted seven
levels deep has other quoted lines around it, and a marker has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tacit.text.lines import MarkdownLine, scan

_MARKER_SIZE = 7  # of a marker, unless the attribute conflict-marker-size says more
_OUTER_MARKER = re.compile(rb"^(?:\xef\xbb\xbf)?(?:<{7}|>{7})", re.MULTILINE)
_MARKER = re.compile(r"\ufeff?(<{7,}+|\|{7,}+|={7,}+|>{7,}+)(?:[ \t].*)?", re.DOTALL)


class _Marker(NamedTuple):
    line: int  # its index
    sign: str
    size: int


def may_have_markers(data: bytes) -> bool:
    """A quick check without decoding the text; most files have no such line."""
    return (b"<<<<<<<" in data or b">>>>>>>" in data) and _OUTER_MARKER.search(data) is not None


def find_marker_line(
    text: str, quoted_in: Callable[[Sequence[MarkdownLine]], list[int | None]] | None = None
) -> int:
    """The number of the first line of a conflict; 0 if there is none. `quoted_in` gives for each line the
    part of the text that may quote markers, or None if it is in no such part; by default blocks of code.
    """
    lines = list(scan(text))
    blocks = (quoted_in or _code_blocks)(lines)
    markers = [
        _Marker(index, match[1][0], len(match[1]))
        for index, line in enumerate(lines)
        if (match := _MARKER.fullmatch(line.text))
    ]
    alone = (
        marker.line for marker in markers if blocks[marker.line] is None and _is_conflict_alone(marker, lines)
    )
    whole = (
        first
        for first, last in _whole_conflicts(markers)
        if blocks[first] is None or blocks[first] != blocks[last]
    )
    return min((index + 1 for index in (*alone, *whole)), default=0)


def _code_blocks(lines: Sequence[MarkdownLine]) -> list[int | None]:
    """For each line, the closed block of code that it is in. An unclosed block quotes nothing: the text after
    it lost its fence."""
    blocks: list[int | None] = [None] * len(lines)
    opened_at: int | None = None
    for index, line in enumerate(lines):
        if line.kind == "fence":
            if opened_at is not None:
                blocks[opened_at : index + 1] = [opened_at] * (index + 1 - opened_at)
            opened_at = index if opened_at is None else None
        elif line.kind != "code":
            opened_at = None  # it ended with its list item
    return blocks


def _is_conflict_alone(marker: _Marker, lines: Sequence[MarkdownLine]) -> bool:
    if marker.size != _MARKER_SIZE:  # a line of signs may be an ornament
        return False
    around = (*lines[max(0, marker.line - 1) : marker.line], *lines[marker.line + 1 : marker.line + 2])
    return marker.sign == "<" or (
        marker.sign == ">" and not any(line.text.startswith(">") for line in around)
    )


def _whole_conflicts(markers: Sequence[_Marker]) -> Iterator[tuple[int, int]]:
    """The first and last line of each complete conflict."""
    opened_at: dict[int, int] = {}  # size to the line of `<`
    divided: set[int] = set()  # sizes whose `=` was met
    for marker in markers:
        if marker.sign == "<":
            opened_at[marker.size] = marker.line
            divided.discard(marker.size)
        elif marker.sign == "=" and marker.size in opened_at:
            divided.add(marker.size)
        elif marker.sign == ">" and marker.size in divided:
            yield opened_at.pop(marker.size), marker.line
            divided.discard(marker.size)
