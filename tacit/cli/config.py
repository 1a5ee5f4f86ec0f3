"""Every setting: its effective value, where it comes from, and what it does.

`tacit config KEY` shows one; a section name shows its keys.
"""

from __future__ import annotations

import argparse
import os

from tacit import config as configuration
from tacit.app import load_config
from tacit.errors import UsageError
from tacit.home.layout import find_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="only this key, or the keys of this section")
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    loaded = load_config(find_home(options.home, os.environ).require())
    rows = configuration.describe(loaded)
    if options.key is not None:
        rows = [row for row in rows if row.key == options.key or row.key.startswith(options.key + ".")]
        if not rows:
            raise UsageError(f"There is no key {options.key!r}. See them all with: tacit config")
    if options.json:
        output.dump(
            [
                {
                    "key": row.key,
                    "value": row.value,
                    "default": row.default,
                    "origin": row.origin,
                    "about": row.about,
                }
                for row in rows
            ]
        )
    else:
        width = max(len(row.key) for row in rows)
        for row in rows:
            output.say(f"{row.key:<{width}}  {configuration.show(row.value)}  ({row.origin})")
            output.say(f"{'':<{width}}  {row.about}" + (f" {row.allowed}" if row.allowed else ""))
    output.print_problems(loaded.problems)
    return 0
