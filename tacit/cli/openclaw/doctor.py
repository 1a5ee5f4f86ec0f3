"""What is missing between OpenClaw and the home, and how to mend it. Changes nothing.

With --probe it makes a turn through the host as it is set up (which asks its model once) and proves by
tacit's receipts that the hooks fired; then a turn in a throw-away set-up of the same host tells how its list
of files behaves. Exit code 1 when something is missing (not for warnings).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from tacit.app import open_home, utc_now
from tacit.cli.openclaw.options import add_host_options
from tacit.diagnostics import Problem
from tacit.errors import HostError
from tacit.home.doctor import CheckResult
from tacit.hosts.openclaw import probe
from tacit.hosts.openclaw.doctor import checks
from tacit.hosts.openclaw.host import OpenClawHost, find_host
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_json_option, add_quiet_option


def arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--probe", action="store_true", help="prove by real turns that hooks fire")
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    host = find_host(os.environ, options.openclaw)
    results = list(checks(host, memory.home, memory.config))
    if options.probe:
        results += _probe(host, memory)
    output.print_checks(results, as_json=options.json, quiet=options.quiet)
    return output.exit_code(results)


def _probe(host: OpenClawHost, memory: Memory) -> Iterator[CheckResult]:
    command = host.openclaw()
    yield probe.run_turn(host, memory, utc_now().astimezone())
    try:
        yield from probe.check_result(probe.observe_file_list(command, os.environ))
    except HostError as error:
        yield CheckResult("shape", "not known", (Problem("probe", str(error)),))
