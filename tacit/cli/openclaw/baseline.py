"""What the host loads into each kind of session by itself, by its own report.

Kept in the home and, as a file to read, in the workspace. A kind of session that the host has no report of
is computed by its rules. Reports that the host made before the install count as the baseline, whenever they
are asked for.

With --compare: tokens per turn of that against what tacit gave in the turns so far. Where there were none,
the bootstrap is replayed on the workspace's files; no host needs to run for it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from tacit.app import open_home, utc_now
from tacit.cli.openclaw.options import add_host_options
from tacit.hosts.openclaw import baseline, bootstrap_files
from tacit.hosts.openclaw.baseline import ComparisonRow, SessionReport
from tacit.hosts.openclaw.host import OpenClawHost, find_host, find_workspaces
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_json_option


def arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--compare", action="store_true", help="the host's own files against tacit's")
    parser.add_argument("--turn", action="store_true", help="make a turn for the report; asks the model once")
    parser.add_argument("--workspace", metavar="DIR", help="this one (default: the default agent's)")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.compare:
        return _compare(memory, options)
    host = find_host(os.environ, options.openclaw)
    workspace = _workspace(options, host)
    reports, file = baseline.capture(host, memory, workspace, utc_now().astimezone(), ask=options.turn)
    if options.json:
        output.dump({"file": str(file), "sessions": [_report_json(report) for report in reports]})
        return 0
    _print(reports)
    output.say(f"\nKept in {file} and in the home.")
    return 0


def _workspace(options: argparse.Namespace, host: OpenClawHost | None) -> Path:
    if options.workspace or host is None:
        return Path(os.path.abspath(os.path.expanduser(options.workspace)))
    return next(iter(find_workspaces(host).values()))


def _report_json(report: SessionReport) -> dict[str, object]:
    files = [file._asdict() for file in report.files]
    return {**report._asdict(), "files": files, "tokens": report.tokens, "source": report.source}


def _print(reports: Sequence[SessionReport]) -> None:
    rows = [("session", "tokens", "files", "known by")]
    for report in reports:
        names = ", ".join(file.name.removesuffix(".md") for file in report.files) or "-"
        suffix = "" if report.is_before else " (with tacit)"
        rows.append((report.kind + suffix, f"{report.tokens:,}", names, report.source))
    output.print_table(rows, indent="")


def _compare(memory: Memory, options: argparse.Namespace) -> int:
    host = None if options.workspace else find_host(os.environ, options.openclaw)
    limits = bootstrap_files.read_limits(host.tree) if host else bootstrap_files.BootstrapLimits()
    rows = baseline.compare_rows(memory, _workspace(options, host), limits)
    if options.json:
        output.dump([_row_json(row) for row in rows])
        return 0
    header = [("session", "host alone", "files", "turn", "tacit", "saving", "aim", "known by")]
    output.print_table([*header, *map(_row_cells, rows)], indent="")
    output.say("\nTokens per turn: workspace files and, with tacit, what a turn is given besides (mean).")
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
