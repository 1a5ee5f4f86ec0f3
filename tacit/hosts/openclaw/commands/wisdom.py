"""Turn lessons into the `## Wisdom` section of SOUL.md: a few patterns that every session sees.

  sources  the files with lessons; missing ones are warned about
  draft    propose a section, and ask for a review in DAILY_EXECUTION_QUEUE.md
  check    problems of the draft and of SOUL.md
  approve  approve the draft, word for word as it stands
  promote  put the approved draft into SOUL.md, in place of its wisdom section and of nothing else
  undo     bring back what the last promotion replaced
  due      whether it is time for a new draft: a month, or ten new lessons

Raw lessons stay where they are. No model is asked unless openclaw.wisdom_model names one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeAlias

from tacit.hosts.openclaw import drafts
from tacit.hosts.openclaw.commands import drafts as commands
from tacit.hosts.openclaw.commands.drafts import open_from_options
from tacit.hosts.openclaw.drafts import WISDOM, Found, check_stale_tools
from tacit.hosts.openclaw.workspace import SOUL, AgentWorkspace, propose_as_is
from tacit.review.model import CuratedFile
from tacit.terminal import output
from tacit.terminal.arguments import utf8_argument

Action: TypeAlias = Callable[[AgentWorkspace, argparse.Namespace], int]


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _add_arguments(action, name)
        commands.add_workspace_options(action)


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name in ("sources", "draft"):
        parser.add_argument(
            "--source", type=utf8_argument, action="append", default=[], metavar="FILE",
            help="a further file with lessons, by its path in the workspace; may be repeated",
        )  # fmt: skip
    if name == "draft":
        commands.add_as_is_option(parser)
    if name in ("approve", "promote", "undo"):
        commands.add_by_option(parser, required=name == "approve")


def run(options: argparse.Namespace) -> int:
    _, act = _ACTIONS[options.action]
    return act(open_from_options(options), options)


def _sources(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    results = drafts.read_sources(workspace, options.source)
    if options.json:
        output.dump(
            [
                {"path": result.source.path, "lessons": result.lessons, "problem": result.warning or None}
                for result in results
            ]
        )
        return 0
    output.print_table(
        (result.source.path, output.pluralize(result.lessons, "lesson"))
        for result in results
        if not result.warning
    )
    _warn_of_missing(results)
    return 0


def _warn_of_missing(results: Sequence[Found]) -> None:
    for result in results:
        if result.warning:
            output.warn(f"warning: {result.source.path}: {result.warning}; going on without it.")


def _draft(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    if options.as_is:
        return commands.print_proposal(workspace, propose_as_is(workspace, WISDOM), options)
    draft = drafts.draft_wisdom(workspace, options.source)
    if options.json:
        return commands.print_proposal(
            workspace, draft.proposed, options, how=draft.compressed.how, covers=draft.compressed.covers
        )
    _warn_of_missing(draft.sources)
    output.say(draft.compressed.section)
    for note in draft.compressed.notes:
        output.say(note)
    output.say()
    return commands.print_proposal(workspace, draft.proposed, options)


def _check(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    problems = drafts.check_wisdom(workspace)
    errors = sum(problem.level == "error" for problem in problems)
    if options.json:
        output.dump([asdict(problem) for problem in problems])
    else:
        output.print_problems(problems)
        output.say(
            f"{output.pluralize(errors, 'error')}." if errors else f"The wisdom of {SOUL} is as it should be."
        )
    return 1 if errors else 0


def _due(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    status = drafts.check_due(workspace)
    if options.json:
        output.dump(status._asdict())
    else:
        output.say(status.why)
        if status.due:
            output.say("To draft: tacit wisdom draft")
    stale = check_stale_tools(workspace)
    output.print_problems([stale] if stale else [])
    return 1 if status.due else 0


def _decide(action: Callable[[AgentWorkspace, CuratedFile, argparse.Namespace], int]) -> Action:
    return lambda workspace, options: action(workspace, WISDOM, options)


_ACTIONS: dict[str, tuple[str, Action]] = {
    "sources": ("The files with lessons, and which of them are missing.", _sources),
    "draft": ("Propose a wisdom section. SOUL.md is not touched.", _draft),
    "check": ("Problems of the draft and of SOUL.md. Exit code 1 if there are errors.", _check),
    "approve": ("Approve the draft as it stands.", _decide(commands.approve)),
    "promote": ("Put the approved draft into SOUL.md.", _decide(commands.promote)),
    "undo": ("Bring back what the last promotion replaced.", _decide(commands.undo)),
    "due": ("Whether it is time for a new draft. Exit code 1 if it is.", _due),
}
