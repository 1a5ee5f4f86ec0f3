"""`tacit openclaw phase`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping

from tacit.app import open_home
from tacit.errors import HostError, UsageError
from tacit.hosts.openclaw import phase_conditions, phase_criteria, phase_questions, phase_steps
from tacit.hosts.openclaw.commands.drafts import add_by_option, add_workspace_options, open_from_options
from tacit.hosts.openclaw.machine import find_host
from tacit.hosts.openclaw.phase_conditions import Condition
from tacit.hosts.openclaw.phase_criteria import NAMES, Criterion
from tacit.hosts.openclaw.phases import DONE, NONE, ORDER, PHASES, Migration
from tacit.terminal import output
from tacit.terminal.arguments import utf8_argument

_PHASES = tuple(phase for phase in ORDER if phase not in (NONE, DONE))
_PREPARATION = "0"  # what people call the first two together


def phase_arguments(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    for name, (_, about) in _STEPS.items():
        step = steps.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        if name in ("next", "note", "rollback"):
            add_by_option(step, required=False)
        _OPTIONS.get(name, lambda _: None)(step)
        add_workspace_options(step)
        step.add_argument("--openclaw", metavar="PATH", help="the host's command (default: on PATH)")


def _next_options(step: argparse.ArgumentParser) -> None:
    step.add_argument("--waive", choices=NAMES, help="go on although this is BLOCKED; needs --why")
    step.add_argument("--why", type=utf8_argument, default="", metavar="TEXT", help="why, for the record")


def _check_options(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--ask", action="store_true", help="ask the agent what it was not asked yet; costs turns"
    )


def _note_options(step: argparse.ArgumentParser) -> None:
    step.add_argument("what", choices=("worked", "failed"))
    step.add_argument("text", type=utf8_argument, help="what you saw")


def _rollback_options(step: argparse.ArgumentParser) -> None:
    which = step.add_mutually_exclusive_group()
    which.add_argument(
        "--phase", choices=(_PREPARATION, *_PHASES), help="this one and all after it (default: the last)"
    )
    which.add_argument("--all", action="store_true", help="the whole migration")
    step.add_argument("--force", action="store_true", help="also over newer edits, which are kept")
    step.add_argument("--dry-run", action="store_true", help="only say what it would do")


def run_phase(options: argparse.Namespace) -> int:
    """From the host's files to tacit's in steps. Each is watched before the next, and can be taken back.

      status      where the migration is, and what must hold before it goes on
      next        go on: prepare (0a), apply drafts (0b), MEMORY.md on demand (1), files by the kind of
                  session (2), when to let go of files (3), when to read TOOLS.md (4)
      check       the criteria AC-1a to AC-9, each PASS, FAIL or BLOCKED with its evidence
      note        what you saw: worked or failed; a failure begins the watching time anew
      rollback    take this phase back, or all from --phase on; --all the whole

    Everything is recorded in initiatives/adaptive-context-injection/phases.jsonl of the workspace, beside the
    backups and the drafts. Newer edits are overwritten only with --force, and then a copy is kept.
    `tacit openclaw install` alone does all of this at once.
    """
    return _STEPS[options.step][0](options)


def _migration(options: argparse.Namespace) -> Migration:
    memory = open_home(options.home, recover=False)
    try:
        host = find_host(os.environ, options.openclaw)
    except HostError:
        if options.openclaw:
            raise
        host = None  # the steps that need it say so
    return Migration(open_from_options(options), memory, host, os.environ)


# ---------------------------------------------------------------- status


def _status(options: argparse.Namespace) -> int:
    migration = _migration(options)
    checks = _list_conditions(migration, phase_criteria.last_results(migration))
    now = migration.standing
    if options.json:
        output.dump(_status_json(migration, checks))
        return 0
    rows = [
        (
            "phase",
            f"{now.phase}: {PHASES[now.phase].about}" + (f", since {now.since[:16]}" if now.since else ""),
        )
    ]
    if now.entering:
        rows.append(("begun", f"{now.entering}, and cut short. Go on: tacit openclaw phase next"))
    rows += [("files", f"inject.files is {migration.files}"), ("workspace", str(migration.place.root))]
    if now.phase != DONE:
        rows.append(("next", f"{now.next}: {PHASES[now.next].about}"))
    output.print_table(rows, indent="")
    if checks:
        output.say("\nBefore that:")
        _say_conditions(checks)
    return 0


def _list_conditions(migration: Migration, checked: Mapping[str, Criterion]) -> list[Condition]:
    if migration.standing.phase in (NONE, DONE):
        return []
    return list(phase_conditions.conditions(migration, migration.place.now(), checked))


def _status_json(migration: Migration, checks: Iterable[Condition]) -> dict[str, object]:
    now = migration.standing
    return {
        "phase": now.phase,
        "since": now.since or None,
        "entering": now.entering or None,
        "next": now.next,
        "files": migration.files,
        "workspace": str(migration.place.root),
        "conditions": [condition._asdict() for condition in checks],
    }


def _say_conditions(checks: Iterable[Condition]) -> None:
    for condition in checks:
        output.say(f"  {'yes' if condition.holds else 'no ':<3}  {condition.what}")
        output.say(f"       {condition.evidence}")
        if not condition.holds and condition.todo:
            output.say(f"       {condition.todo}")


# ---------------------------------------------------------------- next


def _enter_next(options: argparse.Namespace) -> int:
    migration = _migration(options)
    _waive(migration, options)
    now = migration.standing
    if now.phase == DONE:
        return _say_result(migration, options, "The migration is finished.")
    # Phase 0b itself breaks the condition that nothing live was changed, so it resumes without a check.
    if now.entering != "0b":
        checked = (
            {criterion.name: criterion for criterion in phase_criteria.run_checks(migration)}
            if PHASES[now.phase].criteria
            else {}
        )
        unmet = [condition for condition in _list_conditions(migration, checked) if not condition.holds]
        if unmet:
            return _refuse(migration, unmet, options)
    say = (lambda _: None) if options.json else output.say
    phase_steps.enter(phase_steps.PhaseEntry(migration, options.by, say), now.next)
    return _say_result(migration, options, f"Phase {now.next}: {PHASES[now.next].about}.")


def _waive(migration: Migration, options: argparse.Namespace) -> None:
    if options.waive and not options.why:
        raise UsageError("Say why it is left out, for the record: --why TEXT")
    if options.waive:
        phase = migration.standing.phase
        migration.note("waived", phase, by=options.by, why=options.why, criterion=options.waive)


def _refuse(migration: Migration, unmet: list[Condition], options: argparse.Namespace) -> int:
    if options.json:
        output.dump(_status_json(migration, unmet))
        return 1
    now = migration.standing
    output.say(f"Phase {now.phase} cannot be left yet:")
    _say_conditions(unmet)
    return 1


def _say_result(migration: Migration, options: argparse.Namespace, text: str) -> int:
    if options.json:
        output.dump(_status_json(migration, ()))
        return 0
    output.say(text)
    if migration.standing.phase != DONE:
        output.say("What must hold before the next: tacit openclaw phase status")
    return 0


# ---------------------------------------------------------------- check


def _check(options: argparse.Namespace) -> int:
    migration = _migration(options)
    if options.ask:
        phase_questions.ask_open_questions(migration, (lambda _: None) if options.json else output.say)
    criteria = phase_criteria.run_checks(migration)
    if options.json:
        output.dump([criterion._asdict() for criterion in criteria])
    else:
        _say_criteria(criteria)
        output.say(f"\nKept in {migration.place.root / phase_criteria.REPORT_FILE}")
    return 1 if any(criterion.verdict == "FAIL" for criterion in criteria) else 0


def _say_criteria(criteria: Iterable[Criterion]) -> None:
    for criterion in criteria:
        output.say(f"{criterion.name:<6} {criterion.verdict:<8} {criterion.about}")
        for line in criterion.evidence:
            output.say(f"                {line}")
        if criterion.todo:
            output.say(f"                → {criterion.todo}")


# ---------------------------------------------------------------- note, rollback


def _note(options: argparse.Namespace) -> int:
    migration = _migration(options)
    phase = migration.standing.phase
    if phase == NONE:
        raise UsageError("No migration was begun. Begin: tacit openclaw phase next")
    migration.note(options.what, phase, by=options.by, why=options.text)
    remark = "The time of watching begins anew." if options.what == "failed" else "Thank you."
    return _say_result(migration, options, f"Recorded for phase {phase}. {remark}")


def _rollback(options: argparse.Namespace) -> int:
    migration = _migration(options)
    now = migration.standing
    last = now.entering or now.phase
    phase = (
        "0a"
        if options.all or options.phase == _PREPARATION
        else options.phase or ("4" if last == DONE else last)
    )
    if phase == NONE:
        raise UsageError("No migration was begun, so there is nothing to take back.")
    plan = phase_steps.plan(migration, phase, force=options.force)
    if options.dry_run:
        return _say_rollback(plan, options, "Would go back to", ())
    backups = phase_steps.apply(migration, plan, options.by, force=options.force)
    return _say_rollback(plan, options, "Went back to", backups)


def _say_rollback(
    plan: phase_steps.RollbackPlan, options: argparse.Namespace, headline: str, backups: Iterable[str]
) -> int:
    if options.json:
        output.dump({**plan._asdict(), "kept": list(backups), "dry_run": options.dry_run})
        return 1 if plan.refused else 0
    output.say(f"{headline} phase {plan.to}: {PHASES[plan.to].about}.")
    for line in plan.lines:
        output.say(f"  {line}")
    for line in plan.refused:
        output.say(f"  refused: {line}")
    for path in backups:
        output.say(f"  kept what was there: {path}")
    if plan.to == NONE:
        output.say(
            "Backups, drafts and the evidence stay. To take tacit out of the host: tacit openclaw uninstall"
        )
    return 1 if plan.refused else 0


_STEPS = {
    "status": (_status, "where the migration is, and what must hold before it goes on"),
    "next": (_enter_next, "go on to the next phase, if everything holds"),
    "check": (_check, "the criteria AC-1a to AC-9, each PASS, FAIL or BLOCKED with its evidence"),
    "note": (_note, "record what you saw"),
    "rollback": (_rollback, "take phases back"),
}
_OPTIONS = {
    "next": _next_options,
    "check": _check_options,
    "note": _note_options,
    "rollback": _rollback_options,
}
