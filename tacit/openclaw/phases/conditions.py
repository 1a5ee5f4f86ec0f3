"""What must hold before a phase is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import NamedTuple

from tacit.config import SessionRule, Sessions
from tacit.lifecycle import soul as souls
from tacit.lifecycle.review import split_review
from tacit.model.drafts import Artefact
from tacit.openclaw import baseline
from tacit.openclaw.phases import backups, stages
from tacit.openclaw.phases.criteria import Criterion
from tacit.openclaw.phases.migration import Migration
from tacit.workspace.place import AGENTS, ARTEFACTS, COMPACT, MEMORY, SOUL, TOOLS


class Condition(NamedTuple):
    what: str
    holds: bool
    evidence: str
    todo: str = ""


# Which criteria are due before a phase is left.
_DUE: Mapping[str, tuple[str, ...]] = {
    "0a": (),
    "0b": ("AC-6", "AC-7", "AC-8"),
    "1": ("AC-3", "AC-8"),
    "2": ("AC-1a", "AC-1b", "AC-2", "AC-4", "AC-5", "AC-8", "AC-9"),
    "3": ("AC-8",),
    "4": ("AC-5", "AC-8"),
}


def conditions(migration: Migration, now: datetime, checked: Mapping[str, Criterion]) -> Iterator[Condition]:
    """All that must hold before the phase is left."""
    phase = migration.standing.phase
    if phase in _OWN:
        yield from _OWN[phase](migration)
    yield from _due(migration, checked)
    until = stages.held_until(
        migration.standing, migration.memory.config.openclaw.hold_hours, migration.soul_changes()
    )
    if until is not None:
        told = f"clean since {_last(migration)}"
        todo = (
            f"Wait until {until:%Y-%m-%d %H:%M}; what goes wrong meanwhile: tacit openclaw phase note failed"
        )
        yield Condition("it was watched long enough", now >= until, told, todo)


def _last(migration: Migration) -> str:
    now = migration.standing
    moments = filter(None, (now.since, now.trouble, *migration.soul_changes()))
    return max(moments, key=datetime.fromisoformat)[:16]


def _due(migration: Migration, checked: Mapping[str, Criterion]) -> Iterator[Condition]:
    phase = migration.standing.phase
    waived = stages.waived(migration.lines, phase)
    for name in due(phase):
        found = checked[name]
        without = waived.get(name) if found.verdict == "BLOCKED" else None
        told = f"{found.verdict}: {found.evidence[0] if found.evidence else ''}"
        if without is not None:
            told = f"BLOCKED; {without.by or 'somebody'} goes on without it: {without.why}"
        more = f" To go on without it: tacit openclaw phase next --waive {name} --why TEXT"
        todo = found.todo + (more if found.verdict == "BLOCKED" else "")
        yield Condition(f"{name}: {found.about}", found.verdict == "PASS" or without is not None, told, todo)


def _prepared(migration: Migration) -> Iterator[Condition]:
    place = migration.place
    manifest = backups.load(place)
    wrong = ["there is none"] if manifest is None else list(backups.damage(place, manifest))
    fine = f"{len(manifest.copies)} copies of {manifest.taken}" if manifest else ""
    todo = "Begin anew: tacit openclaw phase rollback --phase 0a, then phase next"
    yield Condition("the backups are whole", not wrong, "; ".join(wrong) or fine, todo)
    yield _baseline(migration)
    yield from _approved(migration)
    changed = backups.changed(place, manifest) if manifest else []
    yield Condition(
        "nothing live was changed",
        not changed and migration.files == "host",
        f"changed since: {', '.join(changed)}" if changed else "every file is what it was",
        "Take what is new into the backups: tacit openclaw phase rollback --phase 0a, then phase next",
    )


def _baseline(migration: Migration) -> Condition:
    known = [one for one in baseline.stored(migration.memory.home) if one.is_before]
    told = [one for one in known if one.key]
    memory = f"{MEMORY} is {'' if loads_memory(migration) else 'not '}among the files"
    evidence = f"{', '.join(one.kind for one in told)} by the host's report; {memory}" if told else "none"
    todo = "With the gateway running: tacit openclaw baseline --turn (asks the model once)"
    return Condition("the baseline is the host's own report", bool(told), evidence, todo)


def loads_memory(migration: Migration) -> bool:
    known = [one for one in baseline.stored(migration.memory.home) if one.is_before and one.key]
    return any(file.name == MEMORY and file.injected for one in known for file in one.files)


def _approved(migration: Migration) -> Iterator[Condition]:
    """Drafts that phase 0b will put in their places."""
    place = migration.place
    yield _wisdom(migration)
    for name in ("soul", "tools", "agents"):
        artefact = ARTEFACTS[name]
        standing = place.standing(artefact)
        if standing.state == "none" and not _is_needed(migration, artefact):
            continue
        holds = standing.state in ("approved", "promoted")
        yield Condition(f"the draft for {artefact.target} is approved", holds, standing.why, standing.todo)


def _wisdom(migration: Migration) -> Condition:
    """It gets into SOUL.md by way of the draft for that."""
    place, what = migration.place, f"the wisdom section is approved and in the draft for {SOUL}"
    standing = place.standing(ARTEFACTS["wisdom"])
    if standing.state not in ("approved", "promoted"):
        return Condition(what, False, standing.why, standing.todo)
    section = split_review(place.read(ARTEFACTS["wisdom"].draft) or "")[0].strip()
    holds = section in (place.read(ARTEFACTS["soul"].draft) or "") or standing.state == "promoted"
    todo = "Make that draft anew: tacit openclaw compress-soul"
    return Condition(
        what, holds, standing.why if holds else "that draft was made before it was approved", todo
    )


def _is_needed(migration: Migration, artefact: Artefact) -> bool:
    if artefact.target == COMPACT:
        return migration.place.read(TOOLS) is not None and migration.place.read(COMPACT) is None
    return artefact.target == SOUL and not _is_short(migration)


def _is_short(migration: Migration) -> bool:
    """SOUL.md as it is would pass."""
    soul = migration.place.read(SOUL) or ""
    most = migration.place.config.openclaw.soul_max_tokens
    return bool(soul) and not [one for one in souls.problems(soul, SOUL, most) if one.level == "error"]


def _applied(migration: Migration) -> Iterator[Condition]:
    for name in ("agents", "tools", "soul"):
        standing = migration.place.standing(ARTEFACTS[name])
        if standing.state not in ("none", "promoted"):
            todo = f"Approve it and put it in its place: tacit openclaw promote {name}"
            yield Condition(f"{ARTEFACTS[name].target} has its draft", False, standing.why, todo)
    agents = migration.place.read(AGENTS)
    if agents is not None and migration.place.read(COMPACT) is not None:
        holds = souls.with_checklist(agents) == agents
        told = f"{AGENTS} {'names' if holds else 'does not name'} {COMPACT}"
        todo = "Propose the line: tacit openclaw compact-tools"
        yield Condition("new tools get into TOOLS_COMPACT.md", holds, told, todo)


def _memory_asked_for(migration: Migration) -> Iterator[Condition]:
    yield _says(migration, "memory")
    if loads_memory(migration):
        mode = migration.files
        told = f"inject.files is {mode}"
        yield Condition(
            f"{MEMORY} is left out of the host's list", mode != "host", told, "Enter the phase anew."
        )


def _by_kind(migration: Migration) -> Iterator[Condition]:
    mode = migration.files
    yield Condition("files go by the kind of session", mode == "rules", f"inject.files is {mode}",
                    "Set inject.files to rules in memory-config.yaml.")  # fmt: skip


def _says(migration: Migration, name: str) -> Condition:
    holds = souls.instructs(migration.place.read(SOUL) or "", name)
    standing = migration.place.standing(ARTEFACTS["lines"])
    todo = standing.todo or "Put it in its place: tacit openclaw promote lines"
    told = "it does" if holds else f"it does not; {standing.why}"
    return Condition(f"{SOUL} says: {souls.INSTRUCTIONS[name][0]}", holds, told, todo)


def _sheds(migration: Migration) -> Iterator[Condition]:
    yield _says(migration, "shedding")


def _reads_tools(migration: Migration) -> Iterator[Condition]:
    yield _says(migration, "tools")
    there = migration.place.read(TOOLS) is not None
    manifest = backups.load(migration.place)
    had = manifest is None or manifest.hashes.get(TOOLS) is not None
    yield Condition(f"{TOOLS} stays where it was", there or not had, "it is there" if there else "it is gone",
                    "Bring it back from the backups.")  # fmt: skip
    loading = list(_rules_with(migration.memory.config.sessions, TOOLS))
    told = ", ".join(loading) or "no rule names it"
    yield Condition(
        f"{TOOLS} is loaded in no kind of session", not loading, told, "Take it out of those rules."
    )


def _rules_with(sessions: Sessions, name: str) -> Iterator[str]:
    for one in fields(sessions):
        rule = getattr(sessions, one.name)
        if isinstance(rule, SessionRule) and name in (rule.files or ()):
            yield f"sessions.{one.name}"
    for at, override in enumerate(sessions.rules, 1):
        if name in (override.named().get("files") or ()):
            yield f"rule {at} of sessions.rules"


_OWN: Mapping[str, Callable[[Migration], Iterator[Condition]]] = {
    "0a": _prepared,
    "0b": _applied,
    "1": _memory_asked_for,
    "2": _by_kind,
    "3": _sheds,
    "4": _reads_tools,
}


def due(phase: str) -> tuple[str, ...]:
    """Criteria that must hold before that phase is left."""
    return _DUE.get(phase, ())
