"""Markdown, line by line: what is a heading, what is code, what is text.

Only what is needed to cut and to name sections is recognised: ATX headings (`## so`) and fenced code,
by the rules of CommonMark. Three things are text here on purpose: headings underlined with `===` or
`---`, indented code, and whatever stands inside a quote (`> `). A heading inside an HTML comment
counts as a heading.

Lines end at "\\n" only, with or without "\\r" before it, so that our line numbers are those of git and
grep; U+2028 or a form feed never starts a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["heading", "text", "blank", "fence", "code"]

# `++` and `+` after a quantifier forbid backtracking: a line may be megabytes of backticks.
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE = re.compile(r" {0,3}(?:(`{3,}+)[^`]*+|(~{3,}+).*+)", re.DOTALL)
_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)]) {1,4}(?=```|~~~)")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str  # without its line ending
    kind: Kind
    level: int = 0  # of a heading, 1 to 6
    title: str = ""  # of a heading, without its marks


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str  # the backticks or tildes that opened it
    indent: int = 0  # of the list item that it started in

    def holds(self, line: str) -> bool:
        """A fence ends with its list item: at the first line that is not indented under it."""
        inside = line[: self.indent]
        return not inside.strip(" ") and (len(inside) == self.indent or _blank(line))

    def closed_by(self, line: str) -> bool:
        rest = line[self.indent :].rstrip(" \t")
        marks = rest.lstrip(" ")
        short = len(rest) - len(marks) <= 3 and len(marks) >= len(self.mark)
        return short and not marks.strip(self.mark[0])


def scan(text: str, first: int = 1) -> Iterator[Line]:
    """Every line of `text`, numbered from `first`. A fence never closed runs to the end."""
    fence: _Fence | None = None
    for number, line in enumerate(_split(text), first):
        if fence is not None and fence.holds(line):
            closes = fence.closed_by(line)
            yield Line(number, line, "fence" if closes else "code")
            fence = None if closes else fence
        else:
            fence = _opened(line)
            yield Line(number, line, "fence") if fence else _outside(number, line)


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # what ends with a newline has no further line
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _opened(line: str) -> _Fence | None:
    if "```" not in line and "~~~" not in line:
        return None
    # "- ```" opens a fence too. Missed, its closing line would pass for an opening one, and all that
    # follows for code.
    item = _ITEM.match(line)
    indent = item.end() if item else 0
    found = _FENCE.fullmatch(line, indent)
    return _Fence(found[1] or found[2], indent) if found else None


def _outside(number: int, line: str) -> Line:
    found = _HEADING.match(line)
    if found:
        return Line(number, line, "heading", len(found[1]), _title(line[found.end() :]))
    return Line(number, line, "blank" if _blank(line) else "text")


def _title(rest: str) -> str:
    """Without the closing marks, which count only after a space: `# a #` is "a", `# a#` is "a#"."""
    rest = rest.strip(" \t")
    bare = rest.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else rest


def _blank(line: str) -> bool:
    return not line.strip(" \t")
