"""A markdown file with its frontmatter, as a value that never loses a character."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tacit.diagnostics import Problem


@dataclass(frozen=True, slots=True)
class Note:
    """`head` and `body` are the file as written; `fields` is what the head says.

    `head` runs from an optional byte order mark through both fences, line endings included, and is
    empty when the file has none. Two notes are equal when their text is: `fields` follows from it.
    """

    head: str
    body: str
    fields: Mapping[str, object] = field(compare=False)
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        return self.head + self.body


class Remembered(NamedTuple):
    """A line that tacit was asked to remember, and the result."""

    path: str  # empty: it waits as a proposal
    line: str
    is_new: bool
    said: str  # for the caller
