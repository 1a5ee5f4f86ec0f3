"""Changes on their way into notes: which note a change may go to, how it is added, and a buffer for many.

What must stay true:
- nothing is added twice: neither the same line from the same source, nor what the note already says;
- a line of the agent never supersedes a line of the owner, and lines that a person wrote are only reported;
- a line never goes where more people can read it than could hear it. What was said in the owner's own
  sessions is private. Reference notes and procedures are for groups unless they say otherwise, so a line
  from a private session goes into a private note beside the group one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from tacit.home.files import Tree, make_directories, write_unsynced
from tacit.home.layout import MEMORY
from tacit.learn.model import Change
from tacit.markdown import comment, notes
from tacit.markdown.comment import lowest
from tacit.markdown.note_page import NoteEntry, NoteLine, NotePage, find_contradictions, line_count
from tacit.markdown.notes import Note
from tacit.review.entries import new_note
from tacit.search.documents import audience_of
from tacit.sessions.policy import SessionProfiles

_OWNER_SUFFIX = "-owner"
_CONTRADICTING_KINDS = ("decision", "fact")


# Which note


def redirect_changes(
    changes: Iterable[Change], profiles: SessionProfiles, read: Callable[[str], bytes | None]
) -> Iterator[Change]:
    """Redirect each change to a note with no wider audience than its session. `read` returns the current
    notes."""
    is_private: dict[str, bool] = {}
    places: dict[str, str] = {}
    for change in changes:
        key = change.source.session_key
        if key not in is_private:
            is_private[key] = profiles.profile_of(key, trial=True).rule.audience == "owner"
        if is_private[key] and change.path not in places:
            places[change.path] = private_note(change.path, read)
        yield replace(change, path=places[change.path]) if is_private[key] else change


def private_note(path: str, read: Callable[[str], bytes | None]) -> str:
    """The note itself, or, if others can read it, the private note beside it."""
    while (data := read(path)) is not None and is_shared(notes.parse(notes.decode(data), path), path):
        path = f"{path.removesuffix('.md')}{_OWNER_SUFFIX}.md"
    return path


def is_shared(note: Note, path: str) -> bool:
    """Whether people other than the owner can read it. A note that does not exist yet is created private."""
    return audience_of(note, path)[0] != "owner"


# Adding changes


class AppliedChanges(NamedTuple):
    text: str
    added: tuple[Change, ...]
    superseded: tuple[str, ...]  # generated lines that no longer hold, as they were before
    contradicts: tuple[tuple[str, Change], ...]  # lines that a change contradicts but may not edit


def apply_changes(
    text: str | None, path: str, changes: Sequence[Change], *, supersede: bool = True
) -> AppliedChanges:
    """The note with these changes. `text` is None if there is no note yet."""
    page = NotePage(new_note(path) if text is None else text)
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
        if page.has(line) or page.says(change.text) or page.superseded_before(change.text, change.day):
            continue
        for earlier in _find_contradictions(page, change) if supersede else ():
            if comment.is_generated(earlier.line) and _may_supersede(earlier, change):
                page.replace(earlier, comment.mark_superseded(earlier.line, change.day))
                superseded_lines.append(earlier.line)
            else:
                protected.append((earlier.line, change))
        page.add(line)
        added.append(change)
    return AddResult(tuple(added), tuple(superseded_lines), tuple(protected))


def _find_contradictions(page: NotePage, change: Change) -> list[NoteEntry]:
    if change.kind not in _CONTRADICTING_KINDS:
        return []
    return find_contradictions(page.near(change.text), change.text, change.day, change.section)


def _may_supersede(earlier: NoteEntry, change: Change) -> bool:
    """A line of the agent never supersedes a line of the owner."""
    return earlier.mark is not None and lowest((earlier.mark.trust, change.trust)) == earlier.mark.trust


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


def format_line(change: Change) -> NoteLine:
    sources = dict.fromkeys(line_sources(change))
    return NoteLine(change.section, comment.attach(change.line, change.extractor, sources, change.trust))


def line_sources(change: Change) -> tuple[str, ...]:
    return (comment.source_name(change.source.transcript, change.source.number or None), *change.also)


# Many conversations


_NOTHING = AddResult((), (), ())


class NoteBuffer:
    """For a caller that is the only writer of these files. Changes are on disk after `flush`."""

    def __init__(self, tree: Tree, cap: int) -> None:
        """`cap`: maximum number of lines in MEMORY.md."""
        self._tree, self._cap = tree, cap
        self._pages: dict[str, NotePage] = {}
        self._added: dict[str, list[Change]] = {}  # since the page was read
        self._dirty: set[str] = set()

    def head(self, path: str) -> bytes | None:
        """The frontmatter of a note; None if there is no note yet."""
        if path in self._pages:
            return notes.encode(self._pages[path].head)
        data = self._read(path)
        return None if data is None else notes.encode(notes.split(notes.decode(data))[0])

    def says(self, change: Change) -> bool:
        """Whether its note has the line or a similar one."""
        page = self._load_page(change.path)
        return page.has(format_line(change)) or page.says(change.text)

    def add(self, path: str, changes: Sequence[Change], *, supersede: bool) -> AddResult | None:
        """None if MEMORY.md has no room for them."""
        page = self._load_page(path)
        if path == MEMORY:
            outcome = apply_changes(page.text(), path, changes, supersede=supersede)
            if not outcome.added:
                return _NOTHING
            if line_count(outcome.text) > self._cap:
                return None
            self._pages[path] = NotePage(outcome.text)
            result = AddResult(*outcome[1:])
        else:
            result = add_changes(page, changes, supersede=supersede)
        if result.added:
            self._added.setdefault(path, []).extend(result.added)
            self._dirty.add(path)
        return result

    def flush(self, paths: Collection[str] | None = None) -> None:
        """Write the added lines of all notes or of these, without fsync."""
        for path in sorted(self._dirty if paths is None else self._dirty.intersection(paths)):
            text = update_head(self._pages[path].text(), path, self._added[path])
            file = self._tree.root / path
            make_directories(file.parent, synced=False)
            write_unsynced(file, notes.encode(text))
            self._dirty.discard(path)

    def drop(self, path: str) -> None:
        """Forget a page that was written elsewhere, so that it is read again."""
        self._pages.pop(path, None)
        self._added.pop(path, None)

    def clear(self) -> None:
        """Flush, then forget all pages, so that everything is read again."""
        self.flush()
        self._pages.clear()
        self._added.clear()

    def _load_page(self, path: str) -> NotePage:
        if path not in self._pages:
            data = self._read(path)
            self._pages[path] = NotePage(new_note(path) if data is None else notes.decode(data))
        return self._pages[path]

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
