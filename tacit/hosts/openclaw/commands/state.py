"""`tacit openclaw status`, `doctor` and `baseline`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tacit.app import load_config, open_home, utc_now
from tacit.diagnostics import CheckResult, Problem
from tacit.errors import HostError
from tacit.home.layout import find_home
from tacit.hosts.openclaw import baseline, bootstrap_files, doctor, packaged, probe
from tacit.hosts.openclaw.baseline import ComparisonRow, SessionReport
from tacit.hosts.openclaw.commands.setup import add_host_options
from tacit.hosts.openclaw.doctor import HostState
from tacit.hosts.openclaw.machine import OpenClawHost, find_host, find_workspaces
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_json_option, add_quiet_option

# ---------------------------------------------------------------- status


def status_arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    add_json_option(parser)


def run_status(options: argparse.Namespace) -> int:
    """Where things stand between OpenClaw and the home. Runs no program; `tacit openclaw doctor` looks
    closer."""
    home = find_home(options.home, os.environ).require()
    host = find_host(os.environ, options.openclaw)
    current = doctor.inspect_host(host, home, load_config(home).config, utc_now().astimezone())
    if options.json:
        last = asdict(current.last_turn) if current.last_turn else None
        output.dump({**current._asdict(), "last_turn": last, "home": str(home.root)})
        return 0
    output.print_table(_status_rows(current, str(home.root)), indent="")
    return 0


def _status_rows(current: HostState, home: str) -> Iterator[tuple[str, str]]:
    yield "host", f"{current.host}; the gateway {'runs' if current.gateway else 'does not run'}"
    yield "plugin", _describe_plugin(current)
    for reason in current.blocked if current.plugin else ():
        yield "", reason
    if current.hooks:
        yield "hooks", ", ".join(current.hooks)
    yield "home", _describe_home(current, home)
    yield "workspaces", ", ".join(current.workspaces) or "none is adopted"
    yield "owners", ", ".join(current.owners) or "none: see `owners` in memory-config.yaml"
    yield "daemon", "answers" if current.daemon else "does not answer"
    yield "spool", f"{output.pluralize(current.spool, 'record')} wait" if current.spool else "empty"
    yield "last turn", _describe_turn(current)
    yield "today", output.pluralize(current.sessions_today, "session")
    baseline_state = f"taken {current.baseline}" if current.baseline else "not taken: tacit openclaw baseline"
    yield "baseline", baseline_state
    if current.phase:
        yield "phase", current.phase


def _describe_plugin(current: HostState) -> str:
    if not current.plugin:
        return "not installed: tacit openclaw install"
    since = f", since {current.installed}" if current.installed else ""
    if current.same:
        return f"{current.plugin}{since}"
    return (
        f"{current.plugin}{since}, not the files of this tacit ({packaged.version()}): tacit openclaw install"
    )


def _describe_home(current: HostState, home: str) -> str:
    if not current.home_set or os.path.realpath(current.home_set) == os.path.realpath(home):
        return home
    return f"{home}, but the plugin uses {current.home_set}"


def _describe_turn(current: HostState) -> str:
    last = current.last_turn
    if last is None:
        return "none yet"
    sent = f"{last.tokens} tokens" if last.tokens else f"nothing ({last.skipped or 'nothing was relevant'})"
    return f"{last.at[:19]} in {output.shorten(last.session_key, 60)}: {sent}; see tacit why {last.id}"


# ---------------------------------------------------------------- doctor


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--probe", action="store_true", help="prove by real turns that hooks fire")
    add_json_option(parser)
    add_quiet_option(parser)


def run_doctor(options: argparse.Namespace) -> int:
    """What is missing between OpenClaw and the home, and how to mend it. Changes nothing.

    With --probe it makes a turn through the host as it is set up (which asks its model once) and proves by
    tacit's receipts that the hooks fired; a second turn in a temporary copy of the host's setup shows how the
    host treats its list of files. Exit code 1 if something is missing (not for warnings).
    """
    memory = open_home(options.home, recover=False)
    host = find_host(os.environ, options.openclaw)
    results = list(doctor.checks(host, memory.home, memory.config))
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


# ---------------------------------------------------------------- baseline


def baseline_arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--compare", action="store_true", help="the host's own files against tacit's")
    parser.add_argument("--turn", action="store_true", help="make a turn for the report; asks the model once")
    parser.add_argument("--workspace", metavar="DIR", help="this one (default: the default agent's)")
    add_json_option(parser)


def run_baseline(options: argparse.Namespace) -> int:
    """What the host loads into each kind of session by itself, by its own report.

    The result is kept in the home and, as a file to read, in the workspace. If the host has no report of a
    kind of session, its rules are applied instead. Reports that the host made before the install count as the
    baseline, even if they are read later.

    With --compare: tokens per turn of that, against what tacit gave in the turns so far. If there were none,
    the files of the workspace are replayed; no host needs to run for it.
    """
    memory = open_home(options.home, recover=False)
    if options.compare:
        return _compare(memory, options)
    host = find_host(os.environ, options.openclaw)
    workspace = _choose_workspace(options, host)
    reports, file = baseline.capture(host, memory, workspace, utc_now().astimezone(), ask=options.turn)
    if options.json:
        output.dump({"file": str(file), "sessions": [_report_json(report) for report in reports]})
        return 0
    _print_reports(reports)
    output.say(f"\nKept in {file} and in the home.")
    return 0


def _choose_workspace(options: argparse.Namespace, host: OpenClawHost | None) -> Path:
    if options.workspace or host is None:
        return Path(os.path.abspath(os.path.expanduser(options.workspace)))
    return next(iter(find_workspaces(host).values()))


def _report_json(report: SessionReport) -> dict[str, object]:
    files = [file._asdict() for file in report.files]
    return {**report._asdict(), "files": files, "tokens": report.tokens, "source": report.source}


def _print_reports(reports: Sequence[SessionReport]) -> None:
    rows = [("session", "tokens", "files", "known by")]
    for report in reports:
        names = ", ".join(file.name.removesuffix(".md") for file in report.files) or "-"
        suffix = "" if report.is_before else " (with tacit)"
        rows.append((report.kind + suffix, f"{report.tokens:,}", names, report.source))
    output.print_table(rows, indent="")


def _compare(memory: Memory, options: argparse.Namespace) -> int:
    host = None if options.workspace else find_host(os.environ, options.openclaw)
    limits = bootstrap_files.read_limits(host.tree) if host else bootstrap_files.BootstrapLimits()
    rows = baseline.compare_rows(memory, _choose_workspace(options, host), limits)
    if options.json:
        output.dump([_row_json(row) for row in rows])
        return 0
    header = [("session", "host alone", "files", "turn", "tacit", "saving", "aim", "known by")]
    output.print_table([*header, *map(_row_cells, rows)], indent="")
    output.say("\nMean tokens per turn. files, turn: with tacit, the files and the text added to the turn.")
    return 0


def _row_json(row: ComparisonRow) -> dict[str, object]:
    more = {"total": row.total, "saving": row.saving, "aim": row.aim, "verdict": row.verdict}
    return {**row._asdict(), **more}


def _row_cells(row: ComparisonRow) -> tuple[str, ...]:
    saving = "-" if row.saving is None else f"{row.saving:.0f} %"
    aim = f"{row.aim} % {row.verdict}" if row.aim else ""
    text = "-" if row.text is None else f"{row.text:,.0f}"
    source = row.source if row.source == row.bulk_source else f"{row.bulk_source}; tacit: {row.source}"
    return (row.kind, f"{row.bulk:,.0f}", f"{row.files:,.0f}", text, f"{row.total:,.0f}", saving, aim, source)
