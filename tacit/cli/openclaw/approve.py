"""Say yes to a draft, word for word as it stands: who, when and its hash are recorded."""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import open_from_options
from tacit.hosts.openclaw.workspace import ARTEFACTS


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("draft", choices=tuple(ARTEFACTS), help="which one")
    reviewing.add_by_option(parser, required=True)
    reviewing.add_options(parser)


def run(options: argparse.Namespace) -> int:
    return reviewing.approve(open_from_options(options), ARTEFACTS[options.draft], options)
