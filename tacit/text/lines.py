"""Markdown, line by line: what is a heading, what is code, what is text.

It recognises only what is needed to split and name sections: ATX headings (`## title`) and fenced code, by
the rules of CommonMark. Three things are text here on purpose: headings underlined with `===` or `---`,
indented code, and anything inside a quote (`> `). A heading inside an HTML comment counts as a heading.

Lines end at "\\n" only, with or without "\\r" before it, so that our line numbers are those of git and
grep; U+2028 or a form feed never starts a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

LineKind = Literal["heading", "text", "blank", "fence", "code"]

# `++` and `+` after a quantifier forbid backtracking: a line may be megabytes of backticks.
_HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE = re.compile(r" {0,3}(?:(`{3,}+)[^`]*+|(~{3,}+).*+)", re.DOTALL)
_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)]) {1,4}(?=```|~~~)")


@dataclass(frozen=True, slots=True)
class MarkdownLine:
    number: int
    text: str  # without its line ending
    kind: LineKind
    level: int = 0  # of a heading, 1 to 6
    title: str = ""  # of a heading, without its marks


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str  # the backticks or tildes that opened it
    indent: int = 0  # of the list item that it started in

    def holds(self, line: str) -> bool:
        """A fence ends with its list item: at the first line that is not indented under it."""
        inside = line[: self.indent]
        return not inside.strip(" ") and (len(inside) == self.indent or _is_blank(line))

    def closed_by(self, line: str) -> bool:
        rest = line[self.indent :].rstrip(" \t")
        marks = rest.lstrip(" ")
        short = len(rest) - len(marks) <= 3 and len(marks) >= len(self.mark)
        return short and not marks.strip(self.mark[0])


def scan(text: str, first: int = 1) -> Iterator[MarkdownLine]:
    """Every line of `text`, numbered from `first`. A fence never closed runs to the end."""
    fence: _Fence | None = None
    for number, line in enumerate(_split_lines(text), first):
        if fence is not None and fence.holds(line):
            closes = fence.closed_by(line)
            yield MarkdownLine(number, line, "fence" if closes else "code")
            fence = None if closes else fence
        else:
            fence = _open_fence(line)
            yield MarkdownLine(number, line, "fence") if fence else _read_line(number, line)


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # the final newline begins no further line
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _open_fence(line: str) -> _Fence | None:
    if "```" not in line and "~~~" not in line:
        return None
    # "- ```" opens a fence too. Missed, its closing line would pass for an opening one, and all that
    # follows for code.
    item = _ITEM.match(line)
    indent = item.end() if item else 0
    match = _FENCE.fullmatch(line, indent)
    return _Fence(match[1] or match[2], indent) if match else None


def _read_line(number: int, line: str) -> MarkdownLine:
    match = _HEADING.match(line)
    if match:
        return MarkdownLine(number, line, "heading", len(match[1]), _heading_title(line[match.end() :]))
    return MarkdownLine(number, line, "blank" if _is_blank(line) else "text")


def _heading_title(rest: str) -> str:
    """Without the closing marks, which count only after a space: `# a #` is "a", `# a#` is "a#"."""
    rest = rest.strip(" \t")
    bare = rest.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else rest


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")
