"""The phases, and where a migration stands by what was recorded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

Did = Literal["entering", "entered", "checked", "waived", "worked", "failed", "rolled back"]

NONE, DONE = "none", "done"
ABOUT: Mapping[str, str] = {
    NONE: "not begun",
    "0a": "prepare: baseline, backups, drafts; nothing live changes",
    "0b": "apply the approved drafts",
    "1": "MEMORY.md on demand",
    "2": "files by the kind of session",
    "3": "SOUL.md says when to let go of files",
    "4": "SOUL.md says when to read TOOLS.md",
    DONE: "finished",
}
ORDER = tuple(ABOUT)
WEEK = 7 * 24  # hours that phase 3 is watched at least


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the evidence."""

    at: str  # ISO 8601
    what: Did
    phase: str
    by: str = ""
    why: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in ("", {})}


def read(said: Mapping[str, Any]) -> Line | None:
    try:
        line = Line(**said)
        datetime.fromisoformat(line.at)
    except (TypeError, ValueError):
        return None
    return line if line.what in get_args(Did) and line.phase in ORDER else None


class Standing(NamedTuple):
    phase: str
    since: str  # when it was entered; empty: never
    trouble: str  # when something failed last in it; empty: nothing did
    entering: str  # a phase that was begun and not reached; empty: none

    @property
    def next(self) -> str:
        return ORDER[min(ORDER.index(self.phase) + 1, len(ORDER) - 1)]


def standing(lines: Iterable[Line]) -> Standing:
    found = Standing(NONE, "", "", "")
    for line in lines:
        match line.what:
            case "entering":
                found = found._replace(entering=line.phase)
            case "entered" | "rolled back":
                found = Standing(line.phase, line.at, "", "")
            case "failed":
                found = found._replace(trouble=line.at)
    return found


def entered(lines: Sequence[Line], phase: str) -> str:
    """When that phase was entered last; empty: it was not, or was taken back since."""
    if ORDER.index(standing(lines).phase) < ORDER.index(phase):
        return ""
    return next((one.at for one in reversed(lines) if one.what == "entered" and one.phase == phase), "")


def waived(lines: Sequence[Line], phase: str) -> dict[str, Line]:
    """What somebody decided to go on without, since the phase was entered."""
    since = entered(lines, phase)
    found = (one for one in lines if one.what == "waived" and one.phase == phase and is_since(one.at, since))
    return {str(one.notes.get("criterion")): one for one in found}


def is_since(at: str, since: str) -> bool:
    """An empty `since` is the beginning of time."""
    return not since or datetime.fromisoformat(at) >= datetime.fromisoformat(since)


def held_until(now: Standing, hours: int, changes: Iterable[str] = ()) -> datetime | None:
    """Until when the phase is watched: that long after it was entered, after the last change of a live file
    and after the last trouble. None: nothing of it is live."""
    if now.phase in (NONE, "0a", DONE):
        return None
    last = max(datetime.fromisoformat(at) for at in (now.since, now.trouble, *changes) if at)
    return last + timedelta(hours=max(hours, WEEK) if hours and now.phase == "3" else hours)
