"""Values as YAML, written by hand so that writing needs no YAML library at start-up.

Strings are plain only where every YAML reader agrees that they are strings; everything else is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

from tacit.text import escape

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@-]*(?: [A-Za-z0-9_./+@(][A-Za-z0-9_./+@(),-]*)*", re.ASCII)
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def entry(key: str, value: object) -> str:
    """`key: value` with its final newline; a list of mappings goes below the key, item by item."""
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return f"{key}:\n" + "".join(_item(item) for item in value)
    return f"{key}: {flow(value)}\n"


def _item(item: Mapping[str, object]) -> str:
    first, *rest = [f"{key}: {flow(value)}\n" for key, value in item.items()]
    return f"  - {first}" + "".join(f"    {line}" for line in rest)


def flow(value: object) -> str:
    """One value on one line."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return _string(str(value))


def timestamp(value: datetime) -> str:
    if value.tzinfo is UTC:
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def _string(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return json.dumps(escape.characters(text), ensure_ascii=False)
