"""One migration: a workspace, its host, the home, and the evidence of what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.app import load_config
from tacit.config import Files
from tacit.memory import Memory
from tacit.openclaw.find import Host
from tacit.openclaw.phases import stages
from tacit.openclaw.phases.stages import Did, Line, Standing
from tacit.store.record import Record
from tacit.workspace.place import ARTEFACTS, FOLDER, SOUL, Place

EVIDENCE = f"{FOLDER}/phases.jsonl"


@dataclass(frozen=True, slots=True)
class Migration:
    place: Place
    memory: Memory
    host: Host | None  # None: there is none on this machine
    environ: Mapping[str, str]

    @property
    def lines(self) -> list[Line]:
        return lines_at(self.place.root)

    @property
    def standing(self) -> Standing:
        return stages.standing(self.lines)

    @property
    def files(self) -> Files:
        """What the config says at this moment: phases change it."""
        return load_config(self.memory.home).config.inject.files

    def note(self, what: Did, phase: str, *, by: str = "", why: str = "", **notes: Any) -> Line:
        at = self.place.now().isoformat(timespec="seconds")
        line = Line(at, what, phase, by, why, notes)
        with Record(self.place.root, EVIDENCE).adding() as add:
            add(line.plain())
        return line

    def soul_changes(self) -> list[str]:
        """When SOUL.md was changed by tacit since the phase was entered."""
        since = self.standing.since
        of_soul = [one for one in ARTEFACTS.values() if one.target == SOUL]
        events = (event for one in of_soul for event in self.place.drafts.events(one))
        return [
            one.at for one in events if one.what in ("promoted", "changed") and stages.is_since(one.at, since)
        ]


def lines_at(workspace: Path) -> list[Line]:
    found = (stages.read(said) for said in Record(workspace, EVIDENCE).lines())
    return [line for line in found if line is not None]
