"""Keep one line for later sessions.

    tacit remember "The spare key hangs behind the blue door."      in the journal of today
    tacit remember --to memory "We fire at 1,215 degrees."          in MEMORY.md
    tacit remember --to knowledge/people/vera.md "Likes moss."      in a note

The line is added under the heading Remembered; what is there already is not added again. A note that others
can read (audience group or anyone) gets your words only with --shared; otherwise they go into a note beside
it that is yours alone.
"""

from __future__ import annotations

import argparse

from tacit.client import connect
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=utf8_argument, nargs="+", help="one sentence")
    parser.add_argument(
        "--to", type=utf8_argument, default="journal", metavar="PLACE", help="journal, memory, a note"
    )
    parser.add_argument("--shared", action="store_true", help="others may read it: add it to that very note")
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    with connect(options.home, warn=output.warn, recover=False) as client:
        text = " ".join(options.text)
        result = client.remember(text, options.to, session_key=None, shared=options.shared)
    if options.json:
        output.dump(result._asdict())
    else:
        output.say(result.said)
    return 0
