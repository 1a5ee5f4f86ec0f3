"""TOOLS.md → a proposal for TOOLS_COMPACT.md: what is looked up every day, and no word about why.

Taken are aliases of browsers, ports, topic ids, options of model command lines, and what is particular
about voices and cameras. Values are copied, never worded, so that no port is ever invented. Everything else
stays in TOOLS.md, which is read when it is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.model.problems import Problem
from tacit.text import tokens
from tacit.text.lines import Line, scan
from tacit.text.sections import sections
from tacit.text.words import fold

MOST_TOKENS = 300
HEADERS = (
    "Browser", "Mission Control", "Ports", "Telegram Topics", "Cursor CLI", "Model CLI", "TTS", "Camera",
)  # fmt: skip
_TITLE = "# Tools, compact"
_MOST_WORDS = 14  # of a row
_MOST_PIECE = 4  # words of a piece of a value that holds nothing hard

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
# From here on somebody explains.
_WHY = re.compile(
    r"\s*(?:[.;](?:\s|\Z)|[,—–]?\s*\b(?:because|since|which|so that|so|as|but|where|when|while|used|moved|"
    r"in order|if|unless|until|weil|damit|da|denn)\b).*\Z",
    re.DOTALL,
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_HARD = re.compile(r"\d|`|\"|“|://|@")
_PROSE = re.compile(r"\b(?:because|since|so that|in order to|weil|damit)\b|[.!?]\s+[A-Z]", re.IGNORECASE)


class Row(NamedTuple):
    header: str
    name: str
    value: str
    line: int = 0  # of TOOLS.md

    @property
    def written(self) -> str:
        return f"- {self.name}: {self.value}"


class Compact(NamedTuple):
    text: str
    rows: tuple[Row, ...]
    beyond: tuple[Row, ...]  # for which there was no room


class _Unit(NamedTuple):
    title: str  # of its section, folded
    shown: str  # the same as it is written
    line: int
    text: str
    cells: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return f"{self.title} {fold(self.text)}"


def compact(tools: str) -> Compact:
    rows = list(dict.fromkeys(row for unit in _units(tools) for row in _rows(unit)))
    rows = [row for at, row in enumerate(rows) if row[:3] not in {other[:3] for other in rows[:at]}]
    beyond: list[Row] = []
    while tokens.count(_rendered(rows)) > MOST_TOKENS:
        longest = max(HEADERS, key=lambda header: sum(row.header == header for row in rows))
        beyond.append(next(row for row in reversed(rows) if row.header == longest))
        rows.remove(beyond[-1])
    return Compact(_rendered(rows), tuple(rows), tuple(beyond[::-1]))


def _rendered(rows: Sequence[Row]) -> str:
    parts = [_TITLE]
    for header in HEADERS:
        lines = [row.written for row in rows if row.header == header]
        if lines:
            parts.append("\n".join((f"## {header}", *lines)))
    return "\n\n".join(parts) + "\n"


# Reading


def _units(tools: str) -> Iterator[_Unit]:
    """Items, rows of tables, lines of code and plain lines, each with the title of its section."""
    for section in sections(tools):
        lines = list(scan(section.own(tools), section.line))
        for at, line in enumerate(lines):
            below = lines[at + 1] if at + 1 < len(lines) else None
            if line.kind in ("text", "code") and not _is_rule(line) and not (below and _heads(line, below)):
                yield _unit(section.title, line)


def _unit(title: str, line: Line) -> _Unit:
    if line.text.lstrip().startswith("|"):
        cells = tuple(cell.strip() for cell in line.text.strip().strip("|").split("|"))
        return _Unit(fold(title), title, line.number, " | ".join(cells), cells)
    text = f"`{line.text.strip()}`" if line.kind == "code" else _ITEM.sub("", line.text, count=1).strip()
    return _Unit(fold(title), title, line.number, text)


def _is_rule(line: Line) -> bool:
    return _RULE.fullmatch(line.text) is not None


def _heads(line: Line, below: Line) -> bool:
    return line.text.lstrip().startswith("|") and below.text.lstrip().startswith("|") and _is_rule(below)


def _rows(unit: _Unit) -> Iterator[Row]:
    if _TOPICS.search(unit.title) or ("telegram" in unit.about and _TOPICS.search(unit.about)):
        yield from _topic(unit)
    elif _CAMERA.search(unit.about):
        yield from _particular(unit, "Camera")
    elif _VOICE.search(unit.about):
        yield from _particular(unit, "TTS")
    elif _BROWSER.search(unit.title):
        yield from _particular(unit, "Browser")
    else:
        found = list(_commands(unit))
        yield from found or _ports(unit)


def _topic(unit: _Unit) -> Iterator[Row]:
    ids = [cell.strip("`") for cell in unit.cells if _NUMBER.fullmatch(cell.strip("`"))]
    names = [cell.strip("`* ") for cell in unit.cells if not _NUMBER.fullmatch(cell.strip("`"))]
    if ids and names:
        yield Row("Telegram Topics", names[0], ids[0], unit.line)
        return
    found = _TOPIC.match(unit.text.strip("`* "))
    if found and len(unit.text.split()) <= 2 * _MOST_PIECE:  # what is longer tells something
        name, number = found["called"] or found["name"], found["first"] or found["last"]
        yield Row("Telegram Topics", name.strip(), number, unit.line)


def _particular(unit: _Unit, header: str) -> Iterator[Row]:
    name, rest = _named(unit)
    value = _value(rest)
    if name and value:
        yield Row(header, name, value, unit.line)


def _commands(unit: _Unit) -> Iterator[Row]:
    """Code with options, where it is about a model's command line."""
    code = [one for one in _CODE.findall(unit.text) if _OPTION.search(one)]
    code = [one for one in code if _MODEL_CLI.search(f"{one} ") or _MODEL_CLI.search(unit.title)]
    if code:
        header = "Cursor CLI" if any("cursor" in one for one in code) else "Model CLI"
        name = _named(unit)[0] or code[0].split()[0]
        yield Row(header, name, ", ".join(f"`{one}`" for one in code), unit.line)


def _ports(unit: _Unit) -> Iterator[Row]:
    header = "Mission Control" if _MISSION.search(unit.about) else "Ports"
    end = 0
    for found in _PORT.finditer(unit.text):
        host = (found["host"] or "").rpartition("//")[2]
        value = found["said"] or found["after"] or found["on"]
        if "." in host and host != "127.0.0.1":
            value = f"{host}:{value}"
        yield Row(header, _label(unit, end, found.start()), value, unit.line)
        end = found.end()


def _label(unit: _Unit, start: int, end: int) -> str:
    """What the line is called; of a further port in it, the words before that."""
    name = _named(unit)[0] if start == 0 else ""
    if name and not _PORT.search(name):
        return name
    before = _NO_NAME.sub(" ", unit.text[start:end]).split()
    return " ".join(before[-_MOST_PIECE:]) or name or unit.shown


def _named(unit: _Unit) -> tuple[str, str]:
    """What it is called, and what is said of it."""
    if unit.cells:
        return unit.cells[0].strip('`*" '), ", ".join(unit.cells[1:])
    found = _NAMED.match(unit.text)
    if found is None or len(found["name"].split()) > _MOST_PIECE + 1:
        return "", unit.text
    return found["name"].strip('`*" '), found["rest"]


def _value(text: str) -> str:
    """What is hard in it: without asides, without reasons, without pieces that only tell a story."""
    bare = _WHY.sub("", _ASIDE.sub("", text)).strip()
    pieces = [piece.strip() for piece in bare.split(", ")]
    kept = [piece for piece in pieces if piece and (_HARD.search(piece) or len(piece.split()) <= _MOST_PIECE)]
    value = ", ".join(kept)
    return value if len(value.split()) <= _MOST_WORDS - _MOST_PIECE else ""


# Linting


def problems(text: str, where: str, tools: str | None = None) -> list[Problem]:
    """What is wrong with a TOOLS_COMPACT.md; with `tools`, also what it lacks of that."""
    found = list(_line_problems(text, where))
    size = tokens.count(text)
    if size > MOST_TOKENS:
        found.append(Problem(where, f"It has {size} tokens; {MOST_TOKENS} is the most.", "Take rows out."))
    for row in compact(tools).rows if tools is not None else ():
        if row.value not in text:
            what = f"TOOLS.md has “{row.name}: {row.value}” ({row.header}), which is not in it."
            found.append(Problem(where, what, "Add it, unless nobody looks it up.", level="warning"))
    return found


def _line_problems(text: str, where: str) -> Iterator[Problem]:
    for line in scan(text):
        if line.kind == "heading" and line.level > 1 and line.title not in HEADERS:
            what = f"“{line.title}” is none of the headers that it may have."
            yield Problem(where, what, f"They are: {', '.join(HEADERS)}.", line.number, "warning")
        if line.kind == "text" and _is_prose(line.text):
            what = f"This is prose: {line.text.strip()[:60]}"
            yield Problem(
                where, what, "Keep names and values; why they are so stays in TOOLS.md.", line.number
            )


def _is_prose(text: str) -> bool:
    return len(_CODE.sub("x", text).split()) > _MOST_WORDS or _PROSE.search(_CODE.sub("", text)) is not None
