"""Do the work that is due.

  commit    seal what a crash left open, commit sealed transcripts and changed notes, tag the day and week,
            delete explore/ branches that are merged and old, push where git.auto_push is on
  extract   learn from conversations that were not learned from yet
  condense  sum up the days, weeks and months that are over and not condensed yet, however long ago
  prune     propose a shorter MEMORY.md where it is over its cap
  archive   move old journal pages to archive/, propose what else may go there
  all       everything that is due, in this order: commit, extract, condense, prune, archive, commit

A second run with nothing new changes nothing. Undo what a run did with `tacit history undo COMMIT`;
what it proposes waits in `tacit review list`. From cron: `tacit run all --if-due --quiet`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from tacit.app import open_home
from tacit.condense.service import CondenseResult
from tacit.errors import Busy, TacitError
from tacit.learn.service import LearnPreview, LearnResult
from tacit.maintenance import WorkResult
from tacit.memory import Memory
from tacit.review import service
from tacit.review.model import ChangeRequest
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option

WORK = ("commit", "extract", "condense", "prune", "archive", "all")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WORK", choices=WORK, help=", ".join(WORK))
    parser.add_argument("--dry-run", action="store_true", help="show what would change and do nothing")
    parser.add_argument(
        "--if-due",
        action="store_true",
        help="commit only if lifecycle.commit_interval_minutes have passed, the rest by its schedule",
    )
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.dry_run:
        return _dry_run(memory, options)
    if options.what == "commit" and options.if_due and not memory.services.maintenance.is_commit_due():
        return _report(memory, memory.recover(), options)
    try:
        return _report(memory, _do_work(memory, options), options)
    except Busy:
        if not options.if_due:
            raise
        return 0  # cron tries again, and the process that holds the lock does the same work


def _do_work(memory: Memory, options: argparse.Namespace) -> WorkResult:
    task = options.what
    if task == "commit":
        return memory.commit()
    if task == "all":
        return memory.work(if_due=options.if_due)
    if task == "extract":
        with output.progress("learning", quiet=options.quiet or options.json) as tick:
            learnt = memory.services.extractor.learn_pending(tick=tick, again=not options.if_due)
        return WorkResult(commits=learnt.commits, learnt=learnt)
    periods = memory.services.condenser.find_due_periods() if task == "condense" else []
    summed = memory.services.condenser.condense(periods, prune=task == "prune", archive=task == "archive")
    return WorkResult(commits=summed.commits, summed=summed, waiting=summed.waiting)


# ---------------------------------------------------------------- dry run


def _dry_run(memory: Memory, options: argparse.Namespace) -> int:
    task = options.what
    commits = _pending_commits(memory) if task in ("commit", "all") else []
    learn = memory.services.extractor.preview() if task in ("extract", "all") else LearnPreview((), (), ())
    summed = CondenseResult()
    if task not in ("commit", "extract"):
        periods = memory.services.condenser.find_due_periods() if task in ("condense", "all") else []
        by_schedule = task == "all" and memory.services.condenser.is_prune_due()
        prune, archive = task == "prune" or by_schedule, task == "archive" or by_schedule
        summed = memory.services.condenser.condense(periods, prune=prune, archive=archive, dry_run=True)
    left_out = memory.services.note_committer.note_changes().left if task in ("commit", "all") else ()
    if options.json:
        output.dump({
            "would_commit": [path for _, path in commits],
            "would_add": [
                {"path": change.path, "line": change.line, "policy": policy}
                for change, policy in learn.changes
            ],
            "would_change": [{"path": edit.path} for edit in summed.edits],
            "would_propose": [{"target": draft.target, "reason": draft.reason} for draft in summed.drafts],
            "periods": summed.periods,
            "left": [str(item) for item in left_out],
        })  # fmt: skip
        return 0
    output.print_table(commits)
    output.print_table(
        (f"would add ({policy})" if policy != "auto" else "would add", change.path, change.line)
        for change, policy in learn.changes
    )
    if diff := service.render_diff(list(summed.edits)):
        output.say(diff)
    for draft in summed.drafts:
        output.say(f"would propose ({draft.category}): {draft.reason}\n{_preview_draft(memory, draft)}\n")
    output.print_problems(left_out)
    if not (commits or learn.changes or summed.edits or summed.drafts):
        output.say("Nothing to commit." if task == "commit" else "Nothing to do.")
    return 0


def _preview_draft(memory: Memory, draft: ChangeRequest) -> str:
    """The diff that approving the draft would make."""
    try:
        return service.render_diff(memory.services.review.plan_edits(draft))
    except TacitError as error:
        return str(error)


def _pending_commits(memory: Memory) -> list[tuple[str, str]]:
    rows = [("add", path) for path in memory.services.maintenance.list_uncommitted_transcripts()]
    return rows + [(edit.verb, edit.path) for edit in memory.services.note_committer.note_changes().edits]


# ---------------------------------------------------------------- report


def _report(memory: Memory, work: WorkResult, options: argparse.Namespace) -> int:
    failed = work.learnt.failed if work.learnt else ()
    if options.json:
        output.dump(_as_json(work))
    else:
        if not options.quiet:
            _say(work)
            _say_branch(work, memory.git.branch(), memory.config.git.branch)
        output.print_problems(work.problems)
        for reason in failed:
            output.warn(f"warning: not learned yet, tacit will try again: {reason}")
    return 1 if work.waiting or failed else 0


def _as_json(work: WorkResult) -> dict[str, object]:
    value: dict[str, object] = {
        "sealed": work.sealed,
        "commits": work.commits,
        "tags": work.tags,
        "branches_deleted": work.branches,
        "waiting": work.waiting,
        "problems": [str(problem) for problem in work.problems],
    }
    if work.learnt:
        added = [{"path": change.path, "line": change.line} for change in work.learnt.added]
        value["learned"] = {**asdict(work.learnt), "added": added}
    if work.summed:
        summed = work.summed
        value["condensed"] = {
            "periods": summed.periods,
            "paths": [edit.path for edit in summed.edits],
            "drafts": [draft.id for draft in summed.drafts],
            "notes": summed.notes,
        }
    return value


def _say(work: WorkResult) -> None:
    output.print_table(("sealed after a crash", path) for path in work.sealed)
    for line in (*_learnt_lines(work.learnt), *_condensed_lines(work.summed)):
        output.say(line)
    output.print_table(("commit", name[:10]) for name in work.commits)
    output.print_table(("tag", name) for name in work.tags)
    output.print_table(("deleted branch", name) for name in work.branches)
    if work.waiting:
        is_summed = work.summed is not None and work.summed.waiting == work.waiting
        output.say(f"{'Not condensed' if is_summed else 'Not committed'}: {work.waiting}.")
    elif not work.changed and not _has_proposals(work) and not (work.learnt and work.learnt.failed):
        output.say("Nothing to do.")


def _has_proposals(work: WorkResult) -> bool:
    return bool(
        (work.learnt and (work.learnt.drafts or work.learnt.added)) or (work.summed and work.summed.drafts)
    )


def _learnt_lines(learnt: LearnResult | None) -> Iterator[str]:
    if learnt is None or not learnt.sessions:
        return
    yield (
        f"learned from {output.pluralize(len(learnt.sessions), 'conversation')}: "
        f"{output.pluralize(len(learnt.added), 'line')} added, {learnt.superseded} superseded"
    )
    if learnt.drafts:
        yield f"{output.pluralize(len(learnt.drafts), 'draft')} for you to look at: tacit review list"


def _condensed_lines(summed: CondenseResult | None) -> Iterator[str]:
    if summed is None:
        return
    if summed.periods:
        yield f"condensed: {', '.join(summed.periods)}"
    for edit in summed.edits:
        yield f"  {'moved away' if edit.new is None else 'wrote'} {edit.path}"
    for draft in summed.drafts:
        yield f"  proposes {draft.id}: {draft.reason} (tacit review show {draft.id})"


def _say_branch(work: WorkResult, branch: str | None, main: str) -> None:
    if work.commits and branch != main:
        output.say(f"This is on {branch}, not on {main}; it comes to {main} when you merge it.")
