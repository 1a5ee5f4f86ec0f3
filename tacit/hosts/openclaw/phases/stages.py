"""The phases, and the current one according to the evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

EvidenceKind = Literal["entering", "entered", "checked", "waived", "worked", "failed", "rolled back"]

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
WEEK_HOURS = 7 * 24  # minimum watching time of phase 3


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One line of the evidence."""

    at: str  # ISO 8601
    what: EvidenceKind
    phase: str
    by: str = ""
    why: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in ("", {})}


def parse_line(said: Mapping[str, Any]) -> EvidenceLine | None:
    try:
        line = EvidenceLine(**said)
        datetime.fromisoformat(line.at)
    except (TypeError, ValueError):
        return None
    return line if line.what in get_args(EvidenceKind) and line.phase in ORDER else None


class PhaseStanding(NamedTuple):
    phase: str
    since: str  # when it was entered; empty: never
    trouble: str  # time of its last failure; empty: none
    entering: str  # a phase that was started but not reached; empty: none

    @property
    def next(self) -> str:
        return ORDER[min(ORDER.index(self.phase) + 1, len(ORDER) - 1)]


def find_standing(lines: Iterable[EvidenceLine]) -> PhaseStanding:
    current = PhaseStanding(NONE, "", "", "")
    for line in lines:
        match line.what:
            case "entering":
                current = current._replace(entering=line.phase)
            case "entered" | "rolled back":
                current = PhaseStanding(line.phase, line.at, "", "")
            case "failed":
                current = current._replace(trouble=line.at)
    return current


def entered_at(lines: Sequence[EvidenceLine], phase: str) -> str:
    """When the phase was last entered; empty if never, or if it was taken back since."""
    if ORDER.index(find_standing(lines).phase) < ORDER.index(phase):
        return ""
    return next((line.at for line in reversed(lines) if line.what == "entered" and line.phase == phase), "")


def find_waivers(lines: Sequence[EvidenceLine], phase: str) -> dict[str, EvidenceLine]:
    """Criteria that somebody waived since the phase was entered."""
    since = entered_at(lines, phase)
    waivers = (
        line for line in lines if line.what == "waived" and line.phase == phase and is_since(line.at, since)
    )
    return {str(line.notes.get("criterion")): line for line in waivers}


def is_since(at: str, since: str) -> bool:
    """An empty `since` means the beginning of time."""
    return not since or datetime.fromisoformat(at) >= datetime.fromisoformat(since)


def held_until(now: PhaseStanding, hours: int, changes: Iterable[str] = ()) -> datetime | None:
    """When the watching time of the phase ends: that long after it was entered, after the last change of a
    live file and after the last failure. None: the phase changes nothing live."""
    if now.phase in (NONE, "0a", DONE):
        return None
    last = max(datetime.fromisoformat(moment) for moment in (now.since, now.trouble, *changes) if moment)
    return last + timedelta(hours=max(hours, WEEK_HOURS) if hours and now.phase == "3" else hours)
