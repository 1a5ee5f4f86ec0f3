"""Where things stand: the home, its branch, its sessions, what waits for a commit. Runs no git and parses no
YAML, so it answers at once; `tacit doctor` looks closer."""

from __future__ import annotations

import argparse
import os

from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option
from tacit.store import overview
from tacit.store.home import locate


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    seen = overview.look(home)
    if options.json:
        output.dump(vars(seen))
        return 0
    output.say(f"home         {seen.home}")
    output.say(
        f"branch       {seen.branch or 'none: HEAD is detached'}"
        + (f" at {seen.commit[:10]}" if seen.commit else "")
    )
    output.say(
        f"transcripts  {seen.transcripts}"
        + (f", last {seen.last_transcript}" if seen.last_transcript else "")
    )
    output.say(
        f"notes        {seen.notes}"
        + (f", {seen.edited} edited since the last commit" if seen.edited else "")
    )
    output.table((("open", path) for path in seen.open), indent="")
    output.table(
        (("left open", f"{path} (a crash; the next command seals it)") for path in seen.left_open), indent=""
    )
    output.table(
        (("waiting", f"{path} (sealed; `tacit run commit` commits it)") for path in seen.waiting), indent=""
    )
    return 0
