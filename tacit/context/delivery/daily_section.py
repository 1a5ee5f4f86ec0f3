"""Renders chunks as a section of a daily note, for agents that read such notes themselves.

    <!-- adaptive-memory:session=1f0c9a7be2d44c55 -->
    ## Adaptive Memory Context (auto-injected)
    *Loaded at 2026-03-10T10:30:00+01:00 | session: 1f0c9a7be2d44c55*

    Query: how do we water the tomatoes

    ### 1. watering.md (relevance: 89%)

    > slowly, at the root

    ---

The first line identifies the session; each session has one section. It holds a hash, because session keys
come from outside. Chunks are quoted and comments in them are escaped, so none of their lines can be mistaken
for the first line, the last line or a heading of the note. The limit of characters applies to the whole
section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

from tacit.context.delivery.context_file import escape_comments, sort_by_score
from tacit.context.model import Quote
from tacit.privacy.delimiters import strip_invisible, to_one_line

HEADING = "## Adaptive Memory Context (auto-injected)"
END = "---"
MAX_QUERY_CHARS = 280
_MAX_NAME_CHARS = 80
_MIN_PIECE_CHARS = 40  # a cut chunk with fewer characters is useless
_MAX_MESSAGE_CHARS = 20_000  # longer messages are cut before they are processed
_CODE_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_LINE_SUFFIX = re.compile(r":\d+(?:-\d+)?\Z")
_ELLIPSIS = "…"


def session_hash(session_key: str, session_id: str = "") -> str:
    """Identifies one conversation: a host may use the same key for the next one."""
    name = f"{session_key}\0{session_id}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def session_marker(session: str) -> str:
    return f"<!-- adaptive-memory:session={session} -->"


def query_line(message: str) -> str:
    """The message on one line, shortened and without fenced code."""
    text = _CODE_FENCE.sub(" ", strip_invisible(message[:_MAX_MESSAGE_CHARS]))
    return _shorten(escape_comments(" ".join(text.split())), MAX_QUERY_CHARS)


def render_section(
    quotes: Sequence[Quote],
    now: datetime,
    session: str,
    message: str,
    *,
    max_chars: int,
    max_snippet_chars: int,
) -> str:
    """`session`: its hash. Empty if there are no chunks, or if none fits."""
    loaded = now.isoformat(timespec="seconds")
    head = [session_marker(session), HEADING, f"*Loaded at {loaded} | session: {session}*", ""]
    if query := query_line(message):
        head += [f"Query: {query}", ""]
    room = max_chars - len("\n".join([*head, END]))
    chunks = list(_render_quotes(quotes, room, max_snippet_chars))
    return "\n".join([*head, *chunks, END]) if chunks else ""


def _render_quotes(quotes: Sequence[Quote], room: int, max_chars: int) -> Iterator[str]:
    """Render each chunk with its heading and an empty line after it, as long as there is room."""
    number = 1
    for quote in sort_by_score(quotes):
        heading = f"### {number}. {_file_name(quote.source)} (relevance: {_percent(quote.score)}%)\n\n"
        frame = len(heading) + 2  # the line ends of the chunk and of the empty line
        text = _quote_lines(_shorten(_clean_text(quote.text), max_chars), room - frame)
        if text:
            yield f"{heading}{text}\n"
            room -= frame + len(text)
            number += 1


def _clean_text(text: str) -> str:
    lines = (line.rstrip() for line in escape_comments(strip_invisible(text)).splitlines())
    return "\n".join(lines).strip("\n")


def _quote_lines(text: str, room: int) -> str:
    """Quote the text; empty if too little of it fits."""
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if text else ""
    if len(quoted) <= room:
        return quoted
    return _shorten(quoted, room) if room >= _MIN_PIECE_CHARS else ""


def _shorten(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - len(_ELLIPSIS)].rstrip() + _ELLIPSIS


def _file_name(source: str) -> str:
    name = escape_comments(to_one_line(_LINE_SUFFIX.sub("", source).rpartition("/")[2]))
    return _shorten(name, _MAX_NAME_CHARS) or "unknown"


def _percent(score: float) -> int:
    return round(100 * min(1.0, max(0.0, score)))
