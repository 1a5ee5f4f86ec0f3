"""Removes private text and secrets before a text reaches a disk, a log or an index.

They are replaced by `[private]` or `[secret: openai key]`, so that a reader sees that something was here, and
what.

Private is everything between `<private>` and `</private>`, however the tag is written: in capitals, with
attributes, nested, over several lines, with invisible letters or look-alikes in it, escaped as HTML, JSON or
an address. When in doubt it is private. An unclosed tag reaches to the end of the text and is replaced by
`[private …]`, because the next message may belong to it; a closing tag without an opening one, whose
beginning may be in an earlier message, reaches back to the start. A text that only talks about the tags, in
code or in quotes, is treated as if it meant them.

What must stay true: `clean` of a cleaned text changes nothing; time is linear in the length of the text;
any string can be cleaned. Only `re` is imported, because hooks start with this module.
"""

from __future__ import annotations

import re

from tacit.privacy import secrets as credentials

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
LEFT_OPEN = "[private …]"  # the tag was not closed

# Invisible characters, which can hide inside a tag or a key. Also the colour codes of terminals.
_INVISIBLE = (
    "\x1b\\[[0-9;]{0,12}m|[\0-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
    # The same, escaped as in JSON.
    r"|\\{1,4}u001b\[[0-9;]{0,12}m|\\{1,4}u(?:00(?:0[0-8be-f]|1[0-9a-f]|7f|[89][0-9a-f]|ad)|034f|061c|115f|1160"
    r"|17b[45]|180[b-f]|20(?:0[b-f]|2[a-e]|6[0-9a-f])|3164|fe0[0-9a-f]|feff|ffa0|fff[0-9ab]"
    r"|db4[0-3]\\{1,4}ud[c-f][0-9a-f]{2})"
)
_TAG_OPEN = r"(?:<|&(?:amp;)*+(?:lt|#0*+60|#x0*+3c);?|\\u003c|\\uff1c|\\x3c|%3c)"
_SLASH = r"(?:\\*+/|&(?:amp;)*+(?:sol|#0*+47|#x0*+2f);?|\\u002f|\\uff0f|%2f)"
_TAG_CLOSE = r"(?:>|&(?:amp;)*+(?:gt|#0*+62|#x0*+3e);?|\\u003e|\\uff1e|\\x3e|%3e)"
_TAG = (
    rf"{_TAG_OPEN}\s*+({_SLASH}\s*+)?p\s*+r\s*+i\s*+v\s*+a\s*+t\s*+e(?!-?[a-z0-9_])"
    rf"(?(1)(?:[^<>&%\n]{{0,100}}?\s*+\\{{0,8}}?{_TAG_CLOSE})?)"
)
_MARK = r"\[(?:private(?: …)?|secret: ([a-z0-9 ]{1,40}))\]"

_LOOK_ALIKES = {
    "<": "﹤‹〈⟨〈❮❰⧼ᐸ˂", ">": "﹥›〉⟩〉❯❱⧽ᐳ˃", "/": "⁄∕╱⧸",
    "p": "рρ", "r": "г", "i": "іıιⅰ", "v": "ѵνⅴ", "a": "аα", "t": "τт", "e": "еєε",
}  # fmt: skip


def clean(text: str) -> Cleaned:
    """The text without private parts and secrets."""
    visible, shifts = _strip_invisible(text)
    folded = _fold(visible)
    private = _find_private(folded)
    visible, folded = _blank_marks(visible, folded, [(begin, end) for begin, end, _ in private])
    secrets = credentials.find_secrets(visible, folded)
    if not private and not secrets:
        return Cleaned(text)
    marks = [(begin, end, LEFT_OPEN if is_open else PRIVATE) for begin, end, is_open in private]
    marks += [(begin, end, f"[secret: {kind}]") for begin, end, kind in secrets]
    cleaned = _replace_spans(text, _restore_positions(sorted(marks), shifts))
    return Cleaned(cleaned, len(private), tuple(kind for _, _, kind in secrets))


def is_left_open(text: str) -> bool:
    """Whether a tag is open at the end, also in a cleaned text: the next message may belong to it."""
    visible, _ = _strip_invisible(text)
    return visible.endswith(LEFT_OPEN) or any(is_open for _, _, is_open in _find_private(_fold(visible)))


# Private


def _find_private(folded: str) -> list[tuple[int, int, bool]]:
    """Start, end, and whether it is left open, which only the last can be."""
    begin, end, depth = -1, 0, 0
    spans: list[tuple[int, int, bool]] = []
    for tag in re.compile(_TAG).finditer(folded):
        if tag[1] is None:
            begin = tag.start() if depth == 0 else begin
            depth += 1
            continue
        if depth == 0:
            begin, spans = 0, []
        depth, end = max(0, depth - 1), tag.end()
        if depth == 0:
            spans.append((begin, end, False))
    if depth:
        spans.append((begin, len(folded), True))
    return spans


# The text as it is searched


def _strip_invisible(text: str) -> tuple[str, Sequence[tuple[int, int]]]:
    """The text without invisible characters, and the shift of positions from each place on."""
    without_breaks = text.replace("\n", "").replace("\t", "").replace("\r", "")
    if without_breaks.isascii() and without_breaks.isprintable() and "\\u" not in without_breaks:
        return text, ()
    pieces, shifts, position, shift = [], [], 0, 0
    for unseen in re.compile(_INVISIBLE, re.IGNORECASE).finditer(text):
        pieces.append(text[position : unseen.start()])
        shift += unseen.end() - unseen.start()
        position = unseen.end()
        shifts.append((position - shift, shift))
    return ("".join([*pieces, text[position:]]), shifts) if shifts else (text, ())


def _fold(text: str) -> str:
    """The text in lower case, with look-alikes replaced by what they look like, and of the same length."""
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):  # İ becomes two
        lower = "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
    table = _look_alike_table()
    return re.compile(r"[^\0-\x7f]++").sub(lambda letters: letters[0].translate(table), lower)


_look_alikes: dict[int, str] = {}


def _look_alike_table() -> dict[int, str]:
    if not _look_alikes:
        table = {ord(alike): letter for letter, alikes in _LOOK_ALIKES.items() for alike in alikes}
        table |= {0xFF01 + index: chr(0x21 + index).lower() for index in range(94)}  # full width
        for index in range(13 * 52):  # thirteen mathematical alphabets, capitals first
            table[0x1D400 + index] = chr(ord("a") + index % 26)
        _look_alikes.update(table)
    return _look_alikes


def _blank_marks(visible: str, folded: str, private: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Blank the private parts and the marks of earlier redactions."""
    blanked = credentials.blank_spans
    visible, folded = blanked(visible, private), blanked(folded, private)
    if "[private" not in visible and "[secret: " not in visible:
        return visible, folded
    kinds = credentials.KINDS
    marks = [mark.span() for mark in re.finditer(_MARK, visible) if mark[1] is None or mark[1] in kinds]
    return blanked(visible, marks), blanked(folded, marks)


# Back to the original text


def _restore_positions(
    marks: Sequence[tuple[int, int, str]], shifts: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int, str]]:
    """The same marks with positions in the original text."""
    if not shifts:
        return marks
    placed, index, shift = [], 0, 0
    for begin, end, mark in marks:
        ends = []
        for place in (begin, end - 1):
            while index < len(shifts) and shifts[index][0] <= place:
                shift, index = shifts[index][1], index + 1
            ends.append(place + shift)
        placed.append((ends[0], ends[1] + 1, mark))
    return placed


def _replace_spans(text: str, marks: Sequence[tuple[int, int, str]]) -> str:
    pieces, position = [], 0
    for begin, end, mark in sorted(marks):
        pieces += [text[position:begin], mark] if begin >= position else []
        position = max(position, end)
    return "".join([*pieces, text[position:]])
