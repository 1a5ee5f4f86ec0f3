"""Notes: markdown with optional frontmatter, read without losing a byte and changed only where asked.

    bytes ──decode──► text ──parse──► Note(head, body, fields, problems)
    bytes ◄──encode── text ◄───────── with_fields, with_body

Reading never fails. A head that is no good YAML gives a problem with its line, no fields, and the body as
it is. Changing a field replaces the text of that one entry; comments, order, quoting and line endings of
everything else stay as someone wrote them.

Our reading of YAML is narrower than YAML: no aliases, no tags that make objects, keys are always the
text as written (`on:` is "on"), and `0123` or `12:30` stays text, since a phone number or a time of day is
what people mean by it. A date or number that makes no sense stays text too, with a warning.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from tacit.errors import StoreError
from tacit.model.notes import Note
from tacit.model.problems import Problem
from tacit.text.lines import scan

_Read = TypeVar("_Read")

BOM = "\ufeff"
LONGEST_HEAD = 256 * 1024  # YAML is slow to read: a second for this much when it is broken at the end
_DEEPEST = 50
_LONGEST_NUMBER = 1000  # Python refuses to print an int of more than 4,300 digits

_OPENING = re.compile(r"\ufeff?---[ \t]*(\r\n|\n|\r)")
_CLOSING = re.compile(r"(?<=[\r\n])---[ \t]*(?:\r\n|\n|\r|\Z)")
_NEWLINE = re.compile(r"\r\n|\n|\r")


# Bytes and text


def decode(data: bytes) -> str:
    """Any bytes as text. What is not UTF-8 becomes lone surrogates, which `encode` turns back."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Any text as bytes; `encode(decode(data)) == data` always.

    Halves of surrogate pairs come in with JSON. A pair that was torn apart is joined; a half alone stands
    for no character and no byte, and becomes U+FFFD, so that the file stays UTF-8.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        paired = _PAIR.sub(lambda pair: _joined(pair[0]), text)
        return _HALF.sub("\ufffd", paired).encode("utf-8", "surrogateescape")


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # the others stand for bytes


def _joined(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


# Reading


def split(text: str) -> tuple[str, str]:
    """Head and body. The first line `---` after the opening one closes the head; no later one counts."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    end = closing.end() if closing else 0
    return text[:end], text[end:]


def parse(text: str, where: str = "note") -> Note:
    """Read a note, whatever is in it. `where` is the name that its problems carry."""
    head, body = split(text)
    if not head:
        unclosed = (Problem(where, *_UNCLOSED, line=1),) if _OPENING.match(text) else ()
        return Note(head, body, MappingProxyType({}), unclosed)
    fields, findings = _read(_yaml_in(head))
    return Note(head, body, MappingProxyType(fields), tuple(_problems(head, findings, where)))


_UNCLOSED = (
    "The frontmatter that `---` opens is never closed.",
    "Add a line `---` below it, or an empty first line if it is meant as a rule.",
)


def title(note: Note) -> str | None:
    """The first level-1 heading, or None."""
    lines = scan(note.body.removeprefix(BOM))
    return next((line.title for line in lines if line.level == 1), None)


def _span_in(head: str) -> tuple[int, int]:
    """Where the YAML of a head is, without its fences."""
    opening = _OPENING.match(head)
    closing = _CLOSING.search(head, opening.end()) if opening else None
    if opening is None or closing is None:
        raise AssertionError("split() makes no such head")
    return opening.end(), closing.start()


def _yaml_in(head: str) -> str:
    start, end = _span_in(head)
    return head[start:end]


def _problems(head: str, findings: list[_Finding], where: str) -> Iterator[Problem]:
    if findings:
        first, _ = _span_in(head)
        line_ends = [found.end() for found in _NEWLINE.finditer(head)]
        for found in findings:
            line = 1 + bisect_right(line_ends, first + found.at)
            yield Problem(where, found.what, found.todo, line, found.level)


@dataclass(frozen=True, slots=True)
class _Finding:
    at: int  # in the YAML
    what: str
    todo: str
    level: str = "error"


class _Refused(Exception):
    """Ends the reading of one head; never leaves this module."""

    def __init__(self, at: int, what: str, todo: str = "") -> None:
        super().__init__(what)
        self.finding = _Finding(at, what, todo)


class _NotYaml(_Refused):
    def __init__(self, at: int, why: str) -> None:
        super().__init__(at, f"The frontmatter is not valid YAML: {why}.", "Fix this line.")


def _read(yaml_text: str) -> tuple[dict[str, object], list[_Finding]]:
    try:
        return _with_either_parser(_fields, yaml_text)
    except _Refused as refused:
        return {}, [refused.finding]


def _with_either_parser(read: Callable[[str, bool], _Read], yaml_text: str) -> _Read:
    """With PyYAML's parser in C, and again with the one in Python for what that one refuses.

    The first is twenty times faster and lets a tab stand for a space. The second knows escaped surrogates
    and gives better reasons. On what both accept they agree, but for a byte order mark in the middle.
    """
    if BOM not in yaml_text:
        with suppress(_NotYaml):
            return read(yaml_text, True)
    return read(yaml_text, False)


def _fields(yaml_text: str, fast: bool) -> tuple[dict[str, object], list[_Finding]]:
    if len(yaml_text) > LONGEST_HEAD:
        what = f"The frontmatter has more than {LONGEST_HEAD // 1024} KB and was not read."
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
        self.findings: list[_Finding] = []

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
        if depth > _DEEPEST:
            raise _Refused(
                event.start, f"The frontmatter is nested more than {_DEEPEST} deep.", "Flatten it."
            )
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
        self.findings.append(_Finding(event.start, what, todo, level))


def _refuse_tag(event: _Event, *known: str) -> None:
    if event.tag not in ("", "!", *known):
        raise _Refused(event.start, f"The tag `{_brief(event.tag)}` is not read.", "Remove the tag.")


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _truth(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(text)
    return word in _TRUE


def _whole(text: str) -> object:
    if ":" in text or _LEADING_ZERO.match(text):
        return text
    if len(text) > _LONGEST_NUMBER:
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
_TRUE = {"yes", "true", "on"}
_FALSE = {"no", "false", "off"}
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?"
    r"[ \t]*(Z|[-+][0-9]{1,2}(?::[0-9]{2})?)?)?"
)


# Changing


def with_body(note: Note, body: str) -> Note:
    """The same head over another body.

    A body that would read as frontmatter gets an empty head above it, and a head that ends the file
    without a newline gets one.
    """
    head = note.head
    eol = _newline_of(note.text)
    for candidate in (head, head + eol, head + "\n", f"---{eol}---{eol}"):
        if split(candidate + body) == (candidate, body):
            return parse(candidate + body, _where(note))
    raise AssertionError("an empty head fits above any body")


def with_fields(note: Note, changes: Mapping[str, object | None]) -> Note:
    """Set fields, or remove them with None. Only the text of these fields changes.

    A field that already has the value keeps its spelling; a new one is added at the end.
    Raises StoreError when the head is broken or cannot be changed safely.
    """
    wanted = _changed(note, changes)
    if not wanted:
        return note
    _refuse_broken(note)
    headed = note if note.head else _with_empty_head(note)
    head = _spliced(headed.head, wanted)
    changed = parse(head + headed.body, _where(note))
    expected = {**note.fields, **wanted}
    expected = {key: value for key, value in expected.items() if value is not None or key not in wanted}
    # By repr, since NaN equals nothing and 1 equals True.
    if changed.head != head or repr(dict(changed.fields)) != repr(expected):
        raise StoreError(
            f"The frontmatter of {_where(note)} cannot be changed without touching other fields, so it was "
            f"left alone. Set {', '.join(map(repr, wanted))} by hand."
        )
    return changed


def _changed(note: Note, changes: Mapping[str, object | None]) -> dict[str, object]:
    wanted = {_plain_key(key): _plain(value) for key, value in changes.items()}
    return {
        key: value
        for key, value in wanted.items()
        if (key in note.fields if value is None else repr(note.fields.get(key)) != repr(value))
    }


def _refuse_broken(note: Note) -> None:
    for problem in note.problems:
        if problem.level == "error":
            raise StoreError(f"The fields cannot be set as the file is. {problem}")


def _where(note: Note) -> str:
    return note.problems[0].where if note.problems else "note"


def _newline_of(text: str) -> str:
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def _with_empty_head(note: Note) -> Note:
    eol = _newline_of(note.body)
    mark = BOM if note.body.startswith(BOM) else ""
    return parse(f"{mark}---{eol}---{eol}{note.body.removeprefix(BOM)}")


def _spliced(head: str, wanted: Mapping[str, object]) -> str:
    start, end = _span_in(head)
    text, eol = head[start:end], _newline_of(head)
    indent, entries = _with_either_parser(_entries, text)
    present = {entry.key for entry in entries}
    added = [key for key in wanted if key not in present]
    text += "".join(indent + line + eol for key in added for line in _entry_lines(key, wanted[key]))
    for entry in reversed(entries):
        if entry.key in wanted:
            text = _replaced(text, entry, wanted[entry.key], indent, eol)
    return head[:start] + text + head[end:]


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where one top-level field stands in the YAML."""

    key: str
    start: int  # of its first line
    key_end: int
    end: int  # of its value, or of the comment behind it
    stop: int  # of its last line, with the line ending
    comment: str  # with the blanks in front


def _replaced(text: str, entry: _Entry, value: object, indent: str, eol: str) -> str:
    if value is None:
        return text[: entry.start] + text[entry.stop :]
    first, *below = _value_lines(value)
    lines = "".join(eol + indent + line for line in below)
    return text[: entry.key_end] + ":" + first + entry.comment + lines + text[entry.end :]


def _entries(yaml_text: str, fast: bool) -> tuple[str, list[_Entry]]:
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


def _entry(text: str, start: int, key: _Event, value: list[_Event]) -> _Entry:
    if text[start : key.start].strip(" "):
        raise StoreError(f"`{key.text}` is not at the start of its line. Write it as `{key.text}: value`.")
    end = max(_end_of(text, event) for event in value)
    newline = _BREAK.search(text, end)
    line_end, stop = newline.span() if newline else (len(text), len(text))
    comment = _comment(text, key, value[0]) or text[end:line_end]
    return _Entry(key.text, start, key.end, line_end, stop, f" {comment}" if comment[:1] == "#" else comment)


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


# Writing values


def _plain(value: object, depth: int = 0) -> object:
    """The value that a reader gets back: lists for tuples, fixed offsets for time zones."""
    if depth > _DEEPEST:
        raise StoreError(f"A field nested more than {_DEEPEST} deep is not written. Flatten it.")
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    for kind, convert in _EXACT:
        if isinstance(value, kind):
            return convert(value)
    raise StoreError(
        f"A {type(value).__name__} cannot be a field. Use text, numbers, dates, lists or mappings."
    )


def _plain_key(key: object) -> str:
    if not isinstance(key, str):
        raise StoreError(f"{key!r} cannot be the name of a field. Use text.")
    return str.__str__(key)


def _exact_int(value: int) -> int:
    if abs(value) >= 10 ** (_LONGEST_NUMBER - 1):
        raise StoreError(f"A number of more than {_LONGEST_NUMBER} digits is not written. Write it as text.")
    return int(value)


def _fixed(value: datetime) -> datetime:
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset)
    return value.replace(tzinfo=zone, fold=0)


# Subclasses, such as enums, are written as what they extend. The order matters: True is an int and a
# datetime is a date.
_EXACT: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (type(None), lambda value: value),
    (bool, bool),
    (str, str.__str__),
    (int, _exact_int),
    (float, float),
    (datetime, _fixed),
    (date, lambda value: value),
)


def _entry_lines(key: str, value: object) -> list[str]:
    first, *below = _value_lines(value)
    return [f"{_quoted(key)}:{first}", *below]


def _value_lines(value: object) -> list[str]:
    """First what stands behind `key:`, then the lines below, indented."""
    if isinstance(value, dict) and value:
        return ["", *("  " + line for key, item in value.items() for line in _entry_lines(key, item))]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return ["", *("  " + line for item in value for line in _item_lines(item))]
    return [" " + _flow(value)]


def _item_lines(item: object) -> list[str]:
    if isinstance(item, dict) and item:
        first, *below = [line for key, value in item.items() for line in _entry_lines(key, value)]
        return [f"- {first}", *("  " + line for line in below)]
    first, *below = _value_lines(item)
    return [f"-{first}", *below]


def _flow(value: object) -> str:
    """A value on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value)  # null, true, 1 and {} are the same in YAML


def _float(value: float) -> str:
    if not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[repr(value)]
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")  # YAML takes 1e+20 for text


def _quoted(text: str) -> str:
    """Bare where every YAML reader agrees that it is text, else in double quotes with escapes."""
    if _BARE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04X}", json.dumps(text, ensure_ascii=False))


_BARE = re.compile(r"[^\W\d_](?:[\w ./()+@&'-]*[\w./()+@'-])?")
_WORDS = {*_TRUE, *_FALSE, "y", "n", "null", "none", "nan", "inf"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
