"""Parses JSON5: JSON with comments, trailing commas, single quotes and unquoted names.

Hosts let people write their settings like this. A mistake raises a ValueError that names the line.
"""

from __future__ import annotations

import json
import re
from typing import Any

_MAX_DEPTH = 100
_BLANK = re.compile(r"(?:[\s\ufeff]|//[^\r\n\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])"
)
_TEXT = re.compile(r"'(?:[^'\\\r\n]|\\.)*'|\"(?:[^\"\\\r\n]|\\.)*\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|\r\n|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_LITERALS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _Json5Reader(text).read_document()


def is_plain(text: str) -> bool:
    """Whether it is plain JSON, without anything that only JSON5 allows."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class _Json5Reader:
    def __init__(self, text: str) -> None:
        self._text, self._offset, self._depth = text, 0, 0

    def read_document(self) -> Any:
        value = self._read_value()
        if self._peek():
            raise self._error("something stands behind the end")
        return value

    def _read_value(self) -> Any:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("it is nested too deeply")
        first = self._peek()
        if first in ("{", "["):
            self._offset += 1
            value = self._read_table() if first == "{" else self._read_list()
        else:
            value = self._read_scalar()
        self._depth -= 1
        return value

    def _read_table(self) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while self._peek() != "}":
            name = self._read_name()
            self._expect(":")
            table[name] = self._read_value()
            self._read_separator("}")
        self._offset += 1
        return table

    def _read_list(self) -> list[Any]:
        values = []
        while self._peek() != "]":
            values.append(self._read_value())
            self._read_separator("]")
        self._offset += 1
        return values

    def _read_separator(self, end: str) -> None:
        if self._peek() != end:
            self._expect(",")

    def _read_name(self) -> str:
        if (quoted := self._match(_TEXT)) is not None:
            return _unquote(quoted)
        name = self._match(_NAME)
        if name is None:
            raise self._error("a name is missing")
        return name

    def _read_scalar(self) -> Any:
        if (quoted := self._match(_TEXT)) is not None:
            return _unquote(quoted)
        if (number := self._match(_NUMBER)) is not None:
            return _parse_number(number)
        word = self._match(_NAME)
        if word not in _LITERALS:
            raise self._error("a value is missing" if word is None else f"{word[:40]!r} is no value")
        return _LITERALS[word]

    def _peek(self) -> str:
        """The next character that is not blank or in a comment; empty at the end."""
        blank = _BLANK.match(self._text, self._offset)
        self._offset = blank.end() if blank else self._offset
        return self._text[self._offset : self._offset + 1]

    def _expect(self, expected: str) -> None:
        if self._peek() != expected:
            raise self._error(f"{expected!r} is missing")
        self._offset += 1

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        self._peek()
        match = pattern.match(self._text, self._offset)
        if match is None:
            return None
        self._offset = match.end()
        return match[0]

    def _error(self, problem: str) -> ValueError:
        line = self._text.count("\n", 0, self._offset) + 1
        return ValueError(f"line {line}: {problem}")


def _unquote(text: str) -> str:
    plain = _ESCAPE.sub(_unescape, text[1:-1])
    # Two escapes may be a surrogate pair.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "xu" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape in ("\n", "\r", "\r\n", "\u2028", "\u2029"):
        return ""  # a continued line
    return _ESCAPES.get(escape, escape)


def _parse_number(text: str) -> int | float:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits.isdecimal():
        return sign * int(digits)
    return sign * float(digits)
