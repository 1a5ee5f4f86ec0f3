"""Receipts as lines of JSON, both ways.

What must stay true:
- a line that is read back is the receipt that was written, as far as it was written;
- no line is longer than 256,000 bytes: then less is listed, and the receipt says how much is not;
- what a newer version wrote is read, without the fields that we do not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, replace
from itertools import islice
from operator import index
from typing import Any, NamedTuple

from tacit.model.context import Dropped, Notice, Receipt, Section

_LINE = 256_000
_MESSAGE = 120  # characters
_ENTRIES = 50  # of a mapping
_NEAR = 5  # dropped blocks that a model is told of
_SHORTEST = 200  # characters to which long texts are cut at most


# Writing


class _Most(NamedTuple):
    """What is kept of a receipt that is too long."""

    text: int = 1000  # characters of one text
    sections: int = 1000
    dropped: int = 100
    notices: int = 50

    def half(self) -> _Most:
        return _Most(max(self.text // 2, _SHORTEST), self.sections // 2, self.dropped // 2, self.notices // 2)


def line_of(receipt: Receipt) -> bytes:
    most = _Most()
    while True:
        line = _encoded(_cut(receipt, most), most.text)
        if len(line) <= _LINE or most == most.half():
            return line
        most = most.half()


def _encoded(receipt: Receipt, longest: int) -> bytes:
    text = json.dumps(_lean(receipt, longest), separators=(",", ":"), default=_number)
    return text.encode("ascii") + b"\n"


def as_dict(receipt: Receipt | Section | Dropped | Notice) -> dict[str, Any]:
    """All of its fields, for JSON."""
    return {name: _plain(getattr(receipt, name)) for name in _READERS[type(receipt)]}


def in_words(receipt: Receipt) -> str:
    """For a model that asks why: what it was given and from where, what came near, and what went wrong."""
    given = [f"- {one.source}: {one.reason}" + ("" if one.score is None else f" (relevance {one.score:.2f})")
             for one in receipt.sections]  # fmt: skip
    near = [f"- {one.source}: {one.reason}" for one in receipt.dropped[:_NEAR]]
    lines = [f"{receipt.at[:16].replace('T', ' ')}, {receipt.session_type}: {receipt.message!r}"]
    lines += [f"Nothing was looked for: {receipt.skipped}."] if receipt.skipped else []
    lines += [f"Given, {receipt.tokens} tokens:", *given] if given else ["Nothing was given."]
    lines += ["Came near and was left out:", *near] if near else []
    return "\n".join([*lines, *(f"{one.code}: {one.text}" for one in receipt.notices)])


def _plain(value: Any) -> Any:
    if type(value) in _READERS:
        return as_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _lean(value: Any, longest: int) -> Any:
    """As `_plain`, without what is as it is by default, and with long texts cut."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= longest else value[: longest - 1] + "…"
    if kind is tuple:
        return [_lean(item, longest) for item in value]
    if kind in _DEFAULTS:
        return _lean_fields(value, _DEFAULTS[kind], longest)
    if isinstance(value, Mapping):
        return {_lean(key, longest): item for key, item in islice(value.items(), _ENTRIES)}
    return value


def _lean_fields(value: object, defaults: Mapping[str, Any], longest: int) -> dict[str, Any]:
    lean = {}
    for name, default in defaults.items():
        item = getattr(value, name)
        if item != default:
            lean[name] = item if type(item) in _SMALL else _lean(item, longest)
    return lean


def _number(value: Any) -> int | float | str:
    """Numbers of other libraries are numbers; whatever else came here is at least told."""
    for kind in (index, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return str(value)


def _cut(receipt: Receipt, most: _Most) -> Receipt:
    dropped = _of_each_code(receipt.dropped, most.dropped)
    unlisted = dict(receipt.unlisted)
    for code in [block.code for block in receipt.dropped]:
        unlisted[code] = unlisted.get(code, 0) + 1
    for code in [block.code for block in dropped]:
        unlisted[code] -= 1
    notices = receipt.notices[: most.notices]
    if (hidden := len(receipt.sections) - most.sections) > 0:
        notices += (Notice("cut", f"{hidden} more sections stand in the prompt than are listed here."),)
    return replace(
        receipt,
        message=_lean(receipt.message, _MESSAGE),
        sections=receipt.sections[: most.sections],
        dropped=dropped,
        notices=notices,
        unlisted={code: count for code, count in unlisted.items() if count},
    )


def _of_each_code(blocks: tuple[Dropped, ...], most: int) -> tuple[Dropped, ...]:
    """The first ones of every code, in the order they came: many weak ones must not hide the one that was
    refused for another reason."""
    if len(blocks) <= most:
        return blocks
    met: dict[str, int] = {}
    ranked = []
    for at, block in enumerate(blocks):
        met[block.code] = rank = met.get(block.code, 0) + 1
        ranked.append((rank, at))
    return tuple(blocks[at] for at in sorted(at for _, at in sorted(ranked)[:most]))


# Reading


def _typed(*kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is not one of {kinds}")
        return value

    return check


def _mapping(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: {str(key): item(one) for key, one in value.items()}


def _pair(value: Any) -> tuple[int, int]:
    first, second = value
    return _int(first), _int(second)


def _all(kind: type) -> Callable[[Any], Any]:
    return lambda value: tuple(_read(kind, one) for one in value)


_int = _typed(int)
_text = _typed(str)
_float = _typed(int, float)
# How a field is read, by its type as it is written in the model.
_BY_TYPE: Mapping[str, Callable[[Any], Any]] = {
    "str": _text,
    "Slot": _text,
    "int": _int,
    "bool": _typed(bool),
    "int | None": _typed(int, type(None)),
    "float | None": _typed(int, float, type(None)),
    "Mapping[str, float]": _mapping(_float),
    "Mapping[str, int]": _mapping(_int),
    "Mapping[str, tuple[int, int]]": _mapping(_pair),
    "tuple[Section, ...]": _all(Section),
    "tuple[Dropped, ...]": _all(Dropped),
    "tuple[Notice, ...]": _all(Notice),
}
_SMALL = {int, float, bool, type(None)}
_KINDS = (Receipt, Section, Dropped, Notice)
_READERS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    kind: {field.name: _BY_TYPE[str(field.type)] for field in fields(kind)} for kind in _KINDS
}


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


_DEFAULTS: Mapping[type, Mapping[str, Any]] = {
    kind: {field.name: _default(field) for field in fields(kind)} for kind in _KINDS
}


def _read(kind: type, data: Any) -> Any:
    """The value with the fields that we know: a newer version may have written more."""
    readers = _READERS[kind]
    return kind(**{name: readers[name](value) for name, value in data.items() if name in readers})


def receipt_of(line: bytes) -> Receipt | None:
    """None for what is no receipt."""
    try:
        receipt: Receipt = _read(Receipt, json.loads(line))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return receipt
