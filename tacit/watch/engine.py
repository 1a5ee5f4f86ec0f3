"""Expressions that people wrote, on RE2: the time for a text grows with its length, whatever they say.

All of them are looked for at once. The only module that knows RE2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tacit.text.edges import Edged, is_outside

LONGEST = 2000  # characters of an expression
LARGEST = 2000  # steps of its program; 2,000 are at worst 0.2 s for 24,000 characters, most have below 100
_ADDED = 200  # by the edges at most, for most expressions; what a glob grows by
_ONE_MEMORY = 1 << 20
_EXACT_MEMORY = 8 << 20
_SET_MEMORY = 32 << 20  # for the states of all together. What it needs comes bit by bit; most need 1 MB


def available() -> bool:
    return _re2() is not None


def _re2() -> ModuleType | None:
    try:
        import re2
    except ImportError:  # there is no wheel for every platform
        return None
    module: ModuleType = re2
    return module


@dataclass(frozen=True, slots=True)
class Refused:
    number: int
    reason: str


class Expressions:
    """Many expressions, each known by its number in `given`. `whole` ones must match all of a text."""

    def __init__(self, given: Sequence[Edged], whole: bool = False) -> None:
        self.refused: list[Refused] = []
        self._given = given
        self._whole = whole
        self._singles: dict[tuple[int, bool], Any] = {}
        self._engine: Any = _re2()
        usable = [number for number in range(len(given)) if self._usable(number)] if self._engine else []
        self._sets = list(self._compiled(usable)) if usable else []

    def hits(self, text: bytes) -> list[int]:
        """Which expressions match, in order; of loose ones, which may."""
        found: set[int] = set()
        for group in self._sets:
            matched = group.match(text)
            found.update(self._one_by_one(group.numbers, text) if matched is None else matched)
        return sorted(found)

    def words(self, number: int, text: bytes) -> str | None:
        """What of the text an expression matched, or None."""
        given = self._given[number]
        found = self._search(number, text, exact=False)
        if found is None:
            return None
        start, end = found
        if _free(text, start, end, given):
            return _decoded(text[start:end])
        found = self._search(number, text, exact=True)
        if found is None:
            return None
        start, end = found
        return _trimmed(_decoded(text[start:end]), given)

    def _one_by_one(self, numbers: Iterable[int], text: bytes) -> Iterator[int]:
        return (number for number in numbers if self._search(number, text, exact=False) is not None)

    def _search(self, number: int, text: bytes, exact: bool) -> tuple[int, int] | None:
        single = self._single(number, exact)
        if single is None:
            return None
        found = single.fullmatch(text) if self._whole else single.search(text)
        return found.span() if found else None

    def _single(self, number: int, exact: bool) -> Any:
        key = (number, exact)
        if key not in self._singles:
            given = self._given[number]
            try:
                self._singles[key] = (
                    self._one(given.exact, _EXACT_MEMORY) if exact else self._one(given.loose)
                )
            except self._engine.error:
                # The exact form of a very long list of words; then a letter of another script next to it
                # does no harm.
                self._singles[key] = self._single(number, False) if exact else None
        return self._singles[key]

    def _one(self, expression: str, memory: int = _ONE_MEMORY) -> Any:
        return self._engine.compile(_encoded(expression), options=self._options(memory))

    def _options(self, memory: int) -> Any:
        options = self._engine.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = memory
        return options

    def _usable(self, number: int) -> bool:
        expression = self._given[number].loose
        if len(expression) > LONGEST + _ADDED:
            self.refused.append(Refused(number, f"it has more than {LONGEST} characters"))
            return False
        if not _may_be_large(expression):
            return True
        reason = self._fault(expression)
        if reason:
            self.refused.append(Refused(number, reason))
        return not reason

    def _fault(self, expression: str) -> str:
        try:
            size = self._one(expression).programsize
        except self._engine.error as error:
            return _reason(error)
        return _TOO_LARGE if size > LARGEST else ""

    def _compiled(self, numbers: Sequence[int]) -> Iterator[_Set]:
        """As one set; in halves where it is too much for one."""
        group = self._engine.Set
        group = (group.FullMatchSet if self._whole else group.SearchSet)(self._options(_SET_MEMORY))
        group.Add("(?s:.*)" if self._whole else "")
        added = [number for number in numbers if self._added(group, number)]
        try:
            group.Compile()
        except self._engine.error:
            half = len(added) // 2
            if half:
                yield from self._compiled(added[:half])
                yield from self._compiled(added[half:])
            else:
                yield _Set(None, tuple(added))
            return
        yield _Set(group, tuple(added))

    def _added(self, group: Any, number: int) -> bool:
        try:
            group.Add(_encoded(self._given[number].loose))
        except self._engine.error:
            reason = self._fault(self._given[number].loose) or _TOO_LARGE
            self.refused.append(Refused(number, reason))
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Set:
    group: Any
    numbers: tuple[int, ...]

    def match(self, text: bytes) -> list[int] | None:
        """None when the engine had too little memory. It says so by finding nothing, so the first
        expression of each set is one that always matches."""
        found = self.group.Match(text) if self.group is not None else None
        return [self.numbers[place - 1] for place in found if place] if found else None


_TOO_LARGE = "it is too large: repetitions such as {500} count as often as they repeat"


def _may_be_large(expression: str) -> bool:
    """Others have a few steps for each character."""
    return "{" in expression or "\\p" in expression or "\\P" in expression or len(expression) > 200


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else "it cannot be read"
    said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    for sign, reason in _REASONS.items():
        if sign in said:
            return f"{reason} ({said})"
    return said


_REASONS = {
    "(?=": "RE2 has no lookahead; write it without",
    "(?!": "RE2 has no lookahead; write it without",
    "(?<": "RE2 has no lookbehind; write it without",
    "(?>": "RE2 has no atomic groups; write it without",
    "(?(": "RE2 has no conditions; write it without",
    "escape sequence: \\Z": "RE2 calls it \\z",
    **{
        f"escape sequence: \\{digit}": "RE2 has no backreferences; write it without" for digit in range(1, 10)
    },
    "escape sequence: \\k": "RE2 has no backreferences; write it without",
    "too large": _TOO_LARGE,
    "nesting depth": "its groups are nested too deep",
    "repetition size": "a repetition is larger than 1000",
    "no argument": "there is nothing to repeat",
    "repetition operator": "a repetition is repeated",
    "missing )": "a bracket is not closed",
    "unexpected )": "a bracket is closed that was not opened",
    "missing ]": "a [ is not closed",
}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _free(text: bytes, start: int, end: int, given: Edged) -> bool:
    before = text[max(0, start - 4) : start].decode("utf-8", "ignore")[-1:]
    after = text[end : end + 4].decode("utf-8", "ignore")[:1]
    return (not given.left or is_outside(before)) and (not given.right or is_outside(after))


def _trimmed(words: str, given: Edged) -> str:
    """Without the characters next to it, which the exact form matches as well."""
    if given.left and len(words) > 1 and is_outside(words[0]):
        words = words[1:]
    return words[:-1] if given.right and len(words) > 1 and is_outside(words[-1]) else words
