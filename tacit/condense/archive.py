"""What moves to archive/: old journal pages, and notes that were not changed or named for a long time.

Nothing is deleted: the archive is in git and is searched, it is only never loaded automatically.

A note's score is exp(−0.05 · days since its last change) · (1 + references). The 1 is the note itself:
without it a note without references would score 0 on its first day, and so would SOUL.md. A note may go if it
scores below 0.01 and is unchanged for more than 30 days: after 93 days without references, after 106 with one
reference, 139 with nine. Whatever the score, these stay: identity, MEMORY.md, journal pages (they have their
own rule), topics, files whose name begins with `_`, notes with `pinned: true`, and notes that a person linked
to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from math import exp
from typing import NamedTuple

from tacit.learn.model import Move

JOURNAL_FOLDER = "knowledge/journal/"
DECAY_PER_DAY = 0.05  # a day
MIN_SCORE = 0.01
MIN_AGE_DAYS = 30  # days
_KNOWLEDGE, _ARCHIVE = "knowledge/", "archive/"
_PAGE = re.compile(r"knowledge/journal/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_PROTECTED = ("knowledge/identity/", "knowledge/memory/", JOURNAL_FOLDER)


class NoteUsage(NamedTuple):
    """How much a note is used."""

    path: str
    changed: date  # the day of its last change
    references: int = 0  # notes and conversations that name it
    is_pinned: bool = False
    is_linked: bool = False  # a person wrote a link to it


def prune_journals(paths: Iterable[str], today: date, retention_days: int) -> list[Move]:
    """Pages older than the retention, by the day in their name. Pages without a day stay. The caller checks
    for pinned pages."""
    existing = set(paths)
    oldest = today - timedelta(days=retention_days)
    reason = f"older than {retention_days} days"
    return [
        Move(path, _free_path(path, existing), "archive", reason)
        for path in sorted(existing)
        if (day := _day_of(path)) is not None and day < oldest
    ]


def score_and_evict(uses: Iterable[NoteUsage], today: date, paths: Collection[str] = ()) -> list[Move]:
    """Notes that were not changed or named for a long time. `paths`: the files of the home, so that no move
    overwrites one."""
    existing = set(paths)
    moves = []
    for use in sorted(uses):
        days = (today - use.changed).days
        if days > MIN_AGE_DAYS and score(days, use.references) < MIN_SCORE and not is_protected(use):
            reason = f"unchanged for {days} days, named {use.references} times"
            moves.append(Move(use.path, _free_path(use.path, existing), "evict", reason))
    return moves


def score(days: int, references: int) -> float:
    return exp(-DECAY_PER_DAY * max(0, days)) * (1 + max(0, references))


def is_protected(use: NoteUsage) -> bool:
    path = use.path
    if not path.startswith(_KNOWLEDGE) or path.startswith(_PROTECTED) or not path.endswith(".md"):
        return True
    return path.rpartition("/")[2].startswith("_") or use.is_pinned or use.is_linked


def archive_path(path: str) -> str:
    """Where a note goes in the archive, if that path is free."""
    return _ARCHIVE + path.removeprefix(_KNOWLEDGE)


def _day_of(path: str) -> date | None:
    match = _PAGE.fullmatch(path)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _free_path(path: str, taken: set[str]) -> str:
    """Its path in the archive, numbered if the path is taken."""
    number, target = 1, archive_path(path)
    stem = target.removesuffix(".md")
    while target in taken:
        number += 1
        target = f"{stem}-{number}.md"
    taken.add(target)
    return target
