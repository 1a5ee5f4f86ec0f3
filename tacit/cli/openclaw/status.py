"""Where things stand between OpenClaw and the home. Runs nothing; `tacit openclaw doctor` looks closer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict

from tacit.app import load_config, utc_now
from tacit.cli.openclaw.options import add_host_options
from tacit.home.layout import find_home
from tacit.hosts.openclaw import doctor, packaged
from tacit.hosts.openclaw.doctor import HostState
from tacit.hosts.openclaw.host import find_host
from tacit.terminal import output
from tacit.terminal.arguments import add_json_option


def arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    host = find_host(os.environ, options.openclaw)
    current = doctor.inspect_host(host, home, load_config(home).config, utc_now().astimezone())
    if options.json:
        last = asdict(current.last_turn) if current.last_turn else None
        output.dump({**current._asdict(), "last_turn": last, "home": str(home.root)})
        return 0
    output.print_table(_rows(current, str(home.root)), indent="")
    return 0


def _rows(current: HostState, home: str) -> Iterator[tuple[str, str]]:
    yield "host", f"{current.host}; the gateway {'runs' if current.gateway else 'does not run'}"
    yield "plugin", _plugin(current)
    for reason in current.blocked if current.plugin else ():
        yield "", reason
    if current.hooks:
        yield "hooks", ", ".join(current.hooks)
    yield "home", _home(current, home)
    yield "workspaces", ", ".join(current.workspaces) or "none is adopted"
    yield "owners", ", ".join(current.owners) or "none: see `owners` in memory-config.yaml"
    yield "daemon", "answers" if current.daemon else "does not answer"
    yield "spool", f"{output.pluralize(current.spool, 'record')} wait" if current.spool else "empty"
    yield "last turn", _turn(current)
    yield "today", output.pluralize(current.sessions_today, "session")
    yield (
        "baseline",
        f"taken {current.baseline}" if current.baseline else "not taken: tacit openclaw baseline",
    )
    if current.phase:
        yield "phase", current.phase


def _plugin(current: HostState) -> str:
    if not current.plugin:
        return "not installed: tacit openclaw install"
    mismatch = (
        ""
        if current.same
        else f", not the files of this tacit ({packaged.version()}): tacit openclaw install"
    )
    since = f", since {current.installed}" if current.installed else ""
    return f"{current.plugin}{since}{mismatch}"


def _home(current: HostState, home: str) -> str:
    if not current.home_set or os.path.realpath(current.home_set) == os.path.realpath(home):
        return home
    return f"{home}, but the plugin uses {current.home_set}"


def _turn(current: HostState) -> str:
    last = current.last_turn
    if last is None:
        return "none yet"
    sent = f"{last.tokens} tokens" if last.tokens else f"nothing ({last.skipped or 'nothing was relevant'})"
    return f"{last.at[:19]} in {output.shorten(last.session_key, 60)}: {sent}; see tacit why {last.id}"
