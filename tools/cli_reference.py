"""Prints docs/cli.md, made from the commands themselves: `make docs`."""

from __future__ import annotations

import argparse
import os
import sys

from tacit.cli.commands import load_commands
from tacit.cli.dispatch import parser_for
from tacit.cli.main import overview


def reference() -> str:
    os.environ["COLUMNS"] = "100"  # argparse wraps to the terminal, on which this page must not depend
    parts = ["# Command line\n\nMade by `make docs`; do not edit.\n", f"```\n{overview()}\n```\n"]
    for name in load_commands():
        parts.append(f"## tacit {name}\n\n```\n{parser_for(name).format_help()}```\n")
        parts += [f"### {sub.prog}\n\n```\n{sub.format_help()}```\n" for sub in _subparsers(parser_for(name))]
    return "\n".join(parts)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    choices = [action.choices for action in parser._get_positional_actions()]  # noqa: SLF001 - no public way
    return [sub for group in choices if isinstance(group, dict) for sub in group.values()]


if __name__ == "__main__":
    sys.stdout.write(reference())
