"""Apply the entry changes of a rewrite to the current note.

A draft for MEMORY.md waits for days, and meanwhile lines are learned into the same sections, where a merge by
lines always sees a conflict. Entries are independent, so they can be removed and added one by one.

What must stay true: everything in the current note that was not in its base stays unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tacit.errors import StoreError
from tacit.learn.note_lines import NoteLine, add_lines
from tacit.markdown import notes
from tacit.markdown.items import NoteItem, read_items, remove_items, update_dates
from tacit.text.words import fold

_OWN_FIELDS = ("updated", "line_count")  # fields about the note itself


def rebase_entries(base: str, new: str, now: str, path: str, at: datetime) -> str | None:
    """None if the rewrite changed more than entries, or removed one that no longer exists."""
    gone, added = _entries_missing_in(base, new), _entries_missing_in(new, base)
    current = {item.raw: item for item in read_items(now)}
    if _frame(base, gone) != _frame(new, added) or any("\n" in item.raw for item in added):
        return None
    if any(item.raw not in current for item in gone):
        return None
    changed = {fold(item.said): item.raw for item in added}
    instead = {
        current[item.raw].number: changed[fold(item.said)] for item in gone if fold(item.said) in changed
    }
    removed = [current[item.raw] for item in gone if fold(item.said) not in changed]
    text = remove_items(now, removed, instead)
    lines = [NoteLine(_section_of(item), item.raw) for item in added if item.raw not in instead.values()]
    return update_dates(add_lines(text, path, lines), at)


def copy_head(text: str, now: str) -> str:
    """Copy the fields that every rewrite changes, so that they cause no conflict."""
    note, fields = notes.parse(text), notes.parse(now).fields
    wanted = {name: fields[name] for name in _OWN_FIELDS if name in fields and name in note.fields}
    try:
        return notes.set_fields(note, wanted).text
    except StoreError:
        return text


def _entries_missing_in(text: str, other: str) -> list[NoteItem]:
    raws = {item.raw for item in read_items(other)}
    return [item for item in read_items(text) if item.raw not in raws]


def _frame(text: str, leaving: Sequence[NoteItem]) -> list[str]:
    """The text without these entries, the frontmatter and blank lines."""
    body = notes.split(remove_items(text, leaving))[1]
    return [line.rstrip() for line in body.split("\n") if line.strip()]


def _section_of(item: NoteItem) -> str | None:
    return item.section.rpartition(" / ")[2] or None
