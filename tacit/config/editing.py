"""Changes one setting of memory-config.yaml without touching the rest of the file.

The caller parses the result again: a file in a form that is not understood here is left to its author.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tacit.config.conversion import show


def add_items(text: str, key: str, items: Sequence[str]) -> str:
    """The text with these items added to a list at its top."""
    if not items:
        return text
    if match := re.search(rf"^{key}:[ \t]*(?:\[(.*?)\])?[ \t]*(#.*)?$", text, re.MULTILINE):
        if match[1] is None and (block := re.match(r"(?:\n([ \t]*)- .*)+", text[match.end() :])):
            added = "".join(f"\n{block[1]}- {_show_item(item)}" for item in items)
            end = match.end() + block.end()
            return text[:end] + added + text[end:]
        existing = (match[1] or "").strip().rstrip(",")
        comment = f"  {match[2]}" if match[2] else ""
        line = f"{key}: [{', '.join(filter(None, (existing, *map(_show_item, items))))}]{comment}"
        return text[: match.start()] + line + text[match.end() :]
    line = f"{key}: {show(tuple(items))}"
    if match := re.search(rf"^#{key}:.*$", text, re.MULTILINE):  # as in the starter file, with its default
        return text[: match.start()] + line + text[match.end() :]
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"


def set_word(text: str, section: str, key: str, word: str) -> str:
    """The text with `section.key` set to that word."""
    head = re.search(rf"^{section}:[ \t]*(?:#.*)?$", text, re.MULTILINE)
    if head is None:
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{section}:\n  {key}: {word}\n"
    below = re.compile(r"(?:\n(?:[ \t#].*)?$)*", re.MULTILINE).match(text, head.end())
    end = below.end() if below else head.end()
    for commented in ("", "#"):  # as set in the file, else as in the starter file, with its default
        pattern = re.compile(rf"^([ \t]+){commented}{key}:[ \t]*[^\s#]*", re.MULTILINE)
        if match := pattern.search(text, head.end(), end):
            return f"{text[: match.start()]}{match[1]}{key}: {word}{text[match.end() :]}"
    indent = re.compile(r"\n([ \t]+)\w").search(text, head.end(), end)
    return f"{text[: head.end()]}\n{indent[1] if indent else '  '}{key}: {word}{text[head.end() :]}"


def _show_item(item: str) -> str:
    return show((item,))[1:-1]
