"""Reading the YAML of a frontmatter: plain values, what is wrong with it, and where each field stands.

Our reading of YAML is narrower than YAML: no aliases, no tags that make objects, keys are always the
text as written (`on:` is "on"), and `0123` or `12:30` stays text, since a phone number or a time of day is
what people mean by it. A date or number that makes no sense stays text too, with a warning.
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

_Read = TypeVar("_Read")

BOM = "\ufeff"
LONGEST = 256 * 1024  # YAML is slow to read, at worst half a second for this much
DEEPEST = 50
LONGEST_NUMBER = 1000  # Python refuses to print an int of more than 4,300 digits
TRUE = {"yes", "true", "on"}
FALSE = {"no", "false", "off"}


@dataclass(frozen=True, slots=True)
class Finding:
    at: int  # in the YAML
    what: str
    todo: str
    level: str = "error"


class _Refused(Exception):
    """Ends the reading of one head; never leaves this module."""

    def __init__(self, at: int, what: str, todo: str = "") -> None:
        super().__init__(what)
        self.finding = Finding(at, what, todo)


class _NotYaml(_Refused):
    def __init__(self, at: int, why: str) -> None:
        super().__init__(at, f"The frontmatter is not valid YAML: {why}.", "Fix this line.")


def names_in(value: object) -> tuple[str, ...]:
    """A name or a list of names, as people write them."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(dict.fromkeys(name for item in values if (name := str(item).strip())))


def read(yaml_text: str) -> tuple[dict[str, object], list[Finding]]:
    simple = _simple(yaml_text)
    if simple is not None:
        return simple, []
    try:
        return _with_either_parser(_fields, yaml_text)
    except _Refused as refused:
        return {}, [refused.finding]


# Most heads are lines such as `title: Kiln log`, `date: 2026-02-16` and `tags: [clay, shop]`. Reading those
# by themselves takes a tenth of the time, and an index reads ten thousand. A value that YAML could take for
# anything else is not among them.
_LINE = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]*):[ ]"
    r"(?:([A-Za-z][A-Za-z0-9_./ -]*)|(\d{4}-\d\d-\d\d)|\"([^\"\\\n\x00-\x1f\x7f-\uffff]*)\""
    r"|\[([A-Za-z][A-Za-z0-9_./-]*(?:, [A-Za-z][A-Za-z0-9_./-]*)*)\])\n"
)
_SPECIAL = TRUE | FALSE | {"null", "y", "n"}


def _simple(yaml_text: str) -> dict[str, object] | None:
    """The fields of a head of such lines only; None for any other."""
    fields: dict[str, object] = {}
    at = 0
    while found := _LINE.match(yaml_text, at):
        key, plain, day, quoted, items = found.groups()
        value = _simple_value(plain, day, quoted, items)
        if value is None or key in fields:
            return None
        fields[key] = value
        at = found.end()
    return fields if at == len(yaml_text) and fields else None


def _simple_value(
    plain: str | None, day: str | None, quoted: str | None, items: str | None
) -> str | date | list[str] | None:
    if quoted is not None:
        return quoted
    if plain is not None:
        return None if plain.endswith(" ") or plain.lower() in _SPECIAL else plain
    if items is not None:
        listed = items.split(", ")
        return None if _SPECIAL.intersection(map(str.lower, listed)) else listed
    try:
        return date.fromisoformat(day or "")
    except ValueError:
        return None


def _with_either_parser(read: Callable[[str, bool], _Read], yaml_text: str) -> _Read:
    """With PyYAML's parser in C, and again with the one in Python for what that one refuses.

    The first is twenty times faster and lets a tab stand for a space. The second knows escaped surrogates
    and gives better reasons. On what both accept they agree, but for a byte order mark in the middle.
    """
    if BOM not in yaml_text:
        with suppress(_NotYaml):
            return read(yaml_text, True)
    return read(yaml_text, False)


def _fields(yaml_text: str, fast: bool) -> tuple[dict[str, object], list[Finding]]:
    if len(yaml_text) > LONGEST:
        what = f"The frontmatter has more than {LONGEST // 1024} KB and was not read."
        raise _Refused(0, what, "Move the text below the closing `---`.")
    builder = _Builder(_events(yaml_text, fast))
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


def _events(yaml_text: str, fast: bool) -> Iterator[_Event]:
    """The one place that knows PyYAML. `fast` takes its parser in C where it was built with it."""
    import yaml  # 20 ms, and most of what imports this module never reads a frontmatter

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    resolve: Callable[..., str] = yaml.resolver.Resolver().resolve
    try:
        for event in yaml.parse(yaml_text, Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                tag = event.tag or resolve(yaml.ScalarNode, event.value, event.implicit)
                yield _scalar_event(event, tag)
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent | yaml.DocumentStartEvent):
                yield _other_event(event)
    except yaml.reader.ReaderError as error:
        raise _NotYaml(error.position, f"it has {_shown(error.character)}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _NotYaml(mark.index if mark else 0, error.problem or "it cannot be read") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML hands "\\UFFFFFFFF" and long version numbers to chr() and int() as they are, and its parser
        # in C encodes what it gets.
        raise _NotYaml(0, str(error)) from error


def _scalar_event(event: Any, tag: str | None) -> _Event:
    start, end = event.start_mark.index, event.end_mark.index
    return _Event("scalar", start, end, _short(tag), event.value, event.style or "")


def _other_event(event: Any) -> _Event:
    start, end = event.start_mark.index, event.end_mark.index
    kind = _KINDS[type(event).__name__]
    if kind in ("map", "list"):
        return _Event(kind, start, end, _short(event.tag), style="{" if event.flow_style else "")
    return _Event(kind, start, end)


def _short(tag: str | None) -> str:
    return (tag or "").removeprefix("tag:yaml.org,2002:")


def _shown(character: object) -> str:
    if not isinstance(character, int):
        return "a strange character"
    if 0xDC80 <= character <= 0xDCFF:
        return f"a byte that is not UTF-8, 0x{character - 0xDC00:X}"
    return f"the character U+{character:04X}"


class _Builder:
    """Plain values out of events."""

    def __init__(self, events: Iterator[_Event]) -> None:
        self._events = events
        self.findings: list[Finding] = []

    def document(self) -> dict[str, object]:
        if next(self._events, None) is None:
            return {}
        first = next(self._events)
        if first.kind != "map":
            raise _Refused(
                first.start, "The frontmatter is not a list of `key: value` lines.", "Write it as one."
            )
        fields = self._map(first, 0)
        for event in self._events:
            raise _Refused(event.start, "A second YAML document starts in the frontmatter.", "Remove it.")
        return fields

    def _value(self, event: _Event, depth: int) -> object:
        if depth > DEEPEST:
            raise _Refused(event.start, f"The frontmatter is nested more than {DEEPEST} deep.", "Flatten it.")
        if event.kind == "alias":
            raise _Refused(event.start, "Aliases (`*name`) are not read.", "Write the value out.")
        if event.kind == "scalar":
            return self._scalar(event)
        return self._map(event, depth) if event.kind == "map" else self._list(event, depth)

    def _map(self, opened: _Event, depth: int) -> dict[str, object]:
        _refuse_tag(opened, "map")
        values: dict[str, object] = {}
        while (key := next(self._events)).kind != "end":
            if key.kind != "scalar":
                raise _Refused(key.start, "A key is more than one word.", "Write it as text, in quotes.")
            if key.text in values:
                self._find(key, f"`{_brief(key.text)}` is there twice; the last one counts.", "Remove one.")
            values[key.text] = self._value(next(self._events), depth + 1)
        return values

    def _list(self, opened: _Event, depth: int) -> list[object]:
        _refuse_tag(opened, "seq")
        values = []
        while (item := next(self._events)).kind != "end":
            values.append(self._value(item, depth + 1))
        return values

    def _scalar(self, event: _Event) -> object:
        _refuse_tag(event, *_SCALARS)
        try:
            return _SCALARS[event.tag](event.text)
        except ValueError:
            what = f"`{_brief(event.text)}` is no {_NAMES[event.tag]} and was taken as text."
            self._find(event, what, "Correct it, or put it in quotes.", "warning")
            return event.text

    def _find(self, event: _Event, what: str, todo: str, level: str = "error") -> None:
        self.findings.append(Finding(event.start, what, todo, level))


def _refuse_tag(event: _Event, *known: str) -> None:
    if event.tag not in ("", "!", *known):
        raise _Refused(event.start, f"The tag `{_brief(event.tag)}` is not read.", "Remove the tag.")


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _truth(text: str) -> bool:
    word = text.lower()
    if word not in TRUE | FALSE:
        raise ValueError(text)
    return word in TRUE


def _whole(text: str) -> object:
    if ":" in text or _LEADING_ZERO.match(text):
        return text
    if len(text) > LONGEST_NUMBER:
        raise ValueError("too long")
    return int(text.replace("_", ""), 0)


def _fraction(text: str) -> object:
    if ":" in text:
        return text
    word = text.replace("_", "").lower()
    return float(word.replace(".", "") if word.endswith((".inf", ".nan")) else word)


def _moment(text: str) -> date:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    year, month, day = (int(part) for part in found.group(1, 2, 3))
    if not found[4]:
        return date(year, month, day)
    hour, minute, second = (int(part) for part in found.group(4, 5, 6))
    micro = int((found[7] or "")[:6].ljust(6, "0"))
    return datetime(year, month, day, hour, minute, second, micro, _zone(found[8]))


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    hours, _, minutes = text[1:].partition(":")
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return timezone(-offset if text[0] == "-" else offset)


_KINDS: dict[str, _Kind] = {
    "DocumentStartEvent": "document",
    "MappingStartEvent": "map",
    "MappingEndEvent": "end",
    "SequenceStartEvent": "list",
    "SequenceEndEvent": "end",
    "AliasEvent": "alias",
}
_SCALARS: dict[str, Callable[[str], object]] = {
    "str": str,
    "!": str,
    "value": str,  # what YAML calls a bare "="
    "merge": str,  # and a bare "<<"
    "null": lambda _: None,
    "bool": _truth,
    "int": _whole,
    "float": _fraction,
    "timestamp": _moment,
}
_NAMES = {"bool": "yes or no", "int": "number", "float": "number", "timestamp": "date"}
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?"
    r"[ \t]*(Z|[-+][0-9]{1,2}(?::[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one top-level field stands in the YAML."""

    key: str
    start: int  # of its first line
    key_end: int
    end: int  # of its value, or of the comment behind it
    stop: int  # of its last line, with the line ending
    comment: str  # with the blanks in front


def _all_entries(yaml_text: str, fast: bool) -> tuple[str, list[Entry]]:
    """The top-level fields, and the blanks in front of each."""
    events = _events(yaml_text, fast)
    if next(events, None) is None:
        return "", []
    top = next(events)
    if top.style == "{":
        raise StoreError(
            "This frontmatter is one `{…}`, which is not edited in place. Write one `key: value` per line."
        )
    starts = [0, *(found.end() for found in _BREAK.finditer(yaml_text))]
    entries = []
    indent = ""
    for key in events:
        if key.kind == "end":
            break
        start = starts[bisect_right(starts, key.start) - 1]
        indent = yaml_text[start : key.start]
        entries.append(_entry(yaml_text, start, key, list(_one_value(events))))
    return indent, entries


def _one_value(events: Iterator[_Event]) -> Iterator[_Event]:
    depth = 0
    for event in events:
        yield event
        depth += {"map": 1, "list": 1, "end": -1}.get(event.kind, 0)
        if depth == 0:
            return


def _entry(text: str, start: int, key: _Event, value: list[_Event]) -> Entry:
    if text[start : key.start].strip(" "):
        raise StoreError(f"`{key.text}` is not at the start of its line. Write it as `{key.text}: value`.")
    end = max(_end_of(text, event) for event in value)
    newline = _BREAK.search(text, end)
    line_end, stop = newline.span() if newline else (len(text), len(text))
    comment = _comment(text, key, value[0]) or text[end:line_end]
    return Entry(key.text, start, key.end, line_end, stop, f" {comment}" if comment[:1] == "#" else comment)


def _end_of(text: str, event: _Event) -> int:
    """Where an event's own text ends; 0 for what only ends because the next thing starts."""
    if event.style in ("|", ">"):
        return event.start + len(_block_text(text[event.start : event.end]))
    has_text = event.kind == "scalar" or (event.kind == "end" and event.end > event.start)
    return event.end if has_text else 0


def _block_text(block: str) -> str:
    """A `|` or `>` text without the line ending; the blank lines below belong to it only with `+`."""
    header = _BREAK.split(block, 1)[0]
    return re.sub(rf"(?:{_BREAK.pattern})\Z", "", block) if "+" in header else block.rstrip(" \t" + _BREAKS)


def _comment(text: str, key: _Event, value: _Event) -> str:
    """The comment on the line of the key when the value goes on below it."""
    found = _KEY_COMMENT.match(text, key.end)
    if not found and value.style in ("|", ">"):
        found = _BLOCK_COMMENT.match(text, value.start)
    return found[1] if found else ""


_BREAKS = "\r\n\x85\u2028\u2029"  # what ends a line in YAML
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")
_KEY_COMMENT = re.compile(f"[ \\t]*:([ \\t]+#[^{_BREAKS}]*)")
_BLOCK_COMMENT = re.compile(f"[^ \\t{_BREAKS}]+([ \\t]+#[^{_BREAKS}]*)")


def entries(yaml_text: str) -> tuple[str, list[Entry]]:
    """The top-level fields, and the blanks in front of each. Raises StoreError for what cannot be edited."""
    return _with_either_parser(_all_entries, yaml_text)
