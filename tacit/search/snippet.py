"""Snippets: the part of a chunk around its matches, in the original case."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

MAX_CHARS = 300  # characters, about 48 words
_BOLD = re.compile(r"\*\*(?=\S).+?(?<=\S)\*\*")


def make_snippet(text: str, matches: Sequence[tuple[int, int, str]], width: int = MAX_CHARS) -> str:
    """At most `width` characters of the text, around as many different terms as possible, each match between
    ** **; cut ends are marked. Bold in the text itself loses its markers, which would look like matches."""
    start, end = _window(text, matches, width)
    markers = _bold_markers(text)
    parts = ["… " if start else ""]
    position = start
    for first, last, _ in matches:
        if first >= position and last <= end:
            parts += [
                _without_markers(text, position, first, markers),
                "**",
                _without_markers(text, first, last, markers),
                "**",
            ]
            position = last
    parts += [_without_markers(text, position, end, markers), " …" if end < len(text) else ""]
    return "".join(parts).strip()


def _bold_markers(text: str) -> set[int]:
    """Offsets of the ** that mark bold text; not those of `2 ** 3` or `src/**`."""
    ends = (start for bold in _BOLD.finditer(text) for start in (bold.start(), bold.end() - 2))
    return {offset for start in ends for offset in (start, start + 1)}


def _without_markers(text: str, start: int, end: int, markers: Collection[int]) -> str:
    if not markers:
        return text[start:end]
    return "".join(text[offset] for offset in range(start, end) if offset not in markers)


def _window(text: str, matches: Sequence[tuple[int, int, str]], width: int) -> tuple[int, int]:
    if len(text) <= width:
        return 0, len(text)
    start = _densest_start(matches, width)
    start = max(0, min(start - width // 6, len(text) - width))
    return _nearest_word_boundary(text, start, 1 if start else 0), _nearest_word_boundary(
        text, start + width, -1
    )


def _densest_start(matches: Sequence[tuple[int, int, str]], width: int) -> int:
    """Start of the window with the most different terms; the first one of equals."""
    best, most = 0, 0
    for first, _, _ in matches:
        inside = {term for begin, end, term in matches if first <= begin and end <= first + width * 5 // 6}
        if len(inside) > most:
            best, most = first, len(inside)
    return best


def _nearest_word_boundary(text: str, offset: int, step: int) -> int:
    """The nearest word boundary in the direction of `step`, if there is one close by."""
    for distance in range(30):
        candidate = offset + step * distance
        if not step or candidate <= 0 or candidate >= len(text) or text[candidate - 1].isspace():
            return max(0, min(candidate, len(text)))
    return max(0, min(offset, len(text)))
