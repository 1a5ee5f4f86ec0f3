"""Prepares a file of the home for a prompt: without frontmatter and comments, which are for people, and
without superseded lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tacit.markdown import notes
from tacit.markdown.comment import remove_superseded
from tacit.text.lines import MarkdownLine, scan

_BLANKS = re.compile(r"\n{3,}")
_RULES = re.compile(r"[\s|:#*_>=+-]*")


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]


def strip_note(text: str) -> str:
    """The stripped text; empty if only headings and the frame of a table are left."""
    body = remove_superseded(notes.split(text)[1].replace("\r\n", "\n"))
    return strip_comments(body).strip("\n ")


def strip_comments(text: str) -> str:
    """Empty if only headings and the frame of a table are left."""
    if "<!--" in text:
        text = _BLANKS.sub("\n\n", "\n".join(_uncommented_lines(text))).strip("\n")
    return text if has_content(text) else ""


def has_content(text: str) -> bool:
    """Whether there is more than headings, rules and the head of a table without rows."""
    lines = [line for line in scan(text) if line.kind in ("text", "code") and not _RULES.fullmatch(line.text)]
    is_table = all(line.text.lstrip().startswith("|") for line in lines)
    return len(lines) > 1 if is_table else bool(lines)


def _uncommented_lines(body: str) -> Iterator[str]:
    """A comment inside fenced code is code. An unclosed one runs to the end, as in a browser."""
    inside = False
    for line in scan(body):
        if line.kind in ("code", "fence") and not inside:
            yield line.text
            continue
        visible, inside = _strip_line(line, inside)
        if visible.strip() or not line.text.strip():
            yield visible


def _strip_line(line: MarkdownLine, inside: bool) -> tuple[str, bool]:
    text = line.text
    if inside:
        _, end_mark, text = text.partition("-->")
        if not end_mark:
            return "", True
    text, is_open = _strip_whole_comments(text)
    return text.rstrip() if is_open or text != line.text else text, is_open


def _strip_whole_comments(text: str) -> tuple[str, bool]:
    """The text without comments, and whether one is left open. A regular expression would search for the end
    of each comment anew, and a line may have megabytes of openings."""
    pieces = []
    position, begin = 0, text.find("<!--")
    while begin >= 0:
        pieces.append(text[position:begin])
        end = text.find("-->", begin + len("<!--"))
        if end < 0:
            return "".join(pieces), True
        position = end + len("-->")
        begin = text.find("<!--", position)
    return "".join([*pieces, text[position:]]), False
