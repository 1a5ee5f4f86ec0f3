"""Where things stand between OpenClaw and the home. Runs nothing; `tacit openclaw doctor` looks closer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict

from tacit.app import load_config, now
from tacit.cli import output
from tacit.cli.dispatch import json_option
from tacit.cli.openclaw.options import host_options
from tacit.openclaw import find, packaged, state
from tacit.openclaw.state import State
from tacit.store.home import locate


def arguments(parser: argparse.ArgumentParser) -> None:
    host_options(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    host = find.find(os.environ, options.openclaw)
    seen = state.look(host, home, load_config(home).config, now().astimezone())
    if options.json:
        last = asdict(seen.last_turn) if seen.last_turn else None
        output.dump({**seen._asdict(), "last_turn": last, "home": str(home.root)})
        return 0
    output.table(_rows(seen, str(home.root)), indent="")
    return 0


def _rows(seen: State, home: str) -> Iterator[tuple[str, str]]:
    yield "host", f"{seen.host}; the gateway {'runs' if seen.gateway else 'does not run'}"
    yield "plugin", _plugin(seen)
    for why in seen.blocked if seen.plugin else ():
        yield "", why
    if seen.hooks:
        yield "hooks", ", ".join(seen.hooks)
    yield "home", _home(seen, home)
    yield "workspaces", ", ".join(seen.workspaces) or "none is adopted"
    yield "owners", ", ".join(seen.owners) or "none: see `owners` in memory-config.yaml"
    yield "daemon", "answers" if seen.daemon else "does not answer"
    yield "spool", f"{output.plural(seen.spool, 'record')} wait" if seen.spool else "empty"
    yield "last turn", _turn(seen)
    yield "today", output.plural(seen.sessions_today, "session")
    yield "baseline", f"taken {seen.baseline}" if seen.baseline else "not taken: tacit openclaw baseline"
    if seen.phase:
        yield "phase", seen.phase


def _plugin(seen: State) -> str:
    if not seen.plugin:
        return "not installed: tacit openclaw install"
    same = (
        "" if seen.same else f", not the files of this tacit ({packaged.version()}): tacit openclaw install"
    )
    since = f", since {seen.installed}" if seen.installed else ""
    return f"{seen.plugin}{since}{same}"


def _home(seen: State, home: str) -> str:
    if not seen.home_set or os.path.realpath(seen.home_set) == os.path.realpath(home):
        return home
    return f"{home}, but the plugin uses {seen.home_set}"


def _turn(seen: State) -> str:
    last = seen.last_turn
    if last is None:
        return "none yet"
    given = f"{last.tokens} tokens" if last.tokens else f"nothing ({last.skipped or 'nothing was relevant'})"
    return f"{last.at[:19]} in {output.short(last.session_key, 60)}: {given}; see tacit why {last.id}"
