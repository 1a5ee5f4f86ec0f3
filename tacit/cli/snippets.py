"""docs/snippets/, made from the skill cards and from the code: `make docs`.

A snippet tells agents of a host without tacit's plugin how to use memory: the same sections as on the cards,
with commands instead of tools. The text is taken from the cards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tacit.config.schema import DEFAULTS, SESSION_TYPES, SessionRule
from tacit.skills import SkillCard, load_cards
from tacit.text.tokens import count

MAX_TOKENS = 400  # of a snippet, which is part of every prompt of its host
_SECTIONS = (("tacit-recall", "Look before you guess"), ("tacit-remember", "What to keep"))
_SHARED_TITLE = "Who listens"
_SHELL_PREFIX = "The shell "  # begins the sentences about commands
_GENERATED_NOTE = "<!-- Made by `make docs` from skills/ and the code; do not edit. -->"


class SnippetHost(NamedTuple):
    title: str
    where: str  # to paste it
    is_shared: bool  # others than the owner may talk to its agents


HOSTS = {
    "openclaw": SnippetHost(
        "OpenClaw without the plugin", "AGENTS.md of the agent's workspace", is_shared=True
    ),
    "claude-code": SnippetHost(
        "Claude Code", "CLAUDE.md of a project, or ~/.claude/CLAUDE.md for all of them", is_shared=False
    ),
    "codex": SnippetHost(
        "Codex", "AGENTS.md of a project, or ~/.codex/AGENTS.md for all of them", is_shared=False
    ),
    "shell": SnippetHost("Any agent with a shell", "what it reads when a session begins", is_shared=True),
}


def page(name: str) -> str:
    host, text = HOSTS[name], snippet(name)
    preamble = f"{_loading_note()}\n\n" if name == "openclaw" else ""
    usage = f"For {host.where}. {count(text)} tokens."
    return f"{_GENERATED_NOTE}\n\n# {host.title}\n\n{usage}\n\n{preamble}```markdown\n{text}```\n"


def snippet(name: str) -> str:
    """The text to paste."""
    by_name = {card.name: card for card in load_cards()}
    parts = ["## Memory"]
    for card, title in _SECTIONS:
        parts.append(f"### {title}\n\n{_strip_tools(by_name[card].section(title))}")
    if HOSTS[name].is_shared:
        shared = " ".join(_shell_sentences(by_name[card]) for card, _ in _SECTIONS)
        parts.append(f"### {_SHARED_TITLE}\n\n{shared}")
    if name == "openclaw":
        parts.append(_audiences())
    return "\n\n".join(parts) + "\n"


def _strip_tools(section: str) -> str:
    """Turn the rows of its table into a list, without the tools."""
    return "\n".join(_list_rows(section.splitlines()))


def _list_rows(lines: list[str]) -> Iterator[str]:
    table = [line for line in lines if line.startswith("|")]
    for line in lines:
        if not line.startswith("|"):
            yield line
        elif line not in table[:2]:  # its head and the rule below it
            aim, _, command = (cell.strip() for cell in line.strip("|").split("|"))
            yield f"- {aim}: {command}"


def _shell_sentences(card: SkillCard) -> str:
    text = card.section(_SHARED_TITLE).replace("\n", " ")
    return text[text.index(_SHELL_PREFIX) :]


def _audiences() -> str:
    """The session types of each audience, by the default rules."""
    rows = (f"- `--audience {name}`: {', '.join(_types_with_audience(name))}" for name in ("group", "anyone"))
    return "By type of session:\n\n" + "\n".join(rows)


def _types_with_audience(audience: str) -> list[str]:
    return [name.replace("_", " ") for name in SESSION_TYPES if _rule(name).audience == audience]


def _loading_note() -> str:
    """Which session types get the file once the classic hooks choose the files."""
    types = [name for name in SESSION_TYPES if "AGENTS.md" in (_rule(name).files or ())]
    return (
        "The host alone loads that file in every session. With tacit's classic hooks only sessions of the "
        f"type {', '.join(types)} get it; SOUL.md is what all sessions have."
    )


def _rule(name: str) -> SessionRule:
    rule: SessionRule = getattr(DEFAULTS.sessions, name)
    return rule


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
