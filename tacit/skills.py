"""Skill cards and snippets, which tell an agent how to use memory.

A card is a SKILL.md as hosts read it: in a checkout in skills/, in a wheel inside the package. A snippet is
the short form for agents without tacit's plugin: the same sections, with commands instead of tools. Its text
is taken from the cards. `make docs` writes docs/snippets/.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tacit.config.schema import DEFAULTS, SESSION_TYPES, SessionRule
from tacit.errors import HomeError
from tacit.hosts.base import Snippet, load_hosts
from tacit.markdown import notes
from tacit.markdown.sections import find_sections
from tacit.text.tokens import count

CARD_FILE = "SKILL.md"
_PACKAGE_FOLDER = Path(__file__).parent
_CARD_FOLDERS = (_PACKAGE_FOLDER / "skills", _PACKAGE_FOLDER.parent / "skills")


class SkillCard(NamedTuple):
    name: str
    description: str
    path: Path
    text: str  # of the whole file, as hosts read it

    def section(self, title: str) -> str:
        """The text below a heading."""
        (section,) = find_sections(self.text, title, 2)
        return section.text(self.text).partition("\n")[2].strip()


def load_cards() -> tuple[SkillCard, ...]:
    paths = next(
        (matches for folder in _CARD_FOLDERS if (matches := sorted(folder.glob(f"tacit-*/{CARD_FILE}")))),
        None,
    )
    if paths is None:
        raise HomeError("The skill cards are not in this installation of tacit. Install tacit again.")
    return tuple(map(_read_card, paths))


def _read_card(path: Path) -> SkillCard:
    note = notes.parse(notes.decode(path.read_bytes()), path.name)
    return SkillCard(str(note.fields["name"]), str(note.fields["description"]), path, note.text)


# ---------------------------------------------------------------- snippets

_SECTIONS = (("tacit-recall", "Look before you guess"), ("tacit-remember", "What to keep"))
_SHARED_TITLE = "Who listens"
_SHELL_PREFIX = "The shell "  # begins the sentences about commands
_GENERATED_NOTE = "<!-- Made by `make docs` from skills/ and the code; do not edit. -->"


SNIPPETS = {
    snippet.name: snippet
    for snippet in (
        *(snippet for host in load_hosts() for snippet in host.snippets),
        Snippet("shell", "Any agent with a shell", "what it reads when a session begins", is_shared=True),
    )
}


def render_page(name: str) -> str:
    snippet, text = SNIPPETS[name], render_snippet(name)
    preamble = f"{_loading_note()}\n\n" if snippet.by_session_type else ""
    usage = f"For {snippet.where}. {count(text)} tokens."
    return f"{_GENERATED_NOTE}\n\n# {snippet.title}\n\n{usage}\n\n{preamble}```markdown\n{text}```\n"


def render_snippet(name: str) -> str:
    """The text to paste."""
    by_name = {card.name: card for card in load_cards()}
    parts = ["## Memory"]
    for card, title in _SECTIONS:
        parts.append(f"### {title}\n\n{_strip_tools(by_name[card].section(title))}")
    if SNIPPETS[name].is_shared:
        shared = " ".join(_shell_sentences(by_name[card]) for card, _ in _SECTIONS)
        parts.append(f"### {_SHARED_TITLE}\n\n{shared}")
    if SNIPPETS[name].by_session_type:
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


def render_pages() -> dict[str, str]:
    return {f"{name}.md": render_page(name) for name in SNIPPETS}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, text in render_pages().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
