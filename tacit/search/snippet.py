"""The part of a passage that shows why it was found: around the matches, in the original case."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

WIDTH = 300  # characters, about 48 words
_BOLD = re.compile(r"\*\*(?=\S).+?(?<=\S)\*\*")


def snippet(text: str, matches: Sequence[tuple[int, int, str]], width: int = WIDTH) -> str:
    """At most `width` characters of the text with the most different terms in them, each match between
    ** **; cut ends are marked. What the text itself has in bold loses its marks, which would look like
    ours."""
    start, end = _window(text, matches, width)
    hidden = _marks(text)
    parts = ["… " if start else ""]
    at = start
    for first, last, _ in matches:
        if first >= at and last <= end:
            parts += [_shown(text, at, first, hidden), "**", _shown(text, first, last, hidden), "**"]
            at = last
    parts += [_shown(text, at, end, hidden), " …" if end < len(text) else ""]
    return "".join(parts).strip()


def _marks(text: str) -> set[int]:
    """Where the ** stand that make something bold; not those of `2 ** 3` or `src/**`."""
    ends = (at for found in _BOLD.finditer(text) for at in (found.start(), found.end() - 2))
    return {place for at in ends for place in (at, at + 1)}


def _shown(text: str, start: int, end: int, hidden: Collection[int]) -> str:
    if not hidden:
        return text[start:end]
    return "".join(text[at] for at in range(start, end) if at not in hidden)


def _window(text: str, matches: Sequence[tuple[int, int, str]], width: int) -> tuple[int, int]:
    if len(text) <= width:
        return 0, len(text)
    start = _fullest(matches, width)
    start = max(0, min(start - width // 6, len(text) - width))
    return _at_word(text, start, 1 if start else 0), _at_word(text, start + width, -1)


def _fullest(matches: Sequence[tuple[int, int, str]], width: int) -> int:
    """Where the window with the most different terms begins; the first of equals."""
    best, most = 0, 0
    for first, _, _ in matches:
        inside = {term for begin, end, term in matches if first <= begin and end <= first + width * 5 // 6}
        if len(inside) > most:
            best, most = first, len(inside)
    return best


def _at_word(text: str, at: int, step: int) -> int:
    """The nearest end of a word in the direction of `step`, if there is one close by."""
    for distance in range(30):
        place = at + step * distance
        if not step or place <= 0 or place >= len(text) or text[place - 1].isspace():
            return max(0, min(place, len(text)))
    return max(0, min(at, len(text)))
