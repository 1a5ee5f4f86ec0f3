"""Reads YAML: the only module that uses a YAML library.

`read_tree` gives nodes with their positions, `to_value` makes plain values of them. We read a subset of YAML:
no aliases, no tags that make objects, keys are always the text as written (`on:` is "on"), and `0123` or
`12:30` stays text, since people mean a phone number or a time of day. An invalid date or number stays text
too, with a finding. Each caller words errors for its own file, by their kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, NamedTuple

BOM = "\ufeff"
MAX_DEPTH = 50
MAX_DIGITS = 1000  # Python refuses to print an int of more than 4,300 digits
TRUE_WORDS = {"yes", "true", "on"}
FALSE_WORDS = {"no", "false", "off"}

ErrorKind = Literal[
    "character", "syntax", "escape", "alias", "tag", "depth", "documents", "key"
]  # escape: one that means no character, or an impossible version number
ScalarKind = Literal["text", "whole", "number", "flag", "null", "date"]
_SCALAR_KINDS: dict[str, ScalarKind] = {
    "int": "whole", "float": "number", "bool": "flag", "null": "null", "timestamp": "date",
}  # fmt: skip


class YamlError(Exception):
    """Why a text cannot be read. `start` is an index into it, None if the place is unknown."""

    def __init__(self, kind: ErrorKind, start: int | None, line: int | None, detail: str = "") -> None:
        super().__init__(detail or kind)
        self.kind, self.start, self.line, self.detail = kind, start, line, detail


class ScalarNode(NamedTuple):
    line: int
    start: int  # where it begins in the text
    end: int
    tag: str  # of YAML: str, int, …
    text: str
    style: str = ""  # its quote, or the sign of a block

    @property
    def kind(self) -> ScalarKind:
        return _SCALAR_KINDS.get(self.tag, "text")


class ListNode(NamedTuple):
    line: int
    start: int
    end: int
    tag: str
    items: tuple[Node, ...]
    is_flow: bool = False  # in brackets


class MappingNode(NamedTuple):
    line: int
    start: int
    end: int
    tag: str
    entries: tuple[tuple[Node, Node], ...]
    is_flow: bool = False


Node = ScalarNode | ListNode | MappingNode
_Events = Iterator[tuple[Any, str | None]]  # of the YAML library, each with its resolved tag


def read_tree(text: str, max_depth: int = MAX_DEPTH, strict: bool = False) -> Node | None:
    """The tree, or None if the text has only comments. Raises YamlError; `strict` also for anchors and tags.

    PyYAML's parser in C is twenty times faster than the one in Python, which knows escaped surrogates and
    gives better reasons. On what both accept they agree, but for a byte order mark in the middle.
    """
    if BOM not in text:
        try:
            return _build_tree(text, True, max_depth, strict)
        except YamlError as error:
            if error.kind not in ("character", "syntax", "escape"):
                raise
    return _build_tree(text, False, max_depth, strict)


def _build_tree(text: str, fast: bool, max_depth: int, strict: bool = False) -> Node | None:
    events = _parse_events(text, fast, strict)
    if next(events, None) is None:
        return None
    root = _build_node(*next(events), events, max_depth)
    for event, _ in events:
        raise YamlError("documents", event.start_mark.index, event.start_mark.line + 1)
    return root


def _parse_events(text: str, fast: bool, strict: bool) -> _Events:
    """The start of each document and the events of its nodes, with their tags."""
    import yaml  # 20 ms, and most of what imports this module reads no YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader
    resolve: Callable[..., str] = yaml.resolver.Resolver().resolve
    try:
        for event in yaml.parse(text, Loader=loader):
            if strict and (getattr(event, "anchor", None) or getattr(event, "tag", None)):
                kind: ErrorKind = "alias" if event.anchor else "tag"
                raise YamlError(kind, event.start_mark.index, event.start_mark.line + 1)
            if isinstance(event, yaml.ScalarEvent):
                yield event, event.tag or resolve(yaml.ScalarNode, event.value, event.implicit)
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent | yaml.DocumentStartEvent):
                yield event, getattr(event, "tag", None)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError("character", error.position, line, _name_character(error.character)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        start, line = (mark.index, mark.line + 1) if mark else (0, 1)
        raise YamlError("syntax", start, line, error.problem or "it cannot be read") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML hands "\\UFFFFFFFF" and long version numbers to chr() and int() as they are, and its parser
        # in C encodes what it gets.
        raise YamlError("escape", None, None, str(error)) from error


def _name_character(character: object) -> str:
    if not isinstance(character, int):
        return "a strange character"
    if 0xDC80 <= character <= 0xDCFF:
        return f"a byte that is not UTF-8, 0x{character - 0xDC00:X}"
    return f"the character U+{character:04X}"


def _build_node(event: Any, tag: str | None, events: _Events, depth_left: int) -> Node:
    start, line = event.start_mark.index, event.start_mark.line + 1
    kind = type(event).__name__
    if kind == "AliasEvent":
        raise YamlError("alias", start, line)
    tag = (tag or "").removeprefix("tag:yaml.org,2002:")
    if kind == "ScalarEvent":
        style, end = event.style or "", event.end_mark.index
        return ScalarNode(line, start, end, tag, event.value, style)
    if not depth_left:
        raise YamlError("depth", start, line)
    children: list[Node] = []
    for child, child_tag in events:
        if type(child).__name__ in ("SequenceEndEvent", "MappingEndEvent"):
            break
        children.append(_build_node(child, child_tag, events, depth_left - 1))
    end, is_flow = child.end_mark.index, bool(event.flow_style)
    if kind == "SequenceStartEvent":
        return ListNode(line, start, end, tag, tuple(children), is_flow)
    entries = tuple(zip(children[::2], children[1::2], strict=True))
    return MappingNode(line, start, end, tag, entries, is_flow)


# Plain values


@dataclass(frozen=True, slots=True)
class YamlFinding:
    start: int  # in the text
    what: str
    todo: str
    level: str = "error"


def to_value(node: Node | None, report: Callable[[YamlFinding], None] = lambda finding: None) -> object:
    """Text, numbers, dates, true, false, None, lists and dictionaries. Raises YamlError."""
    if node is None:
        return None
    if isinstance(node, ScalarNode):
        return _to_scalar(node, report)
    if isinstance(node, ListNode):
        _require_tag(node, "seq")
        return [to_value(item, report) for item in node.items]
    _require_tag(node, "map")
    values: dict[str, object] = {}
    for key, value in node.entries:
        if not isinstance(key, ScalarNode):
            raise YamlError("key", key.start, key.line)
        if key.text in values:
            message = f"`{_shorten(key.text)}` is there twice; the last one counts."
            report(YamlFinding(key.start, message, "Remove one."))
        values[key.text] = to_value(value, report)
    return values


def _to_scalar(node: ScalarNode, report: Callable[[YamlFinding], None]) -> object:
    _require_tag(node, *_SCALAR_PARSERS)
    try:
        return _SCALAR_PARSERS[node.tag](node.text)
    except ValueError:
        message = f"`{_shorten(node.text)}` is no {_TYPE_NAMES[node.tag]} and was taken as text."
        report(YamlFinding(node.start, message, "Correct it, or put it in quotes.", "warning"))
        return node.text


def _require_tag(node: Node, *allowed: str) -> None:
    if node.tag not in ("", "!", *allowed):
        raise YamlError("tag", node.start, node.line, _shorten(node.tag))


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


_SCALAR_PARSERS: dict[str, Callable[[str], object]] = {
    "": str,
    "!": str,
    "str": str,
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
