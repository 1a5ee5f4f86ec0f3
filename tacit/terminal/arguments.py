"""Arguments that many commands take: options, text, standard input."""

from __future__ import annotations

import argparse
import os
import sys

from tacit.errors import UsageError

MAX_LISTED = 1000  # entries


def add_home_option(parser: argparse.ArgumentParser, default: str = "$TACIT_HOME, else ~/tacit") -> None:
    parser.add_argument("--home", metavar="DIR", default=None, help=f"the home (default: {default})")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def parse_count(text: str) -> int:
    """How many entries a command may list."""
    if not text.isdecimal() or not 0 < int(text) <= MAX_LISTED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_LISTED}")
    return int(text)


def utf8_argument(argument: str) -> str:
    """Decode an argument that is text: its bytes are UTF-8 in every locale."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def add_quiet_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", "-q", action="store_true", help="print only problems")


def text_or_stdin(argument: str) -> str:
    """The argument, or what standard input holds if it is `-`."""
    if argument != "-":
        return argument
    if sys.stdin is None:
        raise UsageError("There is nothing to read: standard input is closed. Give the text, or pipe it in.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
