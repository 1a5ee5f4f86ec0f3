"""Links between notes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Pointer(NamedTuple):
    """A link as written in a note, not yet resolved."""

    target: str  # a path of the home, or a [[name]] that any file may have
    written: str  # as written in the note
    line: int


class Link(NamedTuple):
    """A resolved link: no targets if it is broken, several if its name is ambiguous."""

    source: str
    line: int
    written: str
    targets: tuple[str, ...]


class Neighbour(NamedTuple):
    """One note that another links to, or is linked from."""

    path: str
    other: str
    forward: bool  # `path` links to `other`


@dataclass(frozen=True, slots=True)
class NoteLinks:
    """The links from and to one note."""

    path: str
    to: tuple[Link, ...]
    by: tuple[Link, ...]

    @property
    def broken(self) -> tuple[Link, ...]:
        return tuple(link for link in self.to if not link.targets)


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """The links of all notes."""

    notes: int
    links: int
    most: tuple[tuple[str, int], ...]  # notes with the number of links to each, most linked first
    broken: tuple[Link, ...]
    ambiguous: tuple[Link, ...]
    orphans: tuple[str, ...]  # notes without links in either direction
