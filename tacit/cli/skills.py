"""Skill cards: how an agent uses memory, for hosts that read SKILL.md.

    tacit skills                            which cards there are
    tacit skills --copy ~/.claude/skills    put them where a host looks for skills
    tacit skills --snippet codex            the short form, for a file that the host loads anyway

A card is loaded when it is needed; a snippet stands in every prompt. Agents with the plugin need neither.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tacit.cards import FILE, Card, cards
from tacit.cli import output, snippets
from tacit.cli.dispatch import json_option
from tacit.errors import StoreError
from tacit.store import files
from tacit.text.tokens import count


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--copy", metavar="DIR", help="copy the cards there, each to a folder of its own")
    what.add_argument("--snippet", choices=snippets.HOSTS, help="print the snippet for this host")
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.snippet:
        _print_snippet(options.snippet, is_json=options.json)
        return 0
    found = cards()
    if options.copy:
        _copy(found, Path(options.copy).expanduser())
    _show(found, Path(options.copy).expanduser() if options.copy else None, is_json=options.json)
    return 0


def _print_snippet(host: str, *, is_json: bool) -> None:
    text = snippets.snippet(host)
    if is_json:
        output.dump({"host": host, "where": snippets.HOSTS[host].where, "tokens": count(text), "text": text})
    else:
        output.say(text.rstrip("\n"))


def _copy(found: tuple[Card, ...], folder: Path) -> None:
    """All or none: a card that somebody changed is theirs."""
    places = {folder / card.name / FILE: card.text.encode() for card in found}
    with files.explained(f"copy the cards to {folder}"):
        for place, data in places.items():
            if place.exists() and place.read_bytes() != data:
                raise StoreError(f"{place} is another card. Take it away first; nothing was copied.")
        for place, data in places.items():
            files.make_directories(place.parent, 0o755)
            files.replace(place, data, 0o644)


def _show(found: tuple[Card, ...], folder: Path | None, *, is_json: bool) -> None:
    rows = [
        {
            "name": card.name,
            "tokens": count(card.text),
            "description": card.description,
            "path": str(folder / card.name / FILE if folder else card.path),
        }
        for card in found
    ]
    if is_json:
        output.dump(rows)
        return
    output.table([(str(row["name"]), f"{row['tokens']} tokens", str(row["path"])) for row in rows], indent="")
