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

from tacit.app import now, open_home
from tacit.cli import output
from tacit.cli.dispatch import json_option
from tacit.cli.openclaw.options import host_options
from tacit.memory import Memory
from tacit.openclaw import baseline, find, listing
from tacit.openclaw.baseline import Reported
from tacit.openclaw.compare import Row


def arguments(parser: argparse.ArgumentParser) -> None:
    host_options(parser)
    parser.add_argument("--compare", action="store_true", help="the host's own files against tacit's")
    parser.add_argument("--turn", action="store_true", help="make a turn for the report; asks the model once")
    parser.add_argument("--workspace", metavar="DIR", help="this one (default: the default agent's)")
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.compare:
        return _compare(memory, options)
    host = find.find(os.environ, options.openclaw)
    workspace = _workspace(options, host)
    kept, file = baseline.captured(host, memory, workspace, now().astimezone(), ask=options.turn)
    if options.json:
        output.dump({"file": str(file), "sessions": [_reported(one) for one in kept]})
        return 0
    _print(kept)
    output.say(f"\nKept in {file} and in the home.")
    return 0


def _workspace(options: argparse.Namespace, host: find.Host | None) -> Path:
    if options.workspace or host is None:
        return Path(os.path.abspath(os.path.expanduser(options.workspace)))
    return next(iter(find.workspaces(host).values()))


def _reported(one: Reported) -> dict[str, object]:
    files = [file._asdict() for file in one.files]
    return {**one._asdict(), "files": files, "tokens": one.tokens, "source": one.source}


def _print(kept: Sequence[Reported]) -> None:
    rows = [("session", "tokens", "files", "known by")]
    for one in kept:
        names = ", ".join(file.name.removesuffix(".md") for file in one.files) or "-"
        who = "" if one.is_before else " (with tacit)"
        rows.append((one.kind + who, f"{one.tokens:,}", names, one.source))
    output.table(rows, indent="")


def _compare(memory: Memory, options: argparse.Namespace) -> int:
    host = None if options.workspace else find.find(os.environ, options.openclaw)
    limits = listing.limits_of(host.tree) if host else listing.Limits()
    rows = baseline.rows(memory, _workspace(options, host), limits)
    if options.json:
        output.dump([_row(row) for row in rows])
        return 0
    shown = [("session", "host alone", "files", "turn", "tacit", "saving", "aim", "known by")]
    output.table([*shown, *map(_cells, rows)], indent="")
    output.say("\nTokens per turn: workspace files and, with tacit, what a turn is given besides (mean).")
    return 0


def _row(row: Row) -> dict[str, object]:
    more = {"total": row.total, "saving": row.saving, "aim": row.aim, "verdict": row.verdict}
    return {**row._asdict(), **more}


def _cells(row: Row) -> tuple[str, ...]:
    saving = "-" if row.saving is None else f"{row.saving:.0f} %"
    aim = f"{row.aim} % {row.verdict}" if row.aim else ""
    text = "-" if row.text is None else f"{row.text:,.0f}"
    known = row.source if row.source == row.bulk_source else f"{row.bulk_source}; tacit: {row.source}"
    return (row.kind, f"{row.bulk:,.0f}", f"{row.files:,.0f}", text, f"{row.total:,.0f}", saving, aim, known)
