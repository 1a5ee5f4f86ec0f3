"""Records the results of the criteria in the evidence and in a file for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tacit.errors import HostError
from tacit.hosts.openclaw import phase_conditions, phase_questions, phases
from tacit.hosts.openclaw.phase_conditions import Criterion, due_criteria
from tacit.hosts.openclaw.phase_questions import QuestionResult
from tacit.hosts.openclaw.phases import Migration
from tacit.hosts.openclaw.workspace import FOLDER

REPORT_FILE = f"{FOLDER}/validation-report.md"
_HEAD = "# Validation of what sessions load"
_ANSWER_TIMEOUT_S = 15.0  # until an answer is in the transcript


def run_checks(migration: Migration) -> list[Criterion]:
    """Checks everything again and records it. A failure of a due criterion restarts the watching time."""
    results = list(phase_conditions.evaluate(phase_conditions.observe(migration)))
    phase = migration.standing.phase
    verdicts = {criterion.name: [criterion.verdict, *criterion.evidence[:1]] for criterion in results}
    migration.note("checked", phase, verdicts=verdicts)
    failed = [
        criterion.name
        for criterion in results
        if criterion.verdict == "FAIL" and criterion.name in due_criteria(phase)
    ]
    if failed:
        migration.note("failed", phase, why=f"{', '.join(failed)} failed")
    _write_report(migration, results)
    return results


def _write_report(migration: Migration, results: Sequence[Criterion]) -> None:
    """Replaces only a report that tacit wrote."""
    present = migration.place.read(REPORT_FILE)
    if present is None or present.startswith(_HEAD):
        now = migration.place.now()
        text = render(results, migration.standing.phase, f"{now:%Y-%m-%d %H:%M}")
        migration.place.tree.put(REPORT_FILE, text.encode(), 0o644)


def render(found: Sequence[Criterion], phase: str, at: str) -> str:
    lines = [f"{_HEAD}, {at}", "", f"Phase {phase}: {phases.ABOUT[phase]}."]
    for criterion in found:
        lines += [
            "",
            f"## {criterion.name}: {criterion.verdict}",
            "",
            f"{criterion.about[0].upper()}{criterion.about[1:]}.",
            "",
        ]
        lines += [f"- {item}" for item in criterion.evidence]
        lines += [f"- To do: {criterion.todo}"] if criterion.todo else []
    return "\n".join(lines) + "\n"


def last_results(migration: Migration) -> Mapping[str, Criterion]:
    """Results of the last check, without asking the host."""
    since = migration.standing.since
    lines = [line for line in migration.lines if line.what == "checked" and phases.is_since(line.at, since)]
    verdicts = lines[-1].notes.get("verdicts", {}) if lines else {}
    return {
        name: _restore_criterion(name, verdicts.get(name), lines[-1].at if lines else "")
        for name in phase_conditions.NAMES
    }


def _restore_criterion(name: str, verdict: Sequence[str] | None, moment: str) -> Criterion:
    about = phase_conditions.NAMES[name]
    todo = "Look anew: tacit openclaw phase check."
    if not verdict:
        return Criterion(name, about, "BLOCKED", ("not checked in this phase",), todo)
    evidence = f"{verdict[1] if len(verdict) > 1 else ''} (checked {moment[:16]})"
    return Criterion(
        name, phase_conditions.NAMES[name], phase_conditions.parse_verdict(verdict[0]), (evidence,), todo
    )


# ---------------------------------------------------------------- asking


def ask_open_questions(migration: Migration, say: Callable[[str], None]) -> None:
    """Asks the questions without a good answer, one after another, through the host's own command."""
    host = migration.host
    if host is None or host.command is None or not host.is_serving():
        raise HostError("The gateway does not run, so nobody can be asked. Start it: openclaw gateway run")
    direct, topic = phase_questions.check_session_keys(migration.memory.config.owners)
    for phase, key, questions, types in (
        ("1", direct, phase_conditions.memory_prompts(migration), phase_questions.OWNER_SESSION_TYPES),
        ("2", topic, phase_conditions.topic_prompts(migration), ("forum_topic",)),
    ):
        since = phases.entered_at(migration.lines, phase)
        question_round = _QuestionRound(migration, key, questions, types, since)
        for result in question_round.seen() if since else ():
            if result.verdict != "PASS":
                say(f"asking  “{result.prompt}” in {key}")
                phase_questions.ask_host(host, key, result.prompt)
                question_round.wait(result)


class _QuestionRound(NamedTuple):
    """Questions in one kind of session."""

    migration: Migration
    key: str
    questions: Mapping[str, tuple[str, ...]]
    types: Sequence[str]
    since: str

    def seen(self) -> list[QuestionResult]:
        memory, place = self.migration.memory, self.migration.place
        return phase_questions.find_results(memory, place, self.questions, self.types, self.since)

    def wait(self, previous: QuestionResult) -> None:
        """The transcript has the answer only a moment after it was given."""
        single = self._replace(questions={previous.prompt: self.questions[previous.prompt]})
        end = time.monotonic() + _ANSWER_TIMEOUT_S
        while time.monotonic() < end:
            (result,) = single.seen()
            if result.reply and result.where != previous.where:
                return
            time.sleep(0.2)
