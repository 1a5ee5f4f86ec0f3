"""The YAML of a frontmatter, read and written: its fields, their positions, and what is wrong with it.

Values are written so that every reader reads them in the same way, by hand, so that writing needs no YAML
library at start-up. Strings are bare only if all YAML readers agree that they are strings; everything else is
quoted.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timezone
from typing import Any

from tacit.errors import StoreError
from tacit.text.yaml_reader import (
    FALSE_WORDS,
    MAX_DEPTH,
    MAX_DIGITS,
    TRUE_WORDS,
    MappingNode,
    Node,
    ScalarNode,
    YamlError,
    YamlFinding,
    read_tree,
    to_value,
)

MAX_CHARS = 256 * 1024  # YAML is slow to read, at worst half a second for this much
_NOT_FIELDS = ("The frontmatter is not a list of `key: value` lines.", "Write it as one.")


def parse_names(value: object) -> tuple[str, ...]:
    """A name or a list of names, as people write them."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(dict.fromkeys(name for item in values if (name := str(item).strip())))


def read(yaml_text: str) -> tuple[dict[str, object], list[YamlFinding]]:
    """The fields, and what is wrong with them. A text that cannot be read has no fields."""
    simple = _read_simple(yaml_text)
    return (simple, []) if simple is not None else _read_fields(yaml_text)


def _read_fields(yaml_text: str) -> tuple[dict[str, object], list[YamlFinding]]:
    if len(yaml_text) > MAX_CHARS:
        message = f"The frontmatter has more than {MAX_CHARS // 1024} KB and was not read."
        return {}, [YamlFinding(0, message, "Move the text below the closing `---`.")]
    findings: list[YamlFinding] = []
    try:
        root = read_tree(yaml_text)
        if root is None:
            return {}, []
        if not isinstance(root, MappingNode):
            return {}, [YamlFinding(root.start, *_NOT_FIELDS)]
        fields = to_value(root, findings.append)
    except YamlError as error:
        return {}, [_describe_error(error)]
    assert isinstance(fields, dict)
    return fields, findings


def _describe_error(error: YamlError) -> YamlFinding:
    what, todo = {
        "alias": ("Aliases (`*name`) are not read.", "Write the value out."),
        "tag": (f"The tag `{error.detail}` is not read.", "Remove the tag."),
        "depth": (f"The frontmatter is nested more than {MAX_DEPTH} deep.", "Flatten it."),
        "documents": ("A second YAML document starts in the frontmatter.", "Remove it."),
        "key": ("A key is more than one word.", "Write it as text, in quotes."),
        "character": (f"The frontmatter is not valid YAML: it has {error.detail}.", "Fix this line."),
    }.get(error.kind) or (f"The frontmatter is not valid YAML: {error.detail}.", "Fix this line.")
    return YamlFinding(error.start or 0, what, todo)


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


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """The position of one top-level field in the YAML."""

    key: str
    start: int  # of its first line
    key_end: int
    end: int  # of its value, or of the comment behind it
    stop: int  # of its last line, with the line ending
    comment: str  # with the blanks in front


def find_entries(yaml_text: str) -> tuple[str, list[FieldEntry]]:
    """The top-level fields, and the blanks in front of each. Raises StoreError for what cannot be edited."""
    root = read_tree(yaml_text)
    if not isinstance(root, MappingNode):
        return "", []
    if root.is_flow:
        raise StoreError(
            "This frontmatter is one `{…}`, which is not edited in place. Write one `key: value` per line."
        )
    starts = [0, *(match.end() for match in _BREAK.finditer(yaml_text))]
    entries = []
    indent = ""
    for key, value in root.entries:
        start = starts[bisect_right(starts, key.start) - 1]
        indent = yaml_text[start : key.start]
        assert isinstance(key, ScalarNode)
        entries.append(_make_entry(yaml_text, start, key, value))
    return indent, entries


def _make_entry(text: str, start: int, key: ScalarNode, value: Node) -> FieldEntry:
    if text[start : key.start].strip(" "):
        raise StoreError(f"`{key.text}` is not at the start of its line. Write it as `{key.text}: value`.")
    end = _find_end(text, value)
    newline = _BREAK.search(text, end)
    line_end, stop = newline.span() if newline else (len(text), len(text))
    comment = _find_comment(text, key, value) or text[end:line_end]
    return FieldEntry(
        key.text, start, key.end, line_end, stop, f" {comment}" if comment[:1] == "#" else comment
    )


def _find_end(text: str, node: Node) -> int:
    """Where the text of a node ends. A list or group without brackets ends with its last part."""
    if isinstance(node, ScalarNode):
        if node.style in ("|", ">"):
            return node.start + len(_trim_block(text[node.start : node.end]))
        return node.end
    if node.is_flow:
        return node.end
    parts = (
        [part for entry in node.entries for part in entry] if isinstance(node, MappingNode) else node.items
    )
    return max((_find_end(text, part) for part in parts), default=0)


def _trim_block(block: str) -> str:
    """A `|` or `>` block without its line ending; blank lines below belong to it only with `+`."""
    header = _BREAK.split(block, 1)[0]
    return re.sub(rf"(?:{_BREAK.pattern})\Z", "", block) if "+" in header else block.rstrip(" \t" + _BREAKS)


def _find_comment(text: str, key: ScalarNode, value: Node) -> str:
    """The comment on the line of the key when the value goes on below it."""
    match = _KEY_COMMENT.match(text, key.end)
    if not match and isinstance(value, ScalarNode) and value.style in ("|", ">"):
        match = _BLOCK_COMMENT.match(text, value.start)
    return match[1] if match else ""


_BREAKS = "\r\n\x85\u2028\u2029"  # what ends a line in YAML
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")
_KEY_COMMENT = re.compile(f"[ \\t]*:([ \\t]+#[^{_BREAKS}]*)")
_BLOCK_COMMENT = re.compile(f"[^ \\t{_BREAKS}]+([ \\t]+#[^{_BREAKS}]*)")


def format_entry(key: str, value: object) -> str:
    """`key: value`, with all its lines and the last newline."""
    return "".join(f"{line}\n" for line in format_entry_lines(key, to_plain(value)))


def format_timestamp(value: datetime) -> str:
    if value.tzinfo is not None and value.utcoffset() == UTC.utcoffset(None):
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def to_plain(value: object, depth: int = 0) -> object:
    """The value as a reader gets it back: lists for tuples, fixed offsets for time zones."""
    if depth > MAX_DEPTH:
        raise StoreError(f"A field nested more than {MAX_DEPTH} deep is not written. Flatten it.")
    if isinstance(value, Mapping):
        return {require_key(key): to_plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, depth + 1) for item in value]
    for kind, convert in _PLAIN_TYPES:
        if isinstance(value, kind):
            return convert(value)
    raise StoreError(
        f"A {type(value).__name__} cannot be a field. Use text, numbers, dates, lists or mappings."
    )


def require_key(key: object) -> str:
    if not isinstance(key, str):
        raise StoreError(f"{key!r} cannot be the name of a field. Use text.")
    return str.__str__(key)


def _check_int(value: int) -> int:
    if abs(value) >= 10 ** (MAX_DIGITS - 1):
        raise StoreError(f"A number of more than {MAX_DIGITS} digits is not written. Write it as text.")
    return int(value)


def _fix_offset(value: datetime) -> datetime:
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset)
    return value.replace(tzinfo=zone, fold=0)


# Subclasses, such as enums, are written as what they extend. The order matters: True is an int and a
# datetime is a date.
_PLAIN_TYPES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (type(None), lambda value: value),
    (bool, bool),
    (str, str.__str__),
    (int, _check_int),
    (float, float),
    (datetime, _fix_offset),
    (date, lambda value: value),
)


def format_entry_lines(key: str, value: object) -> list[str]:
    first, *below = format_value_lines(value)
    return [f"{_quote(key)}:{first}", *below]


def format_value_lines(value: object) -> list[str]:
    """First the text after `key:`, then the lines below, indented."""
    if isinstance(value, dict) and value:
        return ["", *("  " + line for key, item in value.items() for line in format_entry_lines(key, item))]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return ["", *("  " + line for item in value for line in _item_lines(item))]
    return [" " + format_flow(value)]


def _item_lines(item: object) -> list[str]:
    if isinstance(item, dict) and item:
        first, *below = [line for key, value in item.items() for line in format_entry_lines(key, value)]
        return [f"- {first}", *("  " + line for line in below)]
    first, *below = format_value_lines(item)
    return [f"-{first}", *below]


def format_flow(value: object) -> str:
    """A value on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(format_flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value)  # null, true, 1 and {} are the same in YAML


def _format_float(value: float) -> str:
    if not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[repr(value)]
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")  # YAML takes 1e+20 for text


def _quote(text: str) -> str:
    """Bare if every YAML reader agrees that it is text, else in double quotes with escapes."""
    if _BARE.fullmatch(text) and text.lower() not in _RESERVED_WORDS:
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04X}", json.dumps(text, ensure_ascii=False))


_BARE = re.compile(r"[^\W\d_](?:[\w ./()+@&'-]*[\w./()+@'-])?")
_RESERVED_WORDS = {*TRUE_WORDS, *FALSE_WORDS, "y", "n", "null", "none", "nan", "inf"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
