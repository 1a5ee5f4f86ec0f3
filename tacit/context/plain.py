"""A file of the home as a prompt gets it: without frontmatter and comments, which are for people, and without
what no longer holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tacit.text import notes
from tacit.text.lines import Line, scan
from tacit.text.marks import without_superseded

_WHOLE = re.compile(r"<!--.*?-->")
_BLANKS = re.compile(r"\n{3,}")
_RULES = re.compile(r"[\s|:#*_>=+-]*")


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]


def plain(text: str) -> str:
    """What is left is empty where nothing is said but headings and the frame of a table."""
    body = without_superseded(notes.split(text)[1].replace("\r\n", "\n"))
    return without_comments(body).strip("\n ")


def without_comments(text: str) -> str:
    """Empty where nothing is left but headings and the frame of a table."""
    if "<!--" in text:
        text = _BLANKS.sub("\n\n", "\n".join(_without_comments(text))).strip("\n")
    return text if says_something(text) else ""


def says_something(text: str) -> bool:
    """Whether there is more than headings, rules and the head of a table without rows."""
    lines = [line for line in scan(text) if line.kind in ("text", "code") and not _RULES.fullmatch(line.text)]
    table = all(line.text.lstrip().startswith("|") for line in lines)
    return len(lines) > 1 if table else bool(lines)


def _without_comments(body: str) -> Iterator[str]:
    """A comment inside fenced code is code. One that is never closed runs to the end, as in a browser."""
    inside = False
    for line in scan(body):
        if line.kind in ("code", "fence") and not inside:
            yield line.text
            continue
        shown, inside = _uncommented(line, inside)
        if shown.strip() or not line.text.strip():
            yield shown


def _uncommented(line: Line, inside: bool) -> tuple[str, bool]:
    text = line.text
    if inside:
        _, closed, text = text.partition("-->")
        if not closed:
            return "", True
    text = _WHOLE.sub("", text)
    text, opened, _ = text.partition("<!--")
    return text.rstrip() if opened or text != line.text else text, bool(opened)
