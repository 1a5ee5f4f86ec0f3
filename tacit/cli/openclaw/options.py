"""What the commands about OpenClaw have in common."""

from __future__ import annotations

import argparse
import sys

from tacit.cli.dispatch import home_option
from tacit.errors import UsageError


def host_options(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    parser.add_argument("--openclaw", metavar="PATH", help="the host's command (default: on PATH)")


def agreed(question: str, otherwise: str) -> bool:
    """Whether the person at the terminal says yes. `otherwise`: what to do where nobody is there."""
    if not sys.stdin.isatty():
        raise UsageError(f"Nobody is there to ask. {otherwise}")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
