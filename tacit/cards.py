"""The skill cards: how an agent uses memory, in the form that hosts read. In a checkout they are in skills/,
in a wheel inside the package."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tacit.errors import HomeError
from tacit.text import notes
from tacit.text.sections import named

FILE = "SKILL.md"
MOST_TOKENS = 400  # of a card: it is read in the middle of somebody's work
_PACKAGE = Path(__file__).parent
_PLACES = (_PACKAGE / "skills", _PACKAGE.parent / "skills")


class Card(NamedTuple):
    name: str
    description: str
    path: Path
    text: str  # of the whole file, as hosts read it

    def section(self, title: str) -> str:
        """What stands below a heading."""
        (found,) = named(self.text, title, 2)
        return found.text(self.text).partition("\n")[2].strip()


def cards() -> tuple[Card, ...]:
    found = next((files for place in _PLACES if (files := sorted(place.glob(f"tacit-*/{FILE}")))), None)
    if found is None:
        raise HomeError("The skill cards are not in this installation of tacit. Install tacit again.")
    return tuple(map(_read, found))


def _read(path: Path) -> Card:
    note = notes.parse(notes.decode(path.read_bytes()), path.name)
    return Card(str(note.fields["name"]), str(note.fields["description"]), path, note.text)
