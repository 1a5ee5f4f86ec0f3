"""Lines into notes, and out of them again.

What must stay true:
- nothing is added twice: neither the same line of the same source, nor what the note already says;
- nothing that a person wrote changes: lines are added at the end of their section, and only lines that tacit
  wrote and nobody has changed since are taken out or marked as superseded;
- the same note and the same changes give the same text, whenever it is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime
from typing import NamedTuple

from tacit.lifecycle.contradict import Entry, contradicted, says_the_same, words_in
from tacit.model.changes import Change, ChangeKind, Source, lowest
from tacit.store.hooks import count_lines
from tacit.text import marks, notes
from tacit.text.lines import scan
from tacit.text.marks import Mark
from tacit.text.sections import sections
from tacit.text.words import fold
from tacit.text.yaml_values import entry

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


class Line(NamedTuple):
    """A line that is to be added, mark and all, and the section it belongs into."""

    section: str | None
    text: str


class Applied(NamedTuple):
    text: str
    added: tuple[Change, ...]
    superseded: tuple[str, ...]  # lines of tacit's own that no longer hold, as they were
    contradicts: tuple[tuple[str, Change], ...]  # lines that a change contradicts and may not touch


def line_of(change: Change) -> Line:
    source = marks.source_of(change.source.transcript, change.source.number or None)
    sources = dict.fromkeys((source, *change.also))
    return Line(change.section, marks.marked(change.line, change.extractor, sources, change.trust))


def applied(text: str | None, path: str, changes: Sequence[Change], *, supersede: bool = True) -> Applied:
    """The note with these changes. `text` is None where there is no note yet."""
    page = Page(skeleton(path) if text is None else text)
    done = add_to(page, changes, supersede=supersede)
    return Applied(with_head(page.text(), path, done.added) if done.added else text or "", *done)


class Added(NamedTuple):
    added: tuple[Change, ...]
    superseded: tuple[str, ...]
    contradicts: tuple[tuple[str, Change], ...]


def add_to(page: Page, changes: Iterable[Change], *, supersede: bool = True) -> Added:
    """What came into the page of these changes, and what that did to others."""
    added: list[Change] = []
    old: list[str] = []
    theirs: list[tuple[str, Change]] = []
    for change in changes:
        line = line_of(change)
        if page.has(line) or page.says(change.text) or page.held(change.text, change.day):
            continue
        for one in contradicted(page.near(change.text), change) if supersede else ():
            if marks.is_generated(one.line) and _may_supersede(one, change):
                page.replace(one, marks.superseded(one.line, change.day))
                old.append(one.line)
            else:
                theirs.append((one.line, change))
        page.add(line)
        added.append(change)
    return Added(tuple(added), tuple(old), tuple(theirs))


def _may_supersede(one: Entry, change: Change) -> bool:
    """What an agent says, however sure, never strikes out what the owner said."""
    return one.mark is not None and lowest((one.mark.trust, change.trust)) == one.mark.trust


def with_lines(text: str | None, path: str, lines: Iterable[Line]) -> str:
    """Each line at the end of its section, which is made where it is missing. What is there already is not
    added again."""
    page = Page(skeleton(path) if text is None else text)
    for line in lines:
        bullet = _BULLET.match(line.text)
        said = marks.read(line.text[bullet.end() if bullet else 0 :])[0]
        if not page.has(line) and not page.says(said):
            page.add(line)
    return page.text()


def without_lines(text: str, is_gone: Callable[[str, Mark], bool]) -> str | None:
    """The note without those lines of tacit's that are to go. None where nothing but its frame is left of a
    note that tacit made."""
    head, body = notes.split(text)
    rest = head + "\n".join(_kept(body.split("\n"), is_gone))
    if rest == text:
        return text
    is_ours = notes.parse(text).fields.get("generated") is True
    return None if is_ours and not _says_something(rest) else rest


def held_again(text: str, gone: Collection[str]) -> str:
    """The note in which these lines of it strike out nothing any more: what was superseded by one of them,
    and is contradicted by no other, holds again. The lines themselves stay where they are."""
    if not any(map(marks.superseded_on, text.split("\n"))):
        return text
    entries = Page(text).entries
    left = [one for one in entries if one.line not in gone]
    freed = {old.line for one in entries if one.line in gone for old in _struck_out(one, left)}
    freed -= {old.line for one in left for old in _struck_out(one, left)}
    return "\n".join(_freed(line, freed) for line in text.split("\n"))


def _freed(line: str, freed: Collection[str]) -> str:
    bare = line.removesuffix("\r")
    return marks.held_again(bare) + line[len(bare) :] if bare in freed else line


def _struck_out(one: Entry, entries: Sequence[Entry]) -> list[Entry]:
    """Lines of tacit's that were superseded on the day of this one and that it contradicts."""
    kind: ChangeKind = "decision" if one.mark and one.mark.name == "decisions" else "fact"
    change = Change("", one.section, one.said, one.day, kind, Source("", 0, "user"), "owner")
    return [
        entry
        for entry in entries
        if marks.superseded_on(entry.line) == one.day
        and marks.is_generated(entry.line)
        and contradicted([entry._replace(said=marks.as_it_held(entry.said))], change)
    ]


def generated(text: str) -> list[tuple[str, Mark]]:
    """The lines of a note that tacit wrote and nobody has changed since."""
    found = ((line, marks.read(line)[1]) for line in text.split("\n"))
    return [(line, mark) for line, mark in found if mark is not None and marks.is_generated(line)]


def said_of(line: str) -> str:
    """What a line of a note says: without bullet, date and mark, and as it held before it was superseded."""
    bullet = _BULLET.match(line)
    return marks.as_it_held(marks.read(line[bullet.end() if bullet else 0 :])[0])


def lines_of(text: str) -> int:
    """Lines of a note, as its cap counts them."""
    return count_lines(notes.encode(text))


# A note while lines come into it


class _Block:
    """A heading and what stands below it, up to the next heading."""

    def __init__(self, title: str, level: int, text: str) -> None:
        self.title, self.level = title, level
        bare = text.rstrip(" \t\r\n")
        self.lines = bare.split("\n") if bare else []
        self.tail = text[len(bare) :]

    def text(self) -> str:
        return "\n".join(self.lines) + self.tail


class Page:
    """Keeps where things are, so that thousands of lines can be added to a note without reading it again."""

    def __init__(self, text: str) -> None:
        # Where all lines end as on Windows, so do those that are added.
        self._is_crlf = "\r\n" in text and text.count("\n") == text.count("\r\n")
        text = text.replace("\r\n", "\n") if self._is_crlf else text
        self.head = notes.split(text)[0]
        found = sections(text)
        self._blocks = [_Block(one.title, one.level, one.own(text)) for one in found]
        if found and found[0].level == 0:
            self._blocks[0] = _Block("", 0, text[len(self.head) : found[0].own_end])
        self._entries: list[tuple[Entry, _Block]] = []
        self._folded: set[str] = set()
        self._sourced: set[tuple[str, ...]] = set()
        self._by_word: dict[str, list[int]] = {}
        for block in self._blocks:
            for at, line in enumerate(block.lines):
                self._note(block, at, line)

    @property
    def entries(self) -> list[Entry]:
        return [one for one, _ in self._entries]

    def text(self) -> str:
        text = self.head + "".join(block.text() for block in self._blocks)
        return text.replace("\n", "\r\n") if self._is_crlf else text

    def has(self, line: Line) -> bool:
        """Whether that line of that source was added before, and may have been superseded since."""
        return _sourced(line.text) in self._sourced

    def says(self, said: str) -> bool:
        return fold(said) in self._folded or any(says_the_same(one.said, said) for one in self.near(said))

    def held(self, said: str, day: str) -> bool:
        """Whether that was known on that day, and has been superseded since."""
        past = (one for one in self._alike(said) if marks.superseded_on(one.line) >= day)
        return any(says_the_same(marks.as_it_held(one.said), said) for one in past)

    def near(self, said: str) -> list[Entry]:
        """Bullets that still hold and share a word with this one."""
        return [one for one in self._alike(said) if not marks.is_superseded(one.line)]

    def _alike(self, said: str) -> list[Entry]:
        places = {at for word in words_in(said) for at in self._by_word.get(word, ())}
        return [self._entries[at][0] for at in sorted(places)]

    def replace(self, one: Entry, line: str) -> None:
        self._folded.discard(fold(one.said))  # it may come to hold again
        for at, (known, block) in enumerate(self._entries):
            if known is one:
                block.lines[one.at] = line
                self._entries[at] = (one._replace(line=line), block)

    def add(self, line: Line) -> None:
        block = self._block(line.section)
        if not block.lines or not _BULLET.match(block.lines[-1]):
            block.lines.append("")
        block.lines.append(line.text)
        block.tail = block.tail or "\n"
        self._note(block, len(block.lines) - 1, line.text)

    def _block(self, section: str | None) -> _Block:
        if section is None:  # below the title: there it stands whatever sections come later
            titled = (one for one in self._blocks if one.level)
            return next(titled, None) or next(iter(self._blocks), None) or self._new("", 0)
        named = (one for one in self._blocks if one.level > 1 and fold(one.title) == fold(section))
        return next(named, None) or self._new(section, 3 if self._is_journal() else 2)

    def _is_journal(self) -> bool:
        return any(one.level == 2 and _DAY.fullmatch(one.title) for one in self._blocks)

    def _new(self, title: str, level: int) -> _Block:
        if self._blocks:
            self._blocks[-1].tail = "\n\n"
        block = _Block(title, level, f"{'#' * level} {title}\n" if title else "")
        self._blocks.append(block)
        return block

    def _note(self, block: _Block, at: int, line: str) -> None:
        bullet = _BULLET.match(line)
        if bullet is None:
            return
        said, mark = marks.read(line[bullet.end() :])
        entry = Entry(at, line, said, bullet[1] or "", block.title, mark)
        if mark is not None:
            self._sourced.add(_sourced(line))
        if not marks.is_superseded(line):
            self._folded.add(fold(entry.said))
        for word in words_in(entry.said):
            self._by_word.setdefault(word, []).append(len(self._entries))
        self._entries.append((entry, block))


def _sourced(line: str) -> tuple[str, ...]:
    text, mark = marks.read(line)
    return (fold(marks.as_it_held(text)), *(mark.sources if mark else ()))


# Reading


def _kept(lines: Iterable[str], is_gone: Callable[[str, Mark], bool]) -> list[str]:
    """Where all lines between two blank ones go, one of those goes with them: it came with them."""
    kept: list[str] = []
    after_gone = False
    for line in lines:
        if _goes(line, is_gone):
            after_gone = True
            continue
        is_spare = after_gone and not line.strip() and bool(kept) and not kept[-1].strip()
        after_gone = False
        if not is_spare:
            kept.append(line)
    return kept


def _goes(line: str, is_gone: Callable[[str, Mark], bool]) -> bool:
    mark = marks.read(line)[1]
    return mark is not None and marks.is_generated(line) and is_gone(line, mark)


def _says_something(text: str) -> bool:
    return any(line.kind in ("text", "code") for line in scan(notes.split(text)[1]))


# Writing


def skeleton(path: str) -> str:
    """A new note, for the lines that come into it."""
    name = path.rpartition("/")[2].removesuffix(".md")
    folder = path.split("/")[1] if path.count("/") > 1 else ""
    fields: dict[str, object] = {"type": _TYPES.get(folder, "reference")}
    if folder == "journal":
        fields["date"] = date.fromisoformat(name) if _DAY.fullmatch(name) else name
    elif folder == "projects":
        fields["project"] = path.split("/")[2]
    elif folder == "people":
        fields["name"] = _title(name)
    elif folder in ("procedures", "reference"):
        fields["audience"] = "owner"  # without it such a note is for groups, and what was learned was private
    head = "".join(entry(key, value) for key, value in {**fields, "generated": True}.items())
    title = f"## {name}" if folder == "journal" else f"# {_title(name)}"
    return f"---\n{head}---\n\n{title}\n"


def _title(name: str) -> str:
    return name.replace("-", " ").strip().title() if name.islower() else name


def with_head(text: str, path: str, added: Sequence[Change]) -> str:
    """Fields that tell when a note last changed follow, where it has them."""
    note = notes.parse(text, path)
    if any(problem.level == "error" for problem in note.problems):
        return text
    wanted: dict[str, object] = {}
    latest = max((change.source.at or change.day for change in added), default="")
    if "updated" in note.fields and latest > str(note.fields["updated"]):
        wanted["updated"] = datetime.fromisoformat(latest)
    if path == MEMORY and "line_count" in note.fields:
        wanted["line_count"] = lines_of(text)
    return notes.with_fields(note, wanted).text if wanted else text
