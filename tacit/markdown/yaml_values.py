"""Writes values as YAML that every reader reads in the same way.

Written by hand, so that writing needs no YAML library at start-up. Strings are bare only if all YAML readers
agree that they are strings; everything else is quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timezone
from typing import Any

from tacit.errors import StoreError
from tacit.text.yaml_reader import FALSE_WORDS, MAX_DEPTH, MAX_DIGITS, TRUE_WORDS


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
