"""Skill cards: how an agent uses memory, for hosts that read SKILL.md.

    tacit skills                            which cards there are
    tacit skills --copy ~/.claude/skills    put them where a host looks for skills
    tacit skills --snippet shell            the short form, for a file that the host loads anyway

A card is loaded when it is needed; a snippet stands in every prompt. Agents with the plugin need neither.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tacit.errors import StoreError
from tacit.home import files
from tacit.skills import CARD_FILE, SNIPPETS, SkillCard, load_cards, render_snippet
from tacit.terminal import output
from tacit.terminal.arguments import add_json_option
from tacit.text.tokens import count


def arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--copy", metavar="DIR", help="copy the cards there, each to a folder of its own")
    action.add_argument("--snippet", choices=SNIPPETS, help="print the snippet for this host")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.snippet:
        _print_snippet(options.snippet, is_json=options.json)
        return 0
    skill_cards = load_cards()
    if options.copy:
        _copy(skill_cards, Path(options.copy).expanduser())
    _show(skill_cards, Path(options.copy).expanduser() if options.copy else None, is_json=options.json)
    return 0


def _print_snippet(host: str, *, is_json: bool) -> None:
    text = render_snippet(host)
    if is_json:
        output.dump({"host": host, "where": SNIPPETS[host].where, "tokens": count(text), "text": text})
    else:
        output.say(text.rstrip("\n"))


def _copy(skill_cards: tuple[SkillCard, ...], folder: Path) -> None:
    """Copy all cards or none: a card that was edited is never overwritten."""
    targets = {folder / card.name / CARD_FILE: card.text.encode() for card in skill_cards}
    with files.explain_disk_errors(f"copy the cards to {folder}"):
        for target, data in targets.items():
            if target.exists() and target.read_bytes() != data:
                raise StoreError(f"{target} is another card. Take it away first; nothing was copied.")
        for target, data in targets.items():
            files.make_directories(target.parent, 0o755)
            files.replace(target, data, 0o644)


def _show(skill_cards: tuple[SkillCard, ...], folder: Path | None, *, is_json: bool) -> None:
    rows = [
        {
            "name": card.name,
            "tokens": count(card.text),
            "description": card.description,
            "path": str(folder / card.name / CARD_FILE if folder else card.path),
        }
        for card in skill_cards
    ]
    if is_json:
        output.dump(rows)
        return
    output.print_table(
        [(str(row["name"]), f"{row['tokens']} tokens", str(row["path"])) for row in rows], indent=""
    )
