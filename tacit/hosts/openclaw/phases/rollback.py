"""Takes phases back: first a plan as a value, then its execution.

What must stay true:
- somebody else's changes are never overwritten without --force, and then a copy is kept beside the backups;
- a plan with a refusal changes nothing at all;
- backups and evidence stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.app import set_inject_files
from tacit.config import Files
from tacit.errors import DraftRefused, UsageError
from tacit.hosts.openclaw.phases import backups
from tacit.hosts.openclaw.phases.backups import BackupManifest
from tacit.hosts.openclaw.phases.migration import Migration
from tacit.hosts.openclaw.phases.stages import NONE, ORDER, is_since
from tacit.hosts.openclaw.soul import INSTRUCTIONS, has_instruction, without_instruction
from tacit.hosts.openclaw.workspace.layout import AGENTS, ARTEFACTS, COMPACT, SOUL, SUMMARY, AgentWorkspace
from tacit.markdown.notes import encode
from tacit.review.file_drafts_model import Artefact

_RESTORABLE = (SOUL, AGENTS, COMPACT, SUMMARY)  # TOOLS.md and MEMORY.md are never written by tacit
_FILES_BY_PHASE: dict[str, Files] = {"2": "without-memory", "1": "host", "0b": "host", "0a": "host"}
_FILES_LABELS = {
    "host": "the host loads its own files again",
    "without-memory": "the host loads its own but MEMORY.md",
}
_INSTRUCTION_BY_PHASE = {"4": "tools", "3": "shedding"}


class RollbackPlan(NamedTuple):
    """The plan of a rollback."""

    to: str
    files: Files | None  # new value of inject.files; None: it stays
    cut: tuple[str, ...] = ()  # instructions to remove from SOUL.md
    restored: tuple[str, ...] = ()  # files to restore
    refused: tuple[str, ...] = ()  # reasons for refusing, by file
    left: tuple[str, ...] = ()  # what stays, and why

    @property
    def lines(self) -> Iterator[str]:
        if self.files:
            yield f"inject.files becomes {self.files}: {_FILES_LABELS[self.files]}"
        for name in self.cut:
            yield f"{SOUL}: takes out “{INSTRUCTIONS[name][0]}”"
        for name in self.restored:
            yield f"{name}: as it was before the migration"
        yield from self.left


def plan(migration: Migration, phase: str, *, force: bool = False) -> RollbackPlan:
    """Plans to take back all phases from the current one to this one, inclusive."""
    current = migration.standing.entering or migration.standing.phase
    if current == NONE:
        raise UsageError("No migration was begun, so there is nothing to take back.")
    if ORDER.index(phase) > ORDER.index(current):
        raise UsageError(f"Phase {phase} was not entered: the migration is in {current}.")
    undone = ORDER[ORDER.index(phase) : ORDER.index(current) + 1]
    result = RollbackPlan(ORDER[ORDER.index(phase) - 1], _wanted_files(migration, undone))
    manifest = backups.load(migration.place)
    if "0b" in undone and manifest is not None:
        return _plan_restores(migration.place, result, manifest, force=force)
    soul = migration.place.read(SOUL) or ""
    names = [_INSTRUCTION_BY_PHASE[step] for step in undone if step in _INSTRUCTION_BY_PHASE]
    names += ["memory"] if "1" in undone and _was_added(migration.place, "memory") else []
    return _plan_cuts(result, soul, names)


def _wanted_files(migration: Migration, undone: Sequence[str]) -> Files | None:
    """By the earliest phase that is taken back. Without phase 1 tacit no longer chooses files."""
    mode = next((_FILES_BY_PHASE[step] for step in undone if step in _FILES_BY_PHASE), None)
    return None if mode == migration.files else mode


def _was_added(place: AgentWorkspace, instruction: str) -> bool:
    """Whether a draft of its own added it; one that came with a shorter SOUL.md goes with that."""
    events = place.drafts.events(ARTEFACTS["lines"])
    drafted = [
        event for event in events if event.what == "drafted" and event.notes.get("instruction") == instruction
    ]
    return bool(drafted) and any(
        event.what == "promoted" and is_since(event.at, drafted[-1].at) for event in events
    )


def _plan_cuts(base: RollbackPlan, soul: str, names: list[str]) -> RollbackPlan:
    present = [name for name in names if has_instruction(soul, name)]
    cut = tuple(name for name in present if without_instruction(soul, name) != soul)
    reworded = [name for name in present if name not in cut]
    remaining = tuple(
        f"{SOUL} says it in other words ({name}); take that out by hand if you like" for name in reworded
    )
    return base._replace(cut=cut, left=remaining)


def _plan_restores(
    place: AgentWorkspace, base: RollbackPlan, manifest: BackupManifest, *, force: bool
) -> RollbackPlan:
    restored, refused, untouched = [], list(backups.find_damage(place, manifest)), []
    for name in _RESTORABLE:
        current, original = backups.read(place, name), backups.read_original(place, manifest, name)
        if current == original:
            continue
        if place.drafts.is_ours(_artefacts_for(name), current):
            restored.append(name)
        elif not _was_promoted(place, name, manifest.taken):
            untouched.append(f"{name} was changed, and never by tacit, so it stays")
        elif force:
            restored.append(name)
        else:
            backup_note = f"; what it was is in {manifest.copies[name]}" if name in manifest.copies else ""
            refused.append(f"{name} was changed by somebody since tacit changed it{backup_note}")
    return base._replace(restored=tuple(restored), refused=tuple(refused), left=tuple(untouched))


def _artefacts_for(target: str) -> list[Artefact]:
    return [artefact for artefact in ARTEFACTS.values() if artefact.target == target]


def _was_promoted(place: AgentWorkspace, target: str, since: str) -> bool:
    events = (event for artefact in _artefacts_for(target) for event in place.drafts.events(artefact))
    return any(event.what in ("promoted", "promoting") and is_since(event.at, since) for event in events)


def apply(migration: Migration, back: RollbackPlan, by: str, *, force: bool = False) -> list[str]:
    """Executes the plan. Returns where replaced texts are backed up."""
    if back.refused:
        reasons = "\n".join(f"  {reason}" for reason in back.refused)
        raise DraftRefused(
            f"Nothing was taken back, since newer work would be lost:\n{reasons}\n"
            "To overwrite it all the same, with a copy beside the backups: the same command with --force. "
            "For the host's own files at once, whatever SOUL.md says: tacit openclaw phase rollback --phase 1"
        )
    place, backup_paths = migration.place, []
    if back.files:
        set_inject_files(migration.memory.home, back.files)
    manifest = backups.load(place)
    for name in back.restored if manifest else ():
        original = backups.read_original(place, manifest, name) if manifest else None
        backup_paths.append(place.drafts.restore(_artefacts_for(name), original, by, force=force))
    for name in back.cut:
        soul = place.read(SOUL) or ""
        reason = f"taken back: {INSTRUCTIONS[name][0]}"
        new_soul = without_instruction(soul, name)
        backup_paths.append(
            place.drafts.change(ARTEFACTS["lines"], encode(soul), encode(new_soul), by, reason).backup
        )
    migration.note("rolled back", back.to, by=by, files=back.files, restored=back.restored, cut=back.cut)
    return [path for path in backup_paths if path]
