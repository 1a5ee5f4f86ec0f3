"""Bring the index up to date with the files.

Searching does this by itself; here it is seen. The index is made from the files and can be deleted at any
time.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from tacit.app import open_home
from tacit.errors import UsageError
from tacit.home.listing import INDEXED
from tacit.memory import Memory
from tacit.search.index import IndexStats
from tacit.search.searcher import IndexResult
from tacit.search.watcher import watch_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="from nothing; the old one is set aside")
    parser.add_argument("--follow", action="store_true", help="go on with every change until stopped")
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.follow and options.json:
        raise UsageError("--follow prints as it goes and has no JSON. Leave one of them out.")
    memory = open_home(options.home, recover=False)
    if options.follow:
        return _follow(memory, quiet=options.quiet)
    quiet = options.quiet or options.json
    with output.progress("reading", quiet=quiet) as tick, output.progress("vectors", quiet=quiet) as embedded:
        indexed = memory.searcher.update(
            rebuild=options.rebuild, tick=tick, embed_tick=lambda count: embedded(count, count)
        )
    if options.json:
        output.dump(_as_json(indexed))
    else:
        _report_update(indexed, quiet=options.quiet)
    return 1 if indexed.report.failed else 0


def _follow(memory: Memory, *, quiet: bool) -> int:
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    if not quiet:
        output.warn("Following the files. Stop with Ctrl-C.")
    root = str(memory.home.root)
    for indexed in watch_home(memory.searcher, root, INDEXED, stop, workspaces=memory.workspaces):
        _report_update(indexed, quiet=quiet)
        sys.stdout.flush()  # a reader of the pipe wants each line at once
    return 0


def _report_update(indexed: IndexResult, *, quiet: bool) -> None:
    report, facts = indexed.report, indexed.facts
    for note in indexed.notes:
        output.warn(f"tacit: {note}")
    output.print_problems(report.failed)
    if quiet or facts is None:
        return
    parts = [f"{output.pluralize(report.read, 'file')} read", f"{report.unchanged} unchanged"]
    parts += [f"{report.gone} gone"] if report.gone else []
    parts += [f"{len(report.failed)} failed"] if report.failed else []
    output.say(f"{', '.join(parts)}; {output.pluralize(indexed.embedded, 'new vector')}")
    output.say(
        f"The index holds {output.pluralize(facts.files, 'file')},"
        f" {output.pluralize(facts.chunks, 'passage')},"
        f" {output.pluralize(facts.embedded, 'vector')}."
    )


def _as_json(indexed: IndexResult) -> dict[str, object]:
    report, facts = indexed.report, indexed.facts
    return {
        "read": report.read,
        "unchanged": report.unchanged,
        "gone": report.gone,
        "embedded": indexed.embedded,
        "notes": list(indexed.notes),
        "failed": [{"path": problem.where, "what": problem.what} for problem in report.failed],
        "problems": [str(problem) for problem in report.problems],
        "index": _index_form(facts) if facts else {},
    }


def _index_form(facts: IndexStats) -> dict[str, object]:
    return {
        "files": facts.files,
        "passages": facts.chunks,
        "embedded": facts.embedded,
        "generation": facts.generation,
        "embedder": facts.embedder,
    }
