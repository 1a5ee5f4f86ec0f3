"""Drafts the two short files that sessions load instead of long ones: TOOLS_COMPACT.md and MEMORY_SUMMARY.md.

TOOLS_COMPACT.md has browser aliases, ports, topic ids, options of model command lines, and the settings of
voices and cameras. Values are copied, never reworded, so that no port is ever invented. Everything else stays
in TOOLS.md, which is read when needed.

MEMORY_SUMMARY.md has the newest entries of MEMORY.md, for agents that do not look up MEMORY.md by themselves.
It is loaded whole, so it has at most thirty entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.hosts.openclaw.lessons import iter_items
from tacit.markdown.sections import split_sections
from tacit.text import tokens
from tacit.text.lines import MarkdownLine, scan
from tacit.text.words import fold

MAX_TOKENS = 300
HEADERS = (
    "Browser", "Mission Control", "Ports", "Telegram Topics", "Cursor CLI", "Model CLI", "TTS", "Camera",
)  # fmt: skip
_TITLE = "# Tools, compact"
_MAX_ROW_WORDS = 14  # of a row
_MAX_PIECE_WORDS = 4  # of a piece of a value without digits, quotes or code

_ITEM = re.compile(r"\s*(?:[-*+•]|[0-9]{1,3}[.)])\s+")
_RULE = re.compile(r"[\s|:-]+")
_NAMED = re.compile(
    r"(?P<name>`[^`]{1,60}`|\*\*[^*]{1,60}\*\*|\"[^\"]{1,60}\"|[^\s`:=→|][^`:=→|]{0,59}?)\s*(?::\**|=|→|->|\s[—–-])\s+(?P<rest>.+)"
)
_CODE = re.compile(r"`([^`\n]+)`")
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
_MODEL_CLI = re.compile(
    r"\b(?:cursor|claude|codex|gemini|ollama|llm|aider|llama|copilot|openclaw|mlx|vllm)\b|--model\b|\s-m\s"
)
_PORT = re.compile(
    r"\bports?\s*(?:is|=|:)?\s*`?(?P<said>\d{2,5})\b"
    r"|(?P<host>\d{1,3}(?:\.\d{1,3}){3}|[\w.-]*[A-Za-z][\w.-]*|\]):(?P<after>\d{2,5})\b"
    r"|\b(?:on|at|auf)\s+(?!19\d\d\b|20\d\d\b)(?P<on>\d{4,5})\b"
)
_CAMERA = re.compile(r"\b(?:camera|cam|webcam|rtsp|kamera)s?\b|-cam\b")
_VOICE = re.compile(r"\b(?:tts|text to speech|voice|voices|speech|elevenlabs|piper|stimme)\b")
_BROWSER = re.compile(r"\b(?:browsers?|chrome|chromium|firefox|safari)\b")
_TOPICS = re.compile(r"\b(?:topics?|threads?|forum)\b")
_MISSION = re.compile(r"\bmission control\b")
_NO_NAME = re.compile(
    r"\b(?:on|at|runs?|listens?|uses?|is|are|the|values?|comes?|from|https?|and|und|läuft|auf|port)\b"
    r"|[^\w -]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?\d{1,14}")
_TOPIC = re.compile(
    r"`?(?P<first>-?\d{1,14})`?\s*[:=→|—–-]?\s*(?P<called>[^\W\d][\w &/+-]*)"
    r"|(?P<name>[^\W\d][\w &/+-]*?)`?\s*[:=→(—–-]*\s*`?(?:topic|thread|id)?\s*#?(?P<last>-?\d{1,14})\b.*"
)
# Start of an explanation.
_REASON = re.compile(
    r"\s*(?:[.;](?:\s|\Z)|[,—–]?\s*\b(?:because|since|which|so that|so|as|but|where|when|while|used|moved|"
    r"in order|if|unless|until|weil|damit|da|denn)\b).*\Z",
    re.DOTALL,
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_HARD_VALUE = re.compile(r"\d|`|\"|“|://|@")
_PROSE = re.compile(r"\b(?:because|since|so that|in order to|weil|damit)\b|[.!?]\s+[A-Z]", re.IGNORECASE)


class ToolRow(NamedTuple):
    header: str
    name: str
    value: str
    line: int = 0  # of TOOLS.md

    @property
    def as_item(self) -> str:
        return f"- {self.name}: {self.value}"


class CompactTools(NamedTuple):
    text: str
    rows: tuple[ToolRow, ...]
    beyond: tuple[ToolRow, ...]  # rows without room


class _Unit(NamedTuple):
    title: str  # of its section, folded
    shown: str  # the title as written
    line: int
    text: str
    cells: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return f"{self.title} {fold(self.text)}"


def compact_text(tools: str) -> CompactTools:
    rows = list(dict.fromkeys(row for unit in _split_units(tools) for row in _extract_rows(unit)))
    rows = [row for index, row in enumerate(rows) if row[:3] not in {other[:3] for other in rows[:index]}]
    beyond: list[ToolRow] = []
    while tokens.count(_render_rows(rows)) > MAX_TOKENS:
        longest = max(HEADERS, key=lambda header: sum(row.header == header for row in rows))
        beyond.append(next(row for row in reversed(rows) if row.header == longest))
        rows.remove(beyond[-1])
    return CompactTools(_render_rows(rows), tuple(rows), tuple(beyond[::-1]))


def _render_rows(rows: Sequence[ToolRow]) -> str:
    parts = [_TITLE]
    for header in HEADERS:
        lines = [row.as_item for row in rows if row.header == header]
        if lines:
            parts.append("\n".join((f"## {header}", *lines)))
    return "\n\n".join(parts) + "\n"


# Reading


def _split_units(tools: str) -> Iterator[_Unit]:
    """Items, table rows, lines of code and plain lines, each with the title of its section."""
    for section in split_sections(tools):
        lines = list(scan(section.own(tools), section.line))
        for index, line in enumerate(lines):
            next_line = lines[index + 1] if index + 1 < len(lines) else None
            if (
                line.kind in ("text", "code")
                and not _is_rule(line)
                and not (next_line and _is_table_head(line, next_line))
            ):
                yield _parse_unit(section.title, line)


def _parse_unit(title: str, line: MarkdownLine) -> _Unit:
    if line.text.lstrip().startswith("|"):
        cells = tuple(cell.strip() for cell in line.text.strip().strip("|").split("|"))
        return _Unit(fold(title), title, line.number, " | ".join(cells), cells)
    text = f"`{line.text.strip()}`" if line.kind == "code" else _ITEM.sub("", line.text, count=1).strip()
    return _Unit(fold(title), title, line.number, text)


def _is_rule(line: MarkdownLine) -> bool:
    return _RULE.fullmatch(line.text) is not None


def _is_table_head(line: MarkdownLine, next_line: MarkdownLine) -> bool:
    return (
        line.text.lstrip().startswith("|") and next_line.text.lstrip().startswith("|") and _is_rule(next_line)
    )


def _extract_rows(unit: _Unit) -> Iterator[ToolRow]:
    if _TOPICS.search(unit.title) or ("telegram" in unit.about and _TOPICS.search(unit.about)):
        yield from _extract_topic(unit)
    elif _CAMERA.search(unit.about):
        yield from _extract_setting(unit, "Camera")
    elif _VOICE.search(unit.about):
        yield from _extract_setting(unit, "TTS")
    elif _BROWSER.search(unit.title):
        yield from _extract_setting(unit, "Browser")
    else:
        commands = list(_extract_commands(unit))
        yield from commands or _extract_ports(unit)


def _extract_topic(unit: _Unit) -> Iterator[ToolRow]:
    ids = [cell.strip("`") for cell in unit.cells if _NUMBER.fullmatch(cell.strip("`"))]
    names = [cell.strip("`* ") for cell in unit.cells if not _NUMBER.fullmatch(cell.strip("`"))]
    if ids and names:
        yield ToolRow("Telegram Topics", names[0], ids[0], unit.line)
        return
    match = _TOPIC.match(unit.text.strip("`* "))
    if match and len(unit.text.split()) <= 2 * _MAX_PIECE_WORDS:  # a longer line is prose
        name, number = match["called"] or match["name"], match["first"] or match["last"]
        yield ToolRow("Telegram Topics", name.strip(), number, unit.line)


def _extract_setting(unit: _Unit, header: str) -> Iterator[ToolRow]:
    name, rest = _split_name(unit)
    value = _extract_value(rest)
    if name and value:
        yield ToolRow(header, name, value, unit.line)


def _extract_commands(unit: _Unit) -> Iterator[ToolRow]:
    """Code with options that concerns a model's command line."""
    snippets = [snippet for snippet in _CODE.findall(unit.text) if _OPTION.search(snippet)]
    snippets = [
        snippet for snippet in snippets if _MODEL_CLI.search(f"{snippet} ") or _MODEL_CLI.search(unit.title)
    ]
    if snippets:
        header = "Cursor CLI" if any("cursor" in snippet for snippet in snippets) else "Model CLI"
        name = _split_name(unit)[0] or snippets[0].split()[0]
        yield ToolRow(header, name, ", ".join(f"`{snippet}`" for snippet in snippets), unit.line)


def _extract_ports(unit: _Unit) -> Iterator[ToolRow]:
    header = "Mission Control" if _MISSION.search(unit.about) else "Ports"
    end = 0
    for match in _PORT.finditer(unit.text):
        host = (match["host"] or "").rpartition("//")[2]
        value = match["said"] or match["after"] or match["on"]
        if "." in host and host != "127.0.0.1":
            value = f"{host}:{value}"
        yield ToolRow(header, _name_port(unit, end, match.start()), value, unit.line)
        end = match.end()


def _name_port(unit: _Unit, start: int, end: int) -> str:
    """The name of the line; for a further port in it, the words before that port."""
    name = _split_name(unit)[0] if start == 0 else ""
    if name and not _PORT.search(name):
        return name
    before = _NO_NAME.sub(" ", unit.text[start:end]).split()
    return " ".join(before[-_MAX_PIECE_WORDS:]) or name or unit.shown


def _split_name(unit: _Unit) -> tuple[str, str]:
    """The name and the rest of the line."""
    if unit.cells:
        return unit.cells[0].strip('`*" '), ", ".join(unit.cells[1:])
    match = _NAMED.match(unit.text)
    if match is None or len(match["name"].split()) > _MAX_PIECE_WORDS + 1:
        return "", unit.text
    return match["name"].strip('`*" '), match["rest"]


def _extract_value(text: str) -> str:
    """The hard values of a text: without asides, reasons and narrative."""
    core = _REASON.sub("", _ASIDE.sub("", text)).strip()
    pieces = [piece.strip() for piece in core.split(", ")]
    values = [
        piece
        for piece in pieces
        if piece and (_HARD_VALUE.search(piece) or len(piece.split()) <= _MAX_PIECE_WORDS)
    ]
    value = ", ".join(values)
    return value if len(value.split()) <= _MAX_ROW_WORDS - _MAX_PIECE_WORDS else ""


# Linting


def find_problems(text: str, where: str, tools: str | None = None) -> list[Problem]:
    """Problems of a TOOLS_COMPACT.md; with `tools`, also what it lacks of TOOLS.md."""
    diagnostics = list(_check_lines(text, where))
    size = tokens.count(text)
    if size > MAX_TOKENS:
        diagnostics.append(
            Problem(where, f"It has {size} tokens; {MAX_TOKENS} is the most.", "Take rows out.")
        )
    for row in compact_text(tools).rows if tools is not None else ():
        if row.value not in text:
            message = f"TOOLS.md has “{row.name}: {row.value}” ({row.header}), which is not in it."
            diagnostics.append(
                Problem(where, message, "Add it, unless it is never looked up.", level="warning")
            )
    return diagnostics


def _check_lines(text: str, source: str) -> Iterator[Problem]:
    for line in scan(text):
        if line.kind == "heading" and line.level > 1 and line.title not in HEADERS:
            message = f"“{line.title}” is none of the headers that it may have."
            yield Problem(source, message, f"They are: {', '.join(HEADERS)}.", line.number, "warning")
        if line.kind == "text" and _is_prose(line.text):
            message = f"This is prose: {line.text.strip()[:60]}"
            yield Problem(
                source, message, "Keep names and values; why they are so stays in TOOLS.md.", line.number
            )


def _is_prose(text: str) -> bool:
    return (
        len(_CODE.sub("x", text).split()) > _MAX_ROW_WORDS or _PROSE.search(_CODE.sub("", text)) is not None
    )


# ---------------------------------------------------------------- MEMORY_SUMMARY.md

MAX_ENTRIES = 30
_DATE = re.compile(r"\b(\d{4}-\d{2}-\d{2})\b")


class _Entry(NamedTuple):
    title: str  # of its section
    text: str
    line: int
    day: str  # empty where it has none

    @property
    def as_item(self) -> str:
        return f"- {self.text}"


def summarize(memory: str) -> tuple[str, int]:
    """The text, and how many entries MEMORY.md has. Newest by date; entries without one by their place."""
    entries = [
        _Entry(section.title if section.level > 1 else "", text, line, _newest_day(text))
        for section in split_sections(memory)
        for line, text in iter_items(section.own(memory), section.line)
        if text.strip()
    ]
    # By place alone a section that lists the newest first would lose them.
    newest = sorted(
        sorted(entries, key=lambda entry: (entry.day, entry.line))[-MAX_ENTRIES:], key=lambda e: e.line
    )
    parts = ["# Memory, the newest"]
    for title in dict.fromkeys(entry.title for entry in newest):
        lines = [entry.as_item for entry in newest if entry.title == title]
        parts.append("\n".join((f"## {title}", *lines) if title else lines))
    return "\n\n".join(parts) + "\n", len(entries)


def count_entries(text: str) -> int:
    return sum(1 for _ in iter_items(text))


def _newest_day(text: str) -> str:
    return max(_DATE.findall(text), default="")
