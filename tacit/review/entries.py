"""The entries of notes that a change request adds, changes or takes out.

A draft for MEMORY.md waits for days, and meanwhile lines are learned into the same sections, where a merge by
lines always sees a conflict. Entries are independent, so they can be removed and added one by one.

What must stay true:
- everything in the current note that was not in the base of a rewrite stays unchanged;
- an entry that leaves MEMORY.md goes to a page in archive/memory/, unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime

from tacit.errors import StoreError
from tacit.markdown import notes
from tacit.markdown.frontmatter import format_entry
from tacit.markdown.note_page import (
    NoteItem,
    NoteLine,
    NotePage,
    line_statement,
    read_items,
    remove_items,
    update_dates,
)
from tacit.search.documents import audience_of
from tacit.text.words import fold

_OWN_FIELDS = ("updated", "line_count")  # fields about the note itself
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOTE_TYPES = {
    "memory": "memory",
    "journal": "journal",
    "projects": "project_context",
    "people": "person",
    "procedures": "procedure",
    "reference": "reference",
}


def add_lines(text: str | None, path: str, lines: Iterable[NoteLine]) -> str:
    """Add each line at the end of its section, creating the note and the section if needed. Lines that are
    there already are skipped."""
    page = NotePage(new_note(path) if text is None else text)
    for line in lines:
        if not page.has(line) and not page.says(line_statement(line.text)):
            page.add(line)
    return page.text()


def new_note(path: str) -> str:
    """The text of a new note."""
    name = path.rpartition("/")[2].removesuffix(".md")
    folder = path.split("/")[1] if path.count("/") > 1 else ""
    fields: dict[str, object] = {"type": _NOTE_TYPES.get(folder, "reference")}
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


def removed_entries(old: str, new: str) -> list[NoteItem]:
    """The entries of the old text that are missing in the new one. An entry with the same statement counts as
    present, for example if it was superseded."""
    after = read_items(new)
    raws = Counter(item.raw for item in after)
    missing = [item for item in read_items(old) if not _use_up(raws, item.raw)]
    statements = Counter(fold(item.said) for item in after)
    statements.subtract(fold(item.said) for item in read_items(old) if item not in missing)
    return [item for item in missing if not _use_up(statements, fold(item.said))]


def _use_up(counts: Counter[str], text: str) -> bool:
    """Whether the text is still in the counter; takes one of it."""
    counts[text] -= 1
    return counts[text] >= 0


def archive_page_path(now: datetime) -> str:
    return f"archive/memory/{now:%Y-%m}.md"


def append_archived(page: str | None, entries: Sequence[NoteItem], now: datetime) -> str:
    """Append these entries to the archive page, unchanged and under their old headings. Entries that a killed
    run added already are skipped."""
    archived = {entry.raw for entry in read_items(page or "")}
    new = [entry for entry in entries if _unix_lines(entry) not in archived]
    if page is not None and not new:
        return page
    frontmatter = format_entry("type", "memory") + format_entry("generated", True)
    text = page if page is not None else f"---\n{frontmatter}---\n\n# Taken out of MEMORY.md, {now:%Y-%m}\n"
    parts = [text.rstrip("\n"), f"## {now:%Y-%m-%d}"]
    for section in dict.fromkeys(entry.section for entry in new):
        lines = [_unix_lines(entry) for entry in new if entry.section == section]
        parts.append("\n".join((f"### {section}", *lines) if section else lines))
    return "\n\n".join(parts) + "\n"


def _unix_lines(entry: NoteItem) -> str:
    return entry.raw.replace("\r\n", "\n")
