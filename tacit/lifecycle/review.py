"""Drafts as people review them: notes below the text that are never promoted, and a line in the list of the
day."""

from __future__ import annotations

import re
from collections.abc import Sequence

REVIEW_NEEDED = "REVIEW NEEDED"
_OPENS, _CLOSES = "<!-- For the reviewer. This comment is not promoted.", "-->"
_NEWLINE = re.compile(r"\r\n|\n")


def reviewed(text: str, notes: Sequence[str]) -> str:
    """The text with the notes below it, in a comment."""
    safe = "\n".join(notes).replace("-->", "-- >").replace("<!--", "< !--")
    return f"{text.rstrip()}\n\n{_OPENS}\n\n{safe.strip()}\n{_CLOSES}\n"


def split_review(draft: str) -> tuple[str, str]:
    """What would be promoted, and the notes."""
    body, opened, rest = draft.partition(_OPENS)
    if not opened:
        return draft, ""
    notes, _, after = rest.partition(_CLOSES)
    return f"{body.rstrip()}\n{after.strip()}".rstrip() + "\n", notes.strip()


def flagged(queue: str, path: str, told: str) -> str:
    """The list of the day with a line that asks for a review of the file. It is there once, as it is told
    now."""
    line = f"- [ ] {REVIEW_NEEDED}: {path} {told}"
    eol = _eol(queue)
    lines = queue.split(eol)
    for at, old in enumerate(lines):
        if _asks_for(old, path):
            return eol.join((*lines[:at], line, *lines[at + 1 :]))
    return (
        f"{queue.rstrip()}{eol}{line}{eol}"
        if queue.strip()
        else f"# Daily execution queue{eol}{eol}{line}{eol}"
    )


def settled(queue: str, path: str) -> str:
    """The same with that line ticked off."""
    eol = _eol(queue)
    return eol.join(
        line.replace("- [ ]", "- [x]", 1) if _asks_for(line, path) else line for line in queue.split(eol)
    )


def _asks_for(line: str, path: str) -> bool:
    return line.lstrip().startswith(f"- [ ] {REVIEW_NEEDED}: {path} ")


def _eol(text: str) -> str:
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"
