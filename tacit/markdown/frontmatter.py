"""Reads the YAML of a frontmatter: plain values, errors, and the position of each field.

We read a subset of YAML: no aliases, no tags that make objects, keys are always the text as written (`on:`
is "on"), and `0123` or `12:30` stays text, since people mean a phone number or a time of day. An invalid date
or number stays text too, with a warning.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, TypeVar

from tacit.errors import StoreError

_Result = TypeVar("_Result")

BOM = "\ufeff"
MAX_CHARS = 256 * 1024  # YAML is slow to read, at worst half a second for this much
MAX_DEPTH = 50
MAX_DIGITS = 1000  # Python refuses to print an int of more than 4,300 digits
TRUE_WORDS = {"yes", "true", "on"}
FALSE_WORDS = {"no", "false", "off"}


@dataclass(frozen=True, slots=True)
class FrontmatterFinding:
    at: int  # in the YAML
    what: str
    todo: str
    level: str = "error"


class _RefusedHead(Exception):
    """Stops the reading of one head; never leaves this module."""

    def __init__(self, at: int, what: str, todo: str = "") -> None:
        super().__init__(what)
        self.finding = FrontmatterFinding(at, what, todo)


class _InvalidYaml(_RefusedHead):
    def __init__(self, at: int, reason: str) -> None:
        super().__init__(at, f"The frontmatter is not valid YAML: {reason}.", "Fix this line.")


def parse_names(value: object) -> tuple[str, ...]:
    """A name or a list of names, as people write them."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(dict.fromkeys(name for item in values if (name := str(item).strip())))


def read(yaml_text: str) -> tuple[dict[str, object], list[FrontmatterFinding]]:
    simple = _read_simple(yaml_text)
    if simple is not None:
        return simple, []
    try:
        return _try_both_parsers(_read_fields, yaml_text)
    except _RefusedHead as refusal:
        return {}, [refusal.finding]


# Most heads are lines such as `title: Kiln log`, `date: 2026-02-16` and `tags: [clay, shop]`. Reading them
# without a YAML parser takes a tenth of the time, and an index reads ten thousand. Values that YAML could
# read in another way are left to the parser.
_SIMPLE_LINE = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]*):[ ]"
    r"(?:([A-Za-z][A-Za-z0-9_./ -]*)|(\d{4}-\d\d-\d\d)|\"([^\"\\\n\x00-\x1f\x7f-\uffff]*)\""
    r"|\[([A-Za-z][A-Za-z0-9_./-]*(?:, [A-Za-z][A-Za-z0-9_./-]*)*)\])\n"
)
_SPECIAL_WORDS = TRUE_WORDS | FALSE_WORDS | {"null", "y", "n"}


def _read_simple(yaml_text: str) -> dict[str, object] | None:
    """The fields of a head of such lines only; None for any other."""
    fields: dict[str, object] = {}
    position = 0
    while match := _SIMPLE_LINE.match(yaml_text, position):
        key, plain, day, quoted, items = match.groups()
        value = _parse_simple_value(plain, day, quoted, items)
        if value is None or key in fields:
            return None
        fields[key] = value
        position = match.end()
    return fields if position == len(yaml_text) and fields else None


def _parse_simple_value(
    plain: str | None, day: str | None, quoted: str | None, items: str | None
) -> str | date | list[str] | None:
    if quoted is not None:
        return quoted
    if plain is not None:
        return None if plain.endswith(" ") or plain.lower() in _SPECIAL_WORDS else plain
    if items is not None:
        names = items.split(", ")
        return None if _SPECIAL_WORDS.intersection(map(str.lower, names)) else names
    try:
        return date.fromisoformat(day or "")
    except ValueError:
        return None


def _try_both_parsers(read: Callable[[str, bool], _Result], yaml_text: str) -> _Result:
    """Try PyYAML's parser in C, then the one in Python if the first refuses the text.

    The first is twenty times faster and lets a tab stand for a space. The second knows escaped surrogates
    and gives better reasons. On what both accept they agree, but for a byte order mark in the middle.
    """
    if BOM not in yaml_text:
        with suppress(_InvalidYaml):
            return read(yaml_text, True)
    return read(yaml_text, False)


def _read_fields(yaml_text: str, fast: bool) -> tuple[dict[str, object], list[FrontmatterFinding]]:
    if len(yaml_text) > MAX_CHARS:
        message = f"The frontmatter has more than {MAX_CHARS // 1024} KB and was not read."
        raise _RefusedHead(0, message, "Move the text below the closing `---`.")
    builder = _Builder(_parse_events(yaml_text, fast))
    return builder.document(), builder.findings


_Kind = Literal["document", "scalar", "list", "map", "end", "alias"]


@dataclass(frozen=True, slots=True)
class _Event:
    """One step through a YAML text, in our words. `start` and `end` are indexes into the text."""

    kind: _Kind
    start: int
    end: int
    tag: str = ""
    text: str = ""  # of a scalar
    style: str = ""  # of a scalar: its quote or block mark; of a map or list: "{" when in brackets


def _parse_events(yaml_text: str, fast: bool) -> Iterator[_Event]:
    """The only place that uses PyYAML. `fast` takes its parser in C if it is available."""
    import yaml  # 20 ms, and most of what imports this module never reads a frontmatter

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    resolve: Callable[..., str] = yaml.resolver.Resolver().resolve
    try:
        for event in yaml.parse(yaml_text, Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                tag = event.tag or resolve(yaml.ScalarNode, event.value, event.implicit)
                yield _make_scalar_event(event, tag)
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent | yaml.DocumentStartEvent):
                yield _make_event(event)
    except yaml.reader.ReaderError as error:
        raise _InvalidYaml(error.position, f"it has {_describe_character(error.character)}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _InvalidYaml(mark.index if mark else 0, error.problem or "it cannot be read") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML hands "\\UFFFFFFFF" and long version numbers to chr() and int() as they are, and its parser
        # in C encodes what it gets.
        raise _InvalidYaml(0, str(error)) from error


def _make_scalar_event(event: Any, tag: str | None) -> _Event:
    start, end = event.start_mark.index, event.end_mark.index
    return _Event("scalar", start, end, _short_tag(tag), event.value, event.style or "")


def _make_event(event: Any) -> _Event:
    start, end = event.start_mark.index, event.end_mark.index
    kind = _EVENT_KINDS[type(event).__name__]
    if kind in ("map", "list"):
        return _Event(kind, start, end, _short_tag(event.tag), style="{" if event.flow_style else "")
    return _Event(kind, start, end)


def _short_tag(tag: str | None) -> str:
    return (tag or "").removeprefix("tag:yaml.org,2002:")


def _describe_character(character: object) -> str:
    if not isinstance(character, int):
        return "a strange character"
    if 0xDC80 <= character <= 0xDCFF:
        return f"a byte that is not UTF-8, 0x{character - 0xDC00:X}"
    return f"the character U+{character:04X}"


class _Builder:
    """Builds plain values from events."""

    def __init__(self, events: Iterator[_Event]) -> None:
        self._events = events
        self.findings: list[FrontmatterFinding] = []

    def document(self) -> dict[str, object]:
        if next(self._events, None) is None:
            return {}
        first = next(self._events)
        if first.kind != "map":
            raise _RefusedHead(
                first.start, "The frontmatter is not a list of `key: value` lines.", "Write it as one."
            )
        fields = self._build_map(first, 0)
        for event in self._events:
            raise _RefusedHead(event.start, "A second YAML document starts in the frontmatter.", "Remove it.")
        return fields

    def _build_value(self, event: _Event, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise _RefusedHead(
                event.start, f"The frontmatter is nested more than {MAX_DEPTH} deep.", "Flatten it."
            )
        if event.kind == "alias":
            raise _RefusedHead(event.start, "Aliases (`*name`) are not read.", "Write the value out.")
        if event.kind == "scalar":
            return self._build_scalar(event)
        return self._build_map(event, depth) if event.kind == "map" else self._build_list(event, depth)

    def _build_map(self, opening: _Event, depth: int) -> dict[str, object]:
        _refuse_tag(opening, "map")
        values: dict[str, object] = {}
        while (key := next(self._events)).kind != "end":
            if key.kind != "scalar":
                raise _RefusedHead(key.start, "A key is more than one word.", "Write it as text, in quotes.")
            if key.text in values:
                self._add_finding(
                    key, f"`{_shorten(key.text)}` is there twice; the last one counts.", "Remove one."
                )
            values[key.text] = self._build_value(next(self._events), depth + 1)
        return values

    def _build_list(self, opening: _Event, depth: int) -> list[object]:
        _refuse_tag(opening, "seq")
        values = []
        while (item := next(self._events)).kind != "end":
            values.append(self._build_value(item, depth + 1))
        return values

    def _build_scalar(self, event: _Event) -> object:
        _refuse_tag(event, *_SCALAR_PARSERS)
        try:
            return _SCALAR_PARSERS[event.tag](event.text)
        except ValueError:
            message = f"`{_shorten(event.text)}` is no {_TYPE_NAMES[event.tag]} and was taken as text."
            self._add_finding(event, message, "Correct it, or put it in quotes.", "warning")
            return event.text

    def _add_finding(self, event: _Event, message: str, todo: str, level: str = "error") -> None:
        self.findings.append(FrontmatterFinding(event.start, message, todo, level))


def _refuse_tag(event: _Event, *allowed: str) -> None:
    if event.tag not in ("", "!", *allowed):
        raise _RefusedHead(event.start, f"The tag `{_shorten(event.tag)}` is not read.", "Remove the tag.")


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _parse_bool(text: str) -> bool:
    word = text.lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError(text)
    return word in TRUE_WORDS


def _parse_int(text: str) -> object:
    if ":" in text or _LEADING_ZERO.match(text):
        return text
    if len(text) > MAX_DIGITS:
        raise ValueError("too long")
    return int(text.replace("_", ""), 0)


def _parse_float(text: str) -> object:
    if ":" in text:
        return text
    word = text.replace("_", "").lower()
    return float(word.replace(".", "") if word.endswith((".inf", ".nan")) else word)


def _parse_timestamp(text: str) -> date:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise ValueError(text)
    year, month, day = (int(part) for part in match.group(1, 2, 3))
    if not match[4]:
        return date(year, month, day)
    hour, minute, second = (int(part) for part in match.group(4, 5, 6))
    micro = int((match[7] or "")[:6].ljust(6, "0"))
    return datetime(year, month, day, hour, minute, second, micro, _parse_zone(match[8]))


def _parse_zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    hours, _, minutes = text[1:].partition(":")
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return timezone(-offset if text[0] == "-" else offset)


_EVENT_KINDS: dict[str, _Kind] = {
    "DocumentStartEvent": "document",
    "MappingStartEvent": "map",
    "MappingEndEvent": "end",
    "SequenceStartEvent": "list",
    "SequenceEndEvent": "end",
    "AliasEvent": "alias",
}
_SCALAR_PARSERS: dict[str, Callable[[str], object]] = {
    "str": str,
    "!": str,
    "value": str,  # what YAML calls a bare "="
    "merge": str,  # and a bare "<<"
    "null": lambda _: None,
    "bool": _parse_bool,
    "int": _parse_int,
    "float": _parse_float,
    "timestamp": _parse_timestamp,
}
_TYPE_NAMES = {"bool": "yes or no", "int": "number", "float": "number", "timestamp": "date"}
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?"
    r"[ \t]*(Z|[-+][0-9]{1,2}(?::[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """The position of one top-level field in the YAML."""

    key: str
    start: int  # of its first line
    key_end: int
    end: int  # of its value, or of the comment behind it
    stop: int  # of its last line, with the line ending
    comment: str  # with the blanks in front


def _read_entries(yaml_text: str, fast: bool) -> tuple[str, list[FieldEntry]]:
    """The top-level fields, and the blanks in front of each."""
    events = _parse_events(yaml_text, fast)
    if next(events, None) is None:
        return "", []
    top = next(events)
    if top.style == "{":
        raise StoreError(
            "This frontmatter is one `{…}`, which is not edited in place. Write one `key: value` per line."
        )
    starts = [0, *(match.end() for match in _BREAK.finditer(yaml_text))]
    entries = []
    indent = ""
    for key in events:
        if key.kind == "end":
            break
        start = starts[bisect_right(starts, key.start) - 1]
        indent = yaml_text[start : key.start]
        entries.append(_make_entry(yaml_text, start, key, list(_take_value(events))))
    return indent, entries


def _take_value(events: Iterator[_Event]) -> Iterator[_Event]:
    depth = 0
    for event in events:
        yield event
        depth += {"map": 1, "list": 1, "end": -1}.get(event.kind, 0)
        if depth == 0:
            return


def _make_entry(text: str, start: int, key: _Event, value: list[_Event]) -> FieldEntry:
    if text[start : key.start].strip(" "):
        raise StoreError(f"`{key.text}` is not at the start of its line. Write it as `{key.text}: value`.")
    end = max(_find_end(text, event) for event in value)
    newline = _BREAK.search(text, end)
    line_end, stop = newline.span() if newline else (len(text), len(text))
    comment = _find_comment(text, key, value[0]) or text[end:line_end]
    return FieldEntry(
        key.text, start, key.end, line_end, stop, f" {comment}" if comment[:1] == "#" else comment
    )


def _find_end(text: str, event: _Event) -> int:
    """Where the text of an event ends; 0 if it only ends because the next event starts."""
    if event.style in ("|", ">"):
        return event.start + len(_trim_block(text[event.start : event.end]))
    has_text = event.kind == "scalar" or (event.kind == "end" and event.end > event.start)
    return event.end if has_text else 0


def _trim_block(block: str) -> str:
    """A `|` or `>` block without its line ending; blank lines below belong to it only with `+`."""
    header = _BREAK.split(block, 1)[0]
    return re.sub(rf"(?:{_BREAK.pattern})\Z", "", block) if "+" in header else block.rstrip(" \t" + _BREAKS)


def _find_comment(text: str, key: _Event, value: _Event) -> str:
    """The comment on the line of the key when the value goes on below it."""
    match = _KEY_COMMENT.match(text, key.end)
    if not match and value.style in ("|", ">"):
        match = _BLOCK_COMMENT.match(text, value.start)
    return match[1] if match else ""


_BREAKS = "\r\n\x85\u2028\u2029"  # what ends a line in YAML
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")
_KEY_COMMENT = re.compile(f"[ \\t]*:([ \\t]+#[^{_BREAKS}]*)")
_BLOCK_COMMENT = re.compile(f"[^ \\t{_BREAKS}]+([ \\t]+#[^{_BREAKS}]*)")


def find_entries(yaml_text: str) -> tuple[str, list[FieldEntry]]:
    """The top-level fields, and the blanks in front of each. Raises StoreError for what cannot be edited."""
    return _try_both_parsers(_read_entries, yaml_text)
