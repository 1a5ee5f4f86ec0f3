"""Propose TOOLS_COMPACT.md: browser aliases, ports, topic ids, options of model command lines, voices,
cameras.

Values are copied from TOOLS.md, never worded. At most 300 tokens; what has no room is told.
TOOLS_COMPACT.md itself is not touched: tacit openclaw approve tools --by NAME, then tacit openclaw promote
tools."""

from __future__ import annotations

import argparse

from tacit.cli import output, reviewing
from tacit.cli.reviewing import opened
from tacit.workspace import ARTEFACTS
from tacit.workspace.review import propose_as_is
from tacit.workspace.shorter import compact_tools, stale_tools


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="only tell whether TOOLS.md is newer; exit code 1 if it is"
    )
    reviewing.as_is_option(parser)
    reviewing.options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = opened(options)
    stale = stale_tools(workspace)
    output.problems([stale] if stale else [])
    if options.check:
        return 1 if stale else 0
    if options.as_is:
        return reviewing.said(workspace, propose_as_is(workspace, ARTEFACTS["tools"]), options)
    made = compact_tools(workspace)
    if not options.json:
        output.say(made.compact.text)
        for row in made.compact.beyond:
            output.warn(f"warning: no room for {row.name}: {row.value} ({row.header})")
    code = reviewing.said(workspace, made.proposed, options)
    if made.agents is not None and not options.json:
        output.say()
        reviewing.said(workspace, made.agents, options)
    return code
