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
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.search.follow import follow
from tacit.search.searcher import Indexed
from tacit.store.listing import INDEXED


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rebuild", action="store_true", help="from nothing; the old one is set aside")
    parser.add_argument("--follow", action="store_true", help="go on with every change until stopped")
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.follow and options.json:
        raise UsageError("--follow prints as it goes and has no JSON. Leave one of them out.")
    memory = open_home(options.home, recover=False)
    if options.follow:
        return _follow(memory, quiet=options.quiet)
    quiet = options.quiet or options.json
    with output.progress("reading", quiet=quiet) as tick, output.progress("vectors", quiet=quiet) as embedded:
        done = memory.searcher.update(
            rebuild=options.rebuild, tick=tick, embed_tick=lambda count: embedded(count, count)
        )
    if options.json:
        output.dump(_value(done))
    else:
        _tell(done, quiet=options.quiet)
    return 1 if done.report.failed else 0


def _follow(memory: Memory, *, quiet: bool) -> int:
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    if not quiet:
        output.warn("Following the files. Stop with Ctrl-C.")
    root = str(memory.home.root)
    for done in follow(memory.searcher, root, INDEXED, stop, workspaces=memory.workspaces):
        _tell(done, quiet=quiet)
        sys.stdout.flush()  # who reads a pipe wants to know now
    return 0


def _tell(done: Indexed, *, quiet: bool) -> None:
    report, facts = done.report, done.facts
    for note in done.notes:
        output.warn(f"tacit: {note}")
    output.problems(report.failed)
    if quiet or facts is None:
        return
    parts = [f"{output.plural(report.read, 'file')} read", f"{report.unchanged} unchanged"]
    parts += [f"{report.gone} gone"] if report.gone else []
    parts += [f"{len(report.failed)} failed"] if report.failed else []
    output.say(f"{', '.join(parts)}; {output.plural(done.embedded, 'new vector')}")
    output.say(
        f"The index holds {output.plural(facts.files, 'file')}, {output.plural(facts.passages, 'passage')},"
        f" {output.plural(facts.embedded, 'vector')}."
    )


def _value(done: Indexed) -> dict[str, object]:
    report, facts = done.report, done.facts
    return {
        "read": report.read,
        "unchanged": report.unchanged,
        "gone": report.gone,
        "embedded": done.embedded,
        "notes": list(done.notes),
        "failed": [{"path": problem.where, "what": problem.what} for problem in report.failed],
        "problems": [str(problem) for problem in report.problems],
        "index": facts._asdict() if facts else {},
    }
