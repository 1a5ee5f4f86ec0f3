"""Propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md, for an agent that does not look them up
itself.

It only helps where it is loaded: name it in the files of a session type, such as sessions.main_session.files.
MEMORY.md stays as it is. tacit openclaw approve summary --by NAME, then tacit openclaw promote summary.
"""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import open_from_options
from tacit.hosts.openclaw.drafts import summarise_memory
from tacit.terminal import output


def arguments(parser: argparse.ArgumentParser) -> None:
    reviewing.add_options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = open_from_options(options)
    proposed, text, count = summarise_memory(workspace)
    if not options.json:
        output.say(text)
        output.say(f"Entries of MEMORY.md: {count}.")
    return reviewing.print_proposal(workspace, proposed, options)
