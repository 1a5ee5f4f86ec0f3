"""Reads lessons from the files of a workspace, each with its file and line.

A lesson is a list item, a table row or a paragraph; text indented below an item belongs to it. In AGENTS.md
and MEMORY.md only the sections about lessons and decisions are read. Daily notes cover everything: there the
same sections count, and elsewhere sentences that call themselves lessons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

from tacit.learn.patterns import find_statements
from tacit.markdown.sections import split_sections
from tacit.text.lines import MarkdownLine, scan
from tacit.text.words import fold, is_unspaced

Kind = Literal["agents", "lessons", "memory", "daily"]
OPERATIONAL = "Operational Lessons (earned the hard way)"

_OPERATIONAL = re.compile(r"\boperational lessons\b")
_TITLES = re.compile(
    r"\b(?:lessons?|learned|learnt|learnings?|decisions?|decided|takeaways?)\b"
    r"|gelernt|lektion|erkenntnis|entscheidung|教訓|教训|决定|決定|決めた"
)
# The sections that are read of these kinds of file; the others are read whole.
_SECTION_TITLES: Mapping[Kind, re.Pattern[str]] = {"agents": _OPERATIONAL, "memory": _TITLES}
_ITEM = re.compile(r"(?P<indent> *)(?:[-*+•]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*)")
_ROW = re.compile(r"\s*\|(?P<cells>.*?)\|?\s*")
_RULE = re.compile(r"[\s|:=-]+")
# Labels that people put before a lesson: its day, its number, the word itself.
_LABEL = re.compile(
    r"(?:\**\s*(?:\d{4}-\d{2}-\d{2}|#?\d{1,3}|lessons?(?: learned| learnt)?|takeaway|learned|merke|gelernt)"
    r"\s*(?:\*\*)?\s*(?:[:.–—|-]|\))\s*(?:\*\*)?\s*)+",
    re.IGNORECASE,
)
_MIN_WORDS = 4
_MIN_LETTERS = 6  # for scripts without spaces between words
_MAX_CHARS = 600  # a longer text is a story, and its beginning says which
_NESTED_INDENT = 2  # spaces from which an item belongs to the one above


class LessonSource(NamedTuple):
    """A file that may have lessons. None: it is missing or cannot be read."""

    path: str
    kind: Kind
    text: str | None


class Lesson(NamedTuple):
    text: str
    path: str
    line: int

    @property
    def key(self) -> str:
        """The same for the same words, in any file."""
        return sha256(fold(self.text).encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


def collect_lessons(sources: Iterable[LessonSource]) -> list[Lesson]:
    """Each lesson once, at its first place."""
    lessons_by_key: dict[str, Lesson] = {}
    for source in sources:
        for lesson in read_lessons(source):
            lessons_by_key.setdefault(lesson.key, lesson)
    return list(lessons_by_key.values())


def read_lessons(source: LessonSource) -> Iterator[Lesson]:
    for line, text in _read_statements(source.kind, source.text or ""):
        lesson = _strip_label(text)
        if _is_long_enough(lesson):
            yield Lesson(lesson, source.path, line)


def has_lesson_sections(source: LessonSource) -> bool:
    """Whether the file has the sections that are read; other kinds of file are read whole."""
    pattern = _SECTION_TITLES.get(source.kind)
    return pattern is None or any(
        pattern.search(fold(section.title)) for section in split_sections(source.text or "")
    )


def _read_statements(kind: Kind, text: str) -> Iterator[tuple[int, str]]:
    if kind == "daily":
        return _read_daily(text)
    titles = _SECTION_TITLES.get(kind)
    return iter_items(text) if titles is None else _read_sections(text, titles)


def _read_daily(text: str) -> Iterator[tuple[int, str]]:
    inside = dict(_read_sections(text, _TITLES))
    yield from inside.items()
    for line, item in iter_items(text):
        if line not in inside:
            yield from ((line, sentence) for kind, sentence in find_statements(item) if kind == "lesson")


def _read_sections(text: str, titles: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    end = 0
    for section in split_sections(text):
        if section.start >= end and titles.search(fold(section.title)):
            end = section.end
            yield from iter_items(section.text(text), section.line)


# Items


def iter_items(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """The items, rows and paragraphs of a text, each with its line, without code and headings."""
    parts: list[str] = []
    start, row = first, None
    for line in scan(text, first):
        if row is not None and not _is_rule(line):  # a row above a rule is the table's head
            yield row
        row = (line.number, _longest_cell(line)) if _is_row(line) else None
        is_start = _starts_item(line)
        if is_start and parts:
            yield start, " ".join(parts)
            parts = []
        if line.kind == "text" and not _is_row(line) and not _is_rule(line):
            start = start if parts else line.number
            parts.append(_item_text(line))
    if row is not None:
        yield row
    if parts:
        yield start, " ".join(parts)


def _starts_item(line: MarkdownLine) -> bool:
    """Whether the line ends the parts collected so far."""
    if line.kind != "text" or _is_row(line):
        return True
    item = _ITEM.fullmatch(line.text)
    return item is not None and len(item["indent"]) < _NESTED_INDENT


def _item_text(line: MarkdownLine) -> str:
    item = _ITEM.fullmatch(line.text)
    return (item["text"] if item else line.text.lstrip("> ")).strip()


def _is_row(line: MarkdownLine) -> bool:
    return line.kind == "text" and line.text.lstrip().startswith("|") and not _is_rule(line)


def _is_rule(line: MarkdownLine) -> bool:
    return line.kind == "text" and _RULE.fullmatch(line.text) is not None


def _longest_cell(line: MarkdownLine) -> str:
    row = _ROW.fullmatch(line.text)
    return max((cell.strip() for cell in row["cells"].split("|")), key=len) if row else ""


def _strip_label(text: str) -> str:
    text = " ".join(text[: _MAX_CHARS * 2].split())
    label = _LABEL.match(text)
    return text[label.end() if label else 0 :][:_MAX_CHARS].strip().strip("*_ ")


def _is_long_enough(text: str) -> bool:
    if is_unspaced(text):
        return sum(map(str.isalnum, text)) >= _MIN_LETTERS
    return len(text.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS
