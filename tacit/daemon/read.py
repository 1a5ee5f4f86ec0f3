"""What a request asks: its address, and the JSON object in its body. UsageError says what is wrong with it,
without a word of what it says."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl, unquote

from tacit.errors import UsageError

_DEEPEST = 64
_DIGITS = 19
_FIELDS = 50


def json_object(data: bytes) -> dict[str, Any]:
    """Half a surrogate pair is let through: hosts that cut a text in the middle of a character send it, and
    a turn does not fail for that."""
    if not data.strip():
        raise UsageError('The body is empty. Send a JSON object, at least "{}".')
    try:
        value = json.loads(
            data.decode("utf-8-sig"), parse_constant=_constant, parse_float=_number, parse_int=_whole
        )
    except RecursionError:
        raise _deep() from None
    except UnicodeDecodeError as error:
        raise UsageError(f"The body is not UTF-8 (at byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise UsageError("The body must be a JSON object, such as {}.")
    if data.count(b"[") + data.count(b"{") > _DEEPEST:
        _require_shallow(value)
    return value


def _constant(_name: str) -> float:
    raise UsageError("NaN and Infinity are not JSON. Leave such a number out.")


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise UsageError("There is a number in the body that is too large. Send a smaller one.")
    return number


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise UsageError("There is a number in the body that is too large. Send a smaller one, or text.")
    return int(text)


def _require_shallow(value: object) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)  # type: ignore[attr-defined]
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise _deep()


def _deep() -> UsageError:
    return UsageError(f"The body is nested too deeply: more than {_DEEPEST} levels.")


def address(target: str) -> tuple[str, str]:
    """The path and the query of a target, both as they were sent."""
    if not target.startswith("/"):
        raise UsageError("Ask for a path that begins with a slash.")
    path, _, query = target.partition("#")[0].partition("?")
    return path, query


def fields(query: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        raise UsageError("What stands after the ? cannot be read. Send name=value, in UTF-8.") from None
    return dict(pairs)


def segment(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("The address is not UTF-8.") from None
