"""The mark behind a line that tacit wrote into a note: what made the line, from which turns, and whose word
it is.

    - 2026-02-16: Reif 3b, two coats <!-- decisions/1 2026/02/16/1845-ses_a1b2-glaze#3 owner 4be0c2f7 -->

A mark is a comment, so no prompt and no passage has it. Its last word is the CRC-32 of what stands before it:
a line that somebody changed by hand has a mark that no longer fits, and counts as that person's from then on.
Where a line came from can still be told.

A source is a transcript by its path below raw/conversations, without its ending, and the number of a record
in it; without a number it is the whole conversation. What a person wrote into a note is from that note: there
the source is the path of it, `knowledge/journal/2026-02-16`.

`(superseded 2026-10-19)` at the end of a line, before the mark if there is one, says that it no longer holds.
People write that too. Such a line stays where it is and is given to nobody. In a list that is the whole item:
a line that goes on below its bullet goes with it, and so does what is indented below the line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from tacit.model.changes import TRUSTS, Trust
from tacit.text.lines import Line, scan

_SOURCE = r"[^\s#,<>]+(?:#[0-9]+)?"
_MARK = re.compile(
    rf"[ \t]*<!-- ([a-z][a-z0-9_-]*/[0-9]+) ({_SOURCE}(?:,{_SOURCE})*) ({'|'.join(TRUSTS)}) ([0-9a-f]{{8}})"
    r" -->[ \t]*\r?\Z"
)
_SUPERSEDED = re.compile(r"\(superseded [0-9]{4}-[0-9]{2}-[0-9]{2}\)[ \t]*\Z", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_FOLDER, _NOTES, _ENDING = "raw/conversations/", "knowledge/", ".md"


class Mark(NamedTuple):
    extractor: str  # name and version: decisions/1
    sources: tuple[str, ...]
    trust: Trust
    check: str

    @property
    def transcripts(self) -> tuple[str, ...]:
        """Paths of the transcripts in the home, each once."""
        return tuple(dict.fromkeys(transcript_of(source) for source in self.sources))

    @property
    def name(self) -> str:
        """Of the extractor, without its version."""
        return self.extractor.partition("/")[0]


def marked(text: str, extractor: str, sources: Iterable[str], trust: Trust) -> str:
    """A line with its mark."""
    text = text.rstrip(" \t")
    return f"{text} <!-- {extractor} {','.join(sources)} {trust} {_check(text)} -->"


def read(line: str) -> tuple[str, Mark | None]:
    """A line without its mark, and the mark."""
    found = _MARK.search(line) if line.rstrip().endswith("-->") else None
    if found is None:
        return line, None
    extractor, sources, trust, check = found.groups()
    return line[: found.start()], Mark(extractor, tuple(sources.split(",")), trust, check)  # type: ignore[arg-type]


def is_generated(line: str) -> bool:
    """Whether tacit wrote the line and nobody has changed it since."""
    text, mark = read(line)
    return mark is not None and mark.check == _check(text)


def is_superseded(line: str) -> bool:
    return "uperseded" in line and _SUPERSEDED.search(read(line)[0]) is not None


def superseded(line: str, day: str) -> str:
    """The same line, as something that held until that day. A mark that fitted still does."""
    text, mark = read(line)
    new = f"{text.rstrip()} (superseded {day})"
    if mark is None:
        return new
    check = _check(new) if mark.check == _check(text) else mark.check
    return f"{new} <!-- {mark.extractor} {','.join(mark.sources)} {mark.trust} {check} -->"


def held_again(line: str) -> str:
    """The same line, as something that holds. A mark that fitted still does."""
    text, mark = read(line)
    new = as_it_held(text)
    if mark is None:
        return new
    check = _check(new) if mark.check == _check(text) else mark.check
    return f"{new} <!-- {mark.extractor} {','.join(mark.sources)} {mark.trust} {check} -->"


def superseded_on(text: str) -> str:
    """The day until which a line held; empty where it still does."""
    found = _SUPERSEDED.search(read(text)[0])
    return found[0].strip(" ()\t").rpartition(" ")[2] if found else ""


def as_it_held(text: str) -> str:
    """What a line without its mark said before it was superseded."""
    return _SUPERSEDED.sub("", text).rstrip(" \t")


def source_of(path: str, number: int | None = None) -> str:
    """How a mark names a record of the transcript at this path, or all of it."""
    stem = path.removeprefix(_FOLDER).removesuffix(_ENDING)
    return stem if number is None else f"{stem}#{number}"


def transcript_of(source: str) -> str:
    """The path of the transcript, or of the note where a person wrote it."""
    stem = source.partition("#")[0]
    return f"{stem}{_ENDING}" if stem.startswith(_NOTES) else f"{_FOLDER}{stem}{_ENDING}"


def number_of(source: str) -> int | None:
    number = source.partition("#")[2]
    return int(number) if number else None


def holding(text: str) -> str:
    """A note without marks and without what no longer holds. Every other line keeps its number."""
    return "\n".join("" if line is None else line for line in _held(text)) if _has_any(text) else text


def without_superseded(text: str) -> str:
    """The same for who reads it: nothing is left where such a line stood."""
    return "\n".join(line for line in _held(text) if line is not None) if _has_any(text) else text


def _has_any(text: str) -> bool:
    return "uperseded" in text or "<!--" in text


def _held(text: str) -> Iterator[str | None]:
    """Each line, None for one that no longer holds. What stands in fenced code is code."""
    lines = list(scan(text))
    gone = _gone(lines)
    for at, line in enumerate(lines):
        if at in gone:
            yield None
        else:
            yield line.text if line.kind in ("code", "fence") else read(line.text)[0]
    if text.endswith("\n"):
        yield ""


def _gone(lines: Iterable[Line]) -> set[int]:
    gone: set[int] = set()
    item, depth = -1, 0  # where the item began that is going on, and how far in; -1: none is
    dropped = -1  # how far in the item stands that no longer holds; -1: what goes on holds
    for at, line in enumerate(lines):
        inside = len(line.text) - len(line.text.lstrip(" \t"))
        if 0 <= dropped < inside and line.kind != "blank":
            gone.add(at)
            continue
        dropped = -1
        if line.kind == "text" and _ITEM.match(line.text):
            item, depth = at, inside
        elif line.kind != "text" or inside <= depth:
            item = -1
        if line.kind == "text" and is_superseded(line.text):
            gone.update(range(at if item < 0 else item, at + 1))
            dropped = -1 if item < 0 else depth
    return gone


def _check(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogateescape')):08x}"
