"""Conversion of values to JSON and back, for `--json`, the daemon and the client.

What must stay true:
- a value that is converted to JSON and back prints and compares the same;
- unknown fields are ignored and missing ones get their defaults, since a daemon may have another version. A
  field of the wrong type is a ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from tacit.context.model import Compiled, Notice, Quote, Receipt, Section
from tacit.context.receipt_codec import as_dict, decode_line
from tacit.search.model import Found, Hit, Scope, Why
from tacit.topics.model import Event

Json = dict[str, Any]
T = TypeVar("T")


# ---------------------------------------------------------------- to JSON


def compiled_form(compiled: Compiled, *, full: bool = False) -> Json:
    """`full`: with the whole receipt and the injected chunks, enough to build a Compiled from it."""
    receipt = compiled.receipt
    form: Json = {
        "text": compiled.text,
        "tokens": compiled.tokens,
        "budget": receipt.budget,
        "sections": [_section_form(section) for section in compiled.sections],
        "dropped": [
            {
                "label": item.label,
                "slot": item.slot,
                "code": item.code,
                "reason": item.reason,
                "score": item.score,
            }
            for item in compiled.dropped
        ],
        "receipt": receipt.id,
        "timings_ms": dict(receipt.timings_ms),
        "session_type": receipt.session_type,
        "skipped": receipt.skipped,
        "notices": [{"code": notice.code, "text": notice.text} for notice in receipt.notices],
    }
    if receipt.lane == "runtime":
        form["standing"] = compiled.standing
    if full:
        form["record"] = as_dict(receipt)
        form["given"] = [asdict(quote) for quote in compiled.given]
    return form


def _section_form(section: Section) -> Json:
    return {
        "label": section.label,
        "slot": section.slot,
        "source": section.source,
        "tokens": section.tokens,
        "score": section.score,
        "reason": section.reason,
        "date": section.day,
        "shortened": section.shortened,
    }


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
    return {
        "path": hit.path,
        "lines": list(hit.lines),
        "snippet": hit.snippet,
        "text": hit.text,
        "score": hit.score,
        "category": hit.category,
        "date": hit.day,
        "speaker": hit.speaker,
        "turn": hit.turn,
        "title": hit.title,
        "section": list(hit.section),
        "audience": hit.audience,
        "archived": hit.archived,
        "why": {key: value for key, value in asdict(hit.why).items() if value is not None},
    }


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
        tuple(_quote_from(quote) for quote in _object_list(form, "given")),
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


def _quote_from(form: Mapping[str, Any]) -> Quote:
    return Quote(
        _field(form, "text", ""),
        _field(form, "source", ""),
        _field(form, "day", ""),
        _field(form, "score", 0.0),
    )


def found_from(form: Mapping[str, Any]) -> Found:
    _require(form, "hits")
    return Found(
        tuple(hit_from(hit) for hit in _object_list(form, "hits")),
        _text_tuple(form, "channels"),
        _text_tuple(form, "degraded"),
        dict(_field(form, "trace", {})),
    )


def hit_from(form: Mapping[str, Any]) -> Hit:
    lines: list[Any] = _field(form, "lines", [])
    if len(lines) != 2 or not all(isinstance(line, int) for line in lines):
        raise ValueError("'lines' must be two line numbers")
    category: Any = _field(form, "category", "")
    audience: Any = _field(form, "audience", "") or "owner"
    return Hit(
        path=_field(form, "path", ""),
        text=_field(form, "text", ""),
        snippet=_field(form, "snippet", ""),
        score=_field(form, "score", 0.0),
        category=category,
        lines=(lines[0], lines[1]),
        day=_field(form, "date", ""),
        speaker=_field(form, "speaker", ""),
        turn=_field(form, "turn", 0),
        title=_field(form, "title", ""),
        section=_text_tuple(form, "section"),
        audience=audience,
        archived=_field(form, "archived", False),
        why=_why_from(_field(form, "why", {})),
    )


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
        raise ValueError(f"{name!r} is {value!r:.40}, which is nothing like {default!r}")
    return value


def _text_tuple(form: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, _field(form, name, [])))


def _object_list(form: Mapping[str, Any], name: str) -> list[Json]:
    objects: list[Any] = _field(form, name, [])
    if not all(isinstance(item, dict) for item in objects):
        raise ValueError(f"{name!r} must be a list of objects")
    return objects
