"""JSON5 → values: JSON with comments, trailing commas, single quotes and names without quotes.

Hosts let people write their settings so. What is wrong is a ValueError that names the line.
"""

from __future__ import annotations

import json
import re
from typing import Any

_DEEPEST = 100
_BLANK = re.compile(r"(?:[\s\ufeff]|//[^\r\n\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])"
)
_TEXT = re.compile(r"'(?:[^'\\\r\n]|\\.)*'|\"(?:[^\"\\\r\n]|\\.)*\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|\r\n|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_WORDS = {"true": True, "false": False, "null": None}


def parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _Reader(text).whole()


def is_plain(text: str) -> bool:
    """Whether it is JSON, without anything that only JSON5 has."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Any:
        value = self._value()
        if self._next():
            raise self._wrong("something stands behind the end")
        return value

    def _value(self) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong("it is nested too deeply")
        first = self._next()
        if first in ("{", "["):
            self._at += 1
            value = self._table() if first == "{" else self._list()
        else:
            value = self._scalar()
        self._depth -= 1
        return value

    def _table(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._next() != "}":
            name = self._name()
            self._expect(":")
            found[name] = self._value()
            self._between("}")
        self._at += 1
        return found

    def _list(self) -> list[Any]:
        found = []
        while self._next() != "]":
            found.append(self._value())
            self._between("]")
        self._at += 1
        return found

    def _between(self, end: str) -> None:
        if self._next() != end:
            self._expect(",")

    def _name(self) -> str:
        if (quoted := self._match(_TEXT)) is not None:
            return _unquoted(quoted)
        name = self._match(_NAME)
        if name is None:
            raise self._wrong("a name is missing")
        return name

    def _scalar(self) -> Any:
        if (quoted := self._match(_TEXT)) is not None:
            return _unquoted(quoted)
        if (number := self._match(_NUMBER)) is not None:
            return _number(number)
        word = self._match(_NAME)
        if word not in _WORDS:
            raise self._wrong("a value is missing" if word is None else f"{word[:40]!r} is no value")
        return _WORDS[word]

    def _next(self) -> str:
        """The first character that is neither blank nor in a comment; empty at the end."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _expect(self, wanted: str) -> None:
        if self._next() != wanted:
            raise self._wrong(f"{wanted!r} is missing")
        self._at += 1

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        self._next()
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _wrong(self, what: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"line {line}: {what}")


def _unquoted(text: str) -> str:
    plain = _ESCAPE.sub(_unescaped, text[1:-1])
    # Two escapes may be the halves of one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "xu" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape in ("\n", "\r", "\r\n", "\u2028", "\u2029"):
        return ""  # a line that goes on
    return _ESCAPES.get(escape, escape)


def _number(text: str) -> int | float:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits.isdecimal():
        return sign * int(digits)
    return sign * float(digits)
