"""The YAML of a frontmatter: its fields, what is wrong with it, and the position of each field."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date

from tacit.errors import StoreError
from tacit.text.yaml_reader import (
    FALSE_WORDS,
    MAX_DEPTH,
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
