"""What commands about drafts have in common: their options, and what they say."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tacit.app import open_workspace
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.model.drafts import Artefact, Event
from tacit.workspace import Place, review
from tacit.workspace.review import Proposed


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", type=words, default=None, metavar="DIR",
        help="the agent's folder (default: that of `workspaces` in the config, else ~/.openclaw/workspace)",
    )  # fmt: skip
    home_option(parser)
    json_option(parser)


def as_is_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="keep the words of the draft that is there, for its target as it is now",
    )


def by_option(parser: argparse.ArgumentParser, *, required: bool) -> None:
    about = (
        "who says so; openclaw.soul_approvers and its neighbours name who may" if required else "who does it"
    )
    parser.add_argument("--by", type=words, required=required, default="", metavar="NAME", help=about)


def opened(given: argparse.Namespace) -> Place:
    return open_workspace(given.home, given.workspace)


def said(workspace: Place, proposed: Proposed, given: argparse.Namespace, **more: Any) -> int:
    """What was proposed, what is wrong with it, and what to do next. Exit code 1 if it cannot be approved
    so."""
    errors = sum(problem.level == "error" for problem in proposed.problems)
    if given.json:
        output.dump({**_event(proposed.event), "path": proposed.artefact.draft, "kept": proposed.kept or None,
                     "problems": [asdict(problem) for problem in proposed.problems], **more})  # fmt: skip
        return 1 if errors else 0
    output.problems(proposed.problems)
    if proposed.kept:
        output.say(f"The draft that somebody had worked on is kept: {proposed.kept}")
    if proposed.unflagged:
        output.warn(f"warning: {proposed.unflagged}")
    artefact = proposed.artefact
    output.say(f"Draft for {artefact.target}: {workspace.root / artefact.draft}")
    output.say(f"{artefact.target} is as it was. Read the draft, change it as you like, then: "
               f"{workspace.advice(artefact).approve}")  # fmt: skip
    return 1 if errors else 0


def _event(event: Event) -> dict[str, Any]:
    return {name: value for name, value in asdict(event).items() if name != "notes"}


def approve(workspace: Place, artefact: Artefact, given: argparse.Namespace) -> int:
    event = review.approve(workspace, artefact, given.by)
    verb = "tacit wisdom promote" if artefact.name == "wisdom" else f"tacit openclaw promote {artefact.name}"
    return _told(event, given, f"{event.by} approved {artefact.draft} ({(event.draft or '')[:12]}). "
                               f"To put it into {artefact.target}: {verb}")  # fmt: skip


def promote(workspace: Place, artefact: Artefact, given: argparse.Namespace) -> int:
    event = review.promote(workspace, artefact, given.by)
    verb = "tacit wisdom undo" if artefact.name == "wisdom" else f"tacit openclaw undo {artefact.name}"
    kept = f" What was there before is in {event.backup}." if event.backup else ""
    return _told(event, given, f"{artefact.target} has the draft now.{kept} To go back: {verb}")


def undo(workspace: Place, artefact: Artefact, given: argparse.Namespace) -> int:
    event = review.undo(workspace, artefact, given.by)
    what = "is gone, as before" if event.result is None else "is as it was before"
    return _told(event, given, f"{artefact.target} {what} the draft was promoted.")


def _told(event: Event, given: argparse.Namespace, text: str) -> int:
    if given.json:
        output.dump(_event(event))
    else:
        output.say(text)
    return 0
