"""From the host's files to tacit's in steps, each watched before the next and each to be taken back.

  status      where the migration is, and what must hold before it goes on
  next        go on: prepare (0a), apply drafts (0b), MEMORY.md on demand (1), files by the kind of
              session (2), when to let go of files (3), when to read TOOLS.md (4)
  check       the criteria AC-1a to AC-9, each PASS, FAIL or BLOCKED with its evidence
  note        what you saw: worked or failed; a failure begins the time of watching anew
  rollback    take this phase back, or all from --phase on; --all the whole

Everything is recorded in initiatives/adaptive-context-injection/phases.jsonl of the workspace, beside the
backups and the drafts. Nothing that somebody wrote since is overwritten unless --force says so, and then it
is kept. `tacit openclaw install` alone does all of this at once.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping

from tacit.app import open_home
from tacit.cli import output, reviewing
from tacit.cli.dispatch import words
from tacit.cli.reviewing import opened
from tacit.errors import HostError, UsageError
from tacit.openclaw import find
from tacit.openclaw.phases import conditions, entering, report, rollback
from tacit.openclaw.phases.conditions import Condition
from tacit.openclaw.phases.criteria import NAMES, Criterion
from tacit.openclaw.phases.migration import Migration
from tacit.openclaw.phases.stages import ABOUT, DONE, NONE, ORDER

_PHASES = tuple(one for one in ORDER if one not in (NONE, DONE))
_FIRST = "0"  # as people call the first two together


def arguments(parser: argparse.ArgumentParser) -> None:
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    for name, (_, about) in _STEPS.items():
        step = steps.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
        if name in ("next", "note", "rollback"):
            reviewing.by_option(step, required=False)
        _OPTIONS.get(name, lambda _: None)(step)
        reviewing.options(step)
        step.add_argument("--openclaw", metavar="PATH", help="the host's command (default: on PATH)")


def _next_options(step: argparse.ArgumentParser) -> None:
    step.add_argument("--waive", choices=tuple(NAMES), help="go on although this is BLOCKED; needs --why")
    step.add_argument("--why", type=words, default="", metavar="TEXT", help="why, for the record")


def _check_options(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--ask", action="store_true", help="ask the agent what it was not asked yet; costs turns"
    )


def _note_options(step: argparse.ArgumentParser) -> None:
    step.add_argument("what", choices=("worked", "failed"))
    step.add_argument("text", type=words, help="what you saw")


def _rollback_options(step: argparse.ArgumentParser) -> None:
    which = step.add_mutually_exclusive_group()
    which.add_argument(
        "--phase", choices=(_FIRST, *_PHASES), help="this one and all after it (default: the last)"
    )
    which.add_argument("--all", action="store_true", help="the whole migration")
    step.add_argument("--force", action="store_true", help="also over newer edits, which are kept")
    step.add_argument("--dry-run", action="store_true", help="only say what it would do")


def run(options: argparse.Namespace) -> int:
    return _STEPS[options.step][0](options)


def _migration(options: argparse.Namespace) -> Migration:
    memory = open_home(options.home, recover=False)
    try:
        host = find.find(os.environ, options.openclaw)
    except HostError:
        if options.openclaw:
            raise
        host = None  # what needs it says so
    return Migration(opened(options), memory, host, os.environ)


# ---------------------------------------------------------------- status


def _status(options: argparse.Namespace) -> int:
    migration = _migration(options)
    found = _conditions(migration, report.last(migration))
    now = migration.standing
    if options.json:
        output.dump(_value(migration, found))
        return 0
    rows = [
        ("phase", f"{now.phase}: {ABOUT[now.phase]}" + (f", since {now.since[:16]}" if now.since else ""))
    ]
    if now.entering:
        rows.append(("begun", f"{now.entering}, and cut short. Go on: tacit openclaw phase next"))
    rows += [("files", f"inject.files is {migration.files}"), ("workspace", str(migration.place.root))]
    if now.phase != DONE:
        rows.append(("next", f"{now.next}: {ABOUT[now.next]}"))
    output.table(rows, indent="")
    if found:
        output.say("\nBefore that:")
        _say_conditions(found)
    return 0


def _conditions(migration: Migration, checked: Mapping[str, Criterion]) -> list[Condition]:
    if migration.standing.phase in (NONE, DONE):
        return []
    return list(conditions.conditions(migration, migration.place.now(), checked))


def _value(migration: Migration, found: Iterable[Condition]) -> dict[str, object]:
    now = migration.standing
    return {
        "phase": now.phase,
        "since": now.since or None,
        "entering": now.entering or None,
        "next": now.next,
        "files": migration.files,
        "workspace": str(migration.place.root),
        "conditions": [one._asdict() for one in found],
    }


def _say_conditions(found: Iterable[Condition]) -> None:
    for one in found:
        output.say(f"  {'yes' if one.holds else 'no ':<3}  {one.what}")
        output.say(f"       {one.evidence}")
        if not one.holds and one.todo:
            output.say(f"       {one.todo}")


# ---------------------------------------------------------------- next


def _next(options: argparse.Namespace) -> int:
    migration = _migration(options)
    _waive(migration, options)
    now = migration.standing
    if now.phase == DONE:
        return _told(migration, options, "The migration is finished.")
    # What phase 0b does makes untrue that nothing live was changed, so it goes on where it was cut short.
    if now.entering != "0b":
        checked = {one.name: one for one in report.check(migration)} if conditions.due(now.phase) else {}
        lacking = [one for one in _conditions(migration, checked) if not one.holds]
        if lacking:
            return _refused(migration, lacking, options)
    say = (lambda _: None) if options.json else output.say
    entering.enter(entering.Doing(migration, options.by, say), now.next)
    return _told(migration, options, f"Phase {now.next}: {ABOUT[now.next]}.")


def _waive(migration: Migration, options: argparse.Namespace) -> None:
    if options.waive and not options.why:
        raise UsageError("Say why it is left out, for the record: --why TEXT")
    if options.waive:
        phase = migration.standing.phase
        migration.note("waived", phase, by=options.by, why=options.why, criterion=options.waive)


def _refused(migration: Migration, lacking: list[Condition], options: argparse.Namespace) -> int:
    if options.json:
        output.dump(_value(migration, lacking))
        return 1
    now = migration.standing
    output.say(f"Phase {now.phase} cannot be left yet:")
    _say_conditions(lacking)
    return 1


def _told(migration: Migration, options: argparse.Namespace, text: str) -> int:
    if options.json:
        output.dump(_value(migration, ()))
        return 0
    output.say(text)
    if migration.standing.phase != DONE:
        output.say("What must hold before the next: tacit openclaw phase status")
    return 0


# ---------------------------------------------------------------- check


def _check(options: argparse.Namespace) -> int:
    migration = _migration(options)
    if options.ask:
        report.ask(migration, (lambda _: None) if options.json else output.say)
    found = report.check(migration)
    if options.json:
        output.dump([one._asdict() for one in found])
    else:
        _say_criteria(found)
        output.say(f"\nKept in {migration.place.root / report.REPORT}")
    return 1 if any(one.verdict == "FAIL" for one in found) else 0


def _say_criteria(found: Iterable[Criterion]) -> None:
    for one in found:
        output.say(f"{one.name:<6} {one.verdict:<8} {one.about}")
        for told in one.evidence:
            output.say(f"                {told}")
        if one.todo:
            output.say(f"                → {one.todo}")


# ---------------------------------------------------------------- note, rollback


def _note(options: argparse.Namespace) -> int:
    migration = _migration(options)
    phase = migration.standing.phase
    if phase == NONE:
        raise UsageError("No migration was begun. Begin: tacit openclaw phase next")
    migration.note(options.what, phase, by=options.by, why=options.text)
    more = "The time of watching begins anew." if options.what == "failed" else "Thank you."
    return _told(migration, options, f"Recorded for phase {phase}. {more}")


def _rollback(options: argparse.Namespace) -> int:
    migration = _migration(options)
    now = migration.standing
    last = now.entering or now.phase
    phase = (
        "0a" if options.all or options.phase == _FIRST else options.phase or ("4" if last == DONE else last)
    )
    if phase == NONE:
        raise UsageError("No migration was begun, so there is nothing to take back.")
    back = rollback.planned(migration, phase, force=options.force)
    if options.dry_run:
        return _say_back(back, options, "Would go back to", ())
    kept = rollback.done(migration, back, options.by, force=options.force)
    return _say_back(back, options, "Went back to", kept)


def _say_back(back: rollback.Back, options: argparse.Namespace, what: str, kept: Iterable[str]) -> int:
    if options.json:
        output.dump({**back._asdict(), "kept": list(kept), "dry_run": options.dry_run})
        return 1 if back.refused else 0
    output.say(f"{what} phase {back.to}: {ABOUT[back.to]}.")
    for line in back.lines:
        output.say(f"  {line}")
    for line in back.refused:
        output.say(f"  refused: {line}")
    for path in kept:
        output.say(f"  kept what was there: {path}")
    if back.to == NONE:
        output.say(
            "Backups, drafts and the evidence stay. To take tacit out of the host: tacit openclaw uninstall"
        )
    return 1 if back.refused else 0


_STEPS = {
    "status": (_status, "where the migration is, and what must hold before it goes on"),
    "next": (_next, "go on to the next phase, if everything holds"),
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
