"""Values as JSON and back: what a program gets from `--json`, from the daemon and through the client.

What must stay true:
- a value that went out and came back prints and compares as it did;
- fields that we do not know are passed over, those that are missing get what they are by default: a daemon
  may be of another version. What is there and of the wrong kind is a ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from tacit.model.context import Compiled, Notice, Quote, Receipt, Section
from tacit.model.search import Found, Hit, Scope, Why
from tacit.model.topics import Event
from tacit.text.receipts import as_dict, receipt_of

Json = dict[str, Any]
T = TypeVar("T")


# ---------------------------------------------------------------- out


def compiled_form(compiled: Compiled, *, full: bool = False) -> Json:
    """`full`: with the whole receipt and the passages as they were given, for who makes a Compiled of it."""
    receipt = compiled.receipt
    form: Json = {
        "text": compiled.text,
        "tokens": compiled.tokens,
        "budget": receipt.budget,
        "sections": [_section(section) for section in compiled.sections],
        "dropped": [
            {"label": one.label, "slot": one.slot, "code": one.code, "reason": one.reason, "score": one.score}
            for one in compiled.dropped
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
        form["given"] = [asdict(one) for one in compiled.given]
    return form


def _section(section: Section) -> Json:
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
    """Without what is as it is by default."""
    default = Scope()
    given = {name: getattr(scope, name) for name in Scope.__dataclass_fields__}
    return {
        name: list(value) if isinstance(value, tuple) else str(value) if name in ("since", "until") else value
        for name, value in given.items()
        if value != getattr(default, name)
    }


def event_form(event: Event) -> Json:
    return {"type": event.type, "source": event.source, "event": event.event, "topic": event.topic}


# ---------------------------------------------------------------- back


def compiled_from(form: Mapping[str, Any]) -> Compiled:
    """Of a full form the Compiled that it was made of; of another one as much as is in it."""
    _require(form, "text")
    record = form.get("record")
    receipt = _receipt(form) if record is None else receipt_from(record)
    return Compiled(
        _field(form, "text", ""),
        _field(form, "tokens", 0),
        receipt.sections,
        receipt.dropped,
        receipt,
        _field(form, "standing", ""),
        tuple(_given(one) for one in _objects(form, "given")),
    )


def receipt_from(record: object) -> Receipt:
    receipt = receipt_of(json.dumps(record).encode("ascii"))
    if receipt is None:
        raise ValueError("there is no receipt in the answer")
    return receipt


def _receipt(form: Mapping[str, Any]) -> Receipt:
    """Of a turn that was not made, about which little is known."""
    names = ("at", "session_key", "session_id", "session_type", "agent", "skipped")
    known: Json = {name: _field(form, name, "") for name in names}
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
        **known,
    )


def notices_from(form: Mapping[str, Any]) -> Iterator[Notice]:
    for one in _objects(form, "notices"):
        yield Notice(_field(one, "code", ""), _field(one, "text", ""))


def _given(form: Mapping[str, Any]) -> Quote:
    return Quote(
        _field(form, "text", ""),
        _field(form, "source", ""),
        _field(form, "day", ""),
        _field(form, "score", 0.0),
    )


def found_from(form: Mapping[str, Any]) -> Found:
    _require(form, "hits")
    return Found(
        tuple(hit_from(one) for one in _objects(form, "hits")),
        _texts(form, "channels"),
        _texts(form, "degraded"),
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
        section=_texts(form, "section"),
        audience=audience,
        archived=_field(form, "archived", False),
        why=_why(_field(form, "why", {})),
    )


def _why(form: Mapping[str, Any]) -> Why:
    known = {name: value for name, value in form.items() if name in Why.__dataclass_fields__}
    known |= {"score": _field(form, "score", 0.0), "words": _texts(form, "words")}
    given: list[Any] = _field(form, "boosts", [])
    try:
        known["boosts"] = tuple((str(name), float(size)) for name, size in given)
    except TypeError:
        raise ValueError("'boosts' must be a list of names and sizes") from None
    return Why(**known)


def _require(form: Mapping[str, Any], name: str) -> None:
    if name not in form:
        raise ValueError(f"it has no {name!r}")


def _field(form: Mapping[str, Any], name: str, otherwise: T) -> T:
    """A field of the kind that it is by default."""
    value = form.get(name)
    if value is None:
        return otherwise
    if type(value) is int and type(otherwise) is float:
        value = float(value)
    if type(value) is not type(otherwise):
        raise ValueError(f"{name!r} is {value!r:.40}, which is nothing like {otherwise!r}")
    return value


def _texts(form: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(map(str, _field(form, name, [])))


def _objects(form: Mapping[str, Any], name: str) -> list[Json]:
    found: list[Any] = _field(form, name, [])
    if not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{name!r} must be a list of objects")
    return found
