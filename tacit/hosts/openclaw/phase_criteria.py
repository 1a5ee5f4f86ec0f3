"""The criteria AC-1a to AC-9 of a migration, and the record of their results.

A criterion is PASS, FAIL, or BLOCKED if it cannot be decided yet, with its evidence. Only the host's own
report says which files a session has. If a criterion needs something that tacit cannot bring about, such as a
message in a topic, its `todo` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from tacit.config import Override
from tacit.diagnostics import Problem
from tacit.hosts.openclaw import (
    baseline,
    bootstrap_files,
    compact_files,
    phase_questions,
    phase_steps,
    phases,
    wisdom_section,
)
from tacit.hosts.openclaw.baseline import SessionReport
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.phase_questions import QuestionResult
from tacit.hosts.openclaw.phases import PHASES, Migration
from tacit.hosts.openclaw.wisdom_section import LEVEL, TITLE
from tacit.hosts.openclaw.workspace import COMPACT, CURATED_FILES, FOLDER, MEMORY, SOUL, TOOLS
from tacit.markdown.sections import find_sections
from tacit.sessions.policy import resolve_profile

Verdict = Literal["PASS", "FAIL", "BLOCKED"]

ENRICHED_TOPIC = "enriched topic"  # a topic that one of the owner's rules names
_MAX_TOKENS = {"topic": 500, ENRICHED_TOPIC: 500, "main": 600, "direct": 600}  # tokens
REPORT_FILE = f"{FOLDER}/validation-report.md"
_REPORT_HEAD = "# Validation of what sessions load"
_ASK_COMMAND = "tacit openclaw phase check --ask"
_SESSION_HINTS = {
    "main": "Write to your agent in its main session, or in a direct chat.",
    "topic": "Write a message in a topic of a group.",
    ENRICHED_TOPIC: "Write a message in a topic that sessions.rules names; or go on "
    "without it, if you have none.",
    "group": "Write a message in a group.",
    "subagent": "Ask your agent to hand a small task to a subagent.",
    "cron": "Let a job run: openclaw cron run ID",
}


class Criterion(NamedTuple):
    name: str
    about: str
    verdict: Verdict
    evidence: tuple[str, ...]
    todo: str = ""


class Observations(NamedTuple):
    """What the criteria examine, read once."""

    migration: Migration
    reports: Mapping[str, SessionReport]  # by kind, since files are loaded by kind of session
    is_serving: bool


def parse_verdict(text: str) -> Verdict:
    return next((verdict for verdict in get_args(Verdict) if verdict == text), "BLOCKED")


def observe(migration: Migration) -> Observations:
    """Reads the host's reports."""
    host = migration.host
    is_serving = host is not None and host.command is not None and host.is_serving()
    return Observations(migration, _read_reports(migration) if is_serving else {}, is_serving)


def _read_reports(migration: Migration) -> dict[str, SessionReport]:
    """The newest report of each kind since files are loaded by kind of session."""
    since, reports_by_place = phases.entered_at(migration.lines, "2"), dict[str, SessionReport]()
    assert migration.host is not None
    for key, weight in baseline.fetch_reports(migration.host) if since else ():
        place = session_place(migration, key)
        if place and place not in reports_by_place:
            report = baseline.parse_report(place, key, weight, since)
            if report is not None and not report.is_before:
                reports_by_place[place] = report
    return reports_by_place


def session_place(migration: Migration, key: str) -> str:
    """The kind of session in terms of the criteria; empty if none is about it."""
    profile = resolve_profile(key, migration.memory.config)
    kind = bootstrap_files.kind_of(profile.kind.type)
    if profile.kind.type == "external_dm":
        return ""
    return ENRICHED_TOPIC if kind == "topic" and profile.number else kind


def evaluate(seen: Observations) -> Iterator[Criterion]:
    for name, (about, check) in CRITERIA.items():
        verdict, evidence, todo = check(seen)
        yield Criterion(name, about, verdict, tuple(evidence), todo)


_Result = tuple[Verdict, Sequence[str], str]


# ---------------------------------------------------------------- files by the host's report


def _check_enriched_topic(observations: Observations) -> _Result:
    rules: Sequence[Override] = observations.migration.memory.config.sessions.rules
    if not rules:
        return "BLOCKED", ("no rule of sessions.rules names a topic",), "Go on without it: --waive AC-1b"
    return _check_files(observations, (ENRICHED_TOPIC,), {SOUL, COMPACT})


def _check_files(observations: Observations, places: Sequence[str], expected: set[str]) -> _Result:
    report = next((observations.reports[place] for place in places if place in observations.reports), None)
    if report is None:
        return (
            "BLOCKED",
            (_explain_missing(observations, places[-1]),),
            _suggest_step(observations, places[-1]),
        )
    loaded, max_tokens = {file.name for file in report.files}, _MAX_TOKENS.get(report.kind)
    evidence = [_describe_report(report)]
    if missing := sorted(expected - loaded):
        evidence.append(f"missing: {', '.join(missing)}")
    if unexpected := sorted(loaded - expected):
        evidence.append(f"not wanted: {', '.join(unexpected)}")
    if max_tokens and report.tokens > max_tokens:
        evidence.append(f"{report.tokens} tokens are more than {max_tokens}")
    todo = "" if len(evidence) == 1 else f"See: tacit explain-session {report.key}"
    return "PASS" if len(evidence) == 1 else "FAIL", evidence, todo


def _describe_report(report: SessionReport) -> str:
    files = ", ".join(f"{file.name} {file.tokens}" for file in report.files) or "nothing"
    return f"{report.key}, {report.at}: {files}; {report.tokens} tokens by the host's report"


def _explain_missing(observations: Observations, place: str) -> str:
    if not phases.entered_at(observations.migration.lines, "2"):
        return "files do not go by the kind of session yet: that is phase 2"
    if not observations.is_serving:
        return "the gateway does not run, so the host tells nothing"
    return f"no {place} session since phase 2 was entered"


def _suggest_step(observations: Observations, place: str) -> str:
    if not phases.entered_at(observations.migration.lines, "2"):
        return "Go on: tacit openclaw phase next"
    return _SESSION_HINTS[place] if observations.is_serving else "Start it: openclaw gateway run"


def _check_every_kind(observations: Observations) -> _Result:
    missing = list(_find_missing_files(observations.migration))
    wrong, evidence, unseen_kinds = [], [], []
    for kind in ("main", "topic", "group", "subagent", "cron"):
        places = {"main": ("direct", "main"), "topic": ("topic", ENRICHED_TOPIC)}.get(kind, (kind,))
        report = next(
            (observations.reports[place] for place in places if place in observations.reports), None
        )
        if report is None:
            unseen_kinds.append(kind)
            continue
        evidence.append(_describe_report(report))
        expected = _expected_files(observations.migration, report.key)
        if {file.name for file in report.files} != expected:
            wrong.append(f"{report.key} should load {', '.join(sorted(expected))}")
    if missing or wrong:
        return "FAIL", (*wrong, *missing, *evidence), "See: tacit explain-session KEY"
    if unseen_kinds:
        return (
            "BLOCKED",
            (_explain_missing(observations, " or ".join(unseen_kinds)), *evidence),
            _suggest_step(observations, unseen_kinds[0]),
        )
    return "PASS", evidence, ""


def _expected_files(migration: Migration, key: str) -> set[str]:
    return set(resolve_profile(key, migration.memory.config).rule.files or ())


def _find_missing_files(migration: Migration) -> Iterator[str]:
    """Files that a rule names and that do not exist, for every kind of session."""
    workspace, memory = migration.place.root, migration.memory
    texts = baseline.read_texts(workspace)
    for kind, key in {**baseline.example_keys(memory.config.owners), **_OTHER_KEYS}.items():
        entries = bootstrap_files.list_entries(
            kind if kind in bootstrap_files.TYPES else "group", texts, str(workspace)
        )
        compiled = memory.services.bootstrap(key, entries, str(workspace), trial=True)
        missing = [
            dropped.source for dropped in compiled.receipt.dropped if dropped.code in ("missing", "empty")
        ]
        if missing:
            yield f"the rule of a {kind} session names what is not there: {', '.join(missing)}"


_OTHER_KEYS = {
    "stranger's": "agent:main:telegram:direct:tacit-stranger",
    "channel": "agent:main:discord:channel:tacit-check",
    "thread": "agent:main:slack:channel:tacit-check:thread:1",
    "unknown": "tacit-check",
}


# ---------------------------------------------------------------- files of the workspace


def _check_compact_tools(observations: Observations) -> _Result:
    place = observations.migration.place
    compact, tools_text = place.read(COMPACT), place.read(TOOLS)
    if compact is None:
        if tools_text is None:
            return "BLOCKED", (f"there is neither {TOOLS} nor {COMPACT}",), "Go on without it: --waive AC-6"
        return "BLOCKED", (f"there is no {COMPACT} yet",), "Make one: tacit openclaw compact-tools"
    return _judge_problems(
        compact_files.find_problems(compact, COMPACT, tools_text), f"{COMPACT}: nothing is wrong with it"
    )


def _check_wisdom(observations: Observations) -> _Result:
    place = observations.migration.place
    soul = place.read(SOUL) or ""
    if not find_sections(soul, TITLE, LEVEL):
        return "BLOCKED", (f"{SOUL} has no `## {TITLE}` section",), "Make one: tacit wisdom draft"
    approved = [
        event for event in place.drafts.decisions(CURATED_FILES["wisdom"]) if event.what == "approved"
    ]
    covers = approved[-1].notes.get("covers") if approved else None
    problems = wisdom_section.soul_problems(soul, SOUL, settings_of(place.config).soul_max_tokens, covers)
    problems += wisdom_section.root_problems(place.names())
    if covers is None and not _format_errors(problems):
        evidence = "which lessons stand behind its entries is not recorded"
        return "BLOCKED", (evidence,), "Draft it anew: tacit wisdom draft"
    return _judge_problems(
        problems, f"{SOUL}: every entry covers three lessons or more, and none is a detail"
    )


def _judge_problems(problems: Sequence[Problem], success: str) -> _Result:
    errors = _format_errors(problems)
    warnings = [str(problem) for problem in problems if problem.level != "error"]
    return ("FAIL", errors + warnings, "") if errors else ("PASS", [success, *warnings], "")


def _format_errors(problems: Sequence[Problem]) -> list[str]:
    return [str(problem) for problem in problems if problem.level == "error"]


def _check_rollback(observations: Observations) -> _Result:
    migration = observations.migration
    manifest = phases.load_backups(migration.place)
    if manifest is None:
        return "BLOCKED", ("there are no backups yet",), "Take them: tacit openclaw phase next"
    if migration.standing.phase == phases.NONE and not migration.standing.entering:
        return "BLOCKED", ("no migration is under way",), "Begin: tacit openclaw phase next"
    plan = phase_steps.plan(migration, "0a")
    missing = [
        name
        for name, digest in manifest.hashes.items()
        if digest and phases.read_file(migration.place, name) is None
    ]
    wrong = [*plan.refused, *(f"{name} is gone" for name in missing)]
    if wrong:
        return "FAIL", wrong, "See what a rollback would do: tacit openclaw phase rollback --all --dry-run"
    success = f"{len(manifest.copies)} copies of {manifest.taken} are what the manifest says"
    return "PASS", (success, *(plan.lines or ("a rollback has nothing to change",))), ""


# ---------------------------------------------------------------- questions


def _check_memory(observations: Observations) -> _Result:
    since = phases.entered_at(observations.migration.lines, "1")
    if not since:
        return "BLOCKED", (f"{MEMORY} is on demand from phase 1",), "Go on: tacit openclaw phase next"
    if observations.migration.place.read(MEMORY) is None:
        return "BLOCKED", (f"there is no {MEMORY}",), "Go on without it: --waive AC-3"
    questions = phase_questions.memory_prompts(observations.migration.memory.config)
    return _judge_answers(_read_answers(observations, questions, phase_questions.OWNER_SESSION_TYPES, since))


def _check_topic_answers(observations: Observations) -> _Result:
    since = phases.entered_at(observations.migration.lines, "2")
    if not since:
        return (
            "BLOCKED",
            ("files go by the kind of session from phase 2",),
            "Go on: tacit openclaw phase next",
        )
    questions = phase_questions.topic_prompts(observations.migration.memory.config)
    return _judge_answers(_read_answers(observations, questions, ("forum_topic",), since))


def _read_answers(
    observations: Observations, questions: Mapping[str, tuple[str, ...]], types: Sequence[str], since: str
) -> list[QuestionResult]:
    return phase_questions.find_results(
        observations.migration.memory, observations.migration.place, questions, types, since
    )


def _judge_answers(answers: Sequence[QuestionResult]) -> _Result:
    worst = ("FAIL", "BLOCKED", "PASS")
    evidence = [answer.summary for answer in sorted(answers, key=lambda answer: worst.index(answer.verdict))]
    verdicts = {answer.verdict for answer in answers}
    if "FAIL" in verdicts:
        return (
            "FAIL",
            evidence,
            ("Ask again after a change; or keep a short summary loaded: tacit openclaw memory-summary"),
        )
    if "BLOCKED" in verdicts or not answers:
        return "BLOCKED", evidence, f"Ask them there yourself, or: {_ASK_COMMAND}."
    return "PASS", evidence, ""


CRITERIA: Mapping[str, tuple[str, Callable[[Observations], _Result]]] = {
    "AC-1a": (
        "a topic loads SOUL.md and TOOLS_COMPACT.md, at most 500 tokens",
        lambda seen: _check_files(seen, ("topic",), {SOUL, COMPACT}),
    ),
    "AC-1b": ("so does a topic that a rule of yours names", _check_enriched_topic),
    "AC-2": (
        "your direct session loads SOUL.md, USER.md and TOOLS_COMPACT.md, at most 600 tokens",
        lambda seen: _check_files(seen, ("direct", "main"), {SOUL, "USER.md", COMPACT}),
    ),
    "AC-3": ("what MEMORY.md knows is answered without it being loaded", _check_memory),
    "AC-4": ("a subagent loads SOUL.md alone", lambda seen: _check_files(seen, ("subagent",), {SOUL})),
    "AC-5": ("every kind of session loads what its rule names", _check_every_kind),
    "AC-6": ("TOOLS_COMPACT.md has what is looked up, and no prose", _check_compact_tools),
    "AC-7": ("the wisdom in SOUL.md is general, short and grounded", _check_wisdom),
    "AC-8": ("everything can be taken back", _check_rollback),
    "AC-9": ("a topic gets at what is not loaded there", _check_topic_answers),
}
NAMES = tuple(CRITERIA)


# ---------------------------------------------------------------- the record


def run_checks(migration: Migration) -> list[Criterion]:
    """Checks everything again and records it. A failure of a due criterion restarts the watching time."""
    results = list(evaluate(observe(migration)))
    phase = migration.standing.phase
    verdicts = {criterion.name: [criterion.verdict, *criterion.evidence[:1]] for criterion in results}
    migration.note("checked", phase, verdicts=verdicts)
    failed = [
        criterion.name
        for criterion in results
        if criterion.verdict == "FAIL" and criterion.name in PHASES[phase].criteria
    ]
    if failed:
        migration.note("failed", phase, why=f"{', '.join(failed)} failed")
    _write_report(migration, results)
    return results


def _write_report(migration: Migration, results: Sequence[Criterion]) -> None:
    """Replaces only a report that tacit wrote."""
    present = migration.place.read(REPORT_FILE)
    if present is None or present.startswith(_REPORT_HEAD):
        now = migration.place.now()
        text = _render(results, migration.standing.phase, f"{now:%Y-%m-%d %H:%M}")
        migration.place.tree.put(REPORT_FILE, text.encode(), 0o644)


def _render(criteria: Sequence[Criterion], phase: str, at: str) -> str:
    lines = [f"{_REPORT_HEAD}, {at}", "", f"Phase {phase}: {PHASES[phase].about}."]
    for criterion in criteria:
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
        name: _restore_criterion(name, verdicts.get(name), lines[-1].at if lines else "") for name in NAMES
    }


def _restore_criterion(name: str, verdict: Sequence[str] | None, moment: str) -> Criterion:
    about, todo = CRITERIA[name][0], "Check again: tacit openclaw phase check."
    if not verdict:
        return Criterion(name, about, "BLOCKED", ("not checked in this phase",), todo)
    evidence = f"{verdict[1] if len(verdict) > 1 else ''} (checked {moment[:16]})"
    return Criterion(name, about, parse_verdict(verdict[0]), (evidence,), todo)
