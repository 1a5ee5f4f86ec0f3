"""Keep one line for later sessions.

    tacit remember "The spare key hangs behind the blue door."      in the journal of today
    tacit remember --to memory "We fire at 1,215 degrees."          in MEMORY.md
    tacit remember --to knowledge/people/vera.md "Likes moss."      in a note

The line is added under the heading Remembered; what is there already is not added again.
"""

from __future__ import annotations

import argparse

from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.client import connect


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=words, nargs="+", help="one sentence")
    parser.add_argument(
        "--to", type=words, default="journal", metavar="PLACE", help="journal, memory, a note"
    )
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    with connect(options.home, warn=output.warn, recover=False) as client:
        done = client.remember(" ".join(options.text), options.to, session_key=None)
    if options.json:
        output.dump(done._asdict())
    else:
        output.say(done.said)
    return 0
