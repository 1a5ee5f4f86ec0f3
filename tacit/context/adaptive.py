"""Passages as a section of a daily note, for agents that read such notes by themselves.

    <!-- adaptive-memory:session=1f0c9a7be2d44c55 -->
    ## Adaptive Memory Context (auto-injected)
    *Loaded at 2026-03-10T10:30:00+01:00 | session: 1f0c9a7be2d44c55*

    Query: how do we water the tomatoes

    ### 1. watering.md (relevance: 89%)

    > slowly, at the root

    ---

The first line tells whose section it is: a session has one. It holds a hash, because a session key is chosen
by others. Passages are quoted and no comment begins in them, so no line of theirs can be taken for the first
line, the last line or a heading of the note. All of the section counts against its most characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256

from tacit.context.ethos import best_first, inert
from tacit.model.context import Quote
from tacit.text.fence import one_line, visible

HEADING = "## Adaptive Memory Context (auto-injected)"
END = "---"
MOST_INTENT = 280
_MOST_NAME = 80
_FEWEST = 40  # characters of a passage below which a piece of it says nothing
_LOOKED_AT = 20_000  # characters of a message
_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_LINE = re.compile(r":\d+(?:-\d+)?\Z")
_CUT = "…"


def session_hash(session_key: str, session_id: str = "") -> str:
    """Of one conversation: a host may use the same key for the next one."""
    name = f"{session_key}\0{session_id}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def marker(session: str) -> str:
    return f"<!-- adaptive-memory:session={session} -->"


def intent(message: str) -> str:
    """What was asked, on one line: without code between fences, and cut."""
    text = _FENCED.sub(" ", visible(message[:_LOOKED_AT]))
    return _shortened(inert(" ".join(text.split())), MOST_INTENT)


def section(
    given: Sequence[Quote],
    at: datetime,
    session: str,
    asked: str,
    *,
    most: int,
    most_snippet: int,
) -> str:
    """`session`: its hash. Empty where there is nothing to give, or no room for any of it."""
    loaded = at.isoformat(timespec="seconds")
    head = [marker(session), HEADING, f"*Loaded at {loaded} | session: {session}*", ""]
    if query := intent(asked):
        head += [f"Query: {query}", ""]
    room = most - len("\n".join([*head, END]))
    passages = list(_passages(given, room, most_snippet))
    return "\n".join([*head, *passages, END]) if passages else ""


def _passages(given: Sequence[Quote], room: int, most: int) -> Iterator[str]:
    """Each with its heading and an empty line behind it, as long as there is room."""
    number = 1
    for one in best_first(given):
        heading = f"### {number}. {_name(one.source)} (relevance: {_percent(one.score)}%)\n\n"
        frame = len(heading) + 2  # the ends of the passage and of the empty line
        text = _quoted(_shortened(_snippet(one.text), most), room - frame)
        if text:
            yield f"{heading}{text}\n"
            room -= frame + len(text)
            number += 1


def _snippet(text: str) -> str:
    lines = (line.rstrip() for line in inert(visible(text)).splitlines())
    return "\n".join(lines).strip("\n")


def _quoted(text: str, room: int) -> str:
    """Empty where so little fits that it would say nothing."""
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n")) if text else ""
    if len(quoted) <= room:
        return quoted
    return _shortened(quoted, room) if room >= _FEWEST else ""


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - len(_CUT)].rstrip() + _CUT


def _name(source: str) -> str:
    name = inert(one_line(_LINE.sub("", source).rpartition("/")[2]))
    return _shortened(name, _MOST_NAME) or "unknown"


def _percent(score: float) -> int:
    return round(100 * min(1.0, max(0.0, score)))
