"""docs/snippets/, made from the skill cards and from the code: `make docs`.

A snippet is what an agent of a host without tacit's plugin has to be told: the same sections as on the cards,
with commands for tools. What a card says is not worded here again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tacit.cards import Card, cards
from tacit.config.keys import DEFAULTS, SESSION_TYPES, SessionRule
from tacit.text.tokens import count

MOST_TOKENS = 400  # of a snippet: it stands in every prompt of its host
_ALONE = (("tacit-recall", "Look before you guess"), ("tacit-remember", "What to keep"))
_SHARED = "Who listens"
_SHELL = "The shell "  # how the sentences begin that are about commands
_MADE = "<!-- Made by `make docs` from skills/ and the code; do not edit. -->"


class Host(NamedTuple):
    title: str
    where: str  # to paste it
    is_shared: bool  # others than the owner may talk to its agents


HOSTS = {
    "openclaw": Host("OpenClaw without the plugin", "AGENTS.md of the agent's workspace", is_shared=True),
    "claude-code": Host(
        "Claude Code", "CLAUDE.md of a project, or ~/.claude/CLAUDE.md for all of them", is_shared=False
    ),
    "codex": Host("Codex", "AGENTS.md of a project, or ~/.codex/AGENTS.md for all of them", is_shared=False),
    "shell": Host("Any agent with a shell", "what it reads when a session begins", is_shared=True),
}


def page(name: str) -> str:
    host, text = HOSTS[name], snippet(name)
    more = f"{_loaded()}\n\n" if name == "openclaw" else ""
    told = f"For {host.where}. {count(text)} tokens."
    return f"{_MADE}\n\n# {host.title}\n\n{told}\n\n{more}```markdown\n{text}```\n"


def snippet(name: str) -> str:
    """What is pasted."""
    by_name = {card.name: card for card in cards()}
    parts = ["## Memory"]
    for card, title in _ALONE:
        parts.append(f"### {title}\n\n{_for_a_shell(by_name[card].section(title))}")
    if HOSTS[name].is_shared:
        shared = " ".join(_about_the_shell(by_name[card]) for card, _ in _ALONE)
        parts.append(f"### {_SHARED}\n\n{shared}")
    if name == "openclaw":
        parts.append(_audiences())
    return "\n\n".join(parts) + "\n"


def _for_a_shell(section: str) -> str:
    """With the rows of its table as a list, without their tools."""
    return "\n".join(_rows(section.splitlines()))


def _rows(lines: list[str]) -> Iterator[str]:
    table = [line for line in lines if line.startswith("|")]
    for line in lines:
        if not line.startswith("|"):
            yield line
        elif line not in table[:2]:  # its head and the rule below it
            aim, _, command = (cell.strip() for cell in line.strip("|").split("|"))
            yield f"- {aim}: {command}"


def _about_the_shell(card: Card) -> str:
    text = card.section(_SHARED).replace("\n", " ")
    return text[text.index(_SHELL) :]


def _audiences() -> str:
    """Which sessions are whose, by the rules that hold where the config says nothing else."""
    told = (f"- `--audience {name}`: {', '.join(_types(name))}" for name in ("group", "anyone"))
    return "By type of session:\n\n" + "\n".join(told)


def _types(audience: str) -> list[str]:
    return [name.replace("_", " ") for name in SESSION_TYPES if _rule(name).audience == audience]


def _loaded() -> str:
    """Where a file reaches whom, once the classic hooks choose the files."""
    types = [name for name in SESSION_TYPES if "AGENTS.md" in (_rule(name).files or ())]
    return (
        "The host alone loads that file in every session. With tacit's classic hooks only sessions of the "
        f"type {', '.join(types)} get it; SOUL.md is what all sessions have."
    )


def _rule(name: str) -> SessionRule:
    found: SessionRule = getattr(DEFAULTS.sessions, name)
    return found


def pages() -> dict[str, str]:
    return {f"{name}.md": page(name) for name in HOSTS}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
