"""The conversation so far, as much of it as its slot holds.

Hosts may pass a history in many forms: our own turns, dictionaries of the common APIs, pairs of role and
text. Items that cannot be read are left out. Messages are kept verbatim; a tool call or a tool result becomes
one line.

The window is filled from the newest turn back and rendered in order of time. Its last line is always the
newest turn. System messages are added before older turns, so they are dropped last.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.context.shorten import TokenCounter, shorten_middle
from tacit.privacy.delimiters import to_one_line
from tacit.transcripts.attribution import SpeakerRole, Utterance
from tacit.transcripts.model import Attachment, KnowledgeChange, Message, ToolCall

_ROLES: dict[str, SpeakerRole] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("agent", "assistant", "ai", "model", "bot"), "agent"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}  # fmt: skip
_SIMPLE_FIELDS = {"role", "content", "speaker", "at"}
_ROLE_NAME = re.compile(r"(?:user|agent|system|tool)\b", re.IGNORECASE)
_CALL_TYPES = {"tool_use", "function_call", "tool_call", "server_tool_use"}
_RESULT_TYPES = {"tool_result", "function_call_output", "web_search_tool_result"}
_REASONING_TYPES = {"thinking", "redacted_thinking", "reasoning"}
_MAX_NAME_CHARS = 60
_MAX_TOOL_CHARS = 160
_MIN_MILLISECONDS = 10**11  # timestamps from here on are in milliseconds
_MIN_SHORTENED_TOKENS = 48  # below this a shortened text is mostly its mark
_MAX_TURN_DIVISOR = 2  # only the newest turn may take more than half of the window


class HistoryLine(NamedTuple):
    text: str
    turn: Utterance
    shortened: str = ""  # describes what was cut, for people


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    lines: tuple[HistoryLine, ...]  # oldest first
    overflow: tuple[Utterance, ...]  # turns that do not fit, oldest first
    tokens: int

    @property
    def text(self) -> str:
        return _join_lines(self.lines)


# ---------------------------------------------------------------- reading a host's history


def normalize_history(history: object) -> list[Utterance]:
    """Every turn that can be read, in the order given. Never raises."""
    names: dict[str, str] = {}  # tool names by call id: results carry only the id
    turns: list[Utterance] = []
    for number, item in enumerate(_iter_items(history), 1):
        # An item may be an object of any library and raise anything when its fields are read.
        try:
            simple = _read_simple(item, number)
            turns += [simple] if simple else _read_item(item, number, names)
        except Exception:  # noqa: BLE001, S112 - the rest of the history is worth more
            continue
    return turns


def _iter_items(history: object) -> Iterator[object]:
    if isinstance(history, (str, bytes, Mapping, Message, ToolCall, KnowledgeChange, Attachment)):
        yield history
    elif isinstance(history, Iterable):
        try:
            yield from history
        except Exception:  # noqa: BLE001 - the rest of the history is worth more
            return


def _read_simple(item: object, number: int) -> Utterance | None:
    """Read the most common form, ten times faster than the general way."""
    if type(item) is not dict or not item.keys() <= _SIMPLE_FIELDS:
        return None
    role, text, speaker = item.get("role"), item.get("content"), item.get("speaker", "")
    known_role = _ROLES.get(role) if type(role) is str else None
    if known_role in (None, "tool") or type(text) is not str or type(speaker) is not str or not text.strip():
        return None
    return Utterance(number, known_role, text, speaker, _read_time(item["at"]) if "at" in item else None)


def _read_item(item: object, number: int, names: dict[str, str]) -> Iterator[Utterance]:
    match item:
        case Utterance():
            yield item
        case Message():
            yield Utterance(item.number, item.role, item.text, item.speaker or "", item.at)
        case ToolCall():
            text = f"{item.summary} → {item.result}" if item.result else item.summary
            yield Utterance(item.number, "tool", text, item.name, item.at)
        case KnowledgeChange():
            yield Utterance(
                item.number, "tool", f"{item.action} {item.path}: {item.summary}", "note", item.at
            )
        case Attachment():
            yield Utterance(item.number, item.role, f"[attachment: {item.path}]", "", item.at)
        case str() | bytes():
            yield from _read_spoken(number, "user", item, "", None)
        case (str() as role, str() as text):
            yield from _read_spoken(number, role, text, "", None)
        case _:
            yield from _read_record(item, number, names)


def _read_record(item: object, number: int, names: dict[str, str]) -> Iterator[Utterance]:
    role, kind = _get_field(item, "role"), _get_field(item, "type")
    if not isinstance(role, str):
        if kind in _CALL_TYPES or kind in _RESULT_TYPES:
            yield from _read_tool_part(item, number, names, _read_time(_get_field(item, "at", "timestamp")))
            return
        role = {"human": "user", "ai": "agent", "system": "system"}.get(str(kind), "")
    content, moment = (
        _get_field(item, "content", "text", "parts"),
        _read_time(_get_field(item, "at", "timestamp")),
    )
    speaker = _get_field(item, "speaker", "name")
    speaker_name = speaker if isinstance(speaker, str) else ""
    calls = _get_field(item, "tool_calls")
    if not role or (content is None and not isinstance(calls, Sequence)):
        return
    if _ROLES.get(role.lower()) == "tool":
        name = speaker_name or names.get(str(_get_field(item, "tool_call_id")), "")
        yield Utterance(number, "tool", _plain_text(content), name, moment)
        return
    for part in content if isinstance(content, (list, tuple)) else [content]:
        if _get_field(part, "type") in _CALL_TYPES or _get_field(part, "type") in _RESULT_TYPES:
            yield from _read_tool_part(part, number, names, moment)
        else:
            yield from _read_spoken(number, role, _plain_text(part), speaker_name, moment)
    for call in calls if isinstance(calls, (list, tuple)) else ():
        yield from _read_tool_part(call, number, names, moment)


def _read_tool_part(
    part: object, number: int, names: dict[str, str], moment: datetime | None
) -> Iterator[Utterance]:
    key = str(_get_field(part, "tool_use_id", "call_id", "id"))
    if _get_field(part, "type") in _RESULT_TYPES:
        yield Utterance(
            number, "tool", _plain_text(_get_field(part, "content", "output")), names.get(key, ""), moment
        )
        return
    function = _get_field(part, "function") or part
    name = str(_get_field(function, "name") or "")
    arguments = _get_field(function, "input", "arguments", "args")
    names[key] = name
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    yield Utterance(number, "tool", f"called with {text}", name, moment)


def _read_spoken(
    number: int, role: str, text: object, speaker: str, moment: datetime | None
) -> Iterator[Utterance]:
    known_role = _ROLES.get(role.lower())
    plain = _plain_text(text)
    if plain.strip():
        # An unknown role is taken as a speaker's name.
        yield Utterance(number, known_role or "user", plain, speaker or ("" if known_role else role), moment)


def _plain_text(content: object) -> str:
    """The text in a content, however deeply nested; for other parts their type in brackets."""
    if isinstance(content, str):
        return content
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    if content is None or isinstance(content, bool):
        return ""
    if isinstance(content, (list, tuple)):
        return "\n".join(filter(None, map(_plain_text, content)))
    if isinstance(content, (int, float)):
        return str(content)
    kind = _get_field(content, "type")
    text = _get_field(content, "text", "content", "output")
    if kind in _REASONING_TYPES:
        return ""
    if text is not None:
        return _plain_text(text)
    return f"[{kind}]" if isinstance(kind, str) else ""


def _get_field(item: object, *names: str) -> object:
    """The first of these fields that the dictionary or object has."""
    for name in names:
        value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if value is not None and not callable(value):
            return value
    return None


def _read_time(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > _MIN_MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return value if isinstance(value, datetime) else None


# ---------------------------------------------------------------- one turn, one line


def format_turn(turn: Utterance) -> HistoryLine:
    if turn.role == "tool":
        label = f"tool {_clean_name(turn.speaker)}".rstrip()
        return HistoryLine(f"{label}: {_summarize_tool_text(turn.text)}", turn)
    name = _clean_name(turn.speaker)
    # A speaker cannot become the system by using its name.
    label = f"{turn.role} {name}" if _ROLE_NAME.match(name) else name or turn.role
    return HistoryLine(f"{label}: {turn.text}", turn)


def _clean_name(speaker: str) -> str:
    return to_one_line(speaker[: 4 * _MAX_NAME_CHARS].replace(":", " "))[:_MAX_NAME_CHARS].rstrip()


def _summarize_tool_text(text: str) -> str:
    # The text may be a whole file, so only its beginning is processed.
    start = text[: 16 * _MAX_TOOL_CHARS].lstrip()
    first = " ".join(start.split("\n", 1)[0].split())[:_MAX_TOOL_CHARS]
    more = len(text.strip()) - len(first)
    return f"{first} … ({more:,} more characters)" if more > 0 else first


# ---------------------------------------------------------------- the window


def fill_window(turns: Sequence[Utterance], tokens_allowed: int, count: TokenCounter) -> HistoryWindow:
    """Select the turns that fit into `tokens_allowed`, as measured by `count`. Only turns that may be kept
    are counted, so a history of 10,000 turns is cheap."""
    builder = _WindowBuilder(turns, tokens_allowed, count)
    if turns and tokens_allowed > 0:
        systems = _system_indexes(turns)
        if systems:
            # They leave half to the newest turn, or as much as it needs if that is less.
            newest = builder.cost(builder.newest_line(tokens_allowed))
            fits_all = builder.add_systems(systems, max(tokens_allowed - newest, tokens_allowed // 2))
        else:
            fits_all = True
        builder.add_newest()
        if fits_all:  # if a system message was cut, no older turn is added
            builder.add_others(tokens_allowed // _MAX_TURN_DIVISOR)
        builder.trim(systems)
    lines = builder.lines()
    left_out = tuple(turn for index, turn in enumerate(turns) if index not in builder.lines_by_index)
    return HistoryWindow(lines, left_out, count(_join_lines(lines)) if lines else 0)


def turn_digest(turn: Utterance) -> str:
    """Identifies a turn of a history."""
    fields = (turn.number, turn.role, turn.speaker, str(turn.at), turn.text)
    return hashlib.sha256(repr(fields).encode()).hexdigest()


def turns_after(left: Sequence[Utterance], last: str | None) -> Sequence[Utterance]:
    """The turns of `left` after the one with the digest `last`, which were not offered before. All of them if
    no turn has that digest."""
    for end in range(len(left), 0, -1) if last else ():
        if turn_digest(left[end - 1]) == last:
            return left[end:]
    return left


class _WindowBuilder:
    """Fills the window. Lines are kept by the index of their turn."""

    def __init__(self, turns: Sequence[Utterance], allowed: int, count: TokenCounter) -> None:
        self.turns, self.allowed, self.count = turns, allowed, count
        self.lines_by_index: dict[int, HistoryLine] = {}
        self.used = 0

    def cost(self, line: HistoryLine) -> int:
        return self.count(f"{line.text}\n")

    def add(self, index: int, line: HistoryLine) -> None:
        self.lines_by_index[index] = line
        self.used += self.cost(line)

    def lines(self) -> tuple[HistoryLine, ...]:
        return tuple(self.lines_by_index[index] for index in sorted(self.lines_by_index))

    def newest_line(self, room: int) -> HistoryLine:
        """The newest turn, or its beginning; empty only if not even a word fits."""
        line = format_turn(self.turns[-1])
        fitted = _fit_line(line, room, self.count)
        return fitted or line._replace(
            text=_cut_start(line.text, room, self.count), shortened=f"{len(line.text):,} characters in all"
        )

    def add_newest(self) -> None:
        line = self.newest_line(self.allowed - self.used)
        if line.text:
            self.add(len(self.turns) - 1, line)

    def add_systems(self, systems: list[int], room: int) -> bool:
        """Add system messages; return whether all were added uncut."""
        for index in systems:
            line = _fit_line(format_turn(self.turns[index]), room - self.used - 1, self.count)
            if line is None:
                return False
            self.add(index, line)
            if line.shortened:
                return False
        return True

    def add_others(self, largest: int) -> None:
        for index in range(len(self.turns) - 2, -1, -1):
            if index in self.lines_by_index:
                continue
            line = _fit_line(format_turn(self.turns[index]), largest, self.count)
            if line is None or self.used + self.cost(line) > self.allowed:
                return
            self.add(index, line)

    def trim(self, systems: list[int]) -> None:
        """Drop lines until the whole text fits: joined lines may cost more than their sum."""
        last = len(self.turns) - 1
        others = sorted(self.lines_by_index.keys() - {*systems, last})
        removable = [*others, *reversed(systems), last]
        for index in removable:
            if self.count(_join_lines(self.lines())) <= self.allowed:
                return
            self.lines_by_index.pop(index, None)


def _system_indexes(turns: Sequence[Utterance]) -> list[int]:
    """Indexes by importance: first the initial system prompt, then the newest messages."""
    first, *later = [i for i, turn in enumerate(turns[:-1]) if turn.role == "system"] or [-1]
    return [] if first < 0 else [first, *reversed(later)]


def _fit_line(line: HistoryLine, room: int, count: TokenCounter) -> HistoryLine | None:
    """The line, whole or shortened in the middle; None if almost nothing of it would be left."""
    shortened = shorten_middle(line.text, room, count)
    if not shortened.text or (shortened.left_out and room < _MIN_SHORTENED_TOKENS):
        return None
    return line._replace(text=shortened.text, shortened=shortened.left_out)


def _cut_start(text: str, room: int, count: TokenCounter) -> str:
    size = min(len(text), 4 * max(room, 0))
    while size > 0:
        shortened = f"{text[:size].rstrip()} …"
        if count(shortened) <= room:
            return shortened
        size = size * 3 // 4
    return ""


def _join_lines(lines: Iterable[HistoryLine]) -> str:
    return "\n".join(line.text for line in lines)
