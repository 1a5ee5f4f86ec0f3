"""The phases of a migration from the host's own files to tacit's, the evidence of one migration, its backups.

The evidence is in `phases.jsonl` beside the drafts, and the current phase follows from it alone. A backup is
never overwritten: if the files differ when a migration starts again, the earlier backups move to a folder of
their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tacit.app import load_config
from tacit.config import Files
from tacit.errors import UsageError
from tacit.git.jsonl import JsonlLog
from tacit.home.files import digest
from tacit.hosts.openclaw import baseline
from tacit.hosts.openclaw.machine import OpenClawHost
from tacit.hosts.openclaw.workspace import (
    AGENTS,
    COMPACT,
    FOLDER,
    MEMORY,
    SOUL,
    SUMMARY,
    TOOLS,
    AgentWorkspace,
    files_of,
)
from tacit.memory import Memory

EvidenceKind = Literal["entering", "entered", "checked", "waived", "worked", "failed", "rolled back"]

NONE, DONE = "none", "done"


class Phase(NamedTuple):
    name: str
    about: str
    criteria: tuple[str, ...] = ()  # what must pass before the migration leaves it
    files: Files | None = None  # inject.files from this phase on; None: as in the phase before
    instruction: str = ""  # the sentence that SOUL.md needs from this phase on


PHASES: Mapping[str, Phase] = {
    phase.name: phase
    for phase in (
        Phase(NONE, "not begun"),
        Phase("0a", "prepare: baseline, backups, drafts; nothing live changes", files="host"),
        Phase("0b", "apply the approved drafts", ("AC-6", "AC-7", "AC-8"), files="host"),
        Phase("1", "MEMORY.md on demand", ("AC-3", "AC-8"), "without-memory", "memory"),
        Phase(
            "2",
            "files by the kind of session",
            ("AC-1a", "AC-1b", "AC-2", "AC-4", "AC-5", "AC-8", "AC-9"),
            files="rules",
        ),
        Phase("3", "SOUL.md says when to let go of files", ("AC-8",), instruction="shedding"),
        Phase("4", "SOUL.md says when to read TOOLS.md", ("AC-5", "AC-8"), instruction="tools"),
        Phase(DONE, "finished"),
    )
}
ORDER = tuple(PHASES)
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


def parse_line(entry: Mapping[str, Any]) -> EvidenceLine | None:
    try:
        line = EvidenceLine(**entry)
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
    """Criteria that were waived since the phase was entered."""
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


# ---------------------------------------------------------------- a migration

EVIDENCE = f"{FOLDER}/phases.jsonl"


@dataclass(frozen=True, slots=True)
class Migration:
    place: AgentWorkspace
    memory: Memory
    host: OpenClawHost | None  # None: there is none on this machine
    environ: Mapping[str, str]

    @property
    def lines(self) -> list[EvidenceLine]:
        return read_evidence(self.place.root)

    @property
    def standing(self) -> PhaseStanding:
        return find_standing(self.lines)

    @property
    def files(self) -> Files:
        """The current setting: phases change it."""
        return load_config(self.memory.home).config.inject.files

    def note(
        self, what: EvidenceKind, phase: str, *, by: str = "", why: str = "", **notes: Any
    ) -> EvidenceLine:
        moment = self.place.now().isoformat(timespec="seconds")
        line = EvidenceLine(moment, what, phase, by, why, notes)
        with JsonlLog(self.place.root, EVIDENCE).adding() as add:
            add(line.plain())
        return line

    def soul_changes(self) -> list[str]:
        """Times at which tacit changed SOUL.md since the phase was entered."""
        since = self.standing.since
        events = (event for file in files_of(SOUL) for event in self.place.drafts.decisions(file))
        return [
            event.at
            for event in events
            if event.what in ("promoted", "changed") and is_since(event.at, since)
        ]


def read_evidence(workspace: Path) -> list[EvidenceLine]:
    lines = (parse_line(record) for record in JsonlLog(workspace, EVIDENCE).lines())
    return [line for line in lines if line is not None]


def loads_memory(migration: Migration) -> bool:
    reports = [
        report for report in baseline.load_reports(migration.memory.home) if report.is_before and report.key
    ]
    return any(file.name == MEMORY and file.injected for report in reports for file in report.files)


# ---------------------------------------------------------------- backups

COPIED = (SOUL, AGENTS, TOOLS, COMPACT, SUMMARY)  # if they exist
WATCHED = (*COPIED, MEMORY)
_FOLDER = f"{FOLDER}/backups"
MANIFEST = f"{_FOLDER}/manifest.json"


@dataclass(frozen=True, slots=True)
class BackupManifest:
    taken: str  # ISO 8601
    hashes: Mapping[str, str | None]  # of each watched file; None: it did not exist
    copies: Mapping[str, str]  # path of each file's copy


def copy_path(name: str) -> str:
    return f"{_FOLDER}/{name}.bak"


def read_file(place: AgentWorkspace, path: str) -> bytes | None:
    try:
        return place.tree.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def load_backups(place: AgentWorkspace) -> BackupManifest | None:
    data = read_file(place, MANIFEST)
    if data is None:
        return None
    try:
        fields: dict[str, Any] = json.loads(data)
        return BackupManifest(str(fields["taken"]), dict(fields["hashes"]), dict(fields["copies"]))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{place.root / MANIFEST} cannot be read: {error}. Bring it back from your own backups, or move "
            f"the folder {_FOLDER} away and begin anew."
        ) from None


def take_backups(place: AgentWorkspace) -> BackupManifest:
    """Copies the files as they are now. The manifest is written last: without one there is no backup."""
    contents = {name: read_file(place, name) for name in WATCHED}
    hashes = {name: _hash(data) for name, data in contents.items()}
    previous = load_backups(place)
    if previous is not None and previous.hashes == hashes and not list(find_damage(place, previous)):
        return previous
    if previous is not None:
        _archive_backup(place, previous)
    copies = {name: data for name in COPIED if (data := contents[name]) is not None}
    for name, data in copies.items():
        place.tree.put(copy_path(name), data)
    manifest = BackupManifest(
        place.now().isoformat(timespec="seconds"), hashes, {name: copy_path(name) for name in copies}
    )
    place.tree.put(MANIFEST, json.dumps(asdict(manifest), indent=2).encode() + b"\n")
    return manifest


def _archive_backup(place: AgentWorkspace, manifest: BackupManifest) -> None:
    folder = f"{_FOLDER}/{''.join(manifest.taken[:19].split(':'))}"
    for path in (*manifest.copies.values(), MANIFEST):
        data = read_file(place, path)
        if data is not None:
            place.tree.put(f"{folder}/{path.rpartition('/')[2]}", data)


def find_damage(place: AgentWorkspace, manifest: BackupManifest) -> Iterator[str]:
    """Problems of the copies."""
    for name, path in manifest.copies.items():
        data = read_file(place, path)
        if data is None:
            yield f"{path} is gone"
        elif digest(data) != manifest.hashes.get(name):
            yield f"{path} is not what {name} was"


def read_original(place: AgentWorkspace, manifest: BackupManifest, name: str) -> bytes | None:
    """The file as it was; None if it did not exist."""
    return read_file(place, manifest.copies[name]) if name in manifest.copies else None


def find_changes(place: AgentWorkspace, manifest: BackupManifest) -> list[str]:
    """Files that differ from the manifest."""
    return [name for name in WATCHED if _hash(read_file(place, name)) != manifest.hashes.get(name)]
