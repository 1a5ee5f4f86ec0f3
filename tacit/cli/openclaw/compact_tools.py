"""Propose TOOLS_COMPACT.md: browser aliases, ports, topic ids, options of model command lines, voices,
cameras.

Values are copied from TOOLS.md, never worded. At most 300 tokens; what has no room is told.
TOOLS_COMPACT.md itself is not touched: tacit openclaw approve tools --by NAME, then tacit openclaw promote
tools."""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import open_from_options
from tacit.hosts.openclaw.drafts import check_stale_tools, compact_tools
from tacit.hosts.openclaw.workspace import ARTEFACTS, propose_as_is
from tacit.terminal import output


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="only tell whether TOOLS.md is newer; exit code 1 if it is"
    )
    reviewing.add_as_is_option(parser)
    reviewing.add_options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = open_from_options(options)
    stale = check_stale_tools(workspace)
    output.print_problems([stale] if stale else [])
    if options.check:
        return 1 if stale else 0
    if options.as_is:
        return reviewing.print_proposal(workspace, propose_as_is(workspace, ARTEFACTS["tools"]), options)
    result = compact_tools(workspace)
    if not options.json:
        output.say(result.compact.text)
        for row in result.compact.beyond:
            output.warn(f"warning: no room for {row.name}: {row.value} ({row.header})")
    code = reviewing.print_proposal(workspace, result.proposed, options)
    if result.agents is not None and not options.json:
        output.say()
        reviewing.print_proposal(workspace, result.agents, options)
    return code
