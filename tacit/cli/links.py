"""Links between notes: what a note links to, what links to it, and what is wrong.

NOTE is a path of the home, or a name as a [[link]] has it. Without one, all notes: how many links there are,
which notes are linked most, links that lead nowhere or to several notes, and notes without any.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tacit.app import open_home
from tacit.errors import UsageError
from tacit.search.link_model import Link, LinkSummary, NoteLinks
from tacit.search.searcher import Searcher
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument

_MAX_SHOWN = 20  # of each list; --json has all


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("note", type=utf8_argument, nargs="?", metavar="NOTE", help="a path, or a name")
    parser.add_argument("--broken", action="store_true", help="only links that lead nowhere")
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    searcher = open_home(options.home, recover=False).searcher
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
        _print_note(links)
    else:
        _print_web(links)
    return 0


def _resolve_note(searcher: Searcher, name: str) -> str:
    paths = searcher.called(name)
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


def _print_note(linked: NoteLinks) -> None:
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
