"""The commands about the index and about links between notes."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterable

from tacit.app import open_home
from tacit.errors import UsageError
from tacit.home.listing import INDEXED
from tacit.memory import Memory
from tacit.search.home_index import IndexResult
from tacit.search.index import IndexStats
from tacit.search.model import Link, LinkSummary, NoteLinks
from tacit.search.searcher import Searcher
from tacit.search.watcher import watch_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option, utf8_argument


def index_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rebuild", action="store_true", help="build it anew from the files; the old one is quarantined"
    )
    parser.add_argument(
        "--follow", action="store_true", help="keep watching, and index every change until stopped"
    )
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_index(options: argparse.Namespace) -> int:
    """Bring the index up to date with the files.

    Every search does this too; this command shows it. The index is made from the files, so you can delete it
    at any time.
    """
    if options.follow and options.json:
        raise UsageError("--follow prints as it goes and has no JSON. Leave one of them out.")
    memory = open_home(options.home, recover=False)
    if options.follow:
        return _follow(memory, quiet=options.quiet)
    quiet = options.quiet or options.json
    with output.progress("reading", quiet=quiet) as tick, output.progress("vectors", quiet=quiet) as embedded:
        indexed = memory.services.searcher.update(
            rebuild=options.rebuild, tick=tick, embed_tick=lambda count: embedded(count, count)
        )
    if options.json:
        output.dump(_indexed_json(indexed))
    else:
        _report_update(indexed, quiet=options.quiet)
    return 1 if indexed.report.failed else 0


def _follow(memory: Memory, *, quiet: bool) -> int:
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    if not quiet:
        output.warn("Watching the files. Stop with Ctrl-C.")
    root = str(memory.home.root)
    for indexed in watch_home(memory.services.searcher, root, INDEXED, stop, workspaces=memory.workspaces):
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


def _indexed_json(indexed: IndexResult) -> dict[str, object]:
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


_MAX_SHOWN = 20  # of each list; --json has all


def links_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("note", type=utf8_argument, nargs="?", metavar="NOTE", help="a path, or a name")
    parser.add_argument("--broken", action="store_true", help="only links that lead nowhere")
    add_home_option(parser)
    add_json_option(parser)


def run_links(options: argparse.Namespace) -> int:
    """Show links between notes: what a note links to, what links to it, and what is wrong.

    NOTE is a path in the home, or a name as in a [[link]]. Without NOTE it covers all notes: the number of
    links, the notes that are linked most, broken and ambiguous links, and notes without links.
    """
    searcher = open_home(options.home, recover=False).services.searcher
    searcher.catch_up(60.0)
    links = (
        searcher.all_links()
        if options.note is None
        else searcher.links(_resolve_note(searcher, options.note))
    )
    if options.broken:
        return _print_broken(links.broken, as_json=options.json)
    if options.json:
        output.dump(_note_json(links) if isinstance(links, NoteLinks) else _web_json(links))
    elif isinstance(links, NoteLinks):
        _print_links_of_note(links)
    else:
        _print_web(links)
    return 0


def _resolve_note(searcher: Searcher, name: str) -> str:
    paths = searcher.resolve_link(name)
    if not paths:
        raise UsageError(f"No note is called {name!r}. Name its path, such as knowledge/people/mara.md.")
    if len(paths) > 1:
        raise UsageError(f"{name!r} may be any of {', '.join(paths[:_MAX_SHOWN])}. Name one by its path.")
    return paths[0]


def _print_broken(broken: Iterable[Link], *, as_json: bool) -> int:
    links = list(broken)
    if as_json:
        output.dump([_link_json(link) for link in links])
    elif links:
        for link in links:
            output.say(_format_link(link))
    else:
        output.say("No link is broken.")
    return 1 if links else 0


def _print_links_of_note(linked: NoteLinks) -> None:
    output.say(f"{linked.path} links to")
    _print_list([_format_link(link) for link in linked.to])
    output.say("and is linked from")
    _print_list([f"{link.source}:{link.line}  {link.written}" for link in linked.by])


def _print_web(web: LinkSummary) -> None:
    output.say(f"{output.pluralize(web.notes, 'note')}, {output.pluralize(web.links, 'link')}.")
    for title, lines in (
        ("Linked most:", [f"{count:4}  {path}" for path, count in web.most]),
        ("Broken:", [_format_link(link) for link in web.broken]),
        ("Ambiguous:", [_format_link(link) for link in web.ambiguous]),
        ("Without any link:", list(web.orphans)),
    ):
        if lines:
            output.say(title)
            _print_list(lines)


def _print_list(lines: list[str]) -> None:
    for line in lines[:_MAX_SHOWN]:
        output.say(f"  {line}")
    if not lines:
        output.say("  nothing")
    elif len(lines) > _MAX_SHOWN:
        output.say(f"  … and {len(lines) - _MAX_SHOWN} more, see --json")


def _format_link(link: Link) -> str:
    leads_to = ", ".join(link.targets) or "nothing"
    return f"{link.source}:{link.line}  {link.written} → {leads_to}"


def _note_json(linked: NoteLinks) -> dict[str, object]:
    return {
        "path": linked.path,
        "to": [_link_json(link) for link in linked.to],
        "by": [_link_json(link) for link in linked.by],
    }


def _web_json(web: LinkSummary) -> dict[str, object]:
    return {
        "notes": web.notes,
        "links": web.links,
        "most": [{"path": path, "count": count} for path, count in web.most],
        "broken": [_link_json(link) for link in web.broken],
        "ambiguous": [_link_json(link) for link in web.ambiguous],
        "orphans": list(web.orphans),
    }


def _link_json(link: Link) -> dict[str, object]:
    return {**link._asdict(), "targets": list(link.targets)}
