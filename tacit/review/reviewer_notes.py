"""Drafts as people review them: reviewer notes below the text that are never applied, and a line in the daily
queue."""

from __future__ import annotations

import re
from collections.abc import Sequence

REVIEW_NEEDED = "REVIEW NEEDED"
_COMMENT_START, _COMMENT_END = "<!-- For the reviewer. This comment is not promoted.", "-->"
_NEWLINE = re.compile(r"\r\n|\n")


def add_reviewer_notes(text: str, notes: Sequence[str]) -> str:
    """The text with the notes below it, in a comment."""
    safe = "\n".join(notes).replace("-->", "-- >").replace("<!--", "< !--")
    return f"{text.rstrip()}\n\n{_COMMENT_START}\n\n{safe.strip()}\n{_COMMENT_END}\n"


def split_notes(draft: str) -> tuple[str, str]:
    """Split a draft into the text to apply and the reviewer notes."""
    body, marker, rest = draft.partition(_COMMENT_START)
    if not marker:
        return draft, ""
    notes, _, after = rest.partition(_COMMENT_END)
    return f"{body.rstrip()}\n{after.strip()}".rstrip() + "\n", notes.strip()


def request_review(queue: str, path: str, told: str) -> str:
    """The daily queue with one line that asks for a review of the file, in its latest wording."""
    line = f"- [ ] {REVIEW_NEEDED}: {path} {told}"
    eol = _line_ending(queue)
    lines = queue.split(eol)
    for index, old in enumerate(lines):
        if _is_request_for(old, path):
            return eol.join((*lines[:index], line, *lines[index + 1 :]))
    return (
        f"{queue.rstrip()}{eol}{line}{eol}"
        if queue.strip()
        else f"# Daily execution queue{eol}{eol}{line}{eol}"
    )


def check_off(queue: str, path: str) -> str:
    """The daily queue with that line checked off."""
    eol = _line_ending(queue)
    return eol.join(
        line.replace("- [ ]", "- [x]", 1) if _is_request_for(line, path) else line
        for line in queue.split(eol)
    )


def _is_request_for(line: str, path: str) -> bool:
    return line.lstrip().startswith(f"- [ ] {REVIEW_NEEDED}: {path} ")


def _line_ending(text: str) -> str:
    match = _NEWLINE.search(text)
    return match[0] if match else "\n"
