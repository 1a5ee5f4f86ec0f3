"""Where things stand: the home, its branch, its sessions, what waits for a commit. Runs no git and parses no
YAML, so it answers at once; `tacit doctor` looks closer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option
from tacit.store import overview
from tacit.store.home import locate


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    seen = overview.look(home)
    if options.json:
        sessions = [{"session_id": name, "path": path or None} for name, path in seen.open]
        output.dump({**vars(seen), "open": sessions})
        return 0
    output.table(_rows(seen), indent="")
    return 0


def _rows(seen: overview.Overview) -> Iterator[tuple[str, str]]:
    yield "home", seen.home
    at = f" at {seen.commit[:10]}" if seen.commit else ""
    yield "branch", (seen.branch or "none: HEAD is detached") + at
    last = f", last {seen.last_transcript}" if seen.last_transcript else ""
    yield "transcripts", f"{seen.transcripts}{last}"
    edited = f", {seen.edited} edited since the last commit" if seen.edited else ""
    yield "notes", f"{seen.notes}{edited}"
    for name, path in seen.open:
        yield "open", f"{output.short(name, 60)}  {path or '(no message yet)'}"
    for path in seen.left_open:
        yield "left open", f"{path} (a crash; the next command seals it)"
    for path in seen.waiting:
        yield "waiting", f"{path} (sealed; `tacit run commit` commits it)"
