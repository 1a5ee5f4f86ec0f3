"""One migration: a workspace, its host, the home and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.app import load_config
from tacit.config import Files
from tacit.home.jsonl import JsonlLog
from tacit.hosts.openclaw.locate import OpenClawHost
from tacit.hosts.openclaw.phases import stages
from tacit.hosts.openclaw.phases.stages import EvidenceKind, EvidenceLine, PhaseStanding
from tacit.hosts.openclaw.workspace.layout import ARTEFACTS, FOLDER, SOUL, AgentWorkspace
from tacit.memory import Memory

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
        return stages.find_standing(self.lines)

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
        artefacts = [artefact for artefact in ARTEFACTS.values() if artefact.target == SOUL]
        events = (event for artefact in artefacts for event in self.place.drafts.events(artefact))
        return [
            event.at
            for event in events
            if event.what in ("promoted", "changed") and stages.is_since(event.at, since)
        ]


def read_evidence(workspace: Path) -> list[EvidenceLine]:
    lines = (stages.parse_line(record) for record in JsonlLog(workspace, EVIDENCE).lines())
    return [line for line in lines if line is not None]
