"""Prove every transcript against the hash it was sealed with, and name each that was touched.

What a sparse checkout leaves out is "not checked out": it is proved by what git has of it.

Exit code 1 when anything is touched, missing or unreadable.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tacit.app import open_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    with output.progress("verifying", quiet=options.quiet or options.json) as tick:
        checked = list(memory.verify(tick))
    bad = [item for item in checked if not item.good]
    counts = Counter(item.state for item in checked)
    if options.json:
        problems = [{"path": item.path, "state": item.state, "detail": item.detail} for item in bad]
        output.dump({"transcripts": len(checked), "states": dict(counts), "problems": problems})
        return 1 if bad else 0
    for item in bad:
        output.say(f"{item.state.upper()}: {item.path}\n    {item.detail}")
    if not options.quiet:
        states = ", ".join(f"{count} {state}" for state, count in counts.most_common()) or "none yet"
        output.say(f"{output.pluralize(len(checked), 'transcript')}: {states}.")
    return 1 if bad else 0
