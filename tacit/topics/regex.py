"""Runs users' regular expressions on RE2, whose time is linear in the length of the text for any expression.

All of them are matched together. The only module that uses RE2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tacit.topics.word_boundary import BoundedPattern, is_outside

MAX_PATTERN_CHARS = 2000  # characters of an expression
MAX_PROGRAM_STEPS = (
    2000  # steps of its program; 2,000 take at worst 0.2 s for 24,000 characters, most have below 100
)
_MAX_EDGE_CHARS = 200  # characters that edges, or the translation of a glob, usually add at most
_SINGLE_MEMORY_BYTES = 1 << 20
_EXACT_MEMORY_BYTES = 8 << 20
_SET_MEMORY_BYTES = 32 << 20  # for the states of all together, allocated as needed; most need 1 MB


def is_available() -> bool:
    return _import_re2() is not None


def _import_re2() -> ModuleType | None:
    try:
        import re2
    except ImportError:  # there is no wheel for every platform
        return None
    module: ModuleType = re2
    return module


@dataclass(frozen=True, slots=True)
class RefusedPattern:
    number: int
    reason: str


class Expressions:
    """Many expressions, identified by their index. With `whole` they must match the whole text."""

    def __init__(self, patterns: Sequence[BoundedPattern], whole: bool = False) -> None:
        self.refused: list[RefusedPattern] = []
        self._patterns = patterns
        self._whole = whole
        self._singles: dict[tuple[int, bool], Any] = {}
        self._engine: Any = _import_re2()
        usable = [number for number in range(len(patterns)) if self._check(number)] if self._engine else []
        self._sets = list(self._compile_sets(usable)) if usable else []

    def hits(self, text: bytes) -> list[int]:
        """The expressions that match in their loose form, in order."""
        numbers: set[int] = set()
        for group in self._sets:
            set_matches = group.match(text)
            numbers.update(self._search_each(group.numbers, text) if set_matches is None else set_matches)
        return sorted(numbers)

    def words(self, number: int, text: bytes) -> str | None:
        """The part of the text that an expression matches, or None."""
        expression = self._patterns[number]
        span = self._search(number, text, exact=False)
        if span is None:
            return None
        start, end = span
        if _is_free(text, start, end, expression):
            return _decode(text[start:end])
        span = self._search(number, text, exact=True)
        if span is None:
            return None
        start, end = span
        return _trim(_decode(text[start:end]), expression)

    def _search_each(self, numbers: Iterable[int], text: bytes) -> Iterator[int]:
        return (number for number in numbers if self._search(number, text, exact=False) is not None)

    def _search(self, number: int, text: bytes, exact: bool) -> tuple[int, int] | None:
        single = self._compiled_single(number, exact)
        if single is None:
            return None
        matched = single.fullmatch(text) if self._whole else single.search(text)
        return matched.span() if matched else None

    def _compiled_single(self, number: int, exact: bool) -> Any:
        key = (number, exact)
        if key not in self._singles:
            expression = self._patterns[number]
            try:
                self._singles[key] = (
                    self._compile(expression.exact, _EXACT_MEMORY_BYTES)
                    if exact
                    else self._compile(expression.loose)
                )
            except self._engine.error:
                # The exact form of a very long list of words is too large; use the loose one, as letters of
                # another script next to a match do little harm.
                self._singles[key] = self._compiled_single(number, False) if exact else None
        return self._singles[key]

    def _compile(self, expression: str, memory: int = _SINGLE_MEMORY_BYTES) -> Any:
        return self._engine.compile(_encode(expression), options=self._options(memory))

    def _options(self, memory: int) -> Any:
        options = self._engine.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = memory
        return options

    def _check(self, number: int) -> bool:
        expression = self._patterns[number].loose
        if len(expression) > MAX_PATTERN_CHARS + _MAX_EDGE_CHARS:
            self.refused.append(RefusedPattern(number, f"it has more than {MAX_PATTERN_CHARS} characters"))
            return False
        if not _may_be_large(expression):
            return True
        reason = self._find_fault(expression)
        if reason:
            self.refused.append(RefusedPattern(number, reason))
        return not reason

    def _find_fault(self, expression: str) -> str:
        try:
            size = self._compile(expression).programsize
        except self._engine.error as error:
            return _explain_error(error)
        return _TOO_LARGE if size > MAX_PROGRAM_STEPS else ""

    def _compile_sets(self, numbers: Sequence[int]) -> Iterator[_Set]:
        """Compile one set, or halves if it is too large for one."""
        group = self._engine.Set
        group = (group.FullMatchSet if self._whole else group.SearchSet)(self._options(_SET_MEMORY_BYTES))
        group.Add("(?s:.*)" if self._whole else "")
        accepted = [number for number in numbers if self._add_to_set(group, number)]
        try:
            group.Compile()
        except self._engine.error:
            half = len(accepted) // 2
            if half:
                yield from self._compile_sets(accepted[:half])
                yield from self._compile_sets(accepted[half:])
            else:
                yield _Set(None, tuple(accepted))
            return
        yield _Set(group, tuple(accepted))

    def _add_to_set(self, group: Any, number: int) -> bool:
        try:
            group.Add(_encode(self._patterns[number].loose))
        except self._engine.error:
            reason = self._find_fault(self._patterns[number].loose) or _TOO_LARGE
            self.refused.append(RefusedPattern(number, reason))
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Set:
    group: Any
    numbers: tuple[int, ...]

    def match(self, text: bytes) -> list[int] | None:
        """None if the engine ran out of memory. It then finds nothing, so the first expression of each set is
        one that always matches."""
        matched = self.group.Match(text) if self.group is not None else None
        return [self.numbers[position - 1] for position in matched if position] if matched else None


_TOO_LARGE = "it is too large: repetitions such as {500} count as often as they repeat"


def _may_be_large(expression: str) -> bool:
    """Whether the program may be large: other expressions have a few steps per character."""
    return "{" in expression or "\\p" in expression or "\\P" in expression or len(expression) > 200


def _explain_error(error: Exception) -> str:
    message = error.args[0] if error.args else "it cannot be read"
    message = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    for sign, reason in _REASONS.items():
        if sign in message:
            return f"{reason} ({message})"
    return message


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


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _is_free(text: bytes, start: int, end: int, expression: BoundedPattern) -> bool:
    before = text[max(0, start - 4) : start].decode("utf-8", "ignore")[-1:]
    after = text[end : end + 4].decode("utf-8", "ignore")[:1]
    return (not expression.left or is_outside(before)) and (not expression.right or is_outside(after))


def _trim(words: str, expression: BoundedPattern) -> str:
    """Remove the neighbouring characters, which the exact form matches as well."""
    if expression.left and len(words) > 1 and is_outside(words[0]):
        words = words[1:]
    return words[:-1] if expression.right and len(words) > 1 and is_outside(words[-1]) else words
