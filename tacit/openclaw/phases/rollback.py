"""Taking phases back: what would be done as a value, then done.

What must stay true:
- nothing that somebody else wrote is overwritten, unless they say so, and then it is kept beside the backups;
- a plan with something that is refused does nothing at all;
- the copies and the evidence stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.app import choose_files
from tacit.config import Files
from tacit.errors import DraftRefused, UsageError
from tacit.lifecycle.soul import INSTRUCTIONS, instructs, without_instruction
from tacit.model.drafts import Artefact
from tacit.openclaw.phases import backups
from tacit.openclaw.phases.backups import Manifest
from tacit.openclaw.phases.migration import Migration
from tacit.openclaw.phases.stages import NONE, ORDER, is_since
from tacit.text.notes import encode
from tacit.workspace.place import AGENTS, ARTEFACTS, COMPACT, SOUL, SUMMARY, Place

_RESTORED = (SOUL, AGENTS, COMPACT, SUMMARY)  # TOOLS.md and MEMORY.md are never written by tacit
_FILES: dict[str, Files] = {"2": "without-memory", "1": "host", "0b": "host", "0a": "host"}
_TOLD = {
    "host": "the host loads its own files again",
    "without-memory": "the host loads its own but MEMORY.md",
}
_SAID_IN = {"4": "tools", "3": "shedding"}


class Back(NamedTuple):
    """What a rollback does."""

    to: str
    files: Files | None  # what inject.files becomes; None: it stays
    cut: tuple[str, ...] = ()  # instructions that are taken out of SOUL.md
    restored: tuple[str, ...] = ()  # files that become what they were
    refused: tuple[str, ...] = ()  # why not, by file
    left: tuple[str, ...] = ()  # what stays and why

    @property
    def lines(self) -> Iterator[str]:
        if self.files:
            yield f"inject.files becomes {self.files}: {_TOLD[self.files]}"
        for name in self.cut:
            yield f"{SOUL}: takes out “{INSTRUCTIONS[name][0]}”"
        for name in self.restored:
            yield f"{name}: as it was before the migration"
        yield from self.left


def planned(migration: Migration, phase: str, *, force: bool = False) -> Back:
    """All phases from where the migration stands back to this one, this one included."""
    at = migration.standing.entering or migration.standing.phase
    if at == NONE:
        raise UsageError("No migration was begun, so there is nothing to take back.")
    if ORDER.index(phase) > ORDER.index(at):
        raise UsageError(f"Phase {phase} was not entered: the migration is in {at}.")
    undone = ORDER[ORDER.index(phase) : ORDER.index(at) + 1]
    back = Back(ORDER[ORDER.index(phase) - 1], _wanted_files(migration, undone))
    manifest = backups.load(migration.place)
    if "0b" in undone and manifest is not None:
        return _with_files(migration.place, back, manifest, force=force)
    soul = migration.place.read(SOUL) or ""
    names = [_SAID_IN[one] for one in undone if one in _SAID_IN]
    names += ["memory"] if "1" in undone and _was_added(migration.place, "memory") else []
    return _with_cuts(back, soul, names)


def _wanted_files(migration: Migration, undone: Sequence[str]) -> Files | None:
    """By the earliest phase that is taken back. Without the first one tacit has no say in it any more."""
    found = next((_FILES[one] for one in undone if one in _FILES), None)
    return None if found == migration.files else found


def _was_added(place: Place, instruction: str) -> bool:
    """By a draft of its own; one that came with a shorter SOUL.md goes with that."""
    events = place.drafts.events(ARTEFACTS["lines"])
    drafted = [one for one in events if one.what == "drafted" and one.notes.get("instruction") == instruction]
    return bool(drafted) and any(
        one.what == "promoted" and is_since(one.at, drafted[-1].at) for one in events
    )


def _with_cuts(back: Back, soul: str, names: list[str]) -> Back:
    there = [name for name in names if instructs(soul, name)]
    cut = tuple(name for name in there if without_instruction(soul, name) != soul)
    worded = [name for name in there if name not in cut]
    left = tuple(
        f"{SOUL} says it in other words ({name}); take that out by hand if you like" for name in worded
    )
    return back._replace(cut=cut, left=left)


def _with_files(place: Place, back: Back, manifest: Manifest, *, force: bool) -> Back:
    restored, refused, left = [], list(backups.damage(place, manifest)), []
    for name in _RESTORED:
        now, old = backups.read(place, name), backups.before(place, manifest, name)
        if now == old:
            continue
        if place.drafts.is_ours(_of(name), now):
            restored.append(name)
        elif not _was_promoted(place, name, manifest.taken):
            left.append(f"{name} was changed, and never by tacit, so it stays")
        elif force:
            restored.append(name)
        else:
            kept = f"; what it was is in {manifest.copies[name]}" if name in manifest.copies else ""
            refused.append(f"{name} was changed by somebody since tacit changed it{kept}")
    return back._replace(restored=tuple(restored), refused=tuple(refused), left=tuple(left))


def _of(target: str) -> list[Artefact]:
    return [one for one in ARTEFACTS.values() if one.target == target]


def _was_promoted(place: Place, target: str, since: str) -> bool:
    events = (event for one in _of(target) for event in place.drafts.events(one))
    return any(one.what in ("promoted", "promoting") and is_since(one.at, since) for one in events)


def done(migration: Migration, back: Back, by: str, *, force: bool = False) -> list[str]:
    """Where texts are kept that were taken away."""
    if back.refused:
        told = "\n".join(f"  {one}" for one in back.refused)
        raise DraftRefused(
            f"Nothing was taken back, since newer work would be lost:\n{told}\n"
            "To overwrite it all the same, with a copy beside the backups: the same command with --force. "
            "For the host's own files at once, whatever SOUL.md says: tacit openclaw phase rollback --phase 1"
        )
    place, kept = migration.place, []
    if back.files:
        choose_files(migration.memory.home, back.files)
    manifest = backups.load(place)
    for name in back.restored if manifest else ():
        old = backups.before(place, manifest, name) if manifest else None
        kept.append(place.drafts.restore(_of(name), old, by, force=force))
    for name in back.cut:
        soul = place.read(SOUL) or ""
        why = f"taken back: {INSTRUCTIONS[name][0]}"
        new = without_instruction(soul, name)
        kept.append(place.drafts.change(ARTEFACTS["lines"], encode(soul), encode(new), by, why).backup)
    migration.note("rolled back", back.to, by=by, files=back.files, restored=back.restored, cut=back.cut)
    return [one for one in kept if one]
