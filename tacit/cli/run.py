"""Do the work that is due.

  commit  seal what a crash left open, commit sealed transcripts and changed notes, tag the day and week,
          delete explore/ branches that are merged and old, push where git.auto_push is on
  all     the same; later steps of the lifecycle join it

A second run with nothing new changes nothing. From cron, use `tacit run commit --if-due`.
"""

from __future__ import annotations

import argparse

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.memory import Memory, Worked


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WORK", choices=("commit", "all"), help="commit or all")
    parser.add_argument("--dry-run", action="store_true", help="say what would be committed and do nothing")
    parser.add_argument(
        "--if-due", action="store_true", help="only if lifecycle.commit_interval_minutes have passed"
    )
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.dry_run:
        return _would(memory, options)
    due = memory.commit_due() if options.if_due else True
    return _tell(memory, memory.work() if due else memory.recover(), options)


def _would(memory: Memory, options: argparse.Namespace) -> int:
    found = memory.note_changes()
    rows = [("add", path) for path in memory.transcripts_to_commit()]
    rows += [(edit.verb, edit.path) for edit in found.edits]
    if options.json:
        output.dump({"would_commit": [path for _, path in rows], "left": [str(item) for item in found.left]})
        return 0
    output.table(rows)
    output.problems(found.left)
    if not rows:
        output.say("Nothing to commit.")
    return 0


def _tell(memory: Memory, done: Worked, options: argparse.Namespace) -> int:
    if options.json:
        output.dump(
            {
                "sealed": done.sealed,
                "commits": done.commits,
                "tags": done.tags,
                "branches_deleted": done.branches,
                "waiting": done.waiting,
                "problems": [str(problem) for problem in done.problems],
            }
        )
    else:
        if not options.quiet:
            _say(done)
            _say_branch(done, memory.git.branch(), memory.config.git.branch)
        output.problems(done.problems)
    return 1 if done.waiting else 0


def _say(done: Worked) -> None:
    output.table(("sealed after a crash", path) for path in done.sealed)
    output.table(("commit", name[:10]) for name in done.commits)
    output.table(("tag", name) for name in done.tags)
    output.table(("deleted branch", name) for name in done.branches)
    if done.waiting:
        output.say(f"Not committed: {done.waiting}.")
    elif not done.changed:
        output.say("Nothing to do.")


def _say_branch(done: Worked, branch: str | None, main: str) -> None:
    if done.commits and branch != main:
        output.say(f"This is on {branch}, not on {main}; it comes to {main} when you merge it.")
