"""The provenance comment after a generated line: its extractor, its source turns, and its trust.

    - 2026-02-16: Reif 3b, two coats <!-- decisions/1 2026/02/16/1845-ses_a1b2-glaze#3 owner 4be0c2f7 -->

It is an HTML comment, so it appears in no prompt and no chunk. Its last word is the CRC-32 of the text before
it: if a person edits the line, the checksum no longer matches, and the line counts as that person's. Its
origin is still known.

A source is a transcript's path below raw/conversations without the extension, and the number of a message in
it; without a number it is the whole conversation. The source of text that a person wrote into a note is the
path of that note, `knowledge/journal/2026-02-16`.

`(superseded 2026-10-19)` at the end of a line, before the comment if there is one, says that the line no
longer holds. People write that too. Such a line stays in the note and is never sent to an agent. In a list
this covers the whole item: continuation lines and everything indented below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args
from zlib import crc32

from tacit.text.lines import MarkdownLine, scan

# Who said it, the most trusted first. other: a guest or a group member; tool: a tool's result, or what an
# agent said after it; web: the same for tools that read what strangers write.
Trust: TypeAlias = Literal["owner", "agent", "other", "tool", "web"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)

_SOURCE = r"[^\s#,<>]+(?:#[0-9]+)?"
_MARK = re.compile(
    rf"[ \t]*<!-- ([a-z][a-z0-9_-]*/[0-9]+) ({_SOURCE}(?:,{_SOURCE})*) ({'|'.join(TRUSTS)}) ([0-9a-f]{{8}})"
    r" -->[ \t]*\r?\Z"
)
_SUPERSEDED = re.compile(r"\(superseded [0-9]{4}-[0-9]{2}-[0-9]{2}\)[ \t]*\Z", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_TRANSCRIPTS_FOLDER, _NOTES_FOLDER, _ENDING = "raw/conversations/", "knowledge/", ".md"


def lowest(trusts: Iterable[Trust]) -> Trust:
    """The lowest of these trusts: what is made from several sources has the trust of the least trusted."""
    return max(trusts, key=TRUSTS.index, default="web")


def is_trusted(trust: Trust) -> bool:
    """Only the owner's and the agent's own words become knowledge without a review."""
    return trust in ("owner", "agent")


class Provenance(NamedTuple):
    extractor: str  # name and version: decisions/1
    sources: tuple[str, ...]
    trust: Trust
    check: str

    @property
    def transcripts(self) -> tuple[str, ...]:
        """Paths of the transcripts in the home, each once."""
        return tuple(dict.fromkeys(transcript_path(source) for source in self.sources))

    @property
    def name(self) -> str:
        """The name of the extractor, without its version."""
        return self.extractor.partition("/")[0]


def attach(text: str, extractor: str, sources: Iterable[str], trust: Trust) -> str:
    """The line with a provenance comment."""
    text = text.rstrip(" \t")
    return f"{text} <!-- {extractor} {','.join(sources)} {trust} {_checksum(text)} -->"


def read(line: str) -> tuple[str, Provenance | None]:
    """Split a line into its text and its provenance comment."""
    match = _MARK.search(line) if line.rstrip().endswith("-->") else None
    if match is None:
        return line, None
    extractor, sources, trust, check = match.groups()
    return line[: match.start()], Provenance(extractor, tuple(sources.split(",")), trust, check)  # type: ignore[arg-type]


def is_generated(line: str) -> bool:
    """Whether tacit wrote the line and it is unedited."""
    text, mark = read(line)
    return mark is not None and mark.check == _checksum(text)


def is_superseded(line: str) -> bool:
    return "uperseded" in line and _SUPERSEDED.search(read(line)[0]) is not None


def mark_superseded(line: str, day: str) -> str:
    """The line, marked as superseded on that day. A valid checksum is updated."""
    text, mark = read(line)
    new = f"{text.rstrip()} (superseded {day})"
    if mark is None:
        return new
    check = _checksum(new) if mark.check == _checksum(text) else mark.check
    return f"{new} <!-- {mark.extractor} {','.join(mark.sources)} {mark.trust} {check} -->"


def unmark_superseded(line: str) -> str:
    """The line, no longer marked as superseded. A valid checksum is updated."""
    text, mark = read(line)
    new = strip_superseded(text)
    if mark is None:
        return new
    check = _checksum(new) if mark.check == _checksum(text) else mark.check
    return f"{new} <!-- {mark.extractor} {','.join(mark.sources)} {mark.trust} {check} -->"


def superseded_day(text: str) -> str:
    """The day on which a line was superseded; empty if it still holds."""
    match = _SUPERSEDED.search(read(text)[0])
    return match[0].strip(" ()\t").rpartition(" ")[2] if match else ""


def strip_superseded(text: str) -> str:
    """The text of a line (without comment) before it was superseded."""
    return _SUPERSEDED.sub("", text).rstrip(" \t")


def source_name(path: str, number: int | None = None) -> str:
    """How a provenance comment names a message of this transcript, or all of it."""
    stem = path.removeprefix(_TRANSCRIPTS_FOLDER).removesuffix(_ENDING)
    return stem if number is None else f"{stem}#{number}"


def transcript_path(source: str) -> str:
    """The path of the transcript, or of the note that a person wrote."""
    stem = source.partition("#")[0]
    return f"{stem}{_ENDING}" if stem.startswith(_NOTES_FOLDER) else f"{_TRANSCRIPTS_FOLDER}{stem}{_ENDING}"


def message_number(source: str) -> int | None:
    number = source.partition("#")[2]
    return int(number) if number else None


def current_text(text: str) -> str:
    """The note without provenance comments and superseded lines. Other lines keep their numbers."""
    return (
        "\n".join("" if line is None else line for line in _current_lines(text)) if _has_any(text) else text
    )


def remove_superseded(text: str) -> str:
    """The same without the empty lines that `holding` leaves for removed ones."""
    return "\n".join(line for line in _current_lines(text) if line is not None) if _has_any(text) else text


def _has_any(text: str) -> bool:
    return "uperseded" in text or "<!--" in text


def _current_lines(text: str) -> Iterator[str | None]:
    """Each line, None for a superseded one. Fenced code is left as it is."""
    lines = list(scan(text))
    outdated = _superseded_lines(lines)
    for index, line in enumerate(lines):
        if index in outdated:
            yield None
        else:
            yield line.text if line.kind in ("code", "fence") else read(line.text)[0]
    if text.endswith("\n"):
        yield ""


def _superseded_lines(lines: Iterable[MarkdownLine]) -> set[int]:
    superseded: set[int] = set()
    item_start, depth = -1, 0  # first line and indent of the current item; -1: none
    dropped = -1  # indent of the superseded item; -1: none
    for index, line in enumerate(lines):
        indent = len(line.text) - len(line.text.lstrip(" \t"))
        if 0 <= dropped < indent and line.kind != "blank":
            superseded.add(index)
            continue
        dropped = -1
        if line.kind == "text" and _ITEM.match(line.text):
            item_start, depth = index, indent
        elif line.kind != "text" or indent <= depth:
            item_start = -1
        if line.kind == "text" and is_superseded(line.text):
            superseded.update(range(index if item_start < 0 else item_start, index + 1))
            dropped = -1 if item_start < 0 else depth
    return superseded


def _checksum(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'surrogateescape')):08x}"
