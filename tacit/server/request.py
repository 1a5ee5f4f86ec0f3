"""Parsing of requests: the address, and the JSON object in the body. UsageError says what is wrong without
quoting the request."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl, unquote

from tacit.errors import UsageError

_MAX_DEPTH = 64
_MAX_DIGITS = 19
_MAX_FIELDS = 50


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse a body. Half a surrogate pair is accepted: hosts that cut a text in the middle of a character
    send it, and a turn must not fail because of that."""
    if not data.strip():
        raise UsageError('The body is empty. Send a JSON object, at least "{}".')
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError as error:
        raise UsageError(f"The body is not UTF-8 (at byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise UsageError("The body must be a JSON object, such as {}.")
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH:
        _require_shallow(value)
    return value


def _refuse_constant(_name: str) -> float:
    raise UsageError("NaN and Infinity are not JSON. Leave such a number out.")


def _parse_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise UsageError("There is a number in the body that is too large. Send a smaller one.")
    return number


def _parse_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise UsageError("There is a number in the body that is too large. Send a smaller one, or text.")
    return int(text)


def _require_shallow(value: object) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)  # type: ignore[attr-defined]
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> UsageError:
    return UsageError(f"The body is nested too deeply: more than {_MAX_DEPTH} levels.")


def split_target(target: str) -> tuple[str, str]:
    """The path and the query of a request target, still encoded."""
    if not target.startswith("/"):
        raise UsageError("Ask for a path that begins with a slash.")
    path, _, query = target.partition("#")[0].partition("?")
    return path, query


def parse_query(query: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        raise UsageError("What stands after the ? cannot be read. Send name=value, in UTF-8.") from None
    return dict(pairs)


def decode_segment(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("The address is not UTF-8.") from None
