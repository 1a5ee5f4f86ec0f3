"""What must hold before a migration leaves a phase: the criteria AC-1a to AC-9, the conditions of each phase.

A criterion is PASS, FAIL, or BLOCKED if it cannot be decided yet, with its evidence. Only the host's own
report says which files a session has. If a criterion needs something that tacit cannot bring about, such as a
message in a topic, its `todo` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from tacit.config import Override, SessionRule, SessionSettings
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
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw.baseline import SessionReport
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.phase_questions import QuestionResult
from tacit.hosts.openclaw.phases import Migration, loads_memory
from tacit.hosts.openclaw.wisdom_section import LEVEL, TITLE
from tacit.hosts.openclaw.workspace import AGENTS, COMPACT, CURATED_FILES, MEMORY, SOUL, TOOLS
from tacit.markdown.sections import find_sections
from tacit.review.format import split_notes
from tacit.review.model import CuratedFile
from tacit.sessions.policy import resolve_profile

Verdict = Literal["PASS", "FAIL", "BLOCKED"]

ENRICHED_TOPIC = "enriched topic"  # a topic that one of the owner's rules names
_MAX_TOKENS = {"topic": 500, ENRICHED_TOPIC: 500, "main": 600, "direct": 600}  # tokens
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


NAMES: Mapping[str, str] = {
    "AC-1a": "a topic loads SOUL.md and TOOLS_COMPACT.md, at most 500 tokens",
    "AC-1b": "so does a topic that a rule of yours names",
    "AC-2": "your direct session loads SOUL.md, USER.md and TOOLS_COMPACT.md, at most 600 tokens",
    "AC-3": "what MEMORY.md knows is answered without it being loaded",
    "AC-4": "a subagent loads SOUL.md alone",
    "AC-5": "every kind of session loads what its rule names",
    "AC-6": "TOOLS_COMPACT.md has what is looked up, and no prose",
    "AC-7": "the wisdom in SOUL.md is general, short and grounded",
    "AC-8": "everything can be taken back",
    "AC-9": "a topic gets at what is not loaded there",
}


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
    for name, check in _CHECKS.items():
        verdict, evidence, todo = check(seen)
        yield Criterion(name, NAMES[name], verdict, tuple(evidence), todo)


_Result = tuple[Verdict, Sequence[str], str]


# ---------------------------------------------------------------- files by the host's report


def _check_topic(observations: Observations) -> _Result:
    return _check_files(observations, ("topic",), {SOUL, COMPACT})


def _check_enriched_topic(observations: Observations) -> _Result:
    rules: Sequence[Override] = observations.migration.memory.config.sessions.rules
    if not rules:
        return "BLOCKED", ("no rule of sessions.rules names a topic",), "Go on without it: --waive AC-1b"
    return _check_files(observations, (ENRICHED_TOPIC,), {SOUL, COMPACT})


def _check_direct(observations: Observations) -> _Result:
    return _check_files(observations, ("direct", "main"), {SOUL, "USER.md", COMPACT})


def _check_subagent(observations: Observations) -> _Result:
    return _check_files(observations, ("subagent",), {SOUL})


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
        compiled = memory.bootstrapped(key, entries, str(workspace), trial=True)
        missing = [
            dropped.source for dropped in compiled.receipt.dropped if dropped.code in ("missing", "empty")
        ]
        if missing:
            yield f"the rule of a {kind} session names what is not there: {', '.join(missing)}"


_OTHER_KEYS = {
    "stranger's": "agent:main:telegram:direct:tacit-nobody",
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


def memory_prompts(migration: Migration) -> Mapping[str, tuple[str, ...]]:
    configured = settings_of(migration.memory.config).memory_prompts
    return dict.fromkeys(configured, (MEMORY,)) or phase_questions.MEMORY_QUESTIONS


def topic_prompts(migration: Migration) -> Mapping[str, tuple[str, ...]]:
    configured = settings_of(migration.memory.config).topic_prompts
    return dict.fromkeys(configured, phase_questions.ANY_FILE) or phase_questions.TOPIC_QUESTIONS


def _check_memory(observations: Observations) -> _Result:
    since = phases.entered_at(observations.migration.lines, "1")
    if not since:
        return "BLOCKED", (f"{MEMORY} is on demand from phase 1",), "Go on: tacit openclaw phase next"
    if observations.migration.place.read(MEMORY) is None:
        return "BLOCKED", (f"there is no {MEMORY}",), "Go on without it: --waive AC-3"
    questions = memory_prompts(observations.migration)
    return _judge_answers(_read_answers(observations, questions, phase_questions.OWNER_SESSION_TYPES, since))


def _check_topic_answers(observations: Observations) -> _Result:
    since = phases.entered_at(observations.migration.lines, "2")
    if not since:
        return (
            "BLOCKED",
            ("files go by the kind of session from phase 2",),
            "Go on: tacit openclaw phase next",
        )
    return _judge_answers(
        _read_answers(observations, topic_prompts(observations.migration), ("forum_topic",), since)
    )


def _read_answers(
    observations: Observations, questions: Mapping[str, tuple[str, ...]], types: Sequence[str], since: str
) -> list[QuestionResult]:
    return phase_questions.find_results(
        observations.migration.memory, observations.migration.place, questions, types, since
    )


def _judge_answers(answers: Sequence[QuestionResult]) -> _Result:
    worst = ("FAIL", "BLOCKED", "PASS")
    evidence = [answer.told for answer in sorted(answers, key=lambda answer: worst.index(answer.verdict))]
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


_CHECKS: Mapping[str, Callable[[Observations], _Result]] = {
    "AC-1a": _check_topic,
    "AC-1b": _check_enriched_topic,
    "AC-2": _check_direct,
    "AC-3": _check_memory,
    "AC-4": _check_subagent,
    "AC-5": _check_every_kind,
    "AC-6": _check_compact_tools,
    "AC-7": _check_wisdom,
    "AC-8": _check_rollback,
    "AC-9": _check_topic_answers,
}


# ---------------------------------------------------------------- conditions


class Condition(NamedTuple):
    what: str
    holds: bool
    evidence: str
    todo: str = ""


# Criteria that are due before the migration leaves a phase.
_DUE_CRITERIA: Mapping[str, tuple[str, ...]] = {
    "0a": (),
    "0b": ("AC-6", "AC-7", "AC-8"),
    "1": ("AC-3", "AC-8"),
    "2": ("AC-1a", "AC-1b", "AC-2", "AC-4", "AC-5", "AC-8", "AC-9"),
    "3": ("AC-8",),
    "4": ("AC-5", "AC-8"),
}


def conditions(migration: Migration, now: datetime, checked: Mapping[str, Criterion]) -> Iterator[Condition]:
    """All conditions for leaving the current phase."""
    phase = migration.standing.phase
    if phase in _PHASE_CHECKS:
        yield from _PHASE_CHECKS[phase](migration)
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
    for name in due_criteria(phase):
        criterion = checked[name]
        waiver = waived.get(name) if criterion.verdict == "BLOCKED" else None
        evidence = f"{criterion.verdict}: {criterion.evidence[0] if criterion.evidence else ''}"
        if waiver is not None:
            evidence = f"BLOCKED; {waiver.by or 'somebody'} goes on without it: {waiver.why}"
        waive_hint = f" To go on without it: tacit openclaw phase next --waive {name} --why TEXT"
        todo = criterion.todo + (waive_hint if criterion.verdict == "BLOCKED" else "")
        yield Condition(
            f"{name}: {criterion.about}", criterion.verdict == "PASS" or waiver is not None, evidence, todo
        )


def _check_prepared(migration: Migration) -> Iterator[Condition]:
    place = migration.place
    manifest = phases.load_backups(place)
    damage = ["there is none"] if manifest is None else list(phases.find_damage(place, manifest))
    summary = f"{len(manifest.copies)} copies of {manifest.taken}" if manifest else ""
    todo = "Begin anew: tacit openclaw phase rollback --phase 0a, then phase next"
    yield Condition("the backups are whole", not damage, "; ".join(damage) or summary, todo)
    yield _check_baseline(migration)
    yield from _check_approved(migration)
    changed = phases.find_changed(place, manifest) if manifest else []
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


def _check_approved(migration: Migration) -> Iterator[Condition]:
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


def _check_applied(migration: Migration) -> Iterator[Condition]:
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
    yield _check_instruction(migration, "memory")
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


def _check_shedding(migration: Migration) -> Iterator[Condition]:
    yield _check_instruction(migration, "shedding")


def _check_tools(migration: Migration) -> Iterator[Condition]:
    yield _check_instruction(migration, "tools")
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
    "0a": _check_prepared,
    "0b": _check_applied,
    "1": _check_memory_on_demand,
    "2": _check_files_by_kind,
    "3": _check_shedding,
    "4": _check_tools,
}


def due_criteria(phase: str) -> tuple[str, ...]:
    """Criteria that must pass before the migration leaves that phase."""
    return _DUE_CRITERIA.get(phase, ())
