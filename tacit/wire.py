"""Conversion of values to JSON and back, for `--json`, the daemon and the client.

What must stay true:
- a value that is converted to JSON and back prints and compares the same;
- unknown fields are ignored and missing ones get their defaults, since a daemon may have another version. A
  field of the wrong type is a ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from tacit.context.model import Compiled, Quote, Receipt
from tacit.context.receipt_codec import as_dict, decode_line
from tacit.diagnostics import Notice
from tacit.search.model import Found, Hit, Scope, Why
from tacit.topics.model import Event

Json = dict[str, Any]
T = TypeVar("T")


# The fields of a hit in JSON, in this order, each with its default.
_HIT_FIELDS: Json = {
    "path": "", "lines": [], "snippet": "", "text": "", "score": 0.0, "category": "", "date": "",
    "speaker": "", "turn": 0, "title": "", "section": [], "audience": "owner", "archived": False,
}  # fmt: skip
_SECTION_FIELDS = ("label", "slot", "source", "tokens", "score", "reason", "date", "shortened")
_DROPPED_FIELDS = ("label", "slot", "code", "reason", "score")
_QUOTE_FIELDS: Json = {"text": "", "source": "", "day": "", "score": 0.0}
_ATTRIBUTES = {"date": "day"}  # of fields that have another name in JSON


# ---------------------------------------------------------------- to JSON


def compiled_form(compiled: Compiled, *, full: bool = False) -> Json:
    """`full`: with the whole receipt and the injected chunks, enough to build a Compiled from it."""
    receipt = compiled.receipt
    form: Json = {
        "text": compiled.text,
        "tokens": compiled.tokens,
        "budget": receipt.budget,
        "sections": [_pick(section, _SECTION_FIELDS) for section in compiled.sections],
        "dropped": [_pick(item, _DROPPED_FIELDS) for item in compiled.dropped],
        "receipt": receipt.id,
        "timings_ms": dict(receipt.timings_ms),
        "session_type": receipt.session_type,
        "skipped": receipt.skipped,
        "notices": [notice_form(notice.code, notice.text) for notice in receipt.notices],
    }
    if receipt.lane == "runtime":
        form["standing"] = compiled.standing
    if full:
        form["record"] = as_dict(receipt)
        form["given"] = [asdict(quote) for quote in compiled.given]
    return form


def empty_turn(code: str, reason: str) -> Json:
    """The answer to a turn that could not be compiled, and why."""
    return {
        "text": "",
        "tokens": 0,
        "budget": 0,
        "sections": [],
        "dropped": [],
        "receipt": "",
        "timings_ms": {},
        "session_type": "",
        "skipped": code,
        "notices": [notice_form(code, f"{reason} The turn goes on without.")],
    }


def notice_form(code: str, text: str) -> Json:
    return {"code": code, "text": text}


def _pick(value: object, fields: Iterable[str]) -> Json:
    values = {name: getattr(value, _ATTRIBUTES.get(name, name)) for name in fields}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in values.items()}


def found_form(found: Found) -> Json:
    trace = {**found.trace}
    scope = trace.get("scope")
    if isinstance(scope, Scope):
        trace["scope"] = {key: str(value) for key, value in asdict(scope).items() if value}
    return {
        "hits": [hit_form(hit) for hit in found.hits],
        "channels": list(found.channels),
        "degraded": list(found.degraded),
        "trace": trace,
    }


def hit_form(hit: Hit) -> Json:
    why = {key: value for key, value in asdict(hit.why).items() if value is not None}
    return {**_pick(hit, _HIT_FIELDS), "why": why}


def scope_form(scope: Scope) -> Json:
    """Only the fields that differ from their defaults."""
    default = Scope()
    values = {name: getattr(scope, name) for name in Scope.__dataclass_fields__}
    return {
        name: list(value) if isinstance(value, tuple) else str(value) if name in ("since", "until") else value
        for name, value in values.items()
        if value != getattr(default, name)
    }


def event_form(event: Event) -> Json:
    return {"type": event.type, "source": event.source, "event": event.event, "topic": event.topic}


# ---------------------------------------------------------------- from JSON


def compiled_from(form: Mapping[str, Any]) -> Compiled:
    """The Compiled that a full form was made from; otherwise as much as the form has."""
    _require(form, "text")
    record = form.get("record")
    receipt = _minimal_receipt(form) if record is None else receipt_from(record)
    return Compiled(
        _field(form, "text", ""),
        _field(form, "tokens", 0),
        receipt.sections,
        receipt.dropped,
        receipt,
        _field(form, "standing", ""),
        tuple(
            Quote(**{name: _field(quote, name, default) for name, default in _QUOTE_FIELDS.items()})
            for quote in _object_list(form, "given")
        ),
    )


def receipt_from(record: object) -> Receipt:
    receipt = decode_line(json.dumps(record).encode("ascii"))
    if receipt is None:
        raise ValueError("there is no receipt in the answer")
    return receipt


def _minimal_receipt(form: Mapping[str, Any]) -> Receipt:
    """The receipt of a turn that failed, with the little that is known."""
    names = ("at", "session_key", "session_id", "session_type", "agent", "skipped")
    fields: Json = {name: _field(form, name, "") for name in names}
    return Receipt(
        id=_field(form, "receipt", ""),
        message_hash="",
        message="",
        budget=_field(form, "budget", 0),
        tokens=_field(form, "tokens", 0),
        characters=len(_field(form, "text", "")) + len(_field(form, "standing", "")),
        sections=(),
        dropped=(),
        notices=tuple(notices_from(form)),
        lane=_field(form, "lane", "prompt"),
        **fields,
    )


def notices_from(form: Mapping[str, Any]) -> Iterator[Notice]:
    for notice in _object_list(form, "notices"):
        yield Notice(_field(notice, "code", ""), _field(notice, "text", ""))


def found_from(form: Mapping[str, Any]) -> Found:
    _require(form, "hits")
    return Found(
        tuple(hit_from(hit) for hit in _object_list(form, "hits")),
        _text_tuple(form, "channels"),
        _text_tuple(form, "degraded"),
        dict(_field(form, "trace", {})),
    )


def hit_from(form: Mapping[str, Any]) -> Hit:
    fields: Json = {
        _ATTRIBUTES.get(name, name): _field(form, name, default) or default
        for name, default in _HIT_FIELDS.items()
    }
    lines = fields["lines"]
    if len(lines) != 2 or not all(isinstance(line, int) for line in lines):
        raise ValueError("'lines' must be two line numbers")
    fields |= {"lines": tuple(lines), "section": _text_tuple(form, "section")}
    return Hit(**fields, why=_why_from(_field(form, "why", {})))


def _why_from(form: Mapping[str, Any]) -> Why:
    fields = {name: value for name, value in form.items() if name in Why.__dataclass_fields__}
    fields |= {"score": _field(form, "score", 0.0), "words": _text_tuple(form, "words")}
    boosts: list[Any] = _field(form, "boosts", [])
    try:
        fields["boosts"] = tuple((str(name), float(size)) for name, size in boosts)
    except TypeError:
        raise ValueError("'boosts' must be a list of names and sizes") from None
    return Why(**fields)


def _require(form: Mapping[str, Any], name: str) -> None:
    if name not in form:
        raise ValueError(f"it has no {name!r}")


def _field(form: Mapping[str, Any], name: str, default: T) -> T:
    """A field, which must have the type of its default."""
    value = form.get(name)
    if value is None:
        return default
    if type(value) is int and type(default) is float:
        value = float(value)
    if type(value) is not type(default):
        raise ValueError(f"{name!r} is {value!r:.40}, not a value like {default!r}")
    return value


def _text_tuple(form: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, _field(form, name, [])))


def _object_list(form: Mapping[str, Any], name: str) -> list[Json]:
    objects: list[Any] = _field(form, name, [])
    if not all(isinstance(item, dict) for item in objects):
        raise ValueError(f"{name!r} must be a list of objects")
    return objects
