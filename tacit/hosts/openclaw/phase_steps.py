"""Enters phases and takes them back.

One evidence line marks the start of a phase and another the end. An interrupted step is repeated as a whole:
existing backups stay, existing drafts are not made again, and a promoted draft is not promoted twice.

A rollback is first a plan and then its execution:
- changes of others are never overwritten without --force, and then a copy is kept beside the backups;
- a plan with a refusal changes nothing at all;
- backups and evidence stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tacit.app import set_inject_files
from tacit.config import Files
from tacit.diagnostics import CheckResult
from tacit.errors import DraftRefused, HostError, UsageError
from tacit.hosts.openclaw import baseline, drafts, packaged, phases, probe, settings
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw.machine import OpenClawHost
from tacit.hosts.openclaw.phases import NONE, ORDER, PHASES, BackupManifest, Migration, is_since, loads_memory
from tacit.hosts.openclaw.soul import INSTRUCTIONS, has_instruction, without_instruction
from tacit.hosts.openclaw.workspace import (
    AGENTS,
    COMPACT,
    CURATED_FILES,
    MEMORY,
    SOUL,
    SUMMARY,
    TOOLS,
    AgentWorkspace,
    files_of,
    promote_draft,
)
from tacit.markdown.notes import encode

Notes = dict[str, Any]


class PhaseEntry(NamedTuple):
    migration: Migration
    by: str
    say: Callable[[str], None]


def enter(doing: PhaseEntry, phase: str) -> None:
    doing.migration.note("entering", phase, by=doing.by)
    notes = _ACTIONS[phase](doing) if phase in _ACTIONS else {}
    if instruction := PHASES[phase].instruction:
        notes |= _add_instruction(doing, instruction)
    doing.migration.note("entered", phase, by=doing.by, **notes)


def _require_host(migration: Migration) -> OpenClawHost:
    if migration.host is None:
        raise HostError("There is no OpenClaw on this machine, so nothing can be asked of it.")
    return migration.host


def _prepare(doing: PhaseEntry) -> Notes:
    migration, say = doing.migration, doing.say
    place, host = migration.place, _require_host(migration)
    if place.read(SOUL) is None:
        raise UsageError(f"There is no {SOUL} in {place.root}. Name the agent's folder: --workspace DIR")
    if set_inject_files(migration.memory.home, "host"):
        say("set     inject.files: host, so that tacit leaves the host's files alone for now")
    manifest = phases.take_backups(place)
    damage = list(phases.find_damage(place, manifest))
    if damage:
        raise UsageError(f"The backups are not whole: {'; '.join(damage)}. Nothing was begun.")
    say(f"kept    {', '.join(manifest.copies)} in {place.root / phases.MANIFEST}")
    _, file = baseline.capture(host, migration.memory, place.root, place.now(), ask=False)
    say(f"kept    what the host loads by itself in {file}")
    for draft in _make_drafts(migration):
        say(f"drafted {draft}")
    return {"host": host.openclaw().version(), "memory": loads_memory(migration)}


def _make_drafts(migration: Migration) -> Iterator[str]:
    """Keeps a draft that exists: it may have been edited by hand."""
    place = migration.place
    standing = {
        name for name, file in CURATED_FILES.items() if place.status(file).state not in ("none", "stale")
    }
    if place.read(TOOLS) is not None and "tools" not in standing:
        drafts.compact_tools(place)
        yield CURATED_FILES["tools"].draft
    if "wisdom" not in standing:
        drafts.draft_wisdom(place)
        yield CURATED_FILES["wisdom"].draft
    if "soul" not in standing:
        drafts.shorten_soul(place)
        yield CURATED_FILES["soul"].draft
    if place.status(CURATED_FILES["agents"]).state == "waiting" and "agents" not in standing:
        yield CURATED_FILES["agents"].draft


def _apply_drafts(doing: PhaseEntry) -> Notes:
    place, results = doing.migration.place, dict[str, str | None]()
    manifest = phases.load_backups(place)
    if manifest is None or list(phases.find_damage(place, manifest)):
        raise UsageError(
            "The backups are not whole, so nothing was changed. See: tacit openclaw phase status"
        )
    for name in ("agents", "tools", "soul"):
        if place.status(CURATED_FILES[name]).state == "approved":
            event = promote_draft(place, CURATED_FILES[name], doing.by)
            results[CURATED_FILES[name].target] = event.result
            doing.say(f"changed {place.root / CURATED_FILES[name].target}")
    return {"files": results}


def _defer_memory(doing: PhaseEntry) -> Notes:
    migration, say = doing.migration, doing.say
    host = _require_host(migration)
    if not is_installed(host):
        raise UsageError("tacit is not in the host yet. Run: tacit openclaw install, then this again.")
    memory = loads_memory(migration)
    if memory and set_inject_files(migration.memory.home, "without-memory"):
        say(f"set     inject.files: without-memory; {MEMORY} leaves the host's list")
    if not memory:
        say(f"The host does not load {MEMORY}, so there is nothing to leave out.")
    return {"memory": memory}


def is_installed(host: OpenClawHost) -> bool:
    is_plugin = bool(packaged.version_in(host.plugin)) and not list(settings.find_blocks(host.tree))
    return is_plugin or settings.HOOKS[0] in settings.uses_hooks(host.tree)


def _select_files(doing: PhaseEntry) -> Notes:
    """Only on a host that handles its list of files as tacit needs it."""
    migration, say = doing.migration, doing.say
    points = probe.observe_file_list(_require_host(migration).openclaw(), migration.environ)
    checks: list[CheckResult] = list(probe.check_result(points))
    errors = [str(problem) for check in checks for problem in check.problems if problem.level == "error"]
    if errors:
        raise HostError("This version of the host does not let tacit choose files: " + "; ".join(errors))
    say("asked   the host how it treats a list of files: as tacit needs it")
    if set_inject_files(migration.memory.home, "rules"):
        say("set     inject.files: rules")
    return {"points": points._asdict()}


def _add_instruction(doing: PhaseEntry, name: str) -> Notes:
    migration, say = doing.migration, doing.say
    proposed = drafts.add_instruction(migration.place, name)
    if proposed is None:
        say(f"{SOUL} says already: {souls.INSTRUCTIONS[name][0]}")
        return {"instruction": "there already"}
    advice = migration.place.rule(proposed.file)
    say(f"drafted {proposed.file.draft}. Read it, then: {advice.approve}; tacit openclaw promote lines")
    return {"instruction": "drafted"}


_ACTIONS: Mapping[str, Callable[[PhaseEntry], Notes]] = {
    "0a": _prepare,
    "0b": _apply_drafts,
    "1": _defer_memory,
    "2": _select_files,
}


# ---------------------------------------------------------------- back

_RESTORABLE = (SOUL, AGENTS, COMPACT, SUMMARY)  # TOOLS.md and MEMORY.md are never written by tacit
_FILES_LABELS = {
    "host": "the host loads its own files again",
    "without-memory": "the host loads its own but MEMORY.md",
}


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
    manifest = phases.load_backups(migration.place)
    if "0b" in undone and manifest is not None:
        return _plan_restores(migration.place, result, manifest, force=force)
    soul = migration.place.read(SOUL) or ""
    names = [PHASES[step].instruction for step in undone if PHASES[step].instruction]
    if "memory" in names and not _was_added(migration.place, "memory"):
        names.remove("memory")
    return _plan_cuts(result, soul, names)


def _wanted_files(migration: Migration, undone: Sequence[str]) -> Files | None:
    """The setting of the phase before those that are taken back. None: it stays."""
    if not any(PHASES[step].files for step in undone):
        return None
    earlier = [files for step in ORDER[: ORDER.index(undone[0])] if (files := PHASES[step].files)]
    mode: Files = earlier[-1] if earlier else "host"
    return None if mode == migration.files else mode


def _was_added(place: AgentWorkspace, instruction: str) -> bool:
    """Whether a draft of its own added it; one that came with a shorter SOUL.md goes with that."""
    events = place.drafts.decisions(CURATED_FILES["lines"])
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
    restored, refused, untouched = [], list(phases.find_damage(place, manifest)), []
    for name in _RESTORABLE:
        current, original = phases.read_file(place, name), phases.read_original(place, manifest, name)
        if current == original:
            continue
        if place.drafts.is_ours(files_of(name), current):
            restored.append(name)
        elif not _was_promoted(place, name, manifest.taken):
            untouched.append(f"{name} was changed, and never by tacit, so it stays")
        elif force:
            restored.append(name)
        else:
            backup_note = f"; what it was is in {manifest.copies[name]}" if name in manifest.copies else ""
            refused.append(f"{name} was edited since tacit changed it{backup_note}")
    return base._replace(restored=tuple(restored), refused=tuple(refused), left=tuple(untouched))


def _was_promoted(place: AgentWorkspace, target: str, since: str) -> bool:
    events = (event for file in files_of(target) for event in place.drafts.decisions(file))
    return any(event.what in ("promoted", "promoting") and is_since(event.at, since) for event in events)


def apply(migration: Migration, back: RollbackPlan, by: str, *, force: bool = False) -> list[str]:
    """Executes the plan. Returns where replaced texts are backed up."""
    if back.refused:
        reasons = "\n".join(f"  {reason}" for reason in back.refused)
        raise DraftRefused(
            f"Nothing was taken back, since newer work would be lost:\n{reasons}\n"
            "To overwrite it all the same, with a copy beside the backups: the same command with --force. "
            "For the host's own files at once, without a change of SOUL.md: "
            "tacit openclaw phase rollback --phase 1"
        )
    place, backup_paths = migration.place, []
    if back.files:
        set_inject_files(migration.memory.home, back.files)
    manifest = phases.load_backups(place)
    for name in back.restored if manifest else ():
        original = phases.read_original(place, manifest, name) if manifest else None
        backup_paths.append(place.drafts.restore(files_of(name), original, by, force=force))
    for name in back.cut:
        soul = place.read(SOUL) or ""
        reason = f"taken back: {INSTRUCTIONS[name][0]}"
        new_soul = without_instruction(soul, name)
        backup_paths.append(
            place.drafts.change(CURATED_FILES["lines"], encode(soul), encode(new_soul), by, reason).backup
        )
    migration.note("rolled back", back.to, by=by, files=back.files, restored=back.restored, cut=back.cut)
    return [path for path in backup_paths if path]
