"""All drafts of a workspace, where they stand and what is missing; with --log everything that ever happened
to them."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tacit.cli import output, reviewing
from tacit.cli.lines import one_line
from tacit.cli.reviewing import opened
from tacit.model.drafts import Event, Standing
from tacit.workspace import ARTEFACTS, Place


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", action="store_true", help="the record of approvals")
    reviewing.options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = opened(options)
    return _log(workspace, options) if options.log else _standings(workspace, options)


def _standings(workspace: Place, options: argparse.Namespace) -> int:
    found = {name: workspace.standing(artefact) for name, artefact in ARTEFACTS.items()}
    if options.json:
        output.dump({name: _value(name, one) for name, one in found.items()})
        return 0
    output.table(
        (name, ARTEFACTS[name].target, one.state, f"{one.why} {one.todo}".strip())
        for name, one in found.items()
    )
    return 0


def _value(name: str, one: Standing) -> dict[str, str]:
    artefact = ARTEFACTS[name]
    places = {"target": artefact.target, "draft": artefact.draft}
    return {**places, "state": one.state, "why": one.why, "todo": one.todo}


def _log(workspace: Place, options: argparse.Namespace) -> int:
    events = workspace.drafts.events()
    if options.json:
        output.dump([asdict(event) for event in events])
    else:
        output.table(_row(event) for event in events)
    return 0


def _row(event: Event) -> tuple[str, ...]:
    return (
        event.at[:16].replace("T", " "),
        event.what,
        event.artefact,
        event.by,
        (event.draft or "")[:12],
        one_line(event.why),
    )
