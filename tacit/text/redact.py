"""What must not be kept is taken out of a text before the text reaches a disk, a log or an index.

Two things: what somebody marked as private, and secrets. In their place stands `[private]` or
`[secret: openai key]`, so that a reader knows that something was here, and what.

Private is all between `<private>` and `</private>`, however the tag is written: in capitals, with attributes,
nested, over several lines, with invisible letters or look-alikes in it, escaped as HTML, JSON or an address.
When in doubt it is private. A tag that nobody closes reaches to the end of the text, and `[private …]` stands
for it, because the next message may belong to it; a closing tag without an opening one, whose beginning may
be in an earlier message, reaches back to the start. A text that only talks about the tags, in code or in
quotes, is treated as if it meant them.

What must stay true: `clean` of a cleaned text changes nothing; time grows with the length of the text,
whatever is in it; any string can be cleaned. Only `re` is imported, because hooks start with this module.
"""

from __future__ import annotations

import re

from tacit.text import credentials

TYPE_CHECKING = False  # as in typing, which costs more to import than all of this
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NamedTuple

    class Cleaned(NamedTuple):
        """The text that may be kept; how many parts were private; the kinds of secrets, in order."""

        text: str
        private: int = 0
        secrets: tuple[str, ...] = ()

else:
    from collections import namedtuple

    Cleaned = namedtuple("Cleaned", ("text", "private", "secrets"), defaults=(0, ()))  # noqa: PYI024

PRIVATE = "[private]"
LEFT_OPEN = "[private …]"  # nobody closed it

# What nobody sees: it may stand inside a tag or a key without anybody noticing. Also a terminal's colours.
_UNSEEN = (
    "\x1b\\[[0-9;]{0,12}m|[\0-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
    # The same as JSON has them.
    r"|\\{1,4}u001b\[[0-9;]{0,12}m|\\{1,4}u(?:00(?:0[0-8be-f]|1[0-9a-f]|7f|[89][0-9a-f]|ad)|034f|061c|115f|1160"
    r"|17b[45]|180[b-f]|20(?:0[b-f]|2[a-e]|6[0-9a-f])|3164|fe0[0-9a-f]|feff|ffa0|fff[0-9ab]"
    r"|db4[0-3]\\{1,4}ud[c-f][0-9a-f]{2})"
)
_OPENED = r"(?:<|&(?:amp;)*+(?:lt|#0*+60|#x0*+3c);?|\\u003c|\\uff1c|\\x3c|%3c)"
_SLASH = r"(?:\\*+/|&(?:amp;)*+(?:sol|#0*+47|#x0*+2f);?|\\u002f|\\uff0f|%2f)"
_CLOSED = r"(?:>|&(?:amp;)*+(?:gt|#0*+62|#x0*+3e);?|\\u003e|\\uff1e|\\x3e|%3e)"
_TAG = (
    rf"{_OPENED}\s*+({_SLASH}\s*+)?p\s*+r\s*+i\s*+v\s*+a\s*+t\s*+e(?!-?[a-z0-9_])"
    rf"(?(1)(?:[^<>&%\n]{{0,100}}?\s*+\\{{0,8}}?{_CLOSED})?)"
)
_MARK = r"\[(?:private(?: …)?|secret: ([a-z0-9 ]{1,40}))\]"

_LOOK_ALIKES = {
    "<": "﹤‹〈⟨〈❮❰⧼ᐸ˂", ">": "﹥›〉⟩〉❯❱⧽ᐳ˃", "/": "⁄∕╱⧸",
    "p": "рρ", "r": "г", "i": "іıιⅰ", "v": "ѵνⅴ", "a": "аα", "t": "τт", "e": "еєε",
}  # fmt: skip


def clean(text: str) -> Cleaned:
    """The text without what is private and without secrets."""
    seen, moved = _seen(text)
    folded = _folded(seen)
    hidden = _private(folded)
    seen, folded = _blanked(seen, folded, [(begin, end) for begin, end, _ in hidden])
    found = credentials.spans(seen, folded)
    if not hidden and not found:
        return Cleaned(text)
    marks = [(begin, end, LEFT_OPEN if is_open else PRIVATE) for begin, end, is_open in hidden]
    marks += [(begin, end, f"[secret: {kind}]") for begin, end, kind in found]
    kept = _replaced(text, _in_place(sorted(marks), moved))
    return Cleaned(kept, len(hidden), tuple(kind for _, _, kind in found))


def is_left_open(text: str) -> bool:
    """Whether a tag is open at the end, also where the text is cleaned: what comes next may belong to it."""
    seen, _ = _seen(text)
    return seen.endswith(LEFT_OPEN) or any(is_open for _, _, is_open in _private(_folded(seen)))


# Private


def _private(folded: str) -> list[tuple[int, int, bool]]:
    """From, to, and whether it is left open, which only the last can be."""
    begin, end, depth = -1, 0, 0
    found: list[tuple[int, int, bool]] = []
    for tag in re.compile(_TAG).finditer(folded):
        if tag[1] is None:
            begin = tag.start() if depth == 0 else begin
            depth += 1
            continue
        if depth == 0:
            begin, found = 0, []
        depth, end = max(0, depth - 1), tag.end()
        if depth == 0:
            found.append((begin, end, False))
    if depth:
        found.append((begin, len(folded), True))
    return found


# The text as it is looked at


def _seen(text: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """Without what nobody sees; and from which place on it has moved by how much."""
    plain = text.replace("\n", "").replace("\t", "").replace("\r", "")
    if plain.isascii() and plain.isprintable() and "\\u" not in plain:
        return text, ()
    pieces, moved, at, by = [], [], 0, 0
    for unseen in re.compile(_UNSEEN, re.IGNORECASE).finditer(text):
        pieces.append(text[at : unseen.start()])
        by += unseen.end() - unseen.start()
        at = unseen.end()
        moved.append((at - by, by))
    return ("".join([*pieces, text[at:]]), moved) if moved else (text, ())


def _folded(text: str) -> str:
    """In lower case, with look-alikes as what they look like, and exactly as long."""
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):  # İ becomes two
        lower = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    table = _table()
    return re.compile(r"[^\0-\x7f]++").sub(lambda letters: letters[0].translate(table), lower)


_known: dict[int, str] = {}


def _table() -> dict[int, str]:
    if not _known:
        found = {ord(alike): letter for letter, alikes in _LOOK_ALIKES.items() for alike in alikes}
        found |= {0xFF01 + at: chr(0x21 + at).lower() for at in range(94)}  # full width
        for at in range(13 * 52):  # thirteen mathematical alphabets, capitals first
            found[0x1D400 + at] = chr(ord("a") + at % 26)
        _known.update(found)
    return _known


def _blanked(seen: str, folded: str, hidden: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """With nothing to be found in what is private, or where a mark already stands."""
    blanked = credentials.blanked
    seen, folded = blanked(seen, hidden), blanked(folded, hidden)
    if "[private" not in seen and "[secret: " not in seen:
        return seen, folded
    kinds = credentials.KINDS
    marks = [mark.span() for mark in re.finditer(_MARK, seen) if mark[1] is None or mark[1] in kinds]
    return blanked(seen, marks), blanked(folded, marks)


# Back in the text as it is


def _in_place(
    marks: Sequence[tuple[int, int, str]], moved: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int, str]]:
    """The same marks, counted in the text with all its letters."""
    if not moved:
        return marks
    placed, at, by = [], 0, 0
    for begin, end, mark in marks:
        ends = []
        for place in (begin, end - 1):
            while at < len(moved) and moved[at][0] <= place:
                by, at = moved[at][1], at + 1
            ends.append(place + by)
        placed.append((ends[0], ends[1] + 1, mark))
    return placed


def _replaced(text: str, marks: Sequence[tuple[int, int, str]]) -> str:
    pieces, at = [], 0
    for begin, end, mark in sorted(marks):
        pieces += [text[at:begin], mark] if begin >= at else []
        at = max(at, end)
    return "".join([*pieces, text[at:]])
