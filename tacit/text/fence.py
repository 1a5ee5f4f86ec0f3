"""Marks around what is data, which the data cannot forge.

    <!-- knowledge e722 -->
    [e722 2026-10-05 knowledge/people/deniz-kaya.md]
    …
    <!-- /knowledge e722 -->

The letter and three digits are taken from a hash of everything between such marks, and from the next hash as
long as they stand anywhere in it. So no text can close its own fence or pretend to come from another source,
and the same texts always get the same marks. In this form a mark costs two tokens, and hex would cost four.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from hashlib import sha256

_TRIES = 100

# What a reader does not see, but a model does: control characters (a terminal's escapes among them), marks
# that turn the direction of writing, joiners of nothing, and the invisible copy of ASCII in plane 14.
# U+200C and U+200D stay: Persian and joined emoji need them.
_UNSEEN = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff]"
    # One variation selector after a character chooses its form; a row of them carries text.
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_HALF = re.compile("[\ud800-\udfff]")
_JOINERS = re.compile("[\u00ad\u034f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def visible(text: str) -> str:
    """The text as a person sees it: line ends alike, nothing invisible, nothing that is half a character."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _HALF.sub("\ufffd", _UNSEEN.sub("", text))


def one_line(name: str) -> str:
    """A name as it may stand in front of what somebody said, or in a heading."""
    return " ".join(visible(name).split())


_RESERVED = re.compile(r"(?:user|agent|assistant|system|tool)\b", re.IGNORECASE)


def speaker_of(name: str, role: str = "") -> str:
    """Nobody becomes the system by calling himself so: such a name stands behind what he is."""
    shown = one_line(name).replace(":", " ").strip()
    if shown in ("", role) or (not role and shown in ("user", "agent")) or shown.startswith("tool "):
        return shown or role
    return f"{role or 'user'} {shown}" if _RESERVED.match(shown) else shown


def mark_for(contents: Sequence[str]) -> str:
    """A mark that stands in none of the contents, however it is spelt."""
    plain = "\n".join(map(_plain, contents))
    digest = sha256(plain.encode("utf-8", "replace")).digest()
    for _ in range(_TRIES):
        mark = f"{chr(ord('a') + digest[0] % 26)}{int.from_bytes(digest[1:3]) % 1000:03d}"
        if mark not in plain:
            return mark
        digest = sha256(digest).digest()
    while digest.hex() in plain:  # a megabyte may hold every short mark
        digest = sha256(digest).digest()
    return digest.hex()


def _plain(text: str) -> str:
    """As somebody reads it who takes full-width and mathematical letters for the letters they look like."""
    if text.isascii():
        return text.casefold()
    return _JOINERS.sub("", unicodedata.normalize("NFKC", text)).casefold()


_TURN = re.compile(r"(?im)(?<=\n)(?=[ \t]*(?:user|agent|assistant|human|system|tool)\b[^\n:]{0,40}:)")


def one_turn(text: str) -> str:
    """What one side said, with a mark before lines of it that look as if another side began to speak."""
    return _TURN.sub("| ", text) if "\n" in text else text


def fenced(label: str, mark: str, text: str) -> str:
    return f"<!-- {label} {mark} -->\n{text}\n<!-- /{label} {mark} -->"
