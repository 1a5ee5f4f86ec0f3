"""Bring back what the last promotion replaced, unless somebody has worked on the file since."""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import opened
from tacit.workspace import ARTEFACTS


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("draft", choices=tuple(ARTEFACTS), help="which one")
    reviewing.by_option(parser, required=False)
    reviewing.options(parser)


def run(options: argparse.Namespace) -> int:
    return reviewing.undo(opened(options), ARTEFACTS[options.draft], options)
