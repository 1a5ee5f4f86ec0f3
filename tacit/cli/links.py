"""Links between notes: what a note links to, what links to it, and what is wrong.

NOTE is a path of the home, or a name as a [[link]] has it. Without one, all notes: how many links there are,
which notes are linked most, links that lead nowhere or to several notes, and notes without any.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.errors import UsageError
from tacit.model.links import Link, Linked, Web
from tacit.search.searcher import Searcher

_SHOWN = 20  # of each list; --json has all


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("note", type=words, nargs="?", metavar="NOTE", help="a path, or a name")
    parser.add_argument("--broken", action="store_true", help="only links that lead nowhere")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    searcher = open_home(options.home, recover=False).searcher
    searcher.catch_up(60.0)
    found = searcher.all_links() if options.note is None else searcher.links(_meant(searcher, options.note))
    if options.broken:
        return _broken(found.broken, as_json=options.json)
    if options.json:
        output.dump(_note_form(found) if isinstance(found, Linked) else _web_form(found))
    elif isinstance(found, Linked):
        _tell_note(found)
    else:
        _tell_web(found)
    return 0


def _meant(searcher: Searcher, name: str) -> str:
    paths = searcher.called(name)
    if not paths:
        raise UsageError(f"No note is called {name!r}. Name its path, such as knowledge/people/mara.md.")
    if len(paths) > 1:
        raise UsageError(f"{name!r} may be any of {', '.join(paths[:_SHOWN])}. Name one by its path.")
    return paths[0]


def _broken(found: Iterable[Link], *, as_json: bool) -> int:
    links = list(found)
    if as_json:
        output.dump([_form(link) for link in links])
    elif links:
        for link in links:
            output.say(_line(link))
    else:
        output.say("No link is broken.")
    return 1 if links else 0


def _tell_note(found: Linked) -> None:
    output.say(f"{found.path} links to")
    _list([_line(link) for link in found.to])
    output.say("and is linked from")
    _list([f"{link.source}:{link.line}  {link.written}" for link in found.by])


def _tell_web(found: Web) -> None:
    output.say(f"{output.plural(found.notes, 'note')}, {output.plural(found.links, 'link')}.")
    for title, lines in (
        ("Linked most:", [f"{count:4}  {path}" for path, count in found.most]),
        ("Broken:", [_line(link) for link in found.broken]),
        ("Ambiguous:", [_line(link) for link in found.ambiguous]),
        ("Without any link:", list(found.orphans)),
    ):
        if lines:
            output.say(title)
            _list(lines)


def _list(lines: list[str]) -> None:
    for line in lines[:_SHOWN]:
        output.say(f"  {line}")
    if not lines:
        output.say("  nothing")
    elif len(lines) > _SHOWN:
        output.say(f"  … and {len(lines) - _SHOWN} more, see --json")


def _line(link: Link) -> str:
    leads_to = ", ".join(link.targets) or "nothing"
    return f"{link.source}:{link.line}  {link.written} → {leads_to}"


def _note_form(found: Linked) -> dict[str, object]:
    return {
        "path": found.path,
        "to": [_form(link) for link in found.to],
        "by": [_form(link) for link in found.by],
    }


def _web_form(found: Web) -> dict[str, object]:
    return {
        "notes": found.notes,
        "links": found.links,
        "most": [{"path": path, "count": count} for path, count in found.most],
        "broken": [_form(link) for link in found.broken],
        "ambiguous": [_form(link) for link in found.ambiguous],
        "orphans": list(found.orphans),
    }


def _form(link: Link) -> dict[str, object]:
    return {**link._asdict(), "targets": list(link.targets)}
