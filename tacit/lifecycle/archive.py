"""What moves to archive/: journal pages that are old, and notes that nobody has touched or named for long.

Nothing is deleted: the archive is in git and is searched, it is only never loaded by itself.

A note's score is exp(−0.05 · days since its last change) · (1 + references). The 1 is the note itself: else
a note that nothing refers to would score 0 on its first day, and so would SOUL.md. Below 0.01, and after more
than 30 days, a note may go: after 93 days where nothing refers to it, after 106 with one reference, 139 with
nine. Whatever the score, these stay: identity, MEMORY.md, journal pages (they have their own rule),
topics, files whose name begins with `_`, notes with `pinned: true`, and notes that a person linked to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date, timedelta
from math import exp
from typing import NamedTuple

from tacit.model.changes import Move

JOURNAL = "knowledge/journal/"
DECAY = 0.05  # a day
LEAST = 0.01
YOUNGEST = 30  # days
_KNOWLEDGE, _ARCHIVE = "knowledge/", "archive/"
_PAGE = re.compile(r"knowledge/journal/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_PROTECTED = ("knowledge/identity/", "knowledge/memory/", JOURNAL)


class Use(NamedTuple):
    """How much a note is used, as others have counted."""

    path: str
    changed: date  # the day of its last change
    references: int = 0  # notes and conversations that name it
    is_pinned: bool = False
    is_linked: bool = False  # a person wrote a link to it


def prune_journals(paths: Iterable[str], today: date, retention_days: int) -> list[Move]:
    """Pages older than so many days, by the day in their name. A page without one stays; whether one is
    pinned is for the caller to know."""
    there = set(paths)
    oldest = today - timedelta(days=retention_days)
    reason = f"older than {retention_days} days"
    return [
        Move(path, _free(path, there), "archive", reason)
        for path in sorted(there)
        if (day := _day_of(path)) is not None and day < oldest
    ]


def score_and_evict(uses: Iterable[Use], today: date, paths: Collection[str] = ()) -> list[Move]:
    """Notes that nobody has touched or named for long. `paths` is what the home has, so that nothing moves
    onto anything."""
    there = set(paths)
    found = []
    for use in sorted(uses):
        days = (today - use.changed).days
        if days > YOUNGEST and score(days, use.references) < LEAST and not is_protected(use):
            reason = f"unchanged for {days} days, named {use.references} times"
            found.append(Move(use.path, _free(use.path, there), "evict", reason))
    return found


def score(days: int, references: int) -> float:
    return exp(-DECAY * max(0, days)) * (1 + max(0, references))


def is_protected(use: Use) -> bool:
    path = use.path
    if not path.startswith(_KNOWLEDGE) or path.startswith(_PROTECTED) or not path.endswith(".md"):
        return True
    return path.rpartition("/")[2].startswith("_") or use.is_pinned or use.is_linked


def place_of(path: str) -> str:
    """Where a note goes in the archive, if nothing is there."""
    return _ARCHIVE + path.removeprefix(_KNOWLEDGE)


def _day_of(path: str) -> date | None:
    found = _PAGE.fullmatch(path)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def _free(path: str, there: set[str]) -> str:
    """Its place in the archive, with a number where that is taken."""
    number, to = 1, place_of(path)
    stem = to.removesuffix(".md")
    while to in there:
        number += 1
        to = f"{stem}-{number}.md"
    there.add(to)
    return to
