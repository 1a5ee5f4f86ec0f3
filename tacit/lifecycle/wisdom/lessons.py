"""Where lessons stand in the files of a workspace, each with its file and line.

A lesson is an item of a list, a row of a table or a paragraph; what is indented below an item belongs to it.
Of AGENTS.md and MEMORY.md only the sections about lessons and decisions are read. Daily notes tell of
everything: there it is such sections, and elsewhere the sentences that say themselves that they are
lessons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

from tacit.lifecycle.extract import told
from tacit.text.lines import Line, scan
from tacit.text.sections import sections
from tacit.text.words import fold, unspaced

Kind = Literal["agents", "lessons", "memory", "daily"]
OPERATIONAL = "Operational Lessons (earned the hard way)"

_OPERATIONAL = re.compile(r"\boperational lessons\b")
_TITLES = re.compile(
    r"\b(?:lessons?|learned|learnt|learnings?|decisions?|decided|takeaways?)\b"
    r"|gelernt|lektion|erkenntnis|entscheidung|教訓|教训|决定|決定|決めた"
)
_ITEM = re.compile(r"(?P<indent> *)(?:[-*+•]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*)")
_ROW = re.compile(r"\s*\|(?P<cells>.*?)\|?\s*")
_RULE = re.compile(r"[\s|:=-]+")
# What people put before a lesson: its day, its number, the word itself.
_LABEL = re.compile(
    r"(?:\**\s*(?:\d{4}-\d{2}-\d{2}|#?\d{1,3}|lessons?(?: learned| learnt)?|takeaway|learned|merke|gelernt)"
    r"\s*(?:\*\*)?\s*(?:[:.–—|-]|\))\s*(?:\*\*)?\s*)+",
    re.IGNORECASE,
)
_FEWEST_WORDS = 4
_FEWEST_LETTERS = 6  # where words are not apart
_LONGEST = 600  # characters; what is longer is a story, and its beginning tells which
_NESTED = 2  # spaces from which an item is a part of the one above


class Source(NamedTuple):
    """A file that may hold lessons. None: it is not there, or cannot be read."""

    path: str
    kind: Kind
    text: str | None


class Lesson(NamedTuple):
    text: str
    path: str
    line: int

    @property
    def key(self) -> str:
        """The same for the same words, wherever they stand."""
        return sha256(fold(self.text).encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


def lessons(sources: Iterable[Source]) -> list[Lesson]:
    """Each once, where it stands first."""
    found: dict[str, Lesson] = {}
    for source in sources:
        for lesson in lessons_in(source):
            found.setdefault(lesson.key, lesson)
    return list(found.values())


def lessons_in(source: Source) -> Iterator[Lesson]:
    for line, text in _READ[source.kind](source.text or ""):
        bare = _bare(text)
        if _says_enough(bare):
            yield Lesson(bare, source.path, line)


def has_place(source: Source) -> bool:
    """Whether the file has the sections that are read; the others are read whole."""
    wanted = {"agents": _OPERATIONAL, "memory": _TITLES}.get(source.kind)
    return wanted is None or any(wanted.search(fold(one.title)) for one in sections(source.text or ""))


def _agents(text: str) -> Iterator[tuple[int, str]]:
    return _below(text, _OPERATIONAL)


def _memory(text: str) -> Iterator[tuple[int, str]]:
    return _below(text, _TITLES)


def _daily(text: str) -> Iterator[tuple[int, str]]:
    inside = dict(_below(text, _TITLES))
    yield from inside.items()
    for line, item in items(text):
        if line not in inside:
            yield from ((line, sentence) for kind, sentence in told(item) if kind == "lesson")


def _below(text: str, titles: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    end = 0
    for one in sections(text):
        if one.start >= end and titles.search(fold(one.title)):
            end = one.end
            yield from items(one.text(text), one.line)


# Items


def items(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """The items, rows and paragraphs of a text, each with its line. Code and headings are none."""
    gathered: list[str] = []
    start, row = first, None
    for line in scan(text, first):
        if row is not None and not _is_rule(line):  # above a rule it is the head of the table
            yield row
        row = (line.number, _longest_cell(line)) if _is_row(line) else None
        begins = _begins(line)
        if begins and gathered:
            yield start, " ".join(gathered)
            gathered = []
        if line.kind == "text" and not _is_row(line) and not _is_rule(line):
            start = start if gathered else line.number
            gathered.append(_content(line))
    if row is not None:
        yield row
    if gathered:
        yield start, " ".join(gathered)


def _begins(line: Line) -> bool:
    """Whether what was gathered ends here."""
    if line.kind != "text" or _is_row(line):
        return True
    item = _ITEM.fullmatch(line.text)
    return item is not None and len(item["indent"]) < _NESTED


def _content(line: Line) -> str:
    item = _ITEM.fullmatch(line.text)
    return (item["text"] if item else line.text.lstrip("> ")).strip()


def _is_row(line: Line) -> bool:
    return line.kind == "text" and line.text.lstrip().startswith("|") and not _is_rule(line)


def _is_rule(line: Line) -> bool:
    return line.kind == "text" and _RULE.fullmatch(line.text) is not None


def _longest_cell(line: Line) -> str:
    row = _ROW.fullmatch(line.text)
    return max((cell.strip() for cell in row["cells"].split("|")), key=len) if row else ""


def _bare(text: str) -> str:
    text = " ".join(text[: _LONGEST * 2].split())
    label = _LABEL.match(text)
    return text[label.end() if label else 0 :][:_LONGEST].strip().strip("*_ ")


def _says_enough(text: str) -> bool:
    if unspaced(text):
        return sum(map(str.isalnum, text)) >= _FEWEST_LETTERS
    return len(text.split(maxsplit=_FEWEST_WORDS)) >= _FEWEST_WORDS


_READ: Mapping[Kind, Callable[[str], Iterator[tuple[int, str]]]] = {
    "agents": _agents,
    "lessons": items,
    "memory": _memory,
    "daily": _daily,
}
