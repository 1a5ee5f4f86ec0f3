"""The sections of a markdown file, by their positions, so that one can be read or replaced and every other
byte stays as it is.

A section is a heading and everything below it, including headings of a lower rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.markdown.notes import split
from tacit.text.lines import scan
from tacit.text.words import fold

_NEWLINE = re.compile(r"\r\n|\n")
_MAX_LEVEL = 6  # rank of a heading


class Section(NamedTuple):
    title: str
    level: int  # 1 to 6; 0 is the text above the first heading
    line: int  # of its heading, counted from 1
    start: int
    own_end: int  # where the next heading begins, of any rank
    end: int  # where the next heading of its rank or a higher one begins

    def text(self, whole: str) -> str:
        return whole[self.start : self.end]

    def own(self, whole: str) -> str:
        """Without the sections inside it."""
        return whole[self.start : self.own_end]


def split_sections(text: str) -> list[Section]:
    """The sections in the order of the file. Text above the first heading is one too, if there is any."""
    head, body = split(text)
    headings = list(_find_headings(body, len(head), head.count("\n") + 1))
    first = headings[0].start if headings else len(text)
    file_sections = (
        [Section("", 0, head.count("\n") + 1, len(head), first, first)] if text[len(head) : first] else []
    )
    own_ends = [*(heading.start for heading in headings[1:]), len(text)]
    for heading, own_end, end in zip(headings, own_ends, _section_ends(headings, len(text)), strict=False):
        file_sections.append(heading._replace(own_end=own_end, end=end))
    return file_sections


def _section_ends(headings: Sequence[Section], last: int) -> list[int]:
    """The end of the section below each heading."""
    ends = [last] * len(headings)
    following: dict[int, int] = {}  # of each rank where the next heading of it stands, or of a higher one
    for index in reversed(range(len(headings))):
        start, level = headings[index].start, headings[index].level
        ends[index] = following.get(level, last)
        following |= dict.fromkeys(range(level, _MAX_LEVEL + 1), start)
    return ends


def _find_headings(body: str, offset: int, first: int) -> Iterator[Section]:
    position = offset
    for line in scan(body, first):
        if line.kind == "heading":
            yield Section(line.title, line.level, line.number, position, position, position)
        newline = body.find("\n", position - offset)
        position = offset + (newline + 1 if newline >= 0 else len(body))


def find_sections(text: str, title: str, level: int) -> list[Section]:
    return [
        section
        for section in split_sections(text)
        if section.level == level and fold(section.title) == fold(title)
    ]


def replace_section(text: str, title: str, level: int, new: str) -> str:
    """Replace that section, or add it at the end. Nothing else changes: the blank lines below the old section
    stay, and the new one gets the line ends of the file. Of two such sections the first one counts."""
    newline = _NEWLINE.search(text)
    eol = newline[0] if newline else "\n"
    body = new.strip("\r\n").replace("\r\n", "\n").replace("\n", eol)
    old = next(iter(find_sections(text, title, level)), None)
    if old is None:
        return f"{text.rstrip()}{eol}{eol}{body}{eol}" if text.strip() else f"{body}{eol}"
    stop = old.start + len(old.text(text).rstrip(" \t\r\n"))
    return text[: old.start] + body + text[stop:]
