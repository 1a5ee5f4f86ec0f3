"""Values as YAML, so that every reader gets back exactly what was meant.

Written by hand, since writing must need no YAML library at start-up. Strings are bare only where all YAML
readers agree that they are strings; everything else is quoted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timezone
from typing import Any

from tacit.errors import StoreError
from tacit.text.frontmatter import DEEPEST, FALSE, LONGEST_NUMBER, TRUE


def entry(key: str, value: object) -> str:
    """`key: value`, with all its lines and the last newline."""
    return "".join(f"{line}\n" for line in entry_lines(key, plain(value)))


def timestamp(value: datetime) -> str:
    if value.tzinfo is not None and value.utcoffset() == UTC.utcoffset(None):
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def plain(value: object, depth: int = 0) -> object:
    """The value that a reader gets back: lists for tuples, fixed offsets for time zones."""
    if depth > DEEPEST:
        raise StoreError(f"A field nested more than {DEEPEST} deep is not written. Flatten it.")
    if isinstance(value, Mapping):
        return {key_of(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    for kind, convert in _EXACT:
        if isinstance(value, kind):
            return convert(value)
    raise StoreError(
        f"A {type(value).__name__} cannot be a field. Use text, numbers, dates, lists or mappings."
    )


def key_of(key: object) -> str:
    if not isinstance(key, str):
        raise StoreError(f"{key!r} cannot be the name of a field. Use text.")
    return str.__str__(key)


def _exact_int(value: int) -> int:
    if abs(value) >= 10 ** (LONGEST_NUMBER - 1):
        raise StoreError(f"A number of more than {LONGEST_NUMBER} digits is not written. Write it as text.")
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


def entry_lines(key: str, value: object) -> list[str]:
    first, *below = value_lines(value)
    return [f"{_quoted(key)}:{first}", *below]


def value_lines(value: object) -> list[str]:
    """First what stands behind `key:`, then the lines below, indented."""
    if isinstance(value, dict) and value:
        return ["", *("  " + line for key, item in value.items() for line in entry_lines(key, item))]
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return ["", *("  " + line for item in value for line in _item_lines(item))]
    return [" " + flow(value)]


def _item_lines(item: object) -> list[str]:
    if isinstance(item, dict) and item:
        first, *below = [line for key, value in item.items() for line in entry_lines(key, value)]
        return [f"- {first}", *("  " + line for line in below)]
    first, *below = value_lines(item)
    return [f"-{first}", *below]


def flow(value: object) -> str:
    """A value on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime):
        return timestamp(value)
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
_WORDS = {*TRUE, *FALSE, "y", "n", "null", "none", "nan", "inf"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
