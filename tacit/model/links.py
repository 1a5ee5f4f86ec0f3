"""Links between notes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Pointer(NamedTuple):
    """A link as a note has it, before anybody knows where it leads."""

    target: str  # a path of the home, or a [[name]] that may stand for any file so called
    written: str  # as it stands there
    line: int


class Link(NamedTuple):
    """A link and where it leads: to no file if it is broken, to several if its name is ambiguous."""

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
class Linked:
    """What one note links to, and what links to it."""

    path: str
    to: tuple[Link, ...]
    by: tuple[Link, ...]

    @property
    def broken(self) -> tuple[Link, ...]:
        return tuple(link for link in self.to if not link.targets)


@dataclass(frozen=True, slots=True)
class Web:
    """The links of all notes."""

    notes: int
    links: int
    most: tuple[tuple[str, int], ...]  # notes and how many others link to each, most first
    broken: tuple[Link, ...]
    ambiguous: tuple[Link, ...]
    orphans: tuple[str, ...]  # notes that link to none and to which none links
