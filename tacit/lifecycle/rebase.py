"""What a rewrite did to the entries of a note, done to the note as it is now.

A draft for MEMORY.md waits for days, and meanwhile lines are learned into the same sections, where every
merge by lines sees a conflict. Entries stand for themselves, so they can be taken out and added one by one.

What must stay true: whatever is in the note now and was not in its base stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tacit.errors import StoreError
from tacit.lifecycle.apply import Line, with_lines
from tacit.lifecycle.items import Item, dated, items, without
from tacit.text import notes
from tacit.text.words import fold

_OWN = ("updated", "line_count")  # fields that tell of the note itself


def rebased(base: str, new: str, now: str, path: str, at: datetime) -> str | None:
    """None where the rewrite changed more than entries, or took out one that is not there any more."""
    gone, added = _missing(base, new), _missing(new, base)
    there = {one.raw: one for one in items(now)}
    if _frame(base, gone) != _frame(new, added) or any("\n" in one.raw for one in added):
        return None
    if any(one.raw not in there for one in gone):
        return None
    changed = {fold(one.said): one.raw for one in added}
    instead = {there[one.raw].number: changed[fold(one.said)] for one in gone if fold(one.said) in changed}
    out = [there[one.raw] for one in gone if fold(one.said) not in changed]
    text = without(now, out, instead)
    lines = [Line(_section(one), one.raw) for one in added if one.raw not in instead.values()]
    return dated(with_lines(text, path, lines), at)


def with_head_of(text: str, now: str) -> str:
    """The fields that every rewrite changes are no reason for a conflict."""
    note, fields = notes.parse(text), notes.parse(now).fields
    wanted = {name: fields[name] for name in _OWN if name in fields and name in note.fields}
    try:
        return notes.with_fields(note, wanted).text
    except StoreError:
        return text


def _missing(text: str, other: str) -> list[Item]:
    raws = {one.raw for one in items(other)}
    return [one for one in items(text) if one.raw not in raws]


def _frame(text: str, leaving: Sequence[Item]) -> list[str]:
    """All that is no entry of these, without the head and blank lines."""
    body = notes.split(without(text, leaving))[1]
    return [line.rstrip() for line in body.split("\n") if line.strip()]


def _section(one: Item) -> str | None:
    return one.section.rpartition(" / ")[2] or None
