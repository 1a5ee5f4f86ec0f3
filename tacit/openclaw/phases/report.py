"""What was found out about the criteria: in the evidence, and in a file for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tacit.errors import HostError
from tacit.openclaw.phases import criteria, prompts, stages
from tacit.openclaw.phases.conditions import due
from tacit.openclaw.phases.criteria import Criterion
from tacit.openclaw.phases.migration import Migration
from tacit.openclaw.phases.prompts import Asked
from tacit.workspace.place import FOLDER

REPORT = f"{FOLDER}/validation-report.md"
_HEAD = "# Validation of what sessions load"
_WAIT = 15.0  # seconds until an answer is in the transcript


def check(migration: Migration) -> list[Criterion]:
    """Looked at anew and recorded. A failure of something that is due begins the time of watching again."""
    found = list(criteria.all_of(criteria.look(migration)))
    now = migration.standing.phase
    verdicts = {one.name: [one.verdict, *one.evidence[:1]] for one in found}
    migration.note("checked", now, verdicts=verdicts)
    failed = [one.name for one in found if one.verdict == "FAIL" and one.name in due(now)]
    if failed:
        migration.note("failed", now, why=f"{', '.join(failed)} failed")
    _write(migration, found)
    return found


def _write(migration: Migration, found: Sequence[Criterion]) -> None:
    """Over an earlier one of ours, and over nothing else."""
    there = migration.place.read(REPORT)
    if there is None or there.startswith(_HEAD):
        now = migration.place.now()
        text = written(found, migration.standing.phase, f"{now:%Y-%m-%d %H:%M}")
        migration.place.tree.put(REPORT, text.encode(), 0o644)


def written(found: Sequence[Criterion], phase: str, at: str) -> str:
    lines = [f"{_HEAD}, {at}", "", f"Phase {phase}: {stages.ABOUT[phase]}."]
    for one in found:
        lines += ["", f"## {one.name}: {one.verdict}", "", f"{one.about[0].upper()}{one.about[1:]}.", ""]
        lines += [f"- {told}" for told in one.evidence]
        lines += [f"- To do: {one.todo}"] if one.todo else []
    return "\n".join(lines) + "\n"


def last(migration: Migration) -> Mapping[str, Criterion]:
    """What the last check found, without asking anybody."""
    since = migration.standing.since
    lines = [one for one in migration.lines if one.what == "checked" and stages.is_since(one.at, since)]
    said = lines[-1].notes.get("verdicts", {}) if lines else {}
    return {name: _kept(name, said.get(name), lines[-1].at if lines else "") for name in criteria.NAMES}


def _kept(name: str, said: Sequence[str] | None, at: str) -> Criterion:
    todo = "Look anew: tacit openclaw phase check."
    if not said:
        return Criterion(name, criteria.NAMES[name], "BLOCKED", ("not checked in this phase",), todo)
    evidence = f"{said[1] if len(said) > 1 else ''} (checked {at[:16]})"
    return Criterion(name, criteria.NAMES[name], criteria.verdict_of(said[0]), (evidence,), todo)


# ---------------------------------------------------------------- asking


def ask(migration: Migration, say: Callable[[str], None]) -> None:
    """The questions that were not answered well yet, one after the other, by the host's own command."""
    host = migration.host
    if host is None or host.command is None or not host.is_serving():
        raise HostError("The gateway does not run, so nobody can be asked. Start it: openclaw gateway run")
    direct, topic = prompts.keys(migration.memory.config.owners)
    for phase, key, questions, types in (
        ("1", direct, criteria.memory_prompts(migration), prompts.OWNERS_OWN),
        ("2", topic, criteria.topic_prompts(migration), ("forum_topic",)),
    ):
        since = stages.entered(migration.lines, phase)
        asking = _Asking(migration, key, questions, types, since)
        for one in asking.seen() if since else ():
            if one.verdict != "PASS":
                say(f"asking  “{one.prompt}” in {key}")
                prompts.ask(host, key, one.prompt)
                asking.wait(one)


class _Asking(NamedTuple):
    """Questions in one kind of session."""

    migration: Migration
    key: str
    questions: Mapping[str, tuple[str, ...]]
    types: Sequence[str]
    since: str

    def seen(self) -> list[Asked]:
        memory, place = self.migration.memory, self.migration.place
        return prompts.seen(memory, place, self.questions, self.types, self.since)

    def wait(self, before: Asked) -> None:
        """What is said reaches the transcript a moment after the answer."""
        one = self._replace(questions={before.prompt: self.questions[before.prompt]})
        end = time.monotonic() + _WAIT
        while time.monotonic() < end:
            (found,) = one.seen()
            if found.reply and found.where != before.where:
                return
            time.sleep(0.2)
