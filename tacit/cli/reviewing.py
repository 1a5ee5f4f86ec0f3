"""What commands about drafts have in common: their options and their output."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tacit.app import open_workspace
from tacit.hosts.openclaw.workspace import (
    AgentWorkspace,
    ProposedDraft,
    approve_draft,
    promote_draft,
    undo_draft,
)
from tacit.review.file_drafts_model import Artefact, Event
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", type=utf8_argument, default=None, metavar="DIR",
        help="the agent's folder (default: that of `workspaces` in the config, else ~/.openclaw/workspace)",
    )  # fmt: skip
    add_home_option(parser)
    add_json_option(parser)


def add_as_is_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="keep the words of the draft that is there, for its target as it is now",
    )


def add_by_option(parser: argparse.ArgumentParser, *, required: bool) -> None:
    about = (
        "who says so; openclaw.soul_approvers and its neighbours name who may" if required else "who does it"
    )
    parser.add_argument("--by", type=utf8_argument, required=required, default="", metavar="NAME", help=about)


def open_from_options(given: argparse.Namespace) -> AgentWorkspace:
    return open_workspace(given.home, given.workspace)


def print_proposal(
    workspace: AgentWorkspace, proposed: ProposedDraft, given: argparse.Namespace, **more: Any
) -> int:
    """Print what was proposed, its problems and the next step. Exit code 1 if it cannot be approved."""
    errors = sum(problem.level == "error" for problem in proposed.problems)
    if given.json:
        output.dump({**_event_json(proposed.event), "path": proposed.artefact.draft,
                     "kept": proposed.kept or None,
                     "problems": [asdict(problem) for problem in proposed.problems], **more})  # fmt: skip
        return 1 if errors else 0
    output.print_problems(proposed.problems)
    if proposed.kept:
        output.say(f"The draft that somebody had worked on is kept: {proposed.kept}")
    if proposed.unflagged:
        output.warn(f"warning: {proposed.unflagged}")
    artefact = proposed.artefact
    output.say(f"Draft for {artefact.target}: {workspace.root / artefact.draft}")
    output.say(f"{artefact.target} is as it was. Read the draft, change it as you like, then: "
               f"{workspace.advice(artefact).approve}")  # fmt: skip
    return 1 if errors else 0


def _event_json(event: Event) -> dict[str, Any]:
    return {name: value for name, value in asdict(event).items() if name != "notes"}


def approve(workspace: AgentWorkspace, artefact: Artefact, given: argparse.Namespace) -> int:
    event = approve_draft(workspace, artefact, given.by)
    verb = "tacit wisdom promote" if artefact.name == "wisdom" else f"tacit openclaw promote {artefact.name}"
    return _print_event(event, given, f"{event.by} approved {artefact.draft} ({(event.draft or '')[:12]}). "
                               f"To put it into {artefact.target}: {verb}")  # fmt: skip


def promote(workspace: AgentWorkspace, artefact: Artefact, given: argparse.Namespace) -> int:
    event = promote_draft(workspace, artefact, given.by)
    verb = "tacit wisdom undo" if artefact.name == "wisdom" else f"tacit openclaw undo {artefact.name}"
    backup = f" What was there before is in {event.backup}." if event.backup else ""
    return _print_event(event, given, f"{artefact.target} has the draft now.{backup} To go back: {verb}")


def undo(workspace: AgentWorkspace, artefact: Artefact, given: argparse.Namespace) -> int:
    event = undo_draft(workspace, artefact, given.by)
    state = "is gone, as before" if event.result is None else "is as it was before"
    return _print_event(event, given, f"{artefact.target} {state} the draft was promoted.")


def _print_event(event: Event, args: argparse.Namespace, text: str) -> int:
    if args.json:
        output.dump(_event_json(event))
    else:
        output.say(text)
    return 0
