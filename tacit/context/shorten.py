"""A text in fewer tokens, cut where a section ends, and never in silence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tacit.context.plain import says_something
from tacit.text.lines import scan

Count = Callable[[str], int]

_TOKEN = 12  # characters of the longest common tokens: what is longer than this times the room cannot fit
_NAMED = 4  # sections named in a mark


class Shortened(NamedTuple):
    text: str  # with a mark where something is missing
    left_out: str  # what is missing, for people; empty: nothing


def shorten(text: str, room: int, count: Count) -> Shortened:
    """The first sections that fit, then a mark that says what is missing. If not even the first fits, its
    first paragraphs, then its first words. What cannot be told in this room at all is empty."""
    if len(text) <= room * _TOKEN and count(text) <= room:
        return Shortened(text, "")
    sections = _sections(text)
    fitting = _first_fitting(sections, room, count, _without_sections)
    if fitting and says_something(fitting.text.rpartition("[…")[0]):
        return fitting
    return _cut(sections[0] if sections else text, room, count, after=sections[1:])


def middle_out(text: str, room: int, count: Count) -> Shortened:
    """Beginning and end, for what is said rather than written: the question often comes last."""
    if len(text) <= room * _TOKEN and count(text) <= room:
        return Shortened(text, "")
    left = f"{len(text):,} characters in all"
    mark = f"\n[… the middle is left out: {left} …]\n"
    size = min(len(text), room * _TOKEN)
    while size > 0:
        head, tail = text[: size * 2 // 3], text[len(text) - size // 3 :]
        shown = head.rstrip() + mark + tail.lstrip()
        over = count(shown) - room
        if over <= 0:
            return Shortened(shown, left)
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return Shortened("", left)


def around(text: str, characters: int, words: Collection[str]) -> str:
    """The lines of a passage with the most of the words, as many as fit, and marks where it is cut."""
    if len(text) <= characters:
        return text
    lines = text.split("\n") if "\n" in text else re.split(r"(?<=[.!?。！？]) ", text)
    joint = "\n" if "\n" in text else " "
    room = characters - 2 * len(_CUT)
    first, last = _fullest(lines, room, words)
    if first == last:  # one line that is longer than all of it
        return f"{_at_word(lines[first], room)}{_CUT}"
    shown = joint.join(lines[first:last])
    return (
        f"{_CUT.lstrip()}{joint}{shown}" + (_CUT if last < len(lines) else "") if first else f"{shown}{_CUT}"
    )


_CUT = " […]"


def _fullest(lines: Sequence[str], room: int, words: Collection[str]) -> tuple[int, int]:
    """From which line to which the most different words stand; the first of equals."""
    held = [frozenset(word for word in words if word in line.casefold()) for line in lines]
    best, most = (0, 0), -1
    for first in range(len(lines)):
        last, size = first, 0
        while last < len(lines) and size + len(lines[last]) + 1 <= room:
            size += len(lines[last]) + 1
            last += 1
        inside = len(frozenset().union(*held[first:last]))
        if inside > most and (last > first or not most > 0):
            best, most = (first, last), inside
    return best


def _sections(text: str) -> list[str]:
    """In pieces, each beginning with a heading; what stands above the first one is a piece as well."""
    pieces: list[list[str]] = [[]]
    for line in scan(text):
        if line.kind == "heading":
            pieces.append([])
        pieces[-1].append(line.text)
    return [piece for lines in pieces if (piece := "\n".join(lines).strip("\n"))]


def _first_fitting(
    pieces: Sequence[str],
    room: int,
    count: Count,
    mark: Callable[[Sequence[str]], str],
    joint: str = "\n\n",
) -> Shortened | None:
    """As many whole pieces from the beginning as fit together with the mark about the others."""
    best: Shortened | None = None
    low, high = 1, len(pieces) - 1
    while low <= high:
        middle = (low + high) // 2
        left = mark(pieces[middle:])
        shown = joint.join([*pieces[:middle], f"[… {left}]"])
        if len(shown) <= room * _TOKEN and count(shown) <= room:
            best, low = Shortened(shown, left), middle + 1
        else:
            high = middle - 1
    return best


def _without_sections(missing: Sequence[str]) -> str:
    titles = [title for piece in missing if (title := _title(piece))]
    named = ", ".join(titles[:_NAMED]) + (" …" if len(titles) > _NAMED else "")
    what = f"{len(missing)} section{'s' if len(missing) > 1 else ''} left out"
    return f"{what}: {named}" if named else what


def _title(piece: str) -> str:
    first = piece.partition("\n")[0].strip("# \t")
    return first if len(first) <= 40 else first[:39] + "…"


def _cut(piece: str, room: int, count: Count, after: Sequence[str]) -> Shortened:
    rest = f"the rest left out{f', {_without_sections(after)}' if after else ''}"
    for parts, joint in ((re.split(r"\n[ \t]*\n", piece), "\n\n"), (piece.split("\n"), "\n")):
        fitting = _first_fitting([*parts, ""], room, count, lambda _: rest, joint)
        if fitting and says_something(fitting.text.rpartition("[…")[0]):
            return fitting
    mark = f" [… {rest}]"
    size = min(len(piece), room * _TOKEN)
    while size > 0:
        shown = _at_word(piece, size) + mark
        over = count(shown) - room
        if over <= 0:
            said = says_something(shown.removesuffix(mark))
            return Shortened(shown, rest) if said else Shortened("", "all of it: there is no room")
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return Shortened("", "all of it: there is no room")


def _at_word(text: str, size: int) -> str:
    if size >= len(text):
        return text
    space = max(text.rfind(" ", size // 2, size), text.rfind("\n", size // 2, size))
    return text[: space if space > 0 else size].rstrip()
