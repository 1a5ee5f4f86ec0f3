"""Do the work that is due.

  commit    seal what a crash left open, commit sealed transcripts and changed notes, tag the day and week,
            delete explore/ branches that are merged and old, push where git.auto_push is on
  extract   learn from conversations that were not learned from yet
  condense  sum up the days, weeks and months that are over and not condensed yet, however long ago
  prune     propose a shorter MEMORY.md where it is over its cap
  archive   move old journal pages to archive/, propose what else may go there
  all       everything that is due, in this order: commit, extract, condense, prune, archive, commit

A second run with nothing new changes nothing. What a run did is taken back by `tacit history undo COMMIT`,
what it proposes waits in `tacit review list`. From cron: `tacit run all --if-due --quiet`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.errors import Busy, TacitError
from tacit.memory import Memory, Worked, reviewing
from tacit.memory.condensing import Summed, condense, due_periods, prune_is_due
from tacit.memory.learning import Learnt, Would, learn_pending, would_learn
from tacit.model.review import Draft

WORK = ("commit", "extract", "condense", "prune", "archive", "all")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WORK", choices=WORK, help=", ".join(WORK))
    parser.add_argument("--dry-run", action="store_true", help="show what would change and do nothing")
    parser.add_argument(
        "--if-due",
        action="store_true",
        help="commit only if lifecycle.commit_interval_minutes have passed, the rest by its schedule",
    )
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.dry_run:
        return _dry_run(memory, options)
    if options.what == "commit" and options.if_due and not memory.commit_due():
        return _tell(memory, memory.recover(), options)
    try:
        return _tell(memory, _worked(memory, options), options)
    except Busy:
        if not options.if_due:
            raise
        return 0  # cron comes again, and whoever is at it does the same


def _worked(memory: Memory, options: argparse.Namespace) -> Worked:
    what = options.what
    if what == "commit":
        return memory.commit()
    if what == "all":
        return memory.work(if_due=options.if_due)
    if what == "extract":
        with output.progress("learning", quiet=options.quiet or options.json) as tick:
            learnt = learn_pending(memory, tick=tick, again=not options.if_due)
        return Worked(commits=learnt.commits, learnt=learnt)
    periods = due_periods(memory) if what == "condense" else []
    summed = condense(memory, periods, prune=what == "prune", archive=what == "archive")
    return Worked(commits=summed.commits, summed=summed, waiting=summed.waiting)


# ---------------------------------------------------------------- what would be done


def _dry_run(memory: Memory, options: argparse.Namespace) -> int:
    what = options.what
    commits = _would_commit(memory) if what in ("commit", "all") else []
    learn = would_learn(memory) if what in ("extract", "all") else Would((), (), ())
    summed = Summed()
    if what not in ("commit", "extract"):
        periods = due_periods(memory) if what in ("condense", "all") else []
        by_schedule = what == "all" and prune_is_due(memory)
        prune, archive = what == "prune" or by_schedule, what == "archive" or by_schedule
        summed = condense(memory, periods, prune=prune, archive=archive, dry_run=True)
    left = memory.note_changes().left if what in ("commit", "all") else ()
    if options.json:
        output.dump({
            "would_commit": [path for _, path in commits],
            "would_add": [{"path": one.path, "line": one.line, "policy": how} for one, how in learn.changes],
            "would_change": [{"path": edit.path} for edit in summed.edits],
            "would_propose": [{"target": one.target, "reason": one.reason} for one in summed.drafts],
            "periods": summed.periods,
            "left": [str(item) for item in left],
        })  # fmt: skip
        return 0
    output.table(commits)
    output.table(
        (f"would add ({how})" if how != "auto" else "would add", one.path, one.line)
        for one, how in learn.changes
    )
    if diff := reviewing.diff_of(list(summed.edits)):
        output.say(diff)
    for draft in summed.drafts:
        output.say(f"would propose ({draft.category}): {draft.reason}\n{_proposed(memory, draft)}\n")
    output.problems(left)
    if not (commits or learn.changes or summed.edits or summed.drafts):
        output.say("Nothing to commit." if what == "commit" else "Nothing to do.")
    return 0


def _proposed(memory: Memory, draft: Draft) -> str:
    """What approving it would change."""
    try:
        return reviewing.diff_of(reviewing.edits_of(memory, draft))
    except TacitError as error:
        return str(error)


def _would_commit(memory: Memory) -> list[tuple[str, str]]:
    rows = [("add", path) for path in memory.transcripts_to_commit()]
    return rows + [(edit.verb, edit.path) for edit in memory.note_changes().edits]


# ---------------------------------------------------------------- what was done


def _tell(memory: Memory, done: Worked, options: argparse.Namespace) -> int:
    failed = done.learnt.failed if done.learnt else ()
    if options.json:
        output.dump(_value(done))
    else:
        if not options.quiet:
            _say(done)
            _say_branch(done, memory.git.branch(), memory.config.git.branch)
        output.problems(done.problems)
        for why in failed:
            output.warn(f"warning: not learned yet, it is tried again: {why}")
    return 1 if done.waiting or failed else 0


def _value(done: Worked) -> dict[str, object]:
    value: dict[str, object] = {
        "sealed": done.sealed,
        "commits": done.commits,
        "tags": done.tags,
        "branches_deleted": done.branches,
        "waiting": done.waiting,
        "problems": [str(problem) for problem in done.problems],
    }
    if done.learnt:
        added = [{"path": one.path, "line": one.line} for one in done.learnt.added]
        value["learned"] = {**asdict(done.learnt), "added": added}
    if done.summed:
        summed = done.summed
        value["condensed"] = {
            "periods": summed.periods,
            "paths": [edit.path for edit in summed.edits],
            "drafts": [draft.id for draft in summed.drafts],
            "notes": summed.notes,
        }
    return value


def _say(done: Worked) -> None:
    output.table(("sealed after a crash", path) for path in done.sealed)
    for line in (*_said_learnt(done.learnt), *_said_summed(done.summed)):
        output.say(line)
    output.table(("commit", name[:10]) for name in done.commits)
    output.table(("tag", name) for name in done.tags)
    output.table(("deleted branch", name) for name in done.branches)
    if done.waiting:
        is_summed = done.summed is not None and done.summed.waiting == done.waiting
        output.say(f"{'Not condensed' if is_summed else 'Not committed'}: {done.waiting}.")
    elif not done.changed and not _proposes(done) and not (done.learnt and done.learnt.failed):
        output.say("Nothing to do.")


def _proposes(done: Worked) -> bool:
    return bool(
        (done.learnt and (done.learnt.drafts or done.learnt.added)) or (done.summed and done.summed.drafts)
    )


def _said_learnt(learnt: Learnt | None) -> Iterator[str]:
    if learnt is None or not learnt.sessions:
        return
    yield (
        f"learned from {output.plural(len(learnt.sessions), 'conversation')}: "
        f"{output.plural(len(learnt.added), 'line')} added, {learnt.superseded} superseded"
    )
    if learnt.drafts:
        yield f"{output.plural(len(learnt.drafts), 'draft')} for you to look at: tacit review list"


def _said_summed(summed: Summed | None) -> Iterator[str]:
    if summed is None:
        return
    if summed.periods:
        yield f"condensed: {', '.join(summed.periods)}"
    for edit in summed.edits:
        yield f"  {'moved away' if edit.new is None else 'wrote'} {edit.path}"
    for draft in summed.drafts:
        yield f"  proposes {draft.id}: {draft.reason} (tacit review show {draft.id})"


def _say_branch(done: Worked, branch: str | None, main: str) -> None:
    if done.commits and branch != main:
        output.say(f"This is on {branch}, not on {main}; it comes to {main} when you merge it.")
