"""A note as its lines: the items of its lists, lines added to a section, and lines that tacit wrote removed.

What must stay true:
- nothing that a person wrote changes: lines are added at the end of their section, and only lines that tacit
  wrote and that are unedited since are removed or marked as superseded;
- the same note and the same lines always give the same text.

Lines that are indented below an item, or continue its paragraph, belong to it. Prose, tables, code and
headings are not items and are never removed with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.markdown import comment, notes
from tacit.markdown.comment import Provenance, Trust
from tacit.markdown.sections import split_sections
from tacit.text.lines import MarkdownLine, scan
from tacit.text.statements import contradicts, index_words, says_the_same
from tacit.text.words import fold

_BULLET = re.compile(r"\s*(?:[-*+]|[0-9]{1,3}[.)])\s+(?:([0-9]{4}-[0-9]{2}-[0-9]{2}):\s+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ITEM_START = re.compile(
    r" ?(?:[-*+•]|[0-9]{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:\**([0-9]{4}-[0-9]{2}-[0-9]{2})\**:?\s+)?"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


class NoteLine(NamedTuple):
    """A line to add, with its provenance comment, and the section it belongs to."""

    section: str | None
    text: str


class NoteEntry(NamedTuple):
    """One bullet of a note."""

    at: int  # line of the text, from 0
    line: str
    said: str  # without bullet, date and provenance comment
    day: str
    section: str
    mark: Provenance | None


def find_contradictions(
    entries: Iterable[NoteEntry], statement: str, day: str, section: str | None
) -> list[NoteEntry]:
    """The entries of a section that a statement of this day contradicts; of all sections if it is None."""
    return [
        entry
        for entry in entries
        if (section is None or fold(entry.section) == fold(section))
        and entry.day
        and entry.day <= day
        and contradicts(statement, entry.said)
    ]


def remove_lines(
    text: str,
    is_gone: Callable[[str, Provenance], bool],
    *,
    with_edited: bool = False,
    with_spacing: bool = True,
) -> str | None:
    """The note without the generated lines that match. None if tacit made the note and only headings are
    left. `with_edited`: also lines that a person edited; `with_spacing`: also blank lines that were added
    with the lines."""
    lines = text.split("\n")
    gone = {
        number
        for number, line in enumerate(lines)
        if (mark := comment.read(line)[1]) is not None
        and (with_edited or comment.is_generated(line))
        and is_gone(line, mark)
    }
    if not gone:
        return text
    if with_spacing:
        gone |= _find_spare_blanks(lines, gone)
    rest = "\n".join(line for number, line in enumerate(lines) if number not in gone)
    is_ours = notes.parse(text).fields.get("generated") is True
    return None if is_ours and not _has_text(rest) else rest


def restore_superseded(text: str, gone: Collection[str]) -> str:
    """Undo what these lines superseded: a line that only they contradict holds again. The lines themselves
    stay."""
    if not any(map(comment.superseded_day, text.split("\n"))):
        return text
    entries = NotePage(text).entries
    remaining = [item for item in entries if item.line not in gone]
    freed = {
        struck.line for item in entries if item.line in gone for struck in _find_struck_out(item, remaining)
    }
    freed -= {struck.line for item in remaining for struck in _find_struck_out(item, remaining)}
    return "\n".join(_restore_line(line, freed) for line in text.split("\n"))


def _restore_line(line: str, freed: Collection[str]) -> str:
    bare = line.removesuffix("\r")
    return comment.unmark_superseded(bare) + line[len(bare) :] if bare in freed else line


def _find_struck_out(striker: NoteEntry, entries: Sequence[NoteEntry]) -> list[NoteEntry]:
    """Generated lines that this one contradicts and that were superseded on its day."""
    return [
        entry
        for entry in entries
        if comment.superseded_day(entry.line) == striker.day
        and comment.is_generated(entry.line)
        and find_contradictions(
            [entry._replace(said=comment.strip_superseded(entry.said))],
            striker.said,
            striker.day,
            striker.section,
        )
    ]


def line_statement(line: str) -> str:
    """The statement of a line: without bullet, date, provenance comment and superseded note."""
    bullet = _BULLET.match(line)
    return comment.strip_superseded(comment.read(line[bullet.end() if bullet else 0 :])[0])


class _Block:
    """A heading and the text below it, up to the next heading."""

    def __init__(self, title: str, level: int, text: str) -> None:
        self.title, self.level = title, level
        stripped = text.rstrip(" \t\r\n")
        self.lines = stripped.split("\n") if stripped else []
        self.tail = text[len(stripped) :]

    def text(self) -> str:
        return "\n".join(self.lines) + self.tail


class NotePage:
    """An indexed note, so that thousands of lines can be added without parsing it again."""

    def __init__(self, text: str) -> None:
        # If all lines end with CRLF, so do the added ones.
        self._is_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
        text = text.replace("\r\n", "\n") if self._is_crlf else text
        self.head = notes.split(text)[0]
        parsed = split_sections(text)
        self._blocks = [_Block(section.title, section.level, section.own(text)) for section in parsed]
        if parsed and parsed[0].level == 0:
            self._blocks[0] = _Block("", 0, text[len(self.head) : parsed[0].own_end])
        self._entries: list[tuple[NoteEntry, _Block]] = []
        self._folded: set[str] = set()
        self._sourced: set[tuple[str, ...]] = set()
        self._by_word: dict[str, list[int]] = {}
        for block in self._blocks:
            for index, line in enumerate(block.lines):
                self._index_line(block, index, line)

    @property
    def entries(self) -> list[NoteEntry]:
        return [item for item, _ in self._entries]

    def text(self) -> str:
        text = self.head + "".join(block.text() for block in self._blocks)
        return text.replace("\n", "\r\n") if self._is_crlf else text

    def has(self, line: NoteLine) -> bool:
        """Whether that line from that source was added before; it may be superseded by now."""
        return _source_key(line.text) in self._sourced

    def says(self, said: str) -> bool:
        return fold(said) in self._folded or any(
            says_the_same(similar.said, said) for similar in self.near(said)
        )

    def superseded_before(self, said: str, day: str) -> bool:
        """Whether the statement was known on that day and superseded since."""
        superseded_entries = (
            similar for similar in self._find_similar(said) if comment.superseded_day(similar.line) >= day
        )
        return any(
            says_the_same(comment.strip_superseded(similar.said), said) for similar in superseded_entries
        )

    def near(self, said: str) -> list[NoteEntry]:
        """Entries that still hold and share a word with this statement."""
        return [similar for similar in self._find_similar(said) if not comment.is_superseded(similar.line)]

    def _find_similar(self, statement: str) -> list[NoteEntry]:
        positions = {position for word in index_words(statement) for position in self._by_word.get(word, ())}
        return [self._entries[position][0] for position in sorted(positions)]

    def replace(self, one: NoteEntry, line: str) -> None:
        self._folded.discard(fold(one.said))  # so that it can be added again
        for index, (candidate, block) in enumerate(self._entries):
            if candidate is one:
                block.lines[one.at] = line
                self._entries[index] = (one._replace(line=line), block)

    def add(self, line: NoteLine) -> None:
        block = self._find_block(line.section)
        if not block.lines or not _BULLET.match(block.lines[-1]):
            block.lines.append("")
        block.lines.append(line.text)
        block.tail = block.tail or "\n"
        self._index_line(block, len(block.lines) - 1, line.text)

    def _find_block(self, section: str | None) -> _Block:
        if section is None:  # below the title, so that later sections do not move it
            with_title = (block for block in self._blocks if block.level)
            return next(with_title, None) or next(iter(self._blocks), None) or self._append_block("", 0)
        matching = (block for block in self._blocks if block.level > 1 and fold(block.title) == fold(section))
        return next(matching, None) or self._append_block(section, 3 if self._is_journal() else 2)

    def _is_journal(self) -> bool:
        return any(block.level == 2 and _DAY.fullmatch(block.title) for block in self._blocks)

    def _append_block(self, title: str, level: int) -> _Block:
        if self._blocks:
            self._blocks[-1].tail = "\n\n"
        block = _Block(title, level, f"{'#' * level} {title}\n" if title else "")
        self._blocks.append(block)
        return block

    def _index_line(self, block: _Block, index: int, line: str) -> None:
        bullet = _BULLET.match(line)
        if bullet is None:
            return
        statement, mark = comment.read(line[bullet.end() :])
        entry = NoteEntry(index, line, statement, bullet[1] or "", block.title, mark)
        if mark is not None:
            self._sourced.add(_source_key(line))
        if not comment.is_superseded(line):
            self._folded.add(fold(entry.said))
        for word in index_words(entry.said):
            self._by_word.setdefault(word, []).append(len(self._entries))
        self._entries.append((entry, block))


def _source_key(line: str) -> tuple[str, ...]:
    text, mark = comment.read(line)
    return (fold(comment.strip_superseded(text)), *(mark.sources if mark else ()))


def _find_spare_blanks(lines: Sequence[str], gone: Collection[int]) -> set[int]:
    """If all lines between two blank lines go, one of the blank lines goes too: it was added with them."""
    spare: set[int] = set()
    previous = "text"  # the last line that stays
    for number, line in enumerate(lines):
        if number in gone:
            continue
        if number - 1 in gone and not line.strip() and not previous.strip():
            spare.add(number)
        else:
            previous = line
    return spare


def _has_text(text: str) -> bool:
    return any(line.kind not in ("heading", "blank") for line in scan(notes.split(text)[1]))


class NoteItem(NamedTuple):
    number: int  # from 1, in the order of the note
    start: int  # its lines, counted from 0
    stop: int
    raw: str  # as written in the note, without the last line end
    said: str  # its first line without bullet, day, mark and what it is superseded by
    day: str  # empty where it has none
    section: str  # titles from the second rank on: Key Decisions / Shop
    mark: Provenance | None

    @property
    def is_generated(self) -> bool:
        """Whether tacit wrote it and it is unchanged since; lines added below it count as a change."""
        return self.stop == self.start + 1 and comment.is_generated(self.raw)

    @property
    def is_superseded(self) -> bool:
        return comment.is_superseded(self.raw.split("\n", 1)[0].rstrip("\r"))

    @property
    def trust(self) -> Trust:
        """Text that a person wrote into the home is trusted like the owner."""
        return self.mark.trust if self.mark is not None and self.is_generated else "owner"


def read_items(text: str) -> list[NoteItem]:
    lines = split_lines(text)
    head = notes.split(text)[0].count("\n")
    note_items: list[NoteItem] = []
    for start, stop, titles in _item_spans(text, head):
        raw = "".join(lines[start:stop]).rstrip("\r\n")
        note_items.append(_make_item(len(note_items) + 1, start, stop, raw, " / ".join(titles)))
    return note_items


def split_lines(text: str) -> list[str]:
    """The lines with their line ends."""
    return _LINE.findall(text)


def remove_items(text: str, removed: Collection[NoteItem], instead: Mapping[int, str] | None = None) -> str:
    """The note without these items; `instead` maps numbers of items to new lines."""
    lines = split_lines(text)
    dropped = {index for item in removed for index in range(item.start, item.stop)}
    changed = {item.start: line for item in read_items(text) if (line := (instead or {}).get(item.number))}
    remaining = (
        changed[index] + line[len(line.rstrip("\r\n")) :] if index in changed else line
        for index, line in enumerate(lines)
        if index not in dropped
    )
    return "".join(remaining)


def update_dates(text: str, now: datetime) -> str:
    """MEMORY.md with its fields `updated` and `line_count` brought up to date, if it has them."""
    note = notes.parse(text)
    updates: dict[str, object] = {}
    if "updated" in note.fields:
        updates["updated"] = now.replace(microsecond=0)
    if "line_count" in note.fields:
        updates["line_count"] = line_count(text)
    try:
        return notes.set_fields(note, updates).text
    except StoreError:  # the frontmatter is broken: doctor reports it, and these two fields can wait
        return text


def line_count(text: str) -> int:
    """Number of lines of a note, as its cap counts them."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def collect_item_texts(texts: Iterable[str]) -> set[str]:
    """The texts of all current items, folded, to look up whether notes already have a text."""
    return {fold(item.said) for text in texts for item in read_items(text) if not item.is_superseded}


def _make_item(number: int, start: int, stop: int, raw: str, section: str) -> NoteItem:
    first = raw.split("\n", 1)[0].rstrip("\r")
    bullet = _ITEM_START.match(first)
    item_text, mark = comment.read(first[bullet.end() if bullet else 0 :])
    day = (bullet[1] if bullet else "") or ""
    return NoteItem(number, start, stop, raw, comment.strip_superseded(item_text).strip(), day, section, mark)


def _item_spans(text: str, head: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """First line, line after the last, and the titles above."""
    titles: list[tuple[int, str]] = []
    start = stop = -1
    for line in scan("".join(split_lines(text)[head:]), head):
        if start >= 0 and _continues_item(line, is_next=stop == line.number):
            stop = line.number + 1 if line.kind != "blank" else stop
            continue
        if start >= 0 and line.kind != "blank":
            yield start, stop, tuple(title for _, title in titles)
            start = -1
        if line.kind == "heading":
            titles = [above for above in titles if above[0] < line.level]
            titles += [(line.level, line.title)] if line.level > 1 else []
        elif line.kind == "text" and _ITEM_START.match(line.text):
            start, stop = line.number, line.number + 1
    if start >= 0:
        yield start, stop, tuple(title for _, title in titles)


def _continues_item(line: MarkdownLine, *, is_next: bool) -> bool:
    """Whether a line belongs to the item above: indented, or the same paragraph."""
    if line.kind == "heading":
        return False
    if line.kind == "blank" or line.text.startswith(("  ", "\t")):
        return True
    return is_next and line.kind == "text" and not _ITEM_START.match(line.text)
