"""Notes: markdown with optional frontmatter, read without losing a byte and changed only where asked.

    bytes ──decode──► text ──parse──► Note(head, body, fields, problems)
    bytes ◄──encode── text ◄───────── set_fields

Reading never fails. A head with invalid YAML gives a problem with its line, no fields, and the body as it
is. Changing a field replaces the text of that one entry; comments, order, quoting and line endings of
everything else stay as they were written.

What YAML means here is in text/yaml_reader.py; frontmatter.py reads and writes the fields.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.errors import StoreError
from tacit.markdown import frontmatter
from tacit.markdown.frontmatter import (
    FieldEntry,
    format_entry_lines,
    format_value_lines,
    require_key,
    to_plain,
)
from tacit.text.lines import scan
from tacit.text.yaml_reader import BOM, YamlFinding


@dataclass(frozen=True, slots=True)
class Note:
    """`head` and `body` are the file as written; `fields` is what the head says.

    `head` runs from an optional byte order mark through both fences, line endings included, and is
    empty when the file has none. Two notes are equal when their text is: `fields` follows from it.
    """

    head: str
    body: str
    fields: Mapping[str, object] = field(compare=False)
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        return self.head + self.body


class Remembered(NamedTuple):
    """A line that tacit was asked to remember, and the result."""

    path: str  # empty: it waits as a proposal
    line: str
    is_new: bool
    said: str  # for the caller


_OPENING = re.compile(r"\ufeff?---[ \t]*(\r\n|\n|\r)")
_CLOSING = re.compile(r"(?<=[\r\n])---[ \t]*(?:\r\n|\n|\r|\Z)")
_NEWLINE = re.compile(r"\r\n|\n|\r")


# Bytes and text


def decode(data: bytes) -> str:
    """Any bytes as text. What is not UTF-8 becomes lone surrogates, which `encode` turns back."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Any text as bytes; `encode(decode(data)) == data` always.

    Surrogates come in with JSON. A split pair is joined; a lone half is neither a character nor a byte and
    becomes U+FFFD, so that the file stays UTF-8.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        paired = _SURROGATE_PAIR.sub(lambda pair: _join_pair(pair[0]), text)
        return _LONE_SURROGATE.sub("\ufffd", paired).encode("utf-8", "surrogateescape")


_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # the others stand for bytes


def _join_pair(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


# Reading


def split(text: str) -> tuple[str, str]:
    """Head and body. The first line `---` after the opening one closes the head; no later one counts."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    end = closing.end() if closing else 0
    return text[:end], text[end:]


def parse(text: str, where: str = "note") -> Note:
    """Read a note. Any text is one. `where` is the name shown in its problems."""
    head, body = split(text)
    if not head:
        unclosed = (Problem(where, *_UNCLOSED, line=1),) if _OPENING.match(text) else ()
        return Note(head, body, MappingProxyType({}), unclosed)
    fields, findings = frontmatter.read(_yaml_in(head))
    return Note(head, body, MappingProxyType(fields), tuple(_make_problems(head, findings, where)))


_UNCLOSED = (
    "The frontmatter that `---` opens is never closed.",
    "Add a line `---` below it, or an empty first line if it is meant as a rule.",
)


def find_title(note: Note) -> str | None:
    """The first level-1 heading, or None."""
    lines = scan(note.body.removeprefix(BOM))
    return next((line.title for line in lines if line.level == 1), None)


def _yaml_span(head: str) -> tuple[int, int]:
    """The span of a head's YAML, without its fences."""
    opening = _OPENING.match(head)
    closing = _CLOSING.search(head, opening.end()) if opening else None
    if opening is None or closing is None:
        raise AssertionError("split() makes no such head")
    return opening.end(), closing.start()


def _yaml_in(head: str) -> str:
    start, end = _yaml_span(head)
    return head[start:end]


def _make_problems(head: str, findings: list[YamlFinding], where: str) -> Iterator[Problem]:
    if findings:
        first, _ = _yaml_span(head)
        line_ends = [newline.end() for newline in _NEWLINE.finditer(head)]
        for finding in findings:
            line = 1 + bisect_right(line_ends, first + finding.start)
            yield Problem(where, finding.what, finding.todo, line, finding.level)


# Changing


def set_fields(note: Note, changes: Mapping[str, object | None]) -> Note:
    """Set fields, or remove them with None. Only the text of these fields changes.

    A field that already has the value keeps its spelling; a new one is added at the end.
    Raises StoreError when the head is broken or cannot be changed safely.
    """
    changed_fields = _find_changes(note, changes)
    if not changed_fields:
        return note
    _require_sound(note)
    with_head = note if note.head else _with_empty_head(note)
    head = _splice_fields(with_head.head, changed_fields)
    changed = parse(head + with_head.body, _name_of(note))
    expected = {**note.fields, **changed_fields}
    expected = {
        key: value for key, value in expected.items() if value is not None or key not in changed_fields
    }
    # By repr, since NaN equals nothing and 1 equals True.
    if changed.head != head or repr(dict(changed.fields)) != repr(expected):
        raise StoreError(
            f"The frontmatter of {_name_of(note)} cannot be changed without touching other fields, so it was "
            f"left alone. Set {', '.join(map(repr, changed_fields))} by hand."
        )
    return changed


def _find_changes(note: Note, changes: Mapping[str, object | None]) -> dict[str, object]:
    plain_changes = {require_key(key): to_plain(value) for key, value in changes.items()}
    return {
        key: value
        for key, value in plain_changes.items()
        if (key in note.fields if value is None else repr(note.fields.get(key)) != repr(value))
    }


def _require_sound(note: Note) -> None:
    for problem in note.problems:
        if problem.level == "error":
            raise StoreError(f"The fields cannot be set as the file is. {problem}")


def _name_of(note: Note) -> str:
    return note.problems[0].where if note.problems else "note"


def _newline_of(text: str) -> str:
    match = _NEWLINE.search(text)
    return match[0] if match else "\n"


def _with_empty_head(note: Note) -> Note:
    eol = _newline_of(note.body)
    mark = BOM if note.body.startswith(BOM) else ""
    return parse(f"{mark}---{eol}---{eol}{note.body.removeprefix(BOM)}")


def _splice_fields(head: str, changed_fields: Mapping[str, object]) -> str:
    start, end = _yaml_span(head)
    text, eol = head[start:end], _newline_of(head)
    indent, entries = frontmatter.find_entries(text)
    present = {entry.key for entry in entries}
    added = [key for key in changed_fields if key not in present]
    text += "".join(
        indent + line + eol for key in added for line in format_entry_lines(key, changed_fields[key])
    )
    for entry in reversed(entries):
        if entry.key in changed_fields:
            text = _replace_entry(text, entry, changed_fields[entry.key], indent, eol)
    return head[:start] + text + head[end:]


def _replace_entry(text: str, entry: FieldEntry, value: object, indent: str, eol: str) -> str:
    if value is None:
        return text[: entry.start] + text[entry.stop :]
    first, *below = format_value_lines(value)
    lines = "".join(eol + indent + line for line in below)
    return text[: entry.key_end] + ":" + first + entry.comment + lines + text[entry.end :]
