"""What must hold before a migration leaves a phase: its criteria, its own conditions, and time to watch
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import NamedTuple

from tacit.config import SessionRule, SessionSettings
from tacit.hosts.openclaw import baseline, phases
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.phase_criteria import Criterion
from tacit.hosts.openclaw.phases import PHASES, Migration, loads_memory
from tacit.hosts.openclaw.workspace import AGENTS, COMPACT, CURATED_FILES, MEMORY, SOUL, TOOLS
from tacit.review.model import CuratedFile, split_notes


class Condition(NamedTuple):
    what: str
    holds: bool
    evidence: str
    todo: str = ""


def conditions(migration: Migration, now: datetime, checked: Mapping[str, Criterion]) -> Iterator[Condition]:
    """All conditions for leaving the current phase."""
    phase = PHASES[migration.standing.phase]
    if phase.instruction:
        yield _check_instruction(migration, phase.instruction)
    if phase.name in _PHASE_CHECKS:
        yield from _PHASE_CHECKS[phase.name](migration)
    yield from _check_criteria(migration, checked)
    until = phases.held_until(
        migration.standing, settings_of(migration.memory.config).hold_hours, migration.soul_changes()
    )
    if until is not None:
        evidence = f"clean since {_last_change(migration)}"
        todo = (
            f"Wait until {until:%Y-%m-%d %H:%M}; what goes wrong meanwhile: tacit openclaw phase note failed"
        )
        yield Condition("it was watched long enough", now >= until, evidence, todo)


def _last_change(migration: Migration) -> str:
    standing = migration.standing
    moments = filter(None, (standing.since, standing.trouble, *migration.soul_changes()))
    return max(moments, key=datetime.fromisoformat)[:16]


def _check_criteria(migration: Migration, checked: Mapping[str, Criterion]) -> Iterator[Condition]:
    phase = migration.standing.phase
    waived = phases.find_waivers(migration.lines, phase)
    for name in PHASES[phase].criteria:
        criterion = checked[name]
        waiver = waived.get(name) if criterion.verdict == "BLOCKED" else None
        evidence = f"{criterion.verdict}: {criterion.evidence[0] if criterion.evidence else ''}"
        if waiver is not None:
            evidence = f"BLOCKED; {waiver.by or 'a person'} goes on without it: {waiver.why}"
        waive_hint = f" To go on without it: tacit openclaw phase next --waive {name} --why TEXT"
        todo = criterion.todo + (waive_hint if criterion.verdict == "BLOCKED" else "")
        yield Condition(
            f"{name}: {criterion.about}", criterion.verdict == "PASS" or waiver is not None, evidence, todo
        )


def _check_preparation(migration: Migration) -> Iterator[Condition]:
    place = migration.place
    manifest = phases.load_backups(place)
    damage = ["there is none"] if manifest is None else list(phases.find_damage(place, manifest))
    summary = f"{len(manifest.copies)} copies of {manifest.taken}" if manifest else ""
    todo = "Begin anew: tacit openclaw phase rollback --phase 0a, then phase next"
    yield Condition("the backups are whole", not damage, "; ".join(damage) or summary, todo)
    yield _check_baseline(migration)
    yield from _check_approvals(migration)
    changed = phases.find_changes(place, manifest) if manifest else []
    yield Condition(
        "nothing live was changed",
        not changed and migration.files == "host",
        f"changed since: {', '.join(changed)}" if changed else "every file is what it was",
        "Take what is new into the backups: tacit openclaw phase rollback --phase 0a, then phase next",
    )


def _check_baseline(migration: Migration) -> Condition:
    reports = [report for report in baseline.load_reports(migration.memory.home) if report.is_before]
    host_reports = [report for report in reports if report.key]
    memory = f"{MEMORY} is {'' if loads_memory(migration) else 'not '}among the files"
    evidence = (
        f"{', '.join(report.kind for report in host_reports)} by the host's report; {memory}"
        if host_reports
        else "none"
    )
    todo = "With the gateway running: tacit openclaw baseline --turn (asks the model once)"
    return Condition("the baseline is the host's own report", bool(host_reports), evidence, todo)


def _check_approvals(migration: Migration) -> Iterator[Condition]:
    """Drafts that phase 0b will apply."""
    place = migration.place
    yield _check_wisdom_draft(migration)
    for name in ("soul", "tools", "agents"):
        file = CURATED_FILES[name]
        standing = place.status(file)
        if standing.state == "none" and not _is_needed(migration, file):
            continue
        holds = standing.state in ("approved", "promoted")
        yield Condition(f"the draft for {file.target} is approved", holds, standing.why, standing.todo)


def _check_wisdom_draft(migration: Migration) -> Condition:
    """The section reaches SOUL.md through the draft for SOUL.md."""
    place, title = migration.place, f"the wisdom section is approved and in the draft for {SOUL}"
    standing = place.status(CURATED_FILES["wisdom"])
    if standing.state not in ("approved", "promoted"):
        return Condition(title, False, standing.why, standing.todo)
    section = split_notes(place.read(CURATED_FILES["wisdom"].draft) or "")[0].strip()
    holds = section in (place.read(CURATED_FILES["soul"].draft) or "") or standing.state == "promoted"
    todo = "Make that draft anew: tacit openclaw compress-soul"
    return Condition(
        title, holds, standing.why if holds else "that draft was made before it was approved", todo
    )


def _is_needed(migration: Migration, file: CuratedFile) -> bool:
    if file.target == COMPACT:
        return migration.place.read(TOOLS) is not None and migration.place.read(COMPACT) is None
    return file.target == SOUL and not _is_short(migration)


def _is_short(migration: Migration) -> bool:
    """Whether SOUL.md passes as it is."""
    soul = migration.place.read(SOUL) or ""
    max_tokens = settings_of(migration.place.config).soul_max_tokens
    return bool(soul) and not [
        problem for problem in souls.find_problems(soul, SOUL, max_tokens) if problem.level == "error"
    ]


def _check_promotions(migration: Migration) -> Iterator[Condition]:
    for name in ("agents", "tools", "soul"):
        standing = migration.place.status(CURATED_FILES[name])
        if standing.state not in ("none", "promoted"):
            todo = f"Approve it and put it in its place: tacit openclaw promote {name}"
            yield Condition(f"{CURATED_FILES[name].target} has its draft", False, standing.why, todo)
    agents = migration.place.read(AGENTS)
    if agents is not None and migration.place.read(COMPACT) is not None:
        holds = souls.with_checklist(agents) == agents
        evidence = f"{AGENTS} {'names' if holds else 'does not name'} {COMPACT}"
        todo = "Propose the line: tacit openclaw compact-tools"
        yield Condition("new tools get into TOOLS_COMPACT.md", holds, evidence, todo)


def _check_memory_on_demand(migration: Migration) -> Iterator[Condition]:
    if loads_memory(migration):
        mode = migration.files
        evidence = f"inject.files is {mode}"
        yield Condition(
            f"{MEMORY} is left out of the host's list", mode != "host", evidence, "Enter the phase anew."
        )


def _check_files_by_kind(migration: Migration) -> Iterator[Condition]:
    mode = migration.files
    yield Condition("files go by the kind of session", mode == "rules", f"inject.files is {mode}",
                    "Set inject.files to rules in memory-config.yaml.")  # fmt: skip


def _check_instruction(migration: Migration, name: str) -> Condition:
    holds = souls.has_instruction(migration.place.read(SOUL) or "", name)
    standing = migration.place.status(CURATED_FILES["lines"])
    todo = standing.todo or "Put it in its place: tacit openclaw promote lines"
    evidence = "it does" if holds else f"it does not; {standing.why}"
    return Condition(f"{SOUL} says: {souls.INSTRUCTIONS[name][0]}", holds, evidence, todo)


def _check_tools(migration: Migration) -> Iterator[Condition]:
    is_present = migration.place.read(TOOLS) is not None
    manifest = phases.load_backups(migration.place)
    was_present = manifest is None or manifest.hashes.get(TOOLS) is not None
    yield Condition(
        f"{TOOLS} stays where it was",
        is_present or not was_present,
        "it is there" if is_present else "it is gone",
        "Bring it back from the backups.",
    )
    rules = list(_find_rules(migration.memory.config.sessions, TOOLS))
    evidence = ", ".join(rules) or "no rule names it"
    yield Condition(
        f"{TOOLS} is loaded in no kind of session", not rules, evidence, "Take it out of those rules."
    )


def _find_rules(sessions: SessionSettings, name: str) -> Iterator[str]:
    for field in fields(sessions):
        rule = getattr(sessions, field.name)
        if isinstance(rule, SessionRule) and name in (rule.files or ()):
            yield f"sessions.{field.name}"
    for number, override in enumerate(sessions.rules, 1):
        if name in (override.to_dict().get("files") or ()):
            yield f"rule {number} of sessions.rules"


_PHASE_CHECKS: Mapping[str, Callable[[Migration], Iterator[Condition]]] = {
    "0a": _check_preparation,
    "0b": _check_promotions,
    "1": _check_memory_on_demand,
    "2": _check_files_by_kind,
    "4": _check_tools,
}
