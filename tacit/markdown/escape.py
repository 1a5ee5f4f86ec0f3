"""Escapes text so that it cannot be read as structure of our files, and restores it unchanged.

Two layers, each reversed exactly:
- characters that break editors, terminals, YAML or UTF-8 become `&#x0;`-style references, which markdown
  shows as the character; text that already looks like such a reference gets one more `amp;`;
- lines that look like structure of a transcript get one backslash in front, which markdown hides.
"""

from __future__ import annotations

import re

# Controls except tab and newline, a return that does not end a line, C1, the line separators that some
# programs split on, what UTF-8 and YAML cannot hold.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]|\r(?!\n)", re.DOTALL
)
_REFERENCE = re.compile(r"&((?:amp;)*)#x([0-9A-F]{1,6});")

# A turn's heading, the one-line entries below it, and the mark that ends each record.
_STRUCTURE = re.compile(
    r"^(?=\\*(?:## (?:\d{4}-\d\d-\d\d )?\d\d:\d\d |> \[(?:tool|knowledge|attachment):|<!-- (?:\d+ |torn)))",
    re.MULTILINE,
)
_ESCAPED = re.compile(
    r"^\\(?=\\*(?:## (?:\d{4}-\d\d-\d\d )?\d\d:\d\d |> \[(?:tool|knowledge|attachment):|<!-- (?:\d+ |torn)))",
    re.MULTILINE,
)


def characters(text: str) -> str:
    """Make every character storable."""
    # The common case, decided without a regular expression: every unsafe character is unprintable.
    if "&" not in text and text.replace("\n", "").isprintable():
        return text
    if _REFERENCE.search(text):
        text = _REFERENCE.sub(r"&amp;\1#x\2;", text)
    return _UNSAFE.sub(lambda match: _reference(match.group()), text)


def restore_characters(text: str) -> str:
    return _REFERENCE.sub(_restore_reference, text)


def block(text: str) -> str:
    """Make text safe as the body of a turn."""
    escaped = characters(text)
    may_be_structure = "## " in escaped or "> [" in escaped or "<!-- " in escaped
    return _STRUCTURE.sub(r"\\", escaped) if may_be_structure else escaped


def restore_block(text: str) -> str:
    return restore_characters(_ESCAPED.sub("", text))


def inline(text: str, forbidden: str = "") -> str:
    """Make text safe on one line; the forbidden characters (delimiters of that line) become references."""
    escaped = characters(text).replace("\r", _reference("\r")).replace("\n", _reference("\n"))
    for character in forbidden:
        escaped = escaped.replace(character, _reference(character))
    return escaped


def _reference(character: str) -> str:
    return f"&#x{ord(character):X};"


def _restore_reference(match: re.Match[str]) -> str:
    amps, digits = match.groups()
    if amps:
        return f"&{amps[4:]}#x{digits};"
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else match.group()
