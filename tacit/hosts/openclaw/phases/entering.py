"""Enters a phase and does its work.

One evidence line marks the start and another the end. An interrupted step is repeated as a whole: existing
backups stay, existing drafts are not made again, and a promoted draft is not promoted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tacit.app import set_inject_files
from tacit.errors import HostError, UsageError
from tacit.home.doctor import CheckResult
from tacit.hosts.openclaw import baseline, packaged, probe, settings
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw.locate import OpenClawHost
from tacit.hosts.openclaw.phases import backups
from tacit.hosts.openclaw.phases.conditions import loads_memory
from tacit.hosts.openclaw.phases.migration import Migration
from tacit.hosts.openclaw.workspace import review, shorter, wisdom
from tacit.hosts.openclaw.workspace.layout import ARTEFACTS, MEMORY, SOUL, TOOLS

Notes = dict[str, Any]


class PhaseEntry(NamedTuple):
    migration: Migration
    by: str
    say: Callable[[str], None]


def enter(doing: PhaseEntry, phase: str) -> None:
    doing.migration.note("entering", phase, by=doing.by)
    notes = _ACTIONS[phase](doing) if phase in _ACTIONS else {}
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
    manifest = backups.take(place)
    damage = list(backups.find_damage(place, manifest))
    if damage:
        raise UsageError(f"The backups are not whole: {'; '.join(damage)}. Nothing was begun.")
    say(f"kept    {', '.join(manifest.copies)} in {place.root / backups.MANIFEST}")
    _, file = baseline.capture(host, migration.memory, place.root, place.now(), ask=False)
    say(f"kept    what the host loads by itself in {file}")
    for draft in _make_drafts(migration):
        say(f"drafted {draft}")
    return {"host": host.openclaw().version(), "memory": loads_memory(migration)}


def _make_drafts(migration: Migration) -> Iterator[str]:
    """Keeps a draft that exists: somebody may have worked on it."""
    place = migration.place
    standing = {
        name
        for name, artefact in ARTEFACTS.items()
        if place.standing(artefact).state not in ("none", "stale")
    }
    if place.read(TOOLS) is not None and "tools" not in standing:
        shorter.compact_tools(place)
        yield ARTEFACTS["tools"].draft
    if "wisdom" not in standing:
        wisdom.draft(place)
        yield ARTEFACTS["wisdom"].draft
    if "soul" not in standing:
        shorter.shorten_soul(place)
        yield ARTEFACTS["soul"].draft
    if place.standing(ARTEFACTS["agents"]).state == "waiting" and "agents" not in standing:
        yield ARTEFACTS["agents"].draft


def _apply_drafts(doing: PhaseEntry) -> Notes:
    place, results = doing.migration.place, dict[str, str | None]()
    manifest = backups.load(place)
    if manifest is None or list(backups.find_damage(place, manifest)):
        raise UsageError(
            "The backups are not whole, so nothing was changed. See: tacit openclaw phase status"
        )
    for name in ("agents", "tools", "soul"):
        if place.standing(ARTEFACTS[name]).state == "approved":
            event = review.promote(place, ARTEFACTS[name], doing.by)
            results[ARTEFACTS[name].target] = event.result
            doing.say(f"changed {place.root / ARTEFACTS[name].target}")
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
    return {"memory": memory, **_add_instruction(doing, "memory")}


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


def _add_shedding_line(doing: PhaseEntry) -> Notes:
    return _add_instruction(doing, "shedding")


def _add_tools_line(doing: PhaseEntry) -> Notes:
    return _add_instruction(doing, "tools")


def _add_instruction(doing: PhaseEntry, name: str) -> Notes:
    migration, say = doing.migration, doing.say
    proposed = shorter.add_instruction(migration.place, name)
    if proposed is None:
        say(f"{SOUL} says already: {souls.INSTRUCTIONS[name][0]}")
        return {"instruction": "there already"}
    advice = migration.place.advice(proposed.artefact)
    say(f"drafted {proposed.artefact.draft}. Read it, then: {advice.approve}; tacit openclaw promote lines")
    return {"instruction": "drafted"}


_ACTIONS: Mapping[str, Callable[[PhaseEntry], Notes]] = {
    "0a": _prepare,
    "0b": _apply_drafts,
    "1": _defer_memory,
    "2": _select_files,
    "3": _add_shedding_line,
    "4": _add_tools_line,
}
