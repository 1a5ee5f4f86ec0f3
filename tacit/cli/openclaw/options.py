"""What the commands about OpenClaw have in common."""

from __future__ import annotations

import argparse
import sys

from tacit.errors import UsageError
from tacit.terminal.arguments import add_home_option


def add_host_options(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    parser.add_argument("--openclaw", metavar="PATH", help="the host's command (default: on PATH)")


def confirm(question: str, otherwise: str) -> bool:
    """Ask for yes or no on the terminal. `otherwise` is the advice when there is no terminal."""
    if not sys.stdin.isatty():
        raise UsageError(f"Nobody is there to ask. {otherwise}")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
