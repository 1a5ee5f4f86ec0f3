"""The transcript format: values to text and back. docs/format.md describes it for people.

A transcript is frontmatter, a title and records. Each record that tacit writes ends with a checksum line,
`<!-- 3 18:45:07.120 9f3a2c11 -->`: its number, its time and the CRC-32 of its bytes. A record without that
line was never acknowledged; a record whose bytes do not match it was edited later. A transcript written by
hand has no `marks:` field and needs none.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import cast

from tacit.diagnostics import Problem
from tacit.markdown import escape, notes
from tacit.markdown.frontmatter import format_entry
from tacit.markdown.records import HEADING, Region, checksum, split_regions
from tacit.transcripts.model import (
    Attachment,
    Closing,
    KnowledgeChange,
    Message,
    Opening,
    Role,
    ToolCall,
    Transcript,
    Turn,
)

_TOOL_LINE = re.compile(r"^> \[tool:([^\]\n]*)\] ?(.*?)(?: → (.*))?$")
_KNOWLEDGE_LINE = re.compile(r"^> \[knowledge:([^\]\n]*)\] (.*?)(?: — (.*))?$")
_ATTACHMENT_LINE = re.compile(r"^> \[attachment:([^\]\n]*)\]$")
_MAX_TOOL_CHARS = 500  # a tool line is a line, not a log

# Reasoning that some models put before their answer. Only at the very start, only from the agent.
_REASONING = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)

# The space keeps a checksum line without its newline from becoming valid: its record was never acknowledged.
TRUNCATION_LINE = " \n<!-- torn -->\n"


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """Where the next record goes: after which number, under whose heading, on which day."""

    number: int
    role: Role | None
    day: date


@dataclass(frozen=True, slots=True)
class RenderedRecord:
    """One record as text, and the place after it."""

    text: str
    place: RecordPosition


# ---------------------------------------------------------------- names


def make_slug(text: str, limit: int = 40) -> str:
    """A short name from the first line of a message: lower case words of any script, joined by hyphens."""
    first_line = text.lstrip()[:400].partition("\n")[0]
    decomposed = unicodedata.normalize("NFKD", first_line).casefold()
    letters = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", letters))
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:limit]
        if len(longer) > limit:
            break
        name = longer
    return name or "session"


def make_title(text: str, limit: int = 60) -> str:
    """The first line of a message as a heading, cut at a word."""
    line = " ".join(text.lstrip()[:400].partition("\n")[0].split())
    if len(line) > limit:
        line = line[:limit].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    return escape.inline(line) or "Session"


def safe_name(identifier: str) -> str:
    """The identifier itself where it can be part of a file name, else a hash of it."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", identifier):
        return identifier
    return "x" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def make_file_path(opening: Opening, name: str, again: int = 0) -> str:
    started = opening.started
    suffix = f"-{again + 1}" if again else ""
    stem = f"{started:%H%M}-{safe_name(opening.session_id)}-{name}{suffix}"
    return f"raw/conversations/{started:%Y/%m/%d}/{stem}.md"


# ---------------------------------------------------------------- writing


def render_opening(opening: Opening, hint: str) -> str:
    """Frontmatter and title of an open transcript; the title comes from the first message."""
    return _render_frontmatter(_opening_fields(opening)) + f"\n# {make_title(hint)}\n"


def render_final(text: str, opening: Opening, closing: Closing, changes: Iterable[KnowledgeChange]) -> str:
    """The same transcript with its final frontmatter; not one byte of the body changes."""
    body = text[_head_end(text) :]
    topic = escape.restore_characters(body.partition("\n# ")[2].partition("\n")[0])
    return _render_frontmatter(_closing_fields(opening, closing, topic, changes)) + body


def _head_end(text: str) -> int:
    # We wrote this head: each value is on one line and quoted, so only the last line can be a fence.
    return text.index("\n---\n", 3) + len("\n---\n")


def _opening_fields(opening: Opening) -> dict[str, object]:
    return {
        "session_id": opening.session_id,
        "started": _to_utc(opening.started),
        "model": opening.model,
        "channel": opening.channel,
        **_shared_fields(opening),
    }


def _shared_fields(opening: Opening) -> dict[str, object]:
    return {
        "agent": opening.agent,
        "session_key": opening.session_key,
        "utc_offset": format_offset(opening.started),
        "continues": opening.continues,
        "marks": "crc32",
    }


def _closing_fields(
    opening: Opening, closing: Closing, topic: str, changes: Iterable[KnowledgeChange]
) -> dict[str, object]:
    return {
        "session_id": opening.session_id,
        "started": _to_utc(opening.started),
        "ended": _to_utc(closing.ended),
        "model": opening.model,
        "channel": opening.channel,
        "topic": topic,
        "tags": list(closing.tags),
        "tokens_in": closing.tokens_in,
        "tokens_out": closing.tokens_out,
        "knowledge_changes": [
            {"path": change.path, "action": change.action, "summary": change.summary} for change in changes
        ],
        **_shared_fields(opening),
    }


def _render_frontmatter(fields: Mapping[str, object]) -> str:
    return (
        "---\n"
        + "".join(format_entry(key, value) for key, value in fields.items() if value is not None)
        + "---\n"
    )


def render_message(
    place: RecordPosition, at: datetime, role: Role, text: str, speaker: str | None = None
) -> RenderedRecord:
    heading = _render_heading(place, at, role, speaker=speaker)
    return _close_record(place, at, role, f"\n{heading}\n{escape.block(text)}\n")


def render_tool_call(
    place: RecordPosition, at: datetime, name: str, summary: str, result: str = ""
) -> RenderedRecord:
    line = f"> [tool:{escape.inline(name, ']')}] {escape.inline(shorten(summary), '→')}"
    if result:
        line += f" → {escape.inline(shorten(result))}"
    return _render_entry(place, at, "agent", line)


def render_knowledge_change(
    place: RecordPosition, at: datetime, action: str, path: str, summary: str = ""
) -> RenderedRecord:
    heading = _render_heading(place, at, "agent", kind="memory")
    line = f"> [knowledge:{escape.inline(action, ']')}] {escape.inline(path, '—')}"
    if summary:
        line += f" — {escape.inline(shorten(summary))}"
    return _close_record(place, at, "agent", f"\n{heading}\n{line}\n")


def render_attachment(place: RecordPosition, at: datetime, role: Role, path: str) -> RenderedRecord:
    return _render_entry(place, at, role, f"> [attachment:{escape.inline(path, ']')}]")


def strip_reasoning(text: str) -> str:
    while (shorter := _REASONING.sub("", text, count=1)) != text:
        text = shorter
    return text


def shorten(text: str) -> str:
    """One line of limited length: the full output of a tool is not part of the conversation."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TOOL_CHARS else line[: _MAX_TOOL_CHARS - 1].rstrip() + "…"


def _render_entry(place: RecordPosition, at: datetime, role: Role, text: str) -> RenderedRecord:
    """A line below the current heading, or below a new one when the role or the day has changed."""
    if place.role == role and place.day == at.date():
        return _close_record(place, at, role, f"{text}\n")
    return _close_record(place, at, role, f"\n{_render_heading(place, at, role)}\n{text}\n")


def _render_heading(
    place: RecordPosition, at: datetime, role: Role, kind: str = "", speaker: str | None = None
) -> str:
    day = "" if at.date() == place.day else f"{at.date().isoformat()} "
    suffix = (f" [{kind}]" if kind else "") + (f" ({escape.inline(speaker, '()')})" if speaker else "")
    return f"## {day}{at.hour:02}:{at.minute:02} — {role}{suffix}"


def _close_record(place: RecordPosition, at: datetime, role: Role, body: str) -> RenderedRecord:
    number = place.number + 1
    mark = f"<!-- {number} {_format_time(at)} {checksum(body)} -->\n"
    return RenderedRecord(body + mark, RecordPosition(number, role, at.date()))


def _format_time(moment: datetime) -> str:
    precise = (
        "seconds"
        if not moment.microsecond
        else "microseconds"
        if moment.microsecond % 1000
        else "milliseconds"
    )
    return moment.time().isoformat(precise)


def _to_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def format_offset(at: datetime) -> str:
    minutes = int((at.utcoffset() or timedelta()).total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


# ---------------------------------------------------------------- reading


def find_position(text: str, started: datetime) -> tuple[RecordPosition, bool]:
    """Where the next record of an open transcript goes, and whether it ends with an unacknowledged part."""
    place, torn = RecordPosition(0, None, started.date()), False
    for region in split_regions(text, _head_end(text)):
        torn = region.mark is None
        if region.mark is not None:
            heading = HEADING.match(_first_line(region.text))
            place = replace(place, number=int(region.mark[1]))
            if heading is not None:
                place = replace(place, role=_role_in(heading), day=_day_in(heading) or place.day)
    return place, torn


def read(text: str, opening: Opening, path: str) -> tuple[Turn, ...]:
    """The turns of an open transcript whose opening is known, without parsing any YAML."""
    zone = parse_zone(format_offset(opening.started)) or UTC
    reader = _Reader(path, opening.started.date(), zone, line=0)
    reader.read_marked(text, _head_end(text))
    return tuple(reader.turns)


def parse(text: str, path: str) -> Transcript:
    """Read any transcript, ours or one written by hand; errors in it come back as problems."""
    note = notes.parse(text, path)
    fields = note.fields
    started, zone, problems = _read_start(fields, path)
    heading = re.match(r"\s*# (.*)", note.body)
    reader = _Reader(path, started.date(), zone, line=note.head.count("\n"))
    # A head may be too long to be read as YAML (a session may name very many notes): look at the text too.
    if "marks" in fields or "\nmarks: crc32\n" in note.head:
        reader.read_marked(text, len(note.head))
    else:
        reader.read_plain(note.body)
    return Transcript(
        path=path,
        fields=fields,
        title=heading[1].strip() if heading else "",
        turns=tuple(reader.turns),
        problems=(*note.problems, *problems, *reader.problems),
    )


def read_opening(transcript: Transcript) -> Opening:
    """What the frontmatter says about the conversation's start."""
    fields = transcript.fields
    started, _, _ = _read_start(fields, transcript.path)

    def optional(key: str) -> str | None:
        return str(fields[key]) if fields.get(key) is not None else None

    return Opening(
        session_id=optional("session_id") or "unknown",
        started=started,
        session_key=optional("session_key") or "agent:main:main",
        agent=optional("agent") or "main",
        channel=optional("channel"),
        model=optional("model"),
        continues=optional("continues"),
    )


def _first_line(region: str) -> str:
    return region.removeprefix("\n").split("\n", 1)[0]


def _role_in(heading: re.Match[str]) -> Role:
    return cast(Role, heading["role"])


def _day_in(heading: re.Match[str]) -> date | None:
    try:
        return date.fromisoformat(heading["date"]) if heading["date"] else None
    except ValueError:
        return None


def _read_start(fields: Mapping[str, object], path: str) -> tuple[datetime, timezone, list[Problem]]:
    zone = parse_zone(fields.get("utc_offset")) or UTC
    started = fields.get("started")
    if isinstance(started, datetime):
        with suppress(OverflowError):  # the first or last day of the calendar, seen from another zone
            moment = started if started.tzinfo else started.replace(tzinfo=zone)
            return moment.astimezone(zone), zone, []
    problem = Problem(path, "started is missing or no time.", "Write it as 2026-02-16T18:45:00Z.")
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(zone), zone, [problem]


def parse_zone(written: object) -> timezone | None:
    match = re.fullmatch(r"([+-])(\d\d):([0-5]\d)", written) if isinstance(written, str) else None
    if match is None or int(match[2]) > 23:
        return None
    minutes = int(match[2]) * 60 + int(match[3])
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))


class _Reader:
    """Collects turns and keeps track of the current heading and day."""

    def __init__(self, path: str, day: date, zone: timezone, line: int) -> None:
        self.path, self.day, self.zone = path, day, zone
        self.line = line  # lines before the text being read
        self.role: Role = "user"
        self.speaker: str | None = None
        self.minute = time()
        self.turns: list[Turn] = []
        self.problems: list[Problem] = []

    def read_marked(self, text: str, start: int) -> None:
        position = 0
        line = 1
        for region in split_regions(text, start):
            line += text.count("\n", position, region.start)
            position = region.start
            if region.mark is None:
                self._report_truncated(region, line)
                continue
            if checksum(region.text) != region.mark[3]:
                message = (
                    f"record {region.mark[1]} does not fit its checksum: it was changed after it was written."
                )
                self.problems.append(Problem(self.path, message, line=line))
            self._read_record(region.text, int(region.mark[1]), time.fromisoformat(region.mark[2]), line)

    def _report_truncated(self, region: Region, line: int) -> None:
        size = len(region.text.strip().encode("utf-8", "surrogateescape"))
        if size:
            message = f"{size} bytes of a record that was never acknowledged (a crash while writing)."
            self.problems.append(Problem(self.path, message, line=line, level="warning"))

    def _read_record(self, region: str, number: int, clock: time, line: int) -> None:
        if region.startswith("\n"):
            line, region = line + 1, region[1:]
        first, _, rest = region.partition("\n")
        heading = HEADING.match(first)
        if heading is not None:
            self._start_turn(heading)
            line, region = line + 1, rest
        at = datetime.combine(self.day, clock, self.zone)
        entry_line = region.removesuffix("\n")
        turn = self._parse_entry(entry_line, number, at, line)
        self.turns.append(turn or self._make_message(entry_line, number, at, line))

    def _start_turn(self, heading: re.Match[str]) -> None:
        self.day = _day_in(heading) or self.day
        self.role = _role_in(heading)
        self.speaker = escape.restore_characters(heading["speaker"]) if heading["speaker"] else None
        self.minute = _parse_minute(heading["time"])

    def _make_message(self, text: str, number: int, at: datetime, line: int) -> Message:
        return Message(number, at, self.role, escape.restore_block(text), self.speaker, line)

    def _parse_entry(self, text: str, number: int, at: datetime, line: int) -> Turn | None:
        restore = escape.restore_characters
        if match := _TOOL_LINE.match(text):
            return ToolCall(number, at, restore(match[1]), restore(match[2]), restore(match[3] or ""), line)
        if match := _KNOWLEDGE_LINE.match(text):
            return KnowledgeChange(
                number, at, restore(match[1]), restore(match[2]), restore(match[3] or ""), line
            )
        if match := _ATTACHMENT_LINE.match(text):
            return Attachment(number, at, self.role, restore(match[1]), line)
        return None

    def read_plain(self, body: str) -> None:
        """A transcript written by hand: headings begin turns, entry lines stand alone, the rest is text."""
        buffered: list[str] = []
        first_line, has_heading = 0, False
        for index, line in enumerate(body.split("\n"), self.line + 1):
            heading = HEADING.match(line)
            is_entry = has_heading and heading is None and self._is_entry(line.removesuffix("\r"))
            if heading is not None or is_entry:
                self._add_message(buffered, first_line)
                buffered, first_line = [], index + (0 if is_entry else 1)
            if heading is not None:
                has_heading = True
                self._start_turn(heading)
            elif is_entry:
                self._add_entry(line, index)
                first_line = index + 1
            elif has_heading:
                buffered.append(line)
        self._add_message(buffered, first_line)

    def _is_entry(self, line: str) -> bool:
        return any(pattern.match(line) for pattern in (_TOOL_LINE, _KNOWLEDGE_LINE, _ATTACHMENT_LINE))

    def _add_entry(self, line: str, number: int) -> None:
        turn = self._parse_entry(line.removesuffix("\r"), len(self.turns) + 1, self._turn_time(), number)
        if turn is not None:
            self.turns.append(turn)

    def _add_message(self, lines: list[str], number: int) -> None:
        whole = "\n".join(lines)
        text = whole.strip("\r\n")
        if text.strip():
            number += whole[: len(whole) - len(whole.lstrip("\r\n"))].count("\n")
            self.turns.append(self._make_message(text, len(self.turns) + 1, self._turn_time(), number))

    def _turn_time(self) -> datetime:
        return datetime.combine(self.day, self.minute, self.zone)


def _parse_minute(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        return time()
