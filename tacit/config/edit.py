"""One list at the top of memory-config.yaml, changed without touching the rest of what somebody wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tacit.config.values import show


def with_items(text: str, key: str, items: Sequence[str]) -> str:
    """The text with these items added to the list. Who calls reads the result again: a list that is written
    in a way that is not understood here is left to its author."""
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


def _one(item: str) -> str:
    return show((item,))[1:-1]
