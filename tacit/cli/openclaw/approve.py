"""Say yes to a draft, word for word as it stands: who, when and its hash are recorded."""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import opened
from tacit.workspace import ARTEFACTS


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("draft", choices=tuple(ARTEFACTS), help="which one")
    reviewing.by_option(parser, required=True)
    reviewing.options(parser)


def run(options: argparse.Namespace) -> int:
    return reviewing.approve(opened(options), ARTEFACTS[options.draft], options)
