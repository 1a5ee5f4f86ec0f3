"""One setting of memory-config.yaml, changed without touching the rest of what somebody wrote.

Who calls reads the result again: a file that is written in a way that is not understood here is left to its
author.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tacit.config.values import show


def with_items(text: str, key: str, items: Sequence[str]) -> str:
    """The text with these items added to a list at its top."""
    if not items:
        return text
    if found := re.search(rf"^{key}:[ \t]*(?:\[(.*?)\])?[ \t]*(#.*)?$", text, re.MULTILINE):
        if found[1] is None and (block := re.match(r"(?:\n([ \t]*)- .*)+", text[found.end() :])):
            added = "".join(f"\n{block[1]}- {_one(item)}" for item in items)
            at = found.end() + block.end()
            return text[:at] + added + text[at:]
        there = (found[1] or "").strip().rstrip(",")
        comment = f"  {found[2]}" if found[2] else ""
        line = f"{key}: [{', '.join(filter(None, (there, *map(_one, items))))}]{comment}"
        return text[: found.start()] + line + text[found.end() :]
    line = f"{key}: {show(tuple(items))}"
    if found := re.search(rf"^#{key}:.*$", text, re.MULTILINE):  # as the starter has it, with its default
        return text[: found.start()] + line + text[found.end() :]
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"


def with_word(text: str, section: str, key: str, word: str) -> str:
    """The text with that word at `section.key`."""
    head = re.search(rf"^{section}:[ \t]*(?:#.*)?$", text, re.MULTILINE)
    if head is None:
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{section}:\n  {key}: {word}\n"
    below = re.compile(r"(?:\n(?:[ \t#].*)?$)*", re.MULTILINE).match(text, head.end())
    end = below.end() if below else head.end()
    for commented in ("", "#"):  # as somebody wrote it, else as the starter has it, with its default
        pattern = re.compile(rf"^([ \t]+){commented}{key}:[ \t]*[^\s#]*", re.MULTILINE)
        if found := pattern.search(text, head.end(), end):
            return f"{text[: found.start()]}{found[1]}{key}: {word}{text[found.end() :]}"
    indent = re.compile(r"\n([ \t]+)\w").search(text, head.end(), end)
    return f"{text[: head.end()]}\n{indent[1] if indent else '  '}{key}: {word}{text[head.end() :]}"


def _one(item: str) -> str:
    return show((item,))[1:-1]
