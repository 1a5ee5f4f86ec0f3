"""Problems as values: to show to people instead of raising an exception."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    where: str
    what: str
    todo: str = ""
    line: int | None = None
    level: str = "error"  # error | warning

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{place}: {self.what}" + (f" {self.todo}" if self.todo else "")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    name: str
    found: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A problem that the turn worked around, or a step that was skipped."""

    code: str  # deadline | index | vector | gate-error | identity-shortened | empty | heartbeat | …
    text: str
