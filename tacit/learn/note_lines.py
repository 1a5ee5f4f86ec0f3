"""Add lines to notes and remove them again.

What must stay true:
- nothing is added twice: neither the same line from the same source, nor what the note already says;
- nothing that a person wrote changes: lines are added at the end of their section, and only lines that tacit
  wrote and that are unedited since are removed or marked as superseded;
- the same note and the same changes always give the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime
from typing import NamedTuple

from tacit.git.hooks import count_lines
from tacit.learn.contradictions import NoteEntry, find_contradicted, index_words, says_the_same
from tacit.learn.model import Change, ChangeKind, Source, lowest
from tacit.markdown import notes
from tacit.markdown.sections import split_sections
from tacit.markdown.yaml_values import format_entry
from tacit.provenance import comment
from tacit.provenance.comment import Provenance
from tacit.search.documents import audience_of
from tacit.text.lines import scan
from tacit.text.words import fold

MEMORY = "knowledge/memory/MEMORY.md"
_BULLET = re.compile(r"\s*(?:[-*+]|[0-9]{1,3}[.)])\s+(?:([0-9]{4}-[0-9]{2}-[0-9]{2}):\s+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TYPES = {
    "memory": "memory",
    "journal": "journal",
    "projects": "project_context",
    "people": "person",
    "procedures": "procedure",
    "reference": "reference",
}


class NoteLine(NamedTuple):
    """A line to add, with its provenance comment, and the section it belongs to."""

    section: str | None
    text: str


class AppliedChanges(NamedTuple):
    text: str
    added: tuple[Change, ...]
    superseded: tuple[str, ...]  # generated lines that no longer hold, as they were before
    contradicts: tuple[tuple[str, Change], ...]  # lines that a change contradicts but may not edit


def format_line(change: Change) -> NoteLine:
    source = comment.source_name(change.source.transcript, change.source.number or None)
    sources = dict.fromkeys((source, *change.also))
    return NoteLine(change.section, comment.attach(change.line, change.extractor, sources, change.trust))


def apply_changes(
    text: str | None, path: str, changes: Sequence[Change], *, supersede: bool = True
) -> AppliedChanges:
    """The note with these changes. `text` is None if there is no note yet."""
    page = NotePage(skeleton(path) if text is None else text)
    outcome = add_changes(page, changes, supersede=supersede)
    return AppliedChanges(
        update_head(page.text(), path, outcome.added) if outcome.added else text or "", *outcome
    )


class AddResult(NamedTuple):
    added: tuple[Change, ...]
    superseded: tuple[str, ...]
    contradicts: tuple[tuple[str, Change], ...]


def add_changes(page: NotePage, changes: Iterable[Change], *, supersede: bool = True) -> AddResult:
    """Add the changes to the page, and report which lines that added, superseded or contradicts."""
    added: list[Change] = []
    superseded_lines: list[str] = []
    protected: list[tuple[str, Change]] = []
    for change in changes:
        line = format_line(change)
        if page.has(line) or page.says(change.text) or page.held(change.text, change.day):
            continue
        for earlier in find_contradicted(page.near(change.text), change) if supersede else ():
            if comment.is_generated(earlier.line) and _may_supersede(earlier, change):
                page.replace(earlier, comment.mark_superseded(earlier.line, change.day))
                superseded_lines.append(earlier.line)
            else:
                protected.append((earlier.line, change))
        page.add(line)
        added.append(change)
    return AddResult(tuple(added), tuple(superseded_lines), tuple(protected))


def _may_supersede(earlier: NoteEntry, change: Change) -> bool:
    """A line of the agent never supersedes a line of the owner."""
    return earlier.mark is not None and lowest((earlier.mark.trust, change.trust)) == earlier.mark.trust


def add_lines(text: str | None, path: str, lines: Iterable[NoteLine]) -> str:
    """Add each line at the end of its section, creating the section if needed. Lines that are there already
    are skipped."""
    page = NotePage(skeleton(path) if text is None else text)
    for line in lines:
        bullet = _BULLET.match(line.text)
        statement = comment.read(line.text[bullet.end() if bullet else 0 :])[0]
        if not page.has(line) and not page.says(statement):
            page.add(line)
    return page.text()


def remove_lines(text: str, is_gone: Callable[[str, Provenance], bool]) -> str | None:
    """The note without the generated lines that match. None if tacit made the note and only headings are
    left."""
    head, body = notes.split(text)
    rest = head + "\n".join(_drop_gone(body.split("\n"), is_gone))
    if rest == text:
        return text
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
    kind: ChangeKind = "decision" if striker.mark and striker.mark.name == "decisions" else "fact"
    change = Change("", striker.section, striker.said, striker.day, kind, Source("", 0, "user"), "owner")
    return [
        entry
        for entry in entries
        if comment.superseded_day(entry.line) == striker.day
        and comment.is_generated(entry.line)
        and find_contradicted([entry._replace(said=comment.strip_superseded(entry.said))], change)
    ]


def list_generated(text: str) -> list[tuple[str, Provenance]]:
    """The generated lines of a note that are unedited."""
    pairs = ((line, comment.read(line)[1]) for line in text.split("\n"))
    return [(line, mark) for line, mark in pairs if mark is not None and comment.is_generated(line)]


def line_statement(line: str) -> str:
    """The statement of a line: without bullet, date, provenance comment and superseded note."""
    bullet = _BULLET.match(line)
    return comment.strip_superseded(comment.read(line[bullet.end() if bullet else 0 :])[0])


def line_count(text: str) -> int:
    """Number of lines of a note, as its cap counts them."""
    return count_lines(notes.encode(text))


# A note that is being edited


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

    def held(self, said: str, day: str) -> bool:
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


# Reading


def _drop_gone(lines: Iterable[str], is_gone: Callable[[str, Provenance], bool]) -> list[str]:
    """If all lines between two blank lines go, one of the blank lines goes too: it was added with them."""
    remaining: list[str] = []
    after_gone = False
    for line in lines:
        if _is_gone(line, is_gone):
            after_gone = True
            continue
        is_spare = after_gone and not line.strip() and bool(remaining) and not remaining[-1].strip()
        after_gone = False
        if not is_spare:
            remaining.append(line)
    return remaining


def _is_gone(line: str, is_gone: Callable[[str, Provenance], bool]) -> bool:
    mark = comment.read(line)[1]
    return mark is not None and comment.is_generated(line) and is_gone(line, mark)


def _has_text(text: str) -> bool:
    return any(line.kind in ("text", "code") for line in scan(notes.split(text)[1]))


# Writing


def skeleton(path: str) -> str:
    """The text of a new note."""
    name = path.rpartition("/")[2].removesuffix(".md")
    folder = path.split("/")[1] if path.count("/") > 1 else ""
    fields: dict[str, object] = {"type": _TYPES.get(folder, "reference")}
    if folder == "journal":
        fields["date"] = date.fromisoformat(name) if _DAY.fullmatch(name) else name
    elif folder == "projects":
        fields["project"] = path.split("/")[2]
    elif folder == "people":
        fields["name"] = _title(name)
    if audience_of(notes.parse("", path), path)[0] != "owner":
        fields["audience"] = "owner"  # the default would be groups, but what was learned was private
    head = "".join(format_entry(key, value) for key, value in {**fields, "generated": True}.items())
    title = f"## {name}" if folder == "journal" else f"# {_title(name)}"
    return f"---\n{head}---\n\n{title}\n"


def _title(name: str) -> str:
    return name.replace("-", " ").strip().title() if name.islower() else name


def update_head(text: str, path: str, added: Sequence[Change]) -> str:
    """Update the frontmatter fields about the last change, if the note has them."""
    note = notes.parse(text, path)
    if any(problem.level == "error" for problem in note.problems):
        return text
    updates: dict[str, object] = {}
    latest = max((change.source.at or change.day for change in added), default="")
    if "updated" in note.fields and latest > str(note.fields["updated"]):
        updates["updated"] = datetime.fromisoformat(latest)
    if path == MEMORY and "line_count" in note.fields:
        updates["line_count"] = line_count(text)
    return notes.set_fields(note, updates).text if updates else text
