"""The conversation so far, as much of it as its slot holds.

What a host calls history is taken as it comes: our own turns, dictionaries of the common interfaces, pairs
of role and text. What cannot be read is left out. Messages stay as they were said; what tools were asked
and gave back becomes one line.

The window is filled from the newest turn back and read in the order of time. Its last line is always the
newest turn. System messages go in before older turns do, so they are the last to go.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.context.shorten import Count, middle_out
from tacit.model.changes import Said, SaidBy
from tacit.model.turns import Attachment, KnowledgeChange, Message, ToolCall
from tacit.text.fence import one_line

_ROLES: dict[str, SaidBy] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("agent", "assistant", "ai", "model", "bot"), "agent"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}  # fmt: skip
_SIMPLE = {"role", "content", "speaker", "at"}
_RESERVED = re.compile(r"(?:user|agent|system|tool)\b", re.IGNORECASE)
_ASKED = {"tool_use", "function_call", "tool_call", "server_tool_use"}
_ANSWERED = {"tool_result", "function_call_output", "web_search_tool_result"}
_UNSPOKEN = {"thinking", "redacted_thinking", "reasoning"}
_LONGEST_NAME = 60
_LONGEST_TOOL = 160
_MILLISECONDS = 10**11  # a clock that counts higher than this does not count seconds
_LEAST = 48  # tokens; in less than this a shortened text is mostly its mark
_LARGEST_SHARE = 2  # no turn but the newest takes more than half of the window


class Line(NamedTuple):
    text: str
    turn: Said
    shortened: str = ""  # what is left out of it, for people


@dataclass(frozen=True, slots=True)
class Window:
    kept: tuple[Line, ...]  # in the order of time
    left: tuple[Said, ...]  # what no longer fits, oldest first
    tokens: int

    @property
    def text(self) -> str:
        return _joined(self.kept)


# ---------------------------------------------------------------- whatever a host has


def normal(history: object) -> list[Said]:
    """Every turn that can be read, in the order given. Never raises."""
    names: dict[str, str] = {}  # of tools, by the id of the call: answers carry the id alone
    turns: list[Said] = []
    for number, item in enumerate(_items(history), 1):
        # What a caller hands in may be any object of any library, and raise anything when it is looked at.
        try:
            simple = _simple(item, number)
            turns += [simple] if simple else _turns(item, number, names)
        except Exception:  # noqa: BLE001, S112 - the rest of the history is worth more
            continue
    return turns


def _items(history: object) -> Iterator[object]:
    if isinstance(history, (str, bytes, Mapping, Message, ToolCall, KnowledgeChange, Attachment)):
        yield history
    elif isinstance(history, Iterable):
        try:
            yield from history
        except Exception:  # noqa: BLE001 - somebody's generator; what it gave before is kept
            return


def _simple(item: object, number: int) -> Said | None:
    """The form that nearly all of a long history has, read ten times faster than the others."""
    if type(item) is not dict or not item.keys() <= _SIMPLE:
        return None
    role, text, speaker = item.get("role"), item.get("content"), item.get("speaker", "")
    known = _ROLES.get(role) if type(role) is str else None
    if known in (None, "tool") or type(text) is not str or type(speaker) is not str or not text.strip():
        return None
    return Said(number, known, text, speaker, _time(item["at"]) if "at" in item else None)


def _turns(item: object, number: int, names: dict[str, str]) -> Iterator[Said]:
    match item:
        case Said():
            yield item
        case Message():
            yield Said(item.number, item.role, item.text, item.speaker or "", item.at)
        case ToolCall():
            text = f"{item.summary} → {item.result}" if item.result else item.summary
            yield Said(item.number, "tool", text, item.name, item.at)
        case KnowledgeChange():
            yield Said(item.number, "tool", f"{item.action} {item.path}: {item.summary}", "note", item.at)
        case Attachment():
            yield Said(item.number, item.role, f"[attachment: {item.path}]", "", item.at)
        case str() | bytes():
            yield from _spoken(number, "user", item, "", None)
        case (str() as role, str() as text):
            yield from _spoken(number, role, text, "", None)
        case _:
            yield from _record(item, number, names)


def _record(item: object, number: int, names: dict[str, str]) -> Iterator[Said]:
    role, kind = _get(item, "role"), _get(item, "type")
    if not isinstance(role, str):
        if kind in _ASKED or kind in _ANSWERED:
            yield from _tool_part(item, number, names, _time(_get(item, "at", "timestamp")))
            return
        role = {"human": "user", "ai": "agent", "system": "system"}.get(str(kind), "")
    content, at = _get(item, "content", "text", "parts"), _time(_get(item, "at", "timestamp"))
    speaker = _get(item, "speaker", "name")
    said = speaker if isinstance(speaker, str) else ""
    calls = _get(item, "tool_calls")
    if not role or (content is None and not isinstance(calls, Sequence)):
        return
    if _ROLES.get(role.lower()) == "tool":
        name = said or names.get(str(_get(item, "tool_call_id")), "")
        yield Said(number, "tool", _plain(content), name, at)
        return
    for part in content if isinstance(content, (list, tuple)) else [content]:
        if _get(part, "type") in _ASKED or _get(part, "type") in _ANSWERED:
            yield from _tool_part(part, number, names, at)
        else:
            yield from _spoken(number, role, _plain(part), said, at)
    for call in calls if isinstance(calls, (list, tuple)) else ():
        yield from _tool_part(call, number, names, at)


def _tool_part(part: object, number: int, names: dict[str, str], at: datetime | None) -> Iterator[Said]:
    key = str(_get(part, "tool_use_id", "call_id", "id"))
    if _get(part, "type") in _ANSWERED:
        yield Said(number, "tool", _plain(_get(part, "content", "output")), names.get(key, ""), at)
        return
    function = _get(part, "function") or part
    name = str(_get(function, "name") or "")
    given = _get(function, "input", "arguments", "args")
    names[key] = name
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    yield Said(number, "tool", f"called with {text}", name, at)


def _spoken(number: int, role: str, text: object, speaker: str, at: datetime | None) -> Iterator[Said]:
    known = _ROLES.get(role.lower())
    plain = _plain(text)
    if plain.strip():
        # A role that nobody knows is the name of somebody.
        yield Said(number, known or "user", plain, speaker or ("" if known else role), at)


def _plain(content: object) -> str:
    """The text in a content, however deep; what is no text is named."""
    if isinstance(content, str):
        return content
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    if content is None or isinstance(content, bool):
        return ""
    if isinstance(content, (list, tuple)):
        return "\n".join(filter(None, map(_plain, content)))
    if isinstance(content, (int, float)):
        return str(content)
    kind = _get(content, "type")
    text = _get(content, "text", "content", "output")
    if kind in _UNSPOKEN:
        return ""
    if text is not None:
        return _plain(text)
    return f"[{kind}]" if isinstance(kind, str) else ""


def _get(item: object, *names: str) -> object:
    """The first of these fields that is there, of a dictionary or of an object of some library."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None and not callable(value):
            return value
    return None


def _time(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return value if isinstance(value, datetime) else None


# ---------------------------------------------------------------- one turn, one line


def folded(turn: Said) -> Line:
    if turn.role == "tool":
        label = f"tool {_name(turn.speaker)}".rstrip()
        return Line(f"{label}: {_first_line(turn.text)}", turn)
    name = _name(turn.speaker)
    # Nobody becomes the system by calling himself so.
    label = f"{turn.role} {name}" if _RESERVED.match(name) else name or turn.role
    return Line(f"{label}: {turn.text}", turn)


def _name(speaker: str) -> str:
    return one_line(speaker[: 4 * _LONGEST_NAME].replace(":", " "))[:_LONGEST_NAME].rstrip()


def _first_line(text: str) -> str:
    # The whole text may be a file: only its beginning is looked at.
    start = text[: 16 * _LONGEST_TOOL].lstrip()
    first = " ".join(start.split("\n", 1)[0].split())[:_LONGEST_TOOL]
    more = len(text.strip()) - len(first)
    return f"{first} … ({more:,} more characters)" if more > 0 else first


# ---------------------------------------------------------------- the window


def window(turns: Sequence[Said], tokens_allowed: int, count: Count) -> Window:
    """What fits, never more than `tokens_allowed` by `count`. Of 10,000 turns only those are counted that
    may be kept."""
    room = _Room(turns, tokens_allowed, count)
    if turns and tokens_allowed > 0:
        systems = _systems(turns)
        if systems:
            # They leave half to the newest turn, and more if it needs no more.
            newest = room.cost(room.newest(tokens_allowed))
            whole = room.take_systems(systems, max(tokens_allowed - newest, tokens_allowed // 2))
        else:
            whole = True
        room.take_newest()
        if whole:  # no turn stands where a system message was cut
            room.take_others(tokens_allowed // _LARGEST_SHARE)
        room.trim(systems)
    kept = room.lines()
    left = tuple(turn for index, turn in enumerate(turns) if index not in room.kept)
    return Window(kept, left, count(_joined(kept)) if kept else 0)


def mark(turn: Said) -> str:
    """To know a turn again in the same history."""
    said = (turn.number, turn.role, turn.speaker, str(turn.at), turn.text)
    return hashlib.sha256(repr(said).encode()).hexdigest()


def newly(left: Sequence[Said], last: str | None) -> Sequence[Said]:
    """Those of `left` after the turn with the mark `last`: what was offered before is not looked at again.
    All of them where no turn has that mark."""
    for back in range(len(left), 0, -1) if last else ():
        if mark(left[back - 1]) == last:
            return left[back:]
    return left


class _Room:
    """The window while it is filled. `kept` is by the turn's place."""

    def __init__(self, turns: Sequence[Said], allowed: int, count: Count) -> None:
        self.turns, self.allowed, self.count = turns, allowed, count
        self.kept: dict[int, Line] = {}
        self.used = 0

    def cost(self, line: Line) -> int:
        return self.count(f"{line.text}\n")

    def put(self, index: int, line: Line) -> None:
        self.kept[index] = line
        self.used += self.cost(line)

    def lines(self) -> tuple[Line, ...]:
        return tuple(self.kept[index] for index in sorted(self.kept))

    def newest(self, room: int) -> Line:
        """In any case a part of it, unless there is no room for a word."""
        line = folded(self.turns[-1])
        short = _fitted(line, room, self.count)
        return short or line._replace(
            text=_beginning(line.text, room, self.count), shortened=f"{len(line.text):,} characters in all"
        )

    def take_newest(self) -> None:
        line = self.newest(self.allowed - self.used)
        if line.text:
            self.put(len(self.turns) - 1, line)

    def take_systems(self, systems: list[int], room: int) -> bool:
        """Whether all are in, and whole."""
        for index in systems:
            line = _fitted(folded(self.turns[index]), room - self.used - 1, self.count)
            if line is None:
                return False
            self.put(index, line)
            if line.shortened:
                return False
        return True

    def take_others(self, largest: int) -> None:
        for index in range(len(self.turns) - 2, -1, -1):
            if index in self.kept:
                continue
            line = _fitted(folded(self.turns[index]), largest, self.count)
            if line is None or self.used + self.cost(line) > self.allowed:
                return
            self.put(index, line)

    def trim(self, systems: list[int]) -> None:
        """Two texts together may cost more than each alone, so in the end all of it is counted."""
        last = len(self.turns) - 1
        others = sorted(self.kept.keys() - {*systems, last})
        going = [*others, *reversed(systems), last]
        for index in going:
            if self.count(_joined(self.lines())) <= self.allowed:
                return
            self.kept.pop(index, None)


def _systems(turns: Sequence[Said]) -> list[int]:
    """In the order in which they matter: the first is the prompt of the whole, the last is news."""
    first, *later = [i for i, turn in enumerate(turns[:-1]) if turn.role == "system"] or [-1]
    return [] if first < 0 else [first, *reversed(later)]


def _fitted(line: Line, room: int, count: Count) -> Line | None:
    """The line, whole or shortened in the middle; None where that would leave next to nothing of it."""
    short = middle_out(line.text, room, count)
    if not short.text or (short.left_out and room < _LEAST):
        return None
    return line._replace(text=short.text, shortened=short.left_out)


def _beginning(text: str, room: int, count: Count) -> str:
    size = min(len(text), 4 * max(room, 0))
    while size > 0:
        shown = f"{text[:size].rstrip()} …"
        if count(shown) <= room:
            return shown
        size = size * 3 // 4
    return ""


def _joined(lines: Iterable[Line]) -> str:
    return "\n".join(line.text for line in lines)
