"""All drafts of a workspace, where they stand and what is missing; with --log everything that ever happened
to them."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tacit.cli import reviewing
from tacit.cli.reviewing import open_from_options
from tacit.hosts.openclaw.workspace import ARTEFACTS, AgentWorkspace
from tacit.review.file_drafts_model import DraftStatus, Event
from tacit.terminal import output
from tacit.terminal.lines import one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", action="store_true", help="the record of approvals")
    reviewing.add_options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = open_from_options(options)
    return _print_log(workspace, options) if options.log else _print_standings(workspace, options)


def _print_standings(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    standings = {name: workspace.standing(artefact) for name, artefact in ARTEFACTS.items()}
    if options.json:
        output.dump({name: _standing_json(name, standing) for name, standing in standings.items()})
        return 0
    output.print_table(
        (name, ARTEFACTS[name].target, standing.state, f"{standing.why} {standing.todo}".strip())
        for name, standing in standings.items()
    )
    return 0


def _standing_json(name: str, standing: DraftStatus) -> dict[str, str]:
    artefact = ARTEFACTS[name]
    places = {"target": artefact.target, "draft": artefact.draft}
    return {**places, "state": standing.state, "why": standing.why, "todo": standing.todo}


def _print_log(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    events = workspace.drafts.events()
    if options.json:
        output.dump([asdict(event) for event in events])
    else:
        output.print_table(_event_row(event) for event in events)
    return 0


def _event_row(event: Event) -> tuple[str, ...]:
    return (
        event.at[:16].replace("T", " "),
        event.what,
        event.artefact,
        event.by,
        (event.draft or "")[:12],
        one_line(event.why),
    )
