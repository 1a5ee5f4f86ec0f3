"""Entering a phase: what is done for it.

Begun with a line in the evidence and ended with another, and done again as a whole where it was cut short:
backups that are there stay, drafts that stand are not made anew, a promoted one is not promoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tacit.app import choose_files
from tacit.errors import HostError, UsageError
from tacit.lifecycle import soul as souls
from tacit.openclaw import baseline, packaged, probe, settings
from tacit.openclaw.find import Host
from tacit.openclaw.phases import backups
from tacit.openclaw.phases.conditions import loads_memory
from tacit.openclaw.phases.migration import Migration
from tacit.store.checkup import Check
from tacit.workspace import review, shorter, wisdom
from tacit.workspace.place import ARTEFACTS, MEMORY, SOUL, TOOLS

Notes = dict[str, Any]


class Doing(NamedTuple):
    migration: Migration
    by: str
    say: Callable[[str], None]


def enter(doing: Doing, phase: str) -> None:
    doing.migration.note("entering", phase, by=doing.by)
    notes = _ENTER[phase](doing) if phase in _ENTER else {}
    doing.migration.note("entered", phase, by=doing.by, **notes)


def _host(migration: Migration) -> Host:
    if migration.host is None:
        raise HostError("There is no OpenClaw on this machine, so nothing can be asked of it.")
    return migration.host


def _prepare(doing: Doing) -> Notes:
    migration, say = doing.migration, doing.say
    place, host = migration.place, _host(migration)
    if place.read(SOUL) is None:
        raise UsageError(f"There is no {SOUL} in {place.root}. Name the agent's folder: --workspace DIR")
    if choose_files(migration.memory.home, "host"):
        say("set     inject.files: host, so that tacit leaves the host's files alone for now")
    manifest = backups.take(place)
    wrong = list(backups.damage(place, manifest))
    if wrong:
        raise UsageError(f"The backups are not whole: {'; '.join(wrong)}. Nothing was begun.")
    say(f"kept    {', '.join(manifest.copies)} in {place.root / backups.MANIFEST}")
    _, file = baseline.captured(host, migration.memory, place.root, place.now(), ask=False)
    say(f"kept    what the host loads by itself in {file}")
    for told in _drafted(migration):
        say(f"drafted {told}")
    return {"host": host.openclaw().version(), "memory": loads_memory(migration)}


def _drafted(migration: Migration) -> Iterator[str]:
    """A draft that stands is not made anew: somebody may have worked on it."""
    place = migration.place
    stands = {name for name, one in ARTEFACTS.items() if place.standing(one).state not in ("none", "stale")}
    if place.read(TOOLS) is not None and "tools" not in stands:
        shorter.compact_tools(place)
        yield ARTEFACTS["tools"].draft
    if "wisdom" not in stands:
        wisdom.draft(place)
        yield ARTEFACTS["wisdom"].draft
    if "soul" not in stands:
        shorter.shorten_soul(place)
        yield ARTEFACTS["soul"].draft
    if place.standing(ARTEFACTS["agents"]).state == "waiting" and "agents" not in stands:
        yield ARTEFACTS["agents"].draft


def _apply(doing: Doing) -> Notes:
    place, done = doing.migration.place, dict[str, str | None]()
    manifest = backups.load(place)
    if manifest is None or list(backups.damage(place, manifest)):
        raise UsageError(
            "The backups are not whole, so nothing was changed. See: tacit openclaw phase status"
        )
    for name in ("agents", "tools", "soul"):
        if place.standing(ARTEFACTS[name]).state == "approved":
            event = review.promote(place, ARTEFACTS[name], doing.by)
            done[ARTEFACTS[name].target] = event.result
            doing.say(f"changed {place.root / ARTEFACTS[name].target}")
    return {"files": done}


def _on_demand(doing: Doing) -> Notes:
    migration, say = doing.migration, doing.say
    host = _host(migration)
    if not is_installed(host):
        raise UsageError("tacit is not in the host yet. Run: tacit openclaw install, then this again.")
    memory = loads_memory(migration)
    if memory and choose_files(migration.memory.home, "without-memory"):
        say(f"set     inject.files: without-memory; {MEMORY} leaves the host's list")
    if not memory:
        say(f"The host does not load {MEMORY}, so there is nothing to leave out.")
    return {"memory": memory, **_instruct(doing, "memory")}


def is_installed(host: Host) -> bool:
    is_plugin = bool(packaged.version_in(host.plugin)) and not list(settings.blocks(host.tree))
    return is_plugin or settings.HOOKS[0] in settings.uses_hooks(host.tree)


def _by_kinds(doing: Doing) -> Notes:
    """Only on a host whose list behaves as it must."""
    migration, say = doing.migration, doing.say
    found = probe.points(_host(migration).openclaw(), migration.environ)
    checks: list[Check] = list(probe.check(found))
    wrong = [str(problem) for check in checks for problem in check.problems if problem.level == "error"]
    if wrong:
        raise HostError("This version of the host does not let tacit choose files: " + "; ".join(wrong))
    say("asked   the host how it treats a list of files: as tacit needs it")
    if choose_files(migration.memory.home, "rules"):
        say("set     inject.files: rules")
    return {"points": found._asdict()}


def _shed(doing: Doing) -> Notes:
    return _instruct(doing, "shedding")


def _full_tools(doing: Doing) -> Notes:
    return _instruct(doing, "tools")


def _instruct(doing: Doing, name: str) -> Notes:
    migration, say = doing.migration, doing.say
    made = shorter.add_instruction(migration.place, name)
    if made is None:
        say(f"{SOUL} says already: {souls.INSTRUCTIONS[name][0]}")
        return {"instruction": "there already"}
    advice = migration.place.advice(made.artefact)
    say(f"drafted {made.artefact.draft}. Read it, then: {advice.approve}; tacit openclaw promote lines")
    return {"instruction": "drafted"}


_ENTER: Mapping[str, Callable[[Doing], Notes]] = {
    "0a": _prepare,
    "0b": _apply,
    "1": _on_demand,
    "2": _by_kinds,
    "3": _shed,
    "4": _full_tools,
}
