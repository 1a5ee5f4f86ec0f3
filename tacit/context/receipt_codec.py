"""Encodes and decodes receipts as lines of JSON.

What must stay true:
- decoding a line returns the receipt that was encoded, except for what was shortened;
- no line is longer than 256,000 bytes: longer receipts list less and say how much is missing;
- lines of a newer version are decoded without the unknown fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from itertools import islice
from operator import index
from typing import Any, NamedTuple

from tacit.context.model import Dropped, Receipt, Section
from tacit.diagnostics import Notice

_MAX_LINE_BYTES = 256_000
_MAX_MESSAGE_CHARS = 120  # characters
_MAX_MAPPING_ENTRIES = 50  # of a mapping
_MAX_NEAR_MISSES = 5  # dropped blocks in the description for a model
_MIN_TEXT_CHARS = 200  # long texts keep at least this many


# Writing


class _Limits(NamedTuple):
    """Limits for a receipt that is too long."""

    text: int = 1000  # characters of one text
    sections: int = 1000
    dropped: int = 100
    notices: int = 50

    def half(self) -> _Limits:
        return _Limits(
            max(self.text // 2, _MIN_TEXT_CHARS), self.sections // 2, self.dropped // 2, self.notices // 2
        )


def encode_line(receipt: Receipt) -> bytes:
    limits = _Limits()
    while True:
        line = _encode(_shorten(receipt, limits), limits.text)
        if len(line) <= _MAX_LINE_BYTES or limits == limits.half():
            return line
        limits = limits.half()


def _encode(receipt: Receipt, max_chars: int) -> bytes:
    text = json.dumps(_to_lean(receipt, max_chars), separators=(",", ":"), default=_to_number)
    return text.encode("ascii") + b"\n"


def as_dict(receipt: Receipt | Section | Dropped | Notice) -> dict[str, Any]:
    """All of its fields, for JSON."""
    return {name: _to_plain(getattr(receipt, name)) for name in _READERS[type(receipt)]}


def describe_receipt(receipt: Receipt) -> str:
    """A description for a model: what it got and from where, what nearly passed, and what went wrong."""
    used = [
        f"- {block.source}: {block.reason}"
        + ("" if block.score is None else f" (relevance {block.score:.2f})")
        for block in receipt.sections
    ]
    near = [f"- {block.source}: {block.reason}" for block in receipt.dropped[:_MAX_NEAR_MISSES]]
    lines = [f"{receipt.at[:16].replace('T', ' ')}, {receipt.session_type}: {receipt.message!r}"]
    lines += [f"Nothing was looked for: {receipt.skipped}."] if receipt.skipped else []
    lines += [f"Given, {receipt.tokens} tokens:", *used] if used else ["Nothing was given."]
    lines += ["Came near and was left out:", *near] if near else []
    return "\n".join([*lines, *(f"{block.code}: {block.text}" for block in receipt.notices)])


def _to_plain(value: Any) -> Any:
    if type(value) in _READERS:
        return as_dict(value)
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _to_lean(value: Any, max_chars: int) -> Any:
    """As `_to_plain`, without default values and with long texts cut."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= max_chars else value[: max_chars - 1] + "…"
    if kind is tuple:
        return [_to_lean(item, max_chars) for item in value]
    if kind in _DEFAULTS:
        return _lean_fields(value, _DEFAULTS[kind], max_chars)
    if isinstance(value, Mapping):
        return {_to_lean(key, max_chars): item for key, item in islice(value.items(), _MAX_MAPPING_ENTRIES)}
    return value


def _lean_fields(value: object, defaults: Mapping[str, Any], max_chars: int) -> dict[str, Any]:
    lean = {}
    for name, default in defaults.items():
        item = getattr(value, name)
        if item != default:
            lean[name] = item if type(item) in _SCALAR_TYPES else _to_lean(item, max_chars)
    return lean


def _to_number(value: Any) -> int | float | str:
    """Convert number types of other libraries; anything else becomes text."""
    for kind in (index, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return str(value)


def _shorten(receipt: Receipt, limits: _Limits) -> Receipt:
    dropped = _first_of_each_code(receipt.dropped, limits.dropped)
    unlisted = dict(receipt.unlisted)
    for code in [block.code for block in receipt.dropped]:
        unlisted[code] = unlisted.get(code, 0) + 1
    for code in [block.code for block in dropped]:
        unlisted[code] -= 1
    notices = receipt.notices[: limits.notices]
    if (hidden := len(receipt.sections) - limits.sections) > 0:
        notices += (Notice("cut", f"{hidden} more sections stand in the prompt than are listed here."),)
    return replace(
        receipt,
        message=_to_lean(receipt.message, _MAX_MESSAGE_CHARS),
        sections=receipt.sections[: limits.sections],
        dropped=dropped,
        notices=notices,
        unlisted={code: count for code, count in unlisted.items() if count},
    )


def _first_of_each_code(blocks: tuple[Dropped, ...], limit: int) -> tuple[Dropped, ...]:
    """The first blocks of every code, in their order: many blocks of one code must not hide the single one of
    another."""
    if len(blocks) <= limit:
        return blocks
    counts: dict[str, int] = {}
    ranked = []
    for position, block in enumerate(blocks):
        counts[block.code] = rank = counts.get(block.code, 0) + 1
        ranked.append((rank, position))
    return tuple(blocks[position] for position in sorted(position for _, position in sorted(ranked)[:limit]))


# Reading


def _require_type(*kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is not one of {kinds}")
        return value

    return check


def _read_mapping(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: {str(key): item(entry) for key, entry in value.items()}


def _read_pair(value: Any) -> tuple[int, int]:
    first, second = value
    return _read_int(first), _read_int(second)


def _read_all(kind: type) -> Callable[[Any], Any]:
    return lambda value: tuple(_read_model(kind, entry) for entry in value)


_read_int = _require_type(int)
_read_text = _require_type(str)
_read_float = _require_type(int, float)
# How to decode a field, by its type annotation in the model.
_BY_TYPE: Mapping[str, Callable[[Any], Any]] = {
    "str": _read_text,
    "Slot": _read_text,
    "int": _read_int,
    "bool": _require_type(bool),
    "int | None": _require_type(int, type(None)),
    "float | None": _require_type(int, float, type(None)),
    "Mapping[str, float]": _read_mapping(_read_float),
    "Mapping[str, int]": _read_mapping(_read_int),
    "Mapping[str, tuple[int, int]]": _read_mapping(_read_pair),
    "tuple[Section, ...]": _read_all(Section),
    "tuple[Dropped, ...]": _read_all(Dropped),
    "tuple[Notice, ...]": _read_all(Notice),
}
_SCALAR_TYPES = {int, float, bool, type(None)}
_MODEL_CLASSES = (Receipt, Section, Dropped, Notice)
_READERS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    kind: {field.name: _BY_TYPE[str(field.type)] for field in fields(kind)} for kind in _MODEL_CLASSES
}


def _default_of(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


_DEFAULTS: Mapping[type, Mapping[str, Any]] = {
    kind: {field.name: _default_of(field) for field in fields(kind)} for kind in _MODEL_CLASSES
}


def _read_model(kind: type, data: Any) -> Any:
    """Decode the known fields: a newer version may have written more."""
    readers = _READERS[kind]
    return kind(**{name: readers[name](value) for name, value in data.items() if name in readers})


def decode_line(line: bytes) -> Receipt | None:
    """None: the line is no receipt."""
    try:
        receipt: Receipt = _read_model(Receipt, json.loads(line))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return receipt
