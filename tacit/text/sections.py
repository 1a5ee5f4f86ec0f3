"""The sections of a markdown file, by the places where they begin and end, so that one can be taken or
replaced and every other byte stays as it is.

A section is a heading and all that stands below it, further headings of a lower rank included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tacit.text.lines import scan
from tacit.text.notes import split
from tacit.text.words import fold

_NEWLINE = re.compile(r"\r\n|\n")


class Section(NamedTuple):
    title: str
    level: int  # 1 to 6; 0 is what stands above the first heading
    line: int  # of its heading, counted from 1
    start: int
    own_end: int  # where the next heading begins, of whatever rank
    end: int  # where the next heading of its rank or a higher one begins

    def text(self, whole: str) -> str:
        return whole[self.start : self.end]

    def own(self, whole: str) -> str:
        """Without the sections inside it."""
        return whole[self.start : self.own_end]


def sections(text: str) -> list[Section]:
    """In the order of the file. What stands above the first heading is one too, if there is anything."""
    head, body = split(text)
    headings = list(_headings(body, len(head), head.count("\n") + 1))
    first = headings[0].start if headings else len(text)
    found = [Section("", 0, head.count("\n") + 1, len(head), first, first)] if text[len(head) : first] else []
    for at, one in enumerate(headings):
        later = headings[at + 1 :]
        own_end = later[0].start if later else len(text)
        end = next((other.start for other in later if other.level <= one.level), len(text))
        found.append(one._replace(own_end=own_end, end=end))
    return found


def _headings(body: str, offset: int, first: int) -> Iterator[Section]:
    at = offset
    for line in scan(body, first):
        if line.kind == "heading":
            yield Section(line.title, line.level, line.number, at, at, at)
        newline = body.find("\n", at - offset)
        at = offset + (newline + 1 if newline >= 0 else len(body))


def named(text: str, title: str, level: int) -> list[Section]:
    return [one for one in sections(text) if one.level == level and fold(one.title) == fold(title)]


def with_section(text: str, title: str, level: int, new: str) -> str:
    """The text with that section replaced, or added at its end. Nothing else changes: the blank lines below
    the old section stay, and the new one gets the line ends of the file. Of two such sections the first
    counts."""
    newline = _NEWLINE.search(text)
    eol = newline[0] if newline else "\n"
    body = new.strip("\r\n").replace("\r\n", "\n").replace("\n", eol)
    old = next(iter(named(text, title, level)), None)
    if old is None:
        return f"{text.rstrip()}{eol}{eol}{body}{eol}" if text.strip() else f"{body}{eol}"
    stop = old.start + len(old.text(text).rstrip(" \t\r\n"))
    return text[: old.start] + body + text[stop:]
