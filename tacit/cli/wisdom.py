"""Lessons → the `## Wisdom` section of SOUL.md: a few patterns that every session has before it.

  sources  where lessons stand; what is missing is warned about
  draft    propose a section, and ask for a review in DAILY_EXECUTION_QUEUE.md
  check    what is wrong with the draft and with SOUL.md
  approve  say yes to the draft, word for word as it stands
  promote  put the approved draft into SOUL.md, in place of its wisdom section and of nothing else
  undo     bring back what the last promotion replaced
  due      whether it is time for a new draft: a month, or ten new lessons

Raw lessons stay where they are. No model is asked unless openclaw.wisdom_model names one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from tacit.cli import output, reviewing
from tacit.cli.dispatch import words
from tacit.cli.reviewing import opened
from tacit.workspace import Place, wisdom
from tacit.workspace.place import SOUL
from tacit.workspace.review import propose_as_is
from tacit.workspace.shorter import stale_tools
from tacit.workspace.wisdom import WISDOM, Found


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _own(action, name)
        reviewing.options(action)


def _own(parser: argparse.ArgumentParser, name: str) -> None:
    if name in ("sources", "draft"):
        parser.add_argument(
            "--source", type=words, action="append", default=[], metavar="FILE",
            help="a further file with lessons, by its path in the workspace; may be repeated",
        )  # fmt: skip
    if name == "draft":
        reviewing.as_is_option(parser)
    if name in ("approve", "promote", "undo"):
        reviewing.by_option(parser, required=name == "approve")


def run(options: argparse.Namespace) -> int:
    _, act = _ACTIONS[options.action]
    return act(opened(options), options)


def _sources(workspace: Place, options: argparse.Namespace) -> int:
    found = wisdom.sources(workspace, options.source)
    if options.json:
        output.dump(
            [
                {"path": one.source.path, "lessons": one.lessons, "problem": one.warning or None}
                for one in found
            ]
        )
        return 0
    output.table((one.source.path, output.plural(one.lessons, "lesson")) for one in found if not one.warning)
    _warn(found)
    return 0


def _warn(found: Sequence[Found]) -> None:
    for one in found:
        if one.warning:
            output.warn(f"warning: {one.source.path}: {one.warning}; going on without it.")


def _draft(workspace: Place, options: argparse.Namespace) -> int:
    if options.as_is:
        return reviewing.said(workspace, propose_as_is(workspace, WISDOM), options)
    made = wisdom.draft(workspace, options.source)
    if options.json:
        return reviewing.said(
            workspace, made.proposed, options, how=made.compressed.how, covers=made.compressed.covers
        )
    _warn(made.sources)
    output.say(made.compressed.section)
    for note in made.compressed.notes:
        output.say(note)
    output.say()
    return reviewing.said(workspace, made.proposed, options)


def _check(workspace: Place, options: argparse.Namespace) -> int:
    found = wisdom.check(workspace)
    errors = sum(problem.level == "error" for problem in found)
    if options.json:
        output.dump([asdict(problem) for problem in found])
    else:
        output.problems(found)
        output.say(
            f"{output.plural(errors, 'error')}." if errors else f"The wisdom of {SOUL} is as it should be."
        )
    return 1 if errors else 0


def _due(workspace: Place, options: argparse.Namespace) -> int:
    found = wisdom.due(workspace)
    if options.json:
        output.dump(found._asdict())
    else:
        output.say(found.why)
        if found.due:
            output.say("To draft: tacit wisdom draft")
    stale = stale_tools(workspace)
    output.problems([stale] if stale else [])
    return 1 if found.due else 0


def _approve(workspace: Place, options: argparse.Namespace) -> int:
    return reviewing.approve(workspace, WISDOM, options)


def _promote(workspace: Place, options: argparse.Namespace) -> int:
    return reviewing.promote(workspace, WISDOM, options)


def _undo(workspace: Place, options: argparse.Namespace) -> int:
    return reviewing.undo(workspace, WISDOM, options)


_ACTIONS = {
    "sources": ("Where lessons stand, and what is missing.", _sources),
    "draft": ("Propose a wisdom section. SOUL.md is not touched.", _draft),
    "check": ("What is wrong with the draft and with SOUL.md. Exit code 1 if anything is.", _check),
    "approve": ("Say yes to the draft as it stands.", _approve),
    "promote": ("Put the approved draft into SOUL.md.", _promote),
    "undo": ("Bring back what the last promotion replaced.", _undo),
    "due": ("Whether it is time for a new draft. Exit code 1 if it is.", _due),
}
