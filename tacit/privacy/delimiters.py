"""Delimiters around data that the data cannot forge.

    <!-- knowledge e722 -->
    [e722 2026-10-05 knowledge/people/deniz-kaya.md]
    …
    <!-- /knowledge e722 -->

The letter and three digits come from a hash of everything between such delimiters, and from the next hash as
long as they occur anywhere in it. So no text can close its own fence or pretend to come from another source,
and the same texts always get the same delimiter. This form costs two tokens; hex would cost four.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from hashlib import sha256

from tacit.text.words import space_marks

_MAX_ATTEMPTS = 100

# Characters that a model sees and a reader does not: controls (terminal escapes among them), marks that
# change the direction of writing, unneeded joiners, and the invisible copy of ASCII in plane 14.
# U+200C and U+200D stay: Persian and joined emoji need them.
_INVISIBLE = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff]"
    # One variation selector after a character chooses its form; a sequence of them can carry text.
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINERS = re.compile("[\u00ad\u034f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def strip_invisible(text: str) -> str:
    """The text as a person sees it: uniform line ends, no invisible characters, no lone surrogates."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    return _LONE_SURROGATE.sub("\ufffd", _INVISIBLE.sub("", text))


def to_one_line(name: str) -> str:
    """A name on one line, for use before a message or in a heading."""
    return " ".join(strip_invisible(name).split())


_RESERVED = re.compile(r"(?:user|agent|assistant|system|tool)\b", re.IGNORECASE)


def format_speaker(name: str, role: str = "") -> str:
    """The name of a speaker. A reserved name such as "system" is put after the real role."""
    speaker = to_one_line(name).replace(":", " ").strip()
    if speaker in ("", role) or (not role and speaker in ("user", "agent")) or speaker.startswith("tool "):
        return speaker or role
    return f"{role or 'user'} {speaker}" if _RESERVED.match(speaker) else speaker


def choose_delimiter(contents: Sequence[str]) -> str:
    """A delimiter code that occurs in none of the contents, however it is spelt."""
    normalized = "\n".join(map(_normalize, contents))
    digest = sha256(normalized.encode("utf-8", "replace")).digest()
    for _ in range(_MAX_ATTEMPTS):
        mark = f"{chr(ord('a') + digest[0] % 26)}{int.from_bytes(digest[1:3]) % 1000:03d}"
        if mark not in normalized:
            return mark
        digest = sha256(digest).digest()
    while digest.hex() in normalized:  # a megabyte may hold every short mark
        digest = sha256(digest).digest()
    return digest.hex()


def _normalize(text: str) -> str:
    """With full-width and mathematical letters replaced by the letters that they look like."""
    if text.isascii():
        return text.casefold()
    # Joiners first: a space among them would hide a mark that is spelt with them.
    text = space_marks(_JOINERS.sub("", text))
    return _JOINERS.sub("", unicodedata.normalize("NFKC", text)).casefold()


_TURN_START = re.compile(r"(?im)(?<=\n)(?=[ \t]*(?:user|agent|assistant|human|system|tool)\b[^\n:]{0,40}:)")


def escape_turns(text: str) -> str:
    """The text of one speaker, with a mark before lines that look like the start of another turn."""
    return _TURN_START.sub("| ", text) if "\n" in text else text


def wrap_fenced(label: str, mark: str, text: str) -> str:
    return f"<!-- {label} {mark} -->\n{text}\n<!-- /{label} {mark} -->"
