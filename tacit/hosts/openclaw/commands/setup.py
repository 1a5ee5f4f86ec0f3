"""`tacit openclaw install` and `uninstall`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

from tacit.app import utc_now
from tacit.errors import HostError, UsageError
from tacit.home.layout import Home, find_home
from tacit.hosts.openclaw import packaged
from tacit.hosts.openclaw.doctor import is_daemon_up
from tacit.hosts.openclaw.install import InstallPlan, install, is_installed, prepare, uninstall
from tacit.hosts.openclaw.machine import OpenClawHost, find_host
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option

_GATEWAY_TIMEOUT_S = 30.0


def add_host_options(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    parser.add_argument("--openclaw", metavar="PATH", help="the host's command (default: on PATH)")


def _confirm(question: str, advice: str) -> bool:
    """Ask for yes or no on the terminal. `advice`: what to do if there is no terminal."""
    if not sys.stdin.isatty():
        raise UsageError(f"There is no terminal to ask on. {advice}")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


# ---------------------------------------------------------------- install


def install_arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--hooks-only", action="store_true", help="the two classic hooks, and no plugin")


def run_install(options: argparse.Namespace) -> int:
    """Give the agents of this OpenClaw memory.

    Shows first what it will change: the home (created if there is none), the workspaces that it reads in
    place, the host's settings, the plugin. Then it asks. The host's own command makes all changes outside the
    home, and every file that it touches is backed up in .tacit/openclaw of the home. A second run finds
    nothing to do.

    With --hooks-only the host gets the two classic hooks instead of the plugin: aci-bootstrap chooses the
    files of a session, ethos-context adds what its message asks for. No conversation is kept then, and `tacit
    serve` must run.
    """
    home = find_home(options.home, os.environ)
    host = find_host(os.environ, options.openclaw)
    plan = prepare(host, home, sys.executable, hooks_only=options.hooks_only)
    if plan.is_empty:
        output.say("Nothing to do: everything is installed and set.")
        _say_notes(plan)
        return 0
    for line in _describe_plan(host, home, plan):
        output.say(line)
    _say_notes(plan)
    if options.dry_run:
        return 0
    if not (options.yes or _confirm("\nGo on?", "Look with --dry-run, then add --yes.")):
        output.say("Nothing was changed.")
        return 1
    output.say()
    try:
        install(host, home, plan, utc_now().astimezone(), output.say)
    except HostError as error:
        raise HostError(f"{error}\nTo undo what was done so far: tacit openclaw uninstall") from error
    _say_next_steps(host, home, hooks_only=options.hooks_only)
    return 0


def _describe_plan(host: OpenClawHost, home: Home, plan: InstallPlan) -> Iterator[str]:
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


def _say_next_steps(host: OpenClawHost, home: Home, *, hooks_only: bool) -> None:
    output.say()
    if hooks_only:
        output.say("Start the daemon, now and at every login: tacit serve --install")
        output.say("Restart the gateway: it reads hooks when it starts.")
    elif host.is_serving():
        _wait_for_gateway(home)
    else:
        output.say(
            "The gateway is not running. Start it (openclaw gateway run); the next message gets memories."
        )
    output.say("See that it works:  tacit openclaw doctor --probe")
    output.say("What it saves:      tacit openclaw baseline --compare")
    output.say(f"To undo all this:   tacit openclaw uninstall (backups: {home.private / 'openclaw'})")


def _wait_for_gateway(home: Home) -> None:
    """Wait until the gateway, which loads the plugin by itself, has started the daemon."""
    deadline = time.monotonic() + _GATEWAY_TIMEOUT_S
    while not is_daemon_up(home) and time.monotonic() < deadline:
        time.sleep(0.2)
    if is_daemon_up(home):
        output.say("The gateway has loaded it: the next message gets its memories.")
    else:
        output.say("The gateway runs, but has not started tacit's daemon yet. See: tacit openclaw doctor")


# ---------------------------------------------------------------- uninstall


def uninstall_arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def run_uninstall(options: argparse.Namespace) -> int:
    """Take tacit out of OpenClaw.

    The host's own command removes the plugin. Its config becomes what it was, byte for byte, unless it was
    edited since: then only tacit's own settings go. No workspace is touched, and the home stays.
    """
    home = find_home(options.home, os.environ)
    host = find_host(os.environ, options.openclaw)
    if not is_installed(host):
        output.say("Nothing to do: tacit is not in this OpenClaw.")
        return 0
    if not options.yes and not _confirm(f"Remove tacit's settings from {host.config}?", "Add --yes."):
        output.say("Nothing was changed.")
        return 1
    removal = uninstall(host, home, os.environ)
    for path in removal.removed:
        output.say(f"removed {path}")
    for path in removal.kept:
        output.warn(f"tacit: {path} was edited, so it was left. The host no longer loads it.")
    if removal.config:
        output.say(removal.config)
    output.say(f"No workspace was touched. The home stays: {home.root}")
    return 0
