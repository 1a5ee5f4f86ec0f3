"""The transcript format: values to text and back. docs/format.md describes it for people.

A transcript is frontmatter, a title and records. Each record that tacit writes ends with a mark,
`<!-- 3 18:45:07.120 9f3a2c11 -->`: its number, its time and the CRC-32 of its bytes. A record without its
mark was never acknowledged; a record whose bytes do not fit its mark was touched. A transcript written by
hand has no `marks:` field and needs none.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import cast

from tacit.model.problems import Problem
from tacit.model.turns import (
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
from tacit.text import escape, notes
from tacit.text.yaml_values import entry

HEADING = re.compile(
    r"^## (?:(?P<date>\d{4}-\d\d-\d\d) )?(?P<time>\d\d:\d\d) — (?P<role>user|agent|system)"
    r"(?: \[(?P<kind>[a-z]+)\])?(?: \((?P<speaker>[^()\n]*)\))?\r?$"
)
# Groups 1 to 3 are set for a mark, none for the line that closes off a torn record.
_END = re.compile(
    r"^<!-- (?:(\d{1,18}) ((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?) ([0-9a-f]{8})|torn) -->(\r?)\n",
    re.MULTILINE | re.ASCII,
)
_TOOL = re.compile(r"^> \[tool:([^\]\n]*)\] ?(.*?)(?: → (.*))?$")
_KNOWLEDGE = re.compile(r"^> \[knowledge:([^\]\n]*)\] (.*?)(?: — (.*))?$")
_ATTACHMENT = re.compile(r"^> \[attachment:([^\]\n]*)\]$")
_BRIEF = 500  # a tool line is a line, not a log

# What some models put before their answer. Only at the very start, only from the agent.
_REASONING = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)

# The space keeps a mark whose newline is missing from becoming whole: nobody was told of that record.
TORN = " \n<!-- torn -->\n"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next record goes: after which number, under whose heading, on which day."""

    number: int
    role: Role | None
    day: date


@dataclass(frozen=True, slots=True)
class Written:
    """One record as text, and the place after it."""

    text: str
    place: Place


# ---------------------------------------------------------------- names


def slug(text: str, limit: int = 40) -> str:
    """A short name from the first line of a message: lower case words of any script, joined by hyphens."""
    first = text.lstrip()[:400].partition("\n")[0]
    plain = unicodedata.normalize("NFKD", first).casefold()
    letters = "".join(ch for ch in plain if not unicodedata.combining(ch))
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", letters))
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:limit]
        if len(longer) > limit:
            break
        name = longer
    return name or "session"


def title(text: str, limit: int = 60) -> str:
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


def file_path(opening: Opening, name: str, again: int = 0) -> str:
    started = opening.started
    suffix = f"-{again + 1}" if again else ""
    stem = f"{started:%H%M}-{safe_name(opening.session_id)}-{name}{suffix}"
    return f"raw/conversations/{started:%Y/%m/%d}/{stem}.md"


# ---------------------------------------------------------------- writing


def begin(opening: Opening, hint: str) -> str:
    """Frontmatter and title of a live transcript; the title comes from what is said first."""
    return _frontmatter(_opening_fields(opening)) + f"\n# {title(hint)}\n"


def finish(text: str, opening: Opening, closing: Closing, changes: Iterable[KnowledgeChange]) -> str:
    """The same transcript with its final frontmatter; not one byte of the body changes."""
    body = text[_head_end(text) :]
    topic = escape.restore_characters(body.partition("\n# ")[2].partition("\n")[0])
    return _frontmatter(_closing_fields(opening, closing, topic, changes)) + body


def _head_end(text: str) -> int:
    # We wrote this head: each value is on one line and quoted, so no line of it but the last is a fence.
    return text.index("\n---\n", 3) + len("\n---\n")


def _opening_fields(opening: Opening) -> dict[str, object]:
    return {
        "session_id": opening.session_id,
        "started": _utc(opening.started),
        "model": opening.model,
        "channel": opening.channel,
        **_own_fields(opening),
    }


def _own_fields(opening: Opening) -> dict[str, object]:
    return {
        "agent": opening.agent,
        "session_key": opening.session_key,
        "utc_offset": offset(opening.started),
        "continues": opening.continues,
        "marks": "crc32",
    }


def _closing_fields(
    opening: Opening, closing: Closing, topic: str, changes: Iterable[KnowledgeChange]
) -> dict[str, object]:
    return {
        "session_id": opening.session_id,
        "started": _utc(opening.started),
        "ended": _utc(closing.ended),
        "model": opening.model,
        "channel": opening.channel,
        "topic": topic,
        "tags": list(closing.tags),
        "tokens_in": closing.tokens_in,
        "tokens_out": closing.tokens_out,
        "knowledge_changes": [
            {"path": change.path, "action": change.action, "summary": change.summary} for change in changes
        ],
        **_own_fields(opening),
    }


def _frontmatter(fields: Mapping[str, object]) -> str:
    return (
        "---\n" + "".join(entry(key, value) for key, value in fields.items() if value is not None) + "---\n"
    )


def message(place: Place, at: datetime, role: Role, text: str, speaker: str | None = None) -> Written:
    heading = _heading(place, at, role, speaker=speaker)
    return _record(place, at, role, f"\n{heading}\n{escape.block(text)}\n")


def tool_call(place: Place, at: datetime, name: str, summary: str, result: str = "") -> Written:
    line = f"> [tool:{escape.inline(name, ']')}] {escape.inline(brief(summary), '→')}"
    if result:
        line += f" → {escape.inline(brief(result))}"
    return _entry(place, at, "agent", line)


def knowledge_change(place: Place, at: datetime, action: str, path: str, summary: str = "") -> Written:
    heading = _heading(place, at, "agent", kind="memory")
    line = f"> [knowledge:{escape.inline(action, ']')}] {escape.inline(path, '—')}"
    if summary:
        line += f" — {escape.inline(brief(summary))}"
    return _record(place, at, "agent", f"\n{heading}\n{line}\n")


def attachment(place: Place, at: datetime, role: Role, path: str) -> Written:
    return _entry(place, at, role, f"> [attachment:{escape.inline(path, ']')}]")


def without_reasoning(text: str) -> str:
    while (shorter := _REASONING.sub("", text, count=1)) != text:
        text = shorter
    return text


def brief(text: str) -> str:
    """One line of bounded length: what a tool returned belongs to the tool, not to the conversation."""
    line = " ".join(text.split())
    return line if len(line) <= _BRIEF else line[: _BRIEF - 1].rstrip() + "…"


def _entry(place: Place, at: datetime, role: Role, line: str) -> Written:
    """A line below the current heading, or below a new one when the turn or the day is another's."""
    if place.role == role and place.day == at.date():
        return _record(place, at, role, f"{line}\n")
    return _record(place, at, role, f"\n{_heading(place, at, role)}\n{line}\n")


def _heading(place: Place, at: datetime, role: Role, kind: str = "", speaker: str | None = None) -> str:
    day = "" if at.date() == place.day else f"{at.date().isoformat()} "
    suffix = (f" [{kind}]" if kind else "") + (f" ({escape.inline(speaker, '()')})" if speaker else "")
    return f"## {day}{at.hour:02}:{at.minute:02} — {role}{suffix}"


def _record(place: Place, at: datetime, role: Role, body: str) -> Written:
    number = place.number + 1
    mark = f"<!-- {number} {_clock_time(at)} {checksum(body)} -->\n"
    return Written(body + mark, Place(number, role, at.date()))


def _clock_time(at: datetime) -> str:
    precise = "seconds" if not at.microsecond else "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.time().isoformat(precise)


def checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode('utf-8', 'surrogateescape')):08x}"


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(microsecond=0)


def offset(at: datetime) -> str:
    minutes = int((at.utcoffset() or timedelta()).total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _Region:
    """Bytes between two marks; `mark` is None for what was never acknowledged."""

    text: str
    start: int
    mark: re.Match[str] | None


def place_after(text: str, started: datetime) -> tuple[Place, bool]:
    """Where the next record of a live transcript goes, and whether an unacknowledged rest is in the way."""
    place, torn = Place(0, None, started.date()), False
    for region in _regions(text, _head_end(text)):
        torn = region.mark is None
        if region.mark is not None:
            found = HEADING.match(_first_line(region.text))
            place = replace(place, number=int(region.mark[1]))
            if found is not None:
                place = replace(place, role=_role(found), day=_day(found) or place.day)
    return place, torn


def read(text: str, opening: Opening, path: str) -> tuple[Turn, ...]:
    """The turns of a live transcript whose opening is known, without parsing any YAML."""
    zone = zone_of(offset(opening.started)) or UTC
    reader = _Reader(path, opening.started.date(), zone, line=0)
    reader.read_marked(text, _head_end(text))
    return tuple(reader.turns)


def parse(text: str, path: str) -> Transcript:
    """Read any transcript, ours or one written by hand; what is wrong with it comes back as problems."""
    note = notes.parse(text, path)
    fields = note.fields
    started, zone, problems = _clock(fields, path)
    heading = re.match(r"\s*# (.*)", note.body)
    reader = _Reader(path, started.date(), zone, line=note.head.count("\n"))
    # The text decides where the head is too long to be read as YAML: a session may name very many notes.
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


def opening_of(transcript: Transcript) -> Opening:
    """What the frontmatter says about the conversation's start."""
    fields = transcript.fields
    started, _, _ = _clock(fields, transcript.path)

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


def _regions(text: str, start: int) -> Iterable[_Region]:
    position = start + _title_length(text, start)
    for mark in _END.finditer(text, position):
        region = text[position : mark.start()]
        if mark[4]:  # we never write such a line ending: somebody's editor changed them all
            region = region.replace("\r\n", "\n")
        yield _Region(region, position, mark if mark[1] else None)
        position = mark.end()
    if position < len(text):
        yield _Region(text[position:], position, None)


def _title_length(text: str, start: int) -> int:
    found = re.compile(r"\r?\n?# .*\n").match(text, start)
    return len(found[0]) if found else 0


def _first_line(region: str) -> str:
    return region.removeprefix("\n").split("\n", 1)[0]


def _role(heading: re.Match[str]) -> Role:
    return cast(Role, heading["role"])


def _day(heading: re.Match[str]) -> date | None:
    try:
        return date.fromisoformat(heading["date"]) if heading["date"] else None
    except ValueError:
        return None


def _clock(fields: Mapping[str, object], path: str) -> tuple[datetime, timezone, list[Problem]]:
    zone = zone_of(fields.get("utc_offset")) or UTC
    started = fields.get("started")
    if isinstance(started, datetime):
        with suppress(OverflowError):  # the first or last day of the calendar, seen from another zone
            aware = started if started.tzinfo else started.replace(tzinfo=zone)
            return aware.astimezone(zone), zone, []
    problem = Problem(path, "started is missing or no time.", "Write it as 2026-02-16T18:45:00Z.")
    return datetime(1970, 1, 1, tzinfo=UTC).astimezone(zone), zone, [problem]


def zone_of(written: object) -> timezone | None:
    found = re.fullmatch(r"([+-])(\d\d):([0-5]\d)", written) if isinstance(written, str) else None
    if found is None or int(found[2]) > 23:
        return None
    minutes = int(found[2]) * 60 + int(found[3])
    return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))


class _Reader:
    """Collects turns; knows under which heading and on which day it is."""

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
        for region in _regions(text, start):
            line += text.count("\n", position, region.start)
            position = region.start
            if region.mark is None:
                self._torn(region, line)
                continue
            if checksum(region.text) != region.mark[3]:
                what = (
                    f"record {region.mark[1]} does not fit its checksum: it was changed after it was written."
                )
                self.problems.append(Problem(self.path, what, line=line))
            self._record(region.text, int(region.mark[1]), time.fromisoformat(region.mark[2]), line)

    def _torn(self, region: _Region, line: int) -> None:
        size = len(region.text.strip().encode("utf-8", "surrogateescape"))
        if size:
            what = f"{size} bytes of a record that was never acknowledged (a crash while writing)."
            self.problems.append(Problem(self.path, what, line=line, level="warning"))

    def _record(self, region: str, number: int, clock: time, line: int) -> None:
        if region.startswith("\n"):
            line, region = line + 1, region[1:]
        first, _, rest = region.partition("\n")
        heading = HEADING.match(first)
        if heading is not None:
            self._turn_to(heading)
            line, region = line + 1, rest
        at = datetime.combine(self.day, clock, self.zone)
        entry_line = region.removesuffix("\n")
        turn = self._entry(entry_line, number, at, line)
        self.turns.append(turn or self._message(entry_line, number, at, line))

    def _turn_to(self, heading: re.Match[str]) -> None:
        self.day = _day(heading) or self.day
        self.role = _role(heading)
        self.speaker = escape.restore_characters(heading["speaker"]) if heading["speaker"] else None
        self.minute = _minute(heading["time"])

    def _message(self, text: str, number: int, at: datetime, line: int) -> Message:
        return Message(number, at, self.role, escape.restore_block(text), self.speaker, line)

    def _entry(self, text: str, number: int, at: datetime, line: int) -> Turn | None:
        restored = escape.restore_characters
        if found := _TOOL.match(text):
            return ToolCall(
                number, at, restored(found[1]), restored(found[2]), restored(found[3] or ""), line
            )
        if found := _KNOWLEDGE.match(text):
            return KnowledgeChange(
                number, at, restored(found[1]), restored(found[2]), restored(found[3] or ""), line
            )
        if found := _ATTACHMENT.match(text):
            return Attachment(number, at, self.role, restored(found[1]), line)
        return None

    def read_plain(self, body: str) -> None:
        """A transcript written by hand: headings begin turns, entry lines stand alone, the rest is text."""
        held: list[str] = []
        held_line, began = 0, False
        for index, line in enumerate(body.split("\n"), self.line + 1):
            heading = HEADING.match(line)
            is_entry = began and heading is None and self._is_entry(line.removesuffix("\r"))
            if heading is not None or is_entry:
                self._release(held, held_line)
                held, held_line = [], index + (0 if is_entry else 1)
            if heading is not None:
                began = True
                self._turn_to(heading)
            elif is_entry:
                self._plain_entry(line, index)
                held_line = index + 1
            elif began:
                held.append(line)
        self._release(held, held_line)

    def _is_entry(self, line: str) -> bool:
        return any(pattern.match(line) for pattern in (_TOOL, _KNOWLEDGE, _ATTACHMENT))

    def _plain_entry(self, line: str, index: int) -> None:
        turn = self._entry(line.removesuffix("\r"), len(self.turns) + 1, self._plain_time(), index)
        if turn is not None:
            self.turns.append(turn)

    def _release(self, held: list[str], line: int) -> None:
        whole = "\n".join(held)
        text = whole.strip("\r\n")
        if text.strip():
            line += whole[: len(whole) - len(whole.lstrip("\r\n"))].count("\n")
            self.turns.append(self._message(text, len(self.turns) + 1, self._plain_time(), line))

    def _plain_time(self) -> datetime:
        return datetime.combine(self.day, self.minute, self.zone)


def _minute(written: str) -> time:
    try:
        return time.fromisoformat(written)
    except ValueError:
        return time()
