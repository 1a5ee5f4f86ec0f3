"""Compile one turn and print it, as a host would get it.

It is a look and no turn: nothing that was given here counts as given. `tacit why` explains it afterwards.
MESSAGE may be - to read it from standard input. With --at the home is taken as it was then, from git.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tacit.client import connect
from tacit.errors import UsageError
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.topics.model import Event
from tacit.wire import compiled_form


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("message", type=utf8_argument, help="what is said; - reads it from standard input")
    parser.add_argument(
        "--session-key",
        type=utf8_argument,
        default="agent:main:main",
        metavar="KEY",
        help="whose session it is",
    )
    parser.add_argument("--agent", type=utf8_argument, default=None, metavar="NAME", help="as this agent")
    parser.add_argument("--budget", type=_parse_tokens, default=None, metavar="TOKENS", help="most tokens")
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="the conversation so far: a JSON list, or a JSON object a line, each with role and content",
    )
    parser.add_argument(
        "--at", type=utf8_argument, metavar="WHEN", help="as it was: a date, a tag or a commit"
    )
    parser.add_argument(
        "--wake", type=utf8_argument, action="append", default=[], metavar="TOPIC", help="wake this topic"
    )
    event = parser.add_mutually_exclusive_group()
    event.add_argument(
        "--webhook", type=utf8_argument, metavar="SOURCE/EVENT", help="as begun by this webhook"
    )
    event.add_argument(
        "--cron", type=utf8_argument, metavar="TOPIC", help="as begun by this topic's schedule"
    )
    parser.add_argument(
        "--path",
        type=utf8_argument,
        action="append",
        default=[],
        help="a file that tools touched; may be repeated",
    )
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    message = _read_stdin() if options.message == "-" else options.message
    with connect(options.home, warn=output.warn, recover=False) as client:
        compiled = client.look(
            message,
            at=options.at,
            session_key=options.session_key,
            agent=options.agent,
            history=_read_history(options.history) if options.history else (),
            budget=options.budget,
            event=_event_of(options),
            paths=options.path,
            wake=options.wake,
        )
    if options.json:
        output.dump(compiled_form(compiled))
        return 0
    output.say(compiled.text)
    receipt = compiled.receipt
    output.warn(f"\n{compiled.tokens:,} of {receipt.budget:,} tokens. Why: tacit why {receipt.id}")
    return 0


def _parse_tokens(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens")
    return int(text)


def _read_stdin() -> str:
    if sys.stdin is None:
        raise UsageError("Standard input is closed, so there is no message to read.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _event_of(options: argparse.Namespace) -> Event | None:
    if options.cron:
        return Event("cron", topic=options.cron)
    if options.webhook:
        source, _, event = options.webhook.partition("/")
        return Event("webhook", source, event)
    return None


def _read_history(file: Path) -> list[object]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None
    try:
        turns = json.loads(text)
    except ValueError:
        turns = [_parse_turn(line, f"{file}:{number}") for number, line in _numbered_lines(text)]
    return turns if isinstance(turns, list) else [turns]


def _numbered_lines(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _parse_turn(line: str, location: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        raise UsageError(
            f'{location} is not JSON. Write a turn a line: {{"role": …, "content": …}}.'
        ) from None
