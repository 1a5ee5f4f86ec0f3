"""The operations of a home, each listed once: what it is called, how it is asked, what it answers.

The daemon serves them over HTTP, the client asks a daemon for them or runs them itself. A request is a JSON
object, an answer too. What is wrong with a request is a UsageError that names the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.memory.live import About, Conversations, Kept
from tacit.memory.request import MAIN, Request
from tacit.memory.schedules import came_due, take_due
from tacit.model.context import Receipt
from tacit.model.search import AUDIENCES, CATEGORIES, EVERYTHING, Audience, Scope
from tacit.model.topics import Event
from tacit.sessions.rules import Profile
from tacit.store import receipts, spool
from tacit.text.receipts import as_dict
from tacit.text.wire import Json, compiled_form, found_form
from tacit.watch.due import as_value

Body: TypeAlias = Mapping[str, Any]


class Served(NamedTuple):
    """What operations work on."""

    memory: Memory
    live: Conversations


class Operation(NamedTuple):
    name: str
    method: Literal["GET", "POST"]
    path: str
    run: Callable[[Served, Body], Json]
    is_turn: bool = False  # a host waits for it: the config's deadline holds, and it is answered in any case


# ---------------------------------------------------------------- turns


def turn(served: Served, body: Body) -> Json:
    """`lane`: prompt (default) for the whole prompt, runtime for what the host lacks."""
    lane = _choice(body, "lane", ("prompt", "runtime"), "prompt")
    take = served.memory.inject if lane == "runtime" else served.memory.turn
    compiled = take(
        _text(body, "message"),
        session_key=_text(body, "session_key", MAIN),
        agent=_text(body, "agent") or None,
        history=_list(body, "history"),
        budget=_whole(body, "budget"),
        event=_event(body.get("event")),
        paths=_texts(body, "paths"),
        wake=_texts(body, "wake"),
        sender=_text(body, "sender"),
        trigger=_text(body, "trigger"),
        session_id=_text(body, "session_id"),
        tool=_text(body, "tool"),
        seconds=_seconds(body),
    )
    return compiled_form(compiled, full=bool(body.get("full")))


def look(served: Served, body: Body) -> Json:
    """A turn to look at: it counts as none, and takes the time it needs. `at`: as the home was then."""
    request = Request(
        _text(body, "message"),
        _text(body, "session_key", MAIN),
        _text(body, "agent") or None,
        history=_list(body, "history"),
        budget=_whole(body, "budget"),
        event=_event(body.get("event")),
        paths=_texts(body, "paths"),
        wake=_texts(body, "wake"),
        lane=_choice(body, "lane", ("prompt", "runtime"), "prompt"),
        sender=_text(body, "sender"),
        trigger=_text(body, "trigger"),
    )
    compiled = served.memory.turns.look(request, _text(body, "at") or None)
    return compiled_form(compiled, full=bool(body.get("full")))


def bootstrap(served: Served, body: Body) -> Json:
    """`files`: the host's own list. The answer has a fresh one; `files` is null where the host gave none."""
    done = served.memory.bootstrapped(
        _text(body, "session_key", MAIN),
        body.get("files"),
        _text(body, "workspace") or None,
        agent=_text(body, "agent") or None,
        sender=_text(body, "sender"),
        trigger=_text(body, "trigger"),
    )
    receipt = done.receipt
    return {
        "files": done.files,
        "changed": done.changed,
        "receipt": receipt.id,
        "tokens": receipt.tokens,
        "host_tokens": receipt.host_tokens,
        "session_type": receipt.session_type,
        "rule": receipt.rule,
        "notices": [{"code": notice.code, "text": notice.text} for notice in receipt.notices],
    }


def search(served: Served, body: Body) -> Json:
    """In what a session may see; without a session key the owner asks."""
    scope = EVERYTHING if body.get("session_key") is None else _profile(served, body).scope
    category = _choice(body, "category", ("", *CATEGORIES), "")
    if category:
        scope = replace(scope, categories=(category,))
    limit = _whole(body, "limit")
    return found_form(served.memory.find(_text(body, "query"), scope, _limited(limit, 10)))


def _profile(served: Served, body: Body) -> Profile:
    """Of the session that the request names."""
    return served.memory.profile_of(
        _text(body, "session_key"),
        agent=_text(body, "agent") or None,
        sender=_text(body, "sender"),
        trigger=_text(body, "trigger"),
    )


def find(served: Served, body: Body) -> Json:
    """As `search`, for the owner, with all filters."""
    scope = Scope(**_scope(body.get("scope") or {}))
    return found_form(served.memory.find(_text(body, "query"), scope, _limited(_whole(body, "limit"), 10)))


# ---------------------------------------------------------------- conversations


def message(served: Served, body: Body) -> Json:
    """`sender`: who wrote it, as the host spells it. Who writes in a main session decides whose it is."""
    if _text(body, "sender"):
        _profile(served, {"session_key": MAIN, **body})
    kept = served.live.message(
        _about(body),
        _text(body, "role", "user"),
        _text(body, "text"),
        at=_moment(body, "at"),
        speaker=_text(body, "speaker") or None,
        record=_text(body, "id"),
    )
    return _kept(kept)


def tool(served: Served, body: Body) -> Json:
    kept = served.live.tool(
        _about(body),
        _text(body, "name"),
        _text(body, "summary"),
        _text(body, "result"),
        at=_moment(body, "at"),
        record=_text(body, "id"),
    )
    return _kept(kept)


def end_session(served: Served, body: Body) -> Json:
    """Also for /new and /reset of a host: what was learned about the session in this process goes as well."""
    about = _about(body)
    sealed = served.live.end(about, at=_moment(body, "at"), tags=tuple(_texts(body, "tags")))
    served.memory.session_ended(about.session_key)
    if sealed is None:
        return {"session_id": about.session_id, "path": None, "sha256": None}
    return {"session_id": sealed.session_id, "path": sealed.path, "sha256": sealed.sha256}


def _about(body: Body) -> About:
    return About(
        _text(body, "session_key", MAIN),
        _text(body, "session_id"),
        _text(body, "agent") or None,
        _text(body, "channel") or None,
        _text(body, "model") or None,
    )


def _kept(kept: Kept) -> Json:
    return kept._asdict()


# ---------------------------------------------------------------- what was


def list_receipts(served: Served, body: Body) -> Json:
    """The newest first. With a session key only its own, without what that session may not see."""
    limit = _limited(_whole(body, "limit"), 20)
    home = served.memory.home
    if body.get("session_key") is None:
        return {"receipts": [as_dict(one) for one in receipts.recent(home, limit)]}
    audience = _profile(served, body).rule.audience
    found = receipts.of_session(home, _text(body, "session_key"))
    mine = (receipts.for_host(one) for one in found if _is_for(one, audience))
    return {"receipts": [as_dict(one) for one in islice(mine, limit)]}


def _is_for(receipt: Receipt, audience: Audience) -> bool:
    """Whether who asks may see what was seen then: others may write in the owner's session."""
    then = AUDIENCES.index(receipt.audience) if receipt.audience in AUDIENCES else len(AUDIENCES)
    return then <= AUDIENCES.index(audience)


def one_receipt(served: Served, body: Body) -> Json:
    found = receipts.by_id(served.memory.home, _text(body, "id"))
    if found is None:
        raise UsageError(f"There is no receipt {_text(body, 'id')[:40]!r}. See them with: tacit why -n 20")
    return as_dict(found)


def due(served: Served, body: Body) -> Json:  # noqa: ARG001 - as every operation
    """Topics whose schedules came due and wait. A host begins a turn for each, with the event `cron`."""
    return {"due": [as_value(one) for one in came_due(served.memory).found]}


def done_due(served: Served, body: Body) -> Json:  # noqa: ARG001 - as every operation
    """The same, and who asks takes care of them: they wait no more."""
    return {"due": [as_value(one) for one in take_due(served.memory)]}


# ---------------------------------------------------------------- the protocol of Ethos


def ipc(served: Served, body: Body) -> Json:
    """`{"action":"search","payload":{"query":…,"limit":5}}`, or the same without a payload."""
    payload = body.get("payload")
    asked = payload if isinstance(payload, Mapping) else body
    action = _text(body, "action")
    if action != "search":
        return {"status": "error", "error": f"Unknown action {action[:40]!r}. There is: search."}
    try:
        found = search(served, {**asked, "limit": asked.get("limit") or 5})
    except UsageError as error:
        return {"status": "error", "error": str(error)}
    return {"status": "ok", "data": {"results": [_ethos(hit) for hit in found["hits"]]}}


def _ethos(hit: Json) -> Json:
    first = hit["lines"][0]
    return {
        "id": f"{hit['path']}:{first}",
        "content": hit["text"],
        "score": hit["score"],
        "metadata": {"channel": hit["category"], "ts": hit["date"]},
    }


OPERATIONS: Sequence[Operation] = (
    Operation("turn", "POST", "/v1/turn", turn, is_turn=True),
    Operation("look", "POST", "/v1/look", look),
    Operation("bootstrap", "POST", "/v1/bootstrap", bootstrap, is_turn=True),
    Operation("search", "POST", "/v1/search", search),
    Operation("find", "POST", "/v1/find", find),
    Operation("message", "POST", "/v1/message", message),
    Operation("tool", "POST", "/v1/tool", tool),
    Operation("end_session", "POST", "/v1/session/end", end_session),
    Operation("ipc", "POST", "/v1/ipc", ipc),
    Operation("list_receipts", "GET", "/v1/receipts", list_receipts),
    Operation("due", "GET", "/v1/due", due),
    Operation("done_due", "POST", "/v1/due/done", done_due),
    Operation("one_receipt", "GET", "/v1/receipts/{id}", one_receipt),
)
SPOOLED = ("message", "tool", "end_session")  # what a host may leave in the spool


def take_spooled(served: Served, record: spool.Record) -> None:
    """What a host left there while no daemon was up."""
    runs = {one.name: one.run for one in OPERATIONS if one.name in SPOOLED}
    if record.operation not in runs:
        raise UsageError(f"{record.operation[:40]!r} is nothing that waits for a daemon.")
    runs[record.operation](served, record.body)


# ---------------------------------------------------------------- fields of a request


def _wrong(name: str, wanted: str) -> UsageError:
    return UsageError(f"{name!r} must be {wanted}.")


def _text(body: Body, name: str, otherwise: str = "") -> str:
    value = body.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, str):
        raise _wrong(name, "text")
    return value


def _choice(body: Body, name: str, choices: Sequence[str], otherwise: str) -> Any:
    value = _text(body, name, otherwise)
    if value not in choices:
        raise _wrong(name, f"one of {', '.join(one for one in choices if one)}")
    return value


def _whole(body: Body, name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)  # in the address of a GET everything is text
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**9):
        raise _wrong(name, "a whole number")
    return value


def _limited(limit: int | None, otherwise: int) -> int:
    return min(1000, max(1, otherwise if limit is None else limit))


def _list(body: Body, name: str) -> Sequence[object]:
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise _wrong(name, "a list")
    return value or ()


def _texts(body: Body, name: str) -> tuple[str, ...]:
    found = _list(body, name)
    if not all(isinstance(item, str) for item in found):
        raise _wrong(name, "a list of texts")
    return tuple(str(item) for item in found)


def _seconds(body: Body) -> float | None:
    milliseconds = _whole(body, "deadline_ms")
    return None if milliseconds is None else max(0, milliseconds) / 1000


def _moment(body: Body, name: str) -> datetime | None:
    text = _text(body, name)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _wrong(name, "a time like 2026-02-16T18:45:00+01:00") from None


def _event(value: object) -> Event | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _wrong("event", "an object with a type, webhook or cron")
    kind = _choice(value, "type", ("webhook", "cron"), "")
    return Event(kind, _text(value, "source"), _text(value, "event"), _text(value, "topic"))


def _scope(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong("scope", "an object")
    known: dict[str, Any] = {}
    for name, item in value.items():
        if name in ("since", "until") and isinstance(item, str):
            known[name] = date.fromisoformat(item)
        elif name in ("categories", "agents", "without") and isinstance(item, list):
            known[name] = tuple(map(str, item))
        elif name in ("audience", "under", "conversation", "archived"):
            known[name] = item
    return known
