"""The skill cards, which tell an agent how to use memory, in the format that hosts read. In a checkout they
are in skills/, in a wheel inside the package."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tacit.errors import HomeError
from tacit.markdown import notes
from tacit.markdown.sections import find_sections

CARD_FILE = "SKILL.md"
MAX_CARD_TOKENS = 400  # of a card, which an agent reads in the middle of a task
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
