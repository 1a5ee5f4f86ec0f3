"""What is missing between OpenClaw and the home, and how to mend it. Changes nothing.

With --probe it makes a turn through the host as it is set up (which asks its model once) and proves by
tacit's receipts that the hooks fired; then a turn in a throw-away set-up of the same host tells how its list
of files behaves. Exit code 1 when something is missing (not for warnings).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from tacit.app import now, open_home
from tacit.cli import doctor as plain
from tacit.cli.dispatch import json_option, quiet_option
from tacit.cli.openclaw.options import host_options
from tacit.errors import HostError
from tacit.memory import Memory
from tacit.model.problems import Problem
from tacit.openclaw import find, probe
from tacit.openclaw.doctor import checks
from tacit.openclaw.find import Host
from tacit.store.checkup import Check


def arguments(parser: argparse.ArgumentParser) -> None:
    host_options(parser)
    parser.add_argument("--probe", action="store_true", help="prove by real turns that hooks fire")
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    host = find.find(os.environ, options.openclaw)
    found = list(checks(host, memory.home, memory.config))
    if options.probe:
        found += _probed(host, memory)
    plain.tell(found, as_json=options.json, quiet=options.quiet)
    return plain.code_of(found)


def _probed(host: Host, memory: Memory) -> Iterator[Check]:
    command = host.openclaw()
    yield probe.turn(host, memory, now().astimezone())
    try:
        yield from probe.check(probe.points(command, os.environ))
    except HostError as error:
        yield Check("shape", "not known", (Problem("probe", str(error)),))
