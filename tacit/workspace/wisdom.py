"""Wisdom of one workspace: where its lessons are, a draft of the section, what is wrong, whether it is
time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.lifecycle.wisdom import lint
from tacit.lifecycle.wisdom.compress import Compressed, compress
from tacit.lifecycle.wisdom.lessons import OPERATIONAL, Kind, Lesson, Source, has_place, lessons, lessons_in
from tacit.lifecycle.wisdom.section import LEVEL, TITLE, parse
from tacit.model.drafts import Event
from tacit.model.problems import Problem
from tacit.store.files import Tree
from tacit.text.sections import named
from tacit.workspace.place import AGENTS, ARTEFACTS, DAILY, LESSONS, MEMORY, SOUL, Place
from tacit.workspace.review import Proposed, problems_of, propose

DAYS = 30  # of daily notes
NEW_LESSONS = 10  # after which it is time, however long ago the last run was
WISDOM = ARTEFACTS["wisdom"]
_DAILY = re.compile(r"(\d{4}-\d{2}-\d{2})[^/]*\.md")
_LARGEST = 4 * 2**20


class Found(NamedTuple):
    source: Source
    lessons: int
    warning: str  # empty: it is there


class Drafted(NamedTuple):
    proposed: Proposed
    compressed: Compressed
    sources: list[Found]


class Due(NamedTuple):
    due: bool
    why: str
    last: date | None
    new: int
    lessons: int


# Sources


def sources(workspace: Place, more: Sequence[str] = ()) -> list[Found]:
    """Every place where lessons may stand. What is missing makes the result poorer, never impossible."""
    named_files: list[tuple[str, Kind]] = [(AGENTS, "agents"), (LESSONS, "lessons"), (MEMORY, "memory")]
    named_files += [(path, "lessons") for path in more]
    found = [_found(*_read(workspace.tree, path, kind)) for path, kind in named_files]
    found += _of_others(workspace)
    days = [_found(*_read(workspace.tree, path, "daily")) for path in _daily(workspace)]
    if not days:
        days = [Found(Source(f"{DAILY}/", "daily", None), 0, f"there is no note of the last {DAYS} days")]
    return found + days


def _of_others(workspace: Place) -> Iterator[Found]:
    """What other agents of this home have learned, where they keep a file of it."""
    for folder in (one.path for one in workspace.config.workspaces):
        if os.path.realpath(folder) != os.path.realpath(workspace.root):
            source, warning = _read(Tree(Path(folder)), LESSONS, "lessons")
            if not warning:
                yield _found(source._replace(path=f"{folder}/{LESSONS}"), "")


def _read(tree: Tree, path: str, kind: Kind) -> tuple[Source, str]:
    try:
        data = tree.read(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return Source(path, kind, None), "it is not there"
    except (OSError, StoreError) as error:
        return Source(path, kind, None), f"it cannot be read: {error}"
    return Source(path, kind, data.decode("utf-8", "replace")), ""


def _found(source: Source, warning: str) -> Found:
    if not warning and not has_place(source):
        what = f"“{OPERATIONAL}”" if source.kind == "agents" else "about lessons or decisions"
        warning = f"it has no section {what}"
    return Found(source, len(list(lessons_in(source))), warning)


def _daily(workspace: Place) -> Iterator[str]:
    """The notes of the last days, oldest first. Hosts add a word to the name of some."""
    today = workspace.now().date()
    with suppress(OSError):
        for name in sorted(entry.name for entry in (workspace.root / DAILY).iterdir()):
            match = _DAILY.fullmatch(name)
            day = _day(match[1]) if match else None
            if day is not None and timedelta(0) <= today - day <= timedelta(DAYS):
                yield f"{DAILY}/{name}"


def _day(text: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text)
    return None


# Drafting


def draft(workspace: Place, more: Sequence[str] = ()) -> Drafted:
    found = sources(workspace, more)
    every = lessons(one.source for one in found)
    soul = workspace.read(SOUL)
    today = workspace.now().date()
    compressed = compress(every, _section(soul or ""), today, workspace.vectors(), workspace.wisdom_chat())
    notes = {
        "how": compressed.how,
        "covers": compressed.covers,
        "lessons": [lesson.key for lesson in every],
        "sources": [one.source.path for one in found if one.source.text is not None],
    }
    return Drafted(propose(workspace, WISDOM, compressed.draft, soul, notes), compressed, found)


def _section(soul: str) -> str:
    return next((one.text(soul) for one in named(soul, TITLE, LEVEL)), "")


# Checking


def check(workspace: Place) -> list[Problem]:
    """The draft that waits, if one does, and SOUL.md as it is."""
    found: list[Problem] = []
    text = workspace.drafts.text(WISDOM)
    if text is not None and workspace.standing(WISDOM).state != "promoted":
        found += problems_of(workspace, WISDOM, text.decode("utf-8", "replace"))
    soul = workspace.read(SOUL)
    if soul is None:
        return [*found, Problem(SOUL, "It is not there.", "Name the folder that has it: --workspace DIR")]
    most = workspace.config.openclaw.soul_max_tokens
    found += lint.soul_problems(soul, SOUL, most, _covers(workspace))
    return list(dict.fromkeys([*found, *lint.root_problems(workspace.names())]))


def _covers(workspace: Place) -> dict[str, int] | None:
    """By the last approval of what was promoted. None: the section came there in another way."""
    promoted = workspace.standing(WISDOM).promoted
    events = workspace.drafts.events(WISDOM)
    same = [one for one in events if promoted and one.what == "approved" and one.draft == promoted.draft]
    return dict(same[-1].notes.get("covers", {})) if same else None


# Whether it is time


def due(workspace: Place) -> Due:
    every = lessons(one.source for one in sources(workspace))
    last, new = _last_run(workspace, every)
    if not every:
        return Due(False, "There are no lessons to compress.", last, 0, 0)
    if last is None:
        return Due(
            True, f"Nothing was ever compressed, and there are {len(every)} lessons.", None, new, len(every)
        )
    if new >= NEW_LESSONS:
        return Due(True, f"{new} lessons are new since {last}.", last, new, len(every))
    if workspace.now().date() >= _a_month_after(last):
        return Due(True, f"The last run was on {last}, a month ago or longer.", last, new, len(every))
    why = f"The last run was on {last}, and {new} of {NEW_LESSONS} lessons are new since."
    return Due(False, why, last, new, len(every))


def _last_run(workspace: Place, every: Sequence[Lesson]) -> tuple[date | None, int]:
    """By the record; where there is none, by what SOUL.md says of itself."""
    drafted = [event for event in workspace.drafts.events(WISDOM) if event.what == "drafted"]
    if drafted:
        return _by_record(drafted[-1], every)
    wisdom = parse(_section(workspace.read(SOUL) or ""))
    return wisdom.day, max(0, len(every) - (wisdom.lessons or 0))


def _by_record(event: Event, every: Sequence[Lesson]) -> tuple[date | None, int]:
    known = set(event.notes.get("lessons", ()))
    return _day(event.at[:10]), sum(lesson.key not in known for lesson in every)


def _a_month_after(day: date) -> date:
    """The same day of the next month, or its last."""
    first = (day.replace(day=1) + timedelta(32)).replace(day=1)
    last = (first + timedelta(32)).replace(day=1) - timedelta(1)
    return first.replace(day=min(day.day, last.day))
