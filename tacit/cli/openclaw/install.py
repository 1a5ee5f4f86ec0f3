"""Give the agents of this OpenClaw memory.

Shows first what it will change: the home (made where there is none), the workspaces it reads in place, the
host's settings, the plugin. Then it asks. All but the home is done by the host's own command; what it touches
is backed up in .tacit/openclaw of the home. A second run finds nothing to do.

With --hooks-only the host gets the two classic hooks instead of the plugin: aci-bootstrap chooses the files
of a session, ethos-context adds what its message asks for. Nothing is kept then, and `tacit serve` must run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

from tacit.app import utc_now
from tacit.cli.openclaw.options import add_host_options, confirm
from tacit.errors import HostError
from tacit.home.layout import Home, find_home
from tacit.hosts.openclaw import packaged
from tacit.hosts.openclaw.doctor import is_daemon_up
from tacit.hosts.openclaw.host import OpenClawHost, find_host
from tacit.hosts.openclaw.install import install, prepare
from tacit.hosts.openclaw.install_plan import InstallPlan
from tacit.terminal import output

_GATEWAY_TIMEOUT_S = 30.0


def arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--hooks-only", action="store_true", help="the two classic hooks, and no plugin")


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ)
    host = find_host(os.environ, options.openclaw)
    plan = prepare(host, home, sys.executable, hooks_only=options.hooks_only)
    if plan.is_empty:
        output.say("Nothing to do: all is installed and set.")
        _say_notes(plan)
        return 0
    for line in describe_plan(host, home, plan):
        output.say(line)
    _say_notes(plan)
    if options.dry_run:
        return 0
    if not (options.yes or confirm("\nGo on?", "Look with --dry-run, then say --yes.")):
        output.say("Nothing was changed.")
        return 1
    output.say()
    moment = utc_now().astimezone()
    try:
        install(host, home, plan, moment, output.say)
    except HostError as error:
        raise HostError(f"{error}\nWhat was done so far is undone by: tacit openclaw uninstall") from error
    _say_next_steps(host, home, hooks_only=options.hooks_only)
    return 0


def describe_plan(host: OpenClawHost, home: Home, plan: InstallPlan) -> Iterator[str]:
    if plan.makes_home:
        yield f"A new home in {home.root}, with:"
    elif plan.config:
        yield f"{home.config}:"
    if plan.config:
        yield from (f"  {line}" for line in _diff_lines(*plan.config))
    if plan.keys:
        yield f"{host.config}, by `openclaw config patch`:"
        yield from (f"  {line}" for key in plan.keys for line in key.lines())
    if plan.plugin:
        yield f"{host.plugin}, by `openclaw plugins install {packaged.folder()}`:"
        yield f"  {plan.plugin}"
    for name in plan.hooks:
        yield f"{host.hooks / name}:"
        yield f"  {', '.join(packaged.hook_files(name))}"


def _diff_lines(before: str, after: str) -> Iterator[str]:
    from difflib import unified_diff

    lines = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))


def _say_notes(plan: InstallPlan) -> None:
    for note in plan.notes:
        output.say(f"\n{note}")


def _wait_for_gateway(home: Home) -> None:
    """Wait until the gateway, which loads the plugin by itself, has started the daemon."""
    deadline = time.monotonic() + _GATEWAY_TIMEOUT_S
    while not is_daemon_up(home) and time.monotonic() < deadline:
        time.sleep(0.2)
    if is_daemon_up(home):
        output.say("The gateway has taken it over: the next message gets its memories.")
    else:
        output.say("The gateway runs, but has not started tacit's daemon yet. See: tacit openclaw doctor")


def _say_next_steps(host: OpenClawHost, home: Home, *, hooks_only: bool) -> None:
    output.say()
    if hooks_only:
        output.say("Start the daemon, now and at every login: tacit serve --install")
        output.say("Restart the gateway: hooks are read when it starts.")
    elif host.is_serving():
        _wait_for_gateway(home)
    else:
        output.say(
            "No gateway runs. Start it (openclaw gateway run), and its next message gets its memories."
        )
    output.say("See that it works:  tacit openclaw doctor --probe")
    output.say("What it saves:      tacit openclaw baseline --compare")
    output.say(f"To undo all this:   tacit openclaw uninstall (backups: {home.private / 'openclaw'})")
