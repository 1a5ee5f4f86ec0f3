"""The operations of a home, each listed once with its name, its route and its handler.

The daemon serves them over HTTP; the client asks a daemon for them or runs them itself. Requests and answers
are JSON objects. An invalid request is a UsageError that names the field; but a session or sender that cannot
be read counts as unknown, and never as the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from tacit.client.relay import TEXT_FIELDS, normalize_fields
from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.context.receipt_codec import as_dict, describe_receipt
from tacit.context.request import Request
from tacit.errors import UsageError
from tacit.home.categories import CATEGORIES
from tacit.hosts.hooks.hook_events import NotUnderstood, find_text
from tacit.hosts.registry import find_translation
from tacit.memory import Memory
from tacit.privacy.audience import AUDIENCES
from tacit.search.file_reader import MAX_LINES
from tacit.search.model import EVERYTHING, Scope
from tacit.sessions.agents import resolve_key
from tacit.sessions.keys import MAIN_SESSION_KEY
from tacit.sessions.policy import SessionProfile, sender_name
from tacit.sessions.registry import Kept, SessionRef, SessionRegistry
from tacit.topics.model import Event
from tacit.topics.schedules import find_due_topics, take_due_topics, to_json
from tacit.transcripts import spool
from tacit.wire import Json, compiled_form, found_form

Body: TypeAlias = Mapping[str, Any]


class OperationContext(NamedTuple):
    """What the operations need to run."""

    memory: Memory
    live: SessionRegistry


class Operation(NamedTuple):
    name: str
    method: Literal["GET", "POST"]
    path: str
    run: Callable[[OperationContext, Body], Json]
    is_turn: bool = False  # a host waits for it: the deadline applies, and there is always an answer


# ---------------------------------------------------------------- turns


def turn(served: OperationContext, body: Body) -> Json:
    """`lane`: prompt (default) for the whole prompt, runtime for what the host lacks. `keeps_text`: false if
    the host's conversation does not keep injected text."""
    body = _normalize_host(body)
    lane = _read_choice(body, "lane", ("prompt", "runtime"), "prompt")
    take = served.memory.inject if lane == "runtime" else served.memory.turn
    caller = _read_caller(body)
    compiled = take(
        _read_message_text(body, "turn") or "",
        session_key=caller.session_key,
        agent=caller.agent,
        history=_read_list(body, "history"),
        budget=_read_int(body, "budget"),
        event=_read_event(body.get("event")),
        paths=_read_texts(body, "paths"),
        wake=_read_texts(body, "wake"),
        sender=caller.sender,
        trigger=caller.trigger,
        session_id=caller.session_id,
        tool=_read_text(body, "tool"),
        keeps_text=_read_bool(body, "keeps_text") is not False,
        seconds=_read_seconds(body),
    )
    return compiled_form(compiled, full=bool(body.get("full")))


def dry_run(served: OperationContext, body: Body) -> Json:
    """A dry run of a turn: nothing is recorded and no deadline holds. `at`: the home as it was then."""
    caller = _read_caller(body)
    request = Request(
        _read_message_text(body, "turn") or "",
        caller.session_key,
        caller.agent,
        history=_read_list(body, "history"),
        budget=_read_int(body, "budget"),
        event=_read_event(body.get("event")),
        paths=_read_texts(body, "paths"),
        wake=_read_texts(body, "wake"),
        lane=_read_choice(body, "lane", ("prompt", "runtime"), "prompt"),
        sender=caller.sender,
        trigger=caller.trigger,
    )
    compiled = served.memory.services.turns.look(request, _read_text(body, "at") or None)
    return compiled_form(compiled, full=bool(body.get("full")))


def bootstrap(served: OperationContext, body: Body) -> Json:
    """`files`: the host's own list. The answer has a new one, or null if the host sent none. `message`: what
    the user wrote, if the host loads its files for each turn."""
    host, body = find_translation(body), _normalize_host(body)
    caller = _read_caller(body)
    result = served.memory.bootstrapped(
        caller.session_key,
        body.get("files"),
        _read_text(body, "workspace") or None,
        agent=caller.agent,
        sender=caller.sender,
        trigger=caller.trigger,
        message=_read_message_text(body, "turn") or "",
    )
    receipt = result.receipt
    files = result.files
    if host is not None and files is not None and result.changed:
        files = host.bootstrap_entries(caller.session_key, files)
    return {
        "files": files,
        "changed": result.changed,
        "receipt": receipt.id,
        "tokens": receipt.tokens,
        "host_tokens": receipt.host_tokens,
        "session_type": receipt.session_type,
        "rule": receipt.rule,
        "notices": [{"code": notice.code, "text": notice.text} for notice in receipt.notices],
    }


def _normalize_host(body: Body) -> Body:
    """Translate the fields of a known host into ours."""
    host = find_translation(body)
    return body if host is None else host.turn(body)


def search(served: OperationContext, body: Body) -> Json:
    """Search what the session may see; if the request names no caller, the owner asks."""
    body = _normalize_host(body)
    scope = _profile_of(served, _read_caller(body)).scope if _names_caller(body) else EVERYTHING
    category = _read_choice(body, "category", ("", *CATEGORIES), "")
    if category:
        scope = replace(scope, categories=(category,))
    limit = _read_int(body, "limit")
    return found_form(served.memory.find(_read_text(body, "query"), scope, _clamp_limit(limit, 10)))


def find(served: OperationContext, body: Body) -> Json:
    """Like `search`, for the owner, with all filters."""
    if field := _caller_field(body):
        raise UsageError(
            f"{field!r} is not for /v1/find, where the owner asks. What a session may see: ask /v1/search."
        )
    scope = _read_scope(body.get("scope"))
    return found_form(
        served.memory.find(_read_text(body, "query"), scope, _clamp_limit(_read_int(body, "limit"), 10))
    )


# ---------------------------------------------------------------- the caller


class _Caller(NamedTuple):
    """Which session a request is about, and who writes in it."""

    session_key: str
    agent: str | None
    sender: str
    trigger: str
    session_id: str


def _read_caller(body: Body) -> _Caller:
    fields = normalize_fields(body)
    return _Caller(
        session_key_of(body),
        _read_text(fields, "agent") or None,
        sender_name(fields.get("sender")),
        _read_text(fields, "trigger"),
        _read_text(fields, "session_id"),
    )


def session_key_of(body: Body) -> str:
    """The session key, even if the rest of the request is invalid."""
    fields = normalize_fields(body)
    return resolve_key(fields.get("session_key", MAIN_SESSION_KEY), fields.get("agent"))


def _names_caller(body: Body) -> bool:
    """Whether the request names a session (null counts as an unknown one), or a sender or trigger in the main
    session, who may be a stranger."""
    return bool(_caller_field(body))


def _caller_field(body: Body) -> str:
    """The first field that names the caller; empty: none does, so the owner asks."""
    fields = normalize_fields(body)
    if "session_key" in fields:
        return "session_key"
    return next((name for name in ("sender", "trigger") if fields.get(name) not in (None, "")), "")


def _profile_of(served: OperationContext, caller: _Caller, *, trial: bool = True) -> SessionProfile:
    """The profile of the caller. As a trial it is not recorded: a request is not a message in a session."""
    return served.memory.services.profiles.profile_of(
        caller.session_key, agent=caller.agent, sender=caller.sender, trigger=caller.trigger, trial=trial
    )


# ---------------------------------------------------------------- conversations


def message(served: OperationContext, body: Body) -> Json:
    """`sender`: who wrote it, as the host spells it. In a main session the senders decide whose it is."""
    caller, role, text = (
        _read_caller(body),
        _read_text(body, "role", "user"),
        _read_message_text(body, "message"),
    )
    if text is None:
        raise _field_error("text", "there, with what was said")
    if caller.sender and role == "user":  # some hosts name a sender for the agent's messages too
        _profile_of(served, caller, trial=False)
    result = served.live.message(
        _read_about(body),
        role,
        text,
        at=_read_moment(body, "at"),
        speaker=_read_text(body, "speaker") or None,
        record=_read_text(body, "id"),
    )
    return _kept_form(result)


def tool(served: OperationContext, body: Body) -> Json:
    if not _read_text(body, "name"):
        raise _field_error("name", "there, with the name of the tool")
    result = served.live.tool(
        _read_about(body),
        _read_text(body, "name"),
        _read_text(body, "summary"),
        _read_text(body, "result"),
        at=_read_moment(body, "at"),
        record=_read_text(body, "id"),
    )
    return _kept_form(result)


def end_session(served: OperationContext, body: Body) -> Json:
    """Also used for /new and /reset of a host: the state of the session in this process is dropped too."""
    about = _read_about(body)
    tags, record = tuple(_read_texts(body, "tags")), _read_text(body, "id")
    sealed = served.live.end(about, at=_read_moment(body, "at"), tags=tags, record=record)
    served.memory.session_ended(about.session_key, sealed=sealed is not None)
    if sealed is None:
        return {"session_id": about.session_id, "path": None, "sha256": None}
    return {"session_id": sealed.session_id, "path": sealed.path, "sha256": sealed.sha256}


def renew_session(served: OperationContext, body: Body) -> Json:
    """The host dropped earlier messages from its window, so injected text may be injected again."""
    key = _read_caller(body).session_key
    served.memory.session_ended(key)
    return {"session_key": key}


def event(served: OperationContext, body: Body) -> Json:
    """Run the operations that an event of a host stands for."""
    host = find_translation(body)
    if host is None:
        raise _field_error("host", "the name of a host")
    # An end that comes twice, directly and from the spool, must not end a session that began in between.
    extra = {"at": _read_text(body, "at"), "id": _read_text(body, "id")}
    results = [
        (
            call.operation,
            _EVENT_OPERATIONS[call.operation](served, {**call.body, **_without_empty(extra, call.body)}),
        )
        for call in host.event(body)
    ]
    return {"done": [{"operation": name, **answer} for name, answer in results], "session_id": ""}


def _without_empty(defaults: Body, fields: Body) -> Body:
    return {name: value for name, value in defaults.items() if value and not fields.get(name)}


def read(served: OperationContext, body: Body) -> Json:
    """Read one file, if the session may see it. Here `from` is a line number, not a sender."""
    body = _normalize_host(body)
    fields = {name: value for name, value in body.items() if name != "from"}
    scope = _profile_of(served, _read_caller(fields)).scope if _names_caller(fields) else EVERYTHING
    first_line, count = _read_int(body, "from"), _read_int(body, "lines")
    reader = served.memory.services.file_reader
    result = reader.read(_read_text(body, "path"), scope, first_line or 1, count or MAX_LINES)
    return result._asdict()


def remember(served: OperationContext, body: Body) -> Json:
    """Remember one line. If the request names no caller, the owner asks. `holds_slot`: the host says that we
    are its memory plugin. `shared`: others may read it; only the owner can say so, never a host."""
    is_host, body = find_translation(body) is not None, _normalize_host(body)
    profile = _profile_of(served, _read_caller(body))
    text, to, holds_slot = _read_text(body, "text"), _read_text(body, "to"), body.get("holds_slot") is True
    by_owner = not _names_caller(body) and not is_host
    shared = _read_bool(body, "shared") is True
    result = served.memory.services.remembering.remember(
        text, to, profile, holds_slot=holds_slot, by_owner=by_owner, shared=shared
    )
    return result._asdict()


def explain_turns(served: OperationContext, body: Body) -> Json:
    """Explain in words what was injected into the last turns of a session."""
    body = _normalize_host(body)
    profile = _profile_of(served, _read_caller(body))
    recorded = receipts.read_receipts(served.memory.home, profile.kind.key)
    visible = [receipts.redact_for_host(receipt) for receipt in recorded if _may_see(receipt, profile)]
    selected = visible[: _clamp_limit(_read_int(body, "limit"), 1)]
    return {"text": "\n\n".join(map(describe_receipt, selected)) or "No turn of this session is on record."}


_EVENT_OPERATIONS: Mapping[str, Callable[[OperationContext, Body], Json]] = {
    "message": message, "tool": tool, "end_session": end_session, "renew": renew_session,
}  # fmt: skip


def _read_about(body: Body) -> SessionRef:
    caller = _read_caller(body)
    return SessionRef(
        caller.session_key,
        caller.session_id,
        caller.agent,
        _read_text(body, "channel") or None,
        _read_text(body, "model") or None,
    )


def _kept_form(result: Kept) -> Json:
    return result._asdict()


# ---------------------------------------------------------------- receipts and due topics


def list_receipts(served: OperationContext, body: Body) -> Json:
    """Receipts, newest first. With a session key only those of the session, as far as it may see them."""
    limit = _clamp_limit(_read_int(body, "limit"), 20)
    home = served.memory.home
    if not _names_caller(body):
        return {"receipts": [as_dict(receipt) for receipt in receipts.recent(home, limit)]}
    profile = _profile_of(served, _read_caller(body))
    recorded = receipts.read_receipts(home, profile.kind.key)
    visible = (receipts.redact_for_host(receipt) for receipt in recorded if _may_see(receipt, profile))
    return {"receipts": [as_dict(receipt) for receipt in islice(visible, limit)]}


def _may_see(receipt: Receipt, profile: SessionProfile) -> bool:
    """Whether the caller may see the content of a receipt: others may write in the owner's session, or it may
    be another agent's."""
    audience_rank = AUDIENCES.index(receipt.audience) if receipt.audience in AUDIENCES else len(AUDIENCES)
    is_same = receipt.session_key == profile.kind.key and receipt.agent == profile.kind.agent
    return is_same and audience_rank <= AUDIENCES.index(profile.rule.audience)


def get_receipt(served: OperationContext, body: Body) -> Json:
    """With a session key only a receipt of that session, as far as it may see it."""
    receipt = receipts.find_by_id(served.memory.home, _read_text(body, "id"))
    if receipt is not None and _names_caller(body):
        receipt = (
            receipts.redact_for_host(receipt)
            if _may_see(receipt, _profile_of(served, _read_caller(body)))
            else None
        )
    if receipt is None:
        raise UsageError(
            f"There is no receipt {_read_text(body, 'id')[:40]!r}. See them with: tacit why -n 20"
        )
    return as_dict(receipt)


def list_due_topics(served: OperationContext, body: Body) -> Json:  # noqa: ARG001 - as every operation
    """The topics whose schedules are due. A host begins a turn for each, with the event `cron`."""
    memory = served.memory
    now = memory.services.clock.local_now()
    due = find_due_topics(memory.home, memory.services.turns.topics().topics, now)
    return {"due": [to_json(schedule) for schedule in due.schedules]}


def acknowledge_due_topics(served: OperationContext, body: Body) -> Json:  # noqa: ARG001 - as every one
    """The same, but the caller handles them: they are no longer due."""
    memory = served.memory
    due = take_due_topics(memory.home, memory.services.turns.topics().topics, memory.services.clock.local_now)
    return {"due": [to_json(schedule) for schedule in due]}


# ---------------------------------------------------------------- the protocol of Ethos


def ipc(served: OperationContext, body: Body) -> Json:
    """`{"action":"search","payload":{"query":…,"limit":5}}`, or the same without a payload. The session may
    be named in either."""
    payload, action = body.get("payload"), body.get("action")
    fields: Body = body
    if isinstance(payload, Mapping):
        channel = {"channel": body["channel"]} if "channel" in body else {}  # of a sender in either object
        fields = {**_session_fields(body), **normalize_fields({**channel, **payload})}
    if action != "search":
        return {"status": "error", "error": f"Unknown action {str(action)[:40]!r}. There is: search."}
    try:
        answer = search(served, {**fields, "limit": fields.get("limit") or 5})
    except UsageError as error:
        return {"status": "error", "error": str(error)}
    return {"status": "ok", "data": {"results": [_ethos_form(hit) for hit in answer["hits"]]}}


def _session_fields(body: Body) -> dict[str, Any]:
    fields = normalize_fields(body)
    return {name: fields[name] for name in ("session_key", "agent", "sender", "trigger") if name in fields}


def _ethos_form(hit: Json) -> Json:
    first_line = hit["lines"][0]
    return {
        "id": f"{hit['path']}:{first_line}",
        "content": hit["text"],
        "score": hit["score"],
        "metadata": {"channel": hit["category"], "ts": hit["date"]},
    }


OPERATIONS: Sequence[Operation] = (
    Operation("turn", "POST", "/v1/turn", turn, is_turn=True),
    Operation("look", "POST", "/v1/look", dry_run),
    Operation("bootstrap", "POST", "/v1/bootstrap", bootstrap, is_turn=True),
    Operation("search", "POST", "/v1/search", search),
    Operation("find", "POST", "/v1/find", find),
    Operation("message", "POST", "/v1/message", message),
    Operation("tool", "POST", "/v1/tool", tool),
    Operation("end_session", "POST", "/v1/session/end", end_session),
    Operation("renew", "POST", "/v1/session/renew", renew_session),
    Operation("event", "POST", "/v1/event", event),
    Operation("read", "POST", "/v1/read", read),
    Operation("remember", "POST", "/v1/remember", remember),
    Operation("why", "POST", "/v1/why", explain_turns),
    Operation("ipc", "POST", "/v1/ipc", ipc),
    Operation("list_receipts", "GET", "/v1/receipts", list_receipts),
    Operation("due", "GET", "/v1/due", list_due_topics),
    Operation("done_due", "POST", "/v1/due/done", acknowledge_due_topics),
    Operation("one_receipt", "GET", "/v1/receipts/{id}", get_receipt),
)
SPOOLED_OPERATIONS = ("message", "tool", "end_session", "event")  # the operations that a host may spool


def _refuse_unread(served: OperationContext, body: Body) -> Json:  # noqa: ARG001 - as every operation
    """An event that the relay did not understand. It is always refused, so the spool sets it aside."""
    operation, reason = _read_text(body, "operation")[:20], _read_text(body, "why")[:400]
    raise UsageError(f"`tacit-relay {operation}` did not understand an event: {reason}.")


def take_spooled(served: OperationContext, record: spool.SpooledEvent) -> None:
    """Run an operation that was spooled while no daemon ran."""
    runs = {operation.name: operation.run for operation in OPERATIONS if operation.name in SPOOLED_OPERATIONS}
    runs["unread"] = _refuse_unread
    if record.operation not in runs:
        raise UsageError(f"{record.operation[:40]!r} is nothing that waits for a daemon.")
    runs[record.operation](served, record.body)


# ---------------------------------------------------------------- fields of a request


def _field_error(name: str, expected: str) -> UsageError:
    return UsageError(f"{name!r} must be {expected}.")


def _read_text(body: Body, name: str, default: str = "") -> str:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _field_error(name, "text")
    return value


def _read_message_text(body: Body, operation: str) -> str | None:
    """The text of the message, under any of the names that hosts use; None: there is none."""
    field = TEXT_FIELDS[operation][0]
    if isinstance(body.get(field), int):  # a number counts as text only under a host's name for the field
        raise _field_error(field, "text")
    try:
        return find_text(body, *TEXT_FIELDS[operation])
    except NotUnderstood as error:
        raise UsageError(f"{error}.") from None


def _read_choice(body: Body, name: str, choices: Sequence[str], default: str) -> Any:
    value = _read_text(body, name, default)
    if value not in choices:
        raise _field_error(name, f"one of {', '.join(choice for choice in choices if choice)}")
    return value


def _read_int(body: Body, name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)  # in the query of a GET every value is text
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**9):
        raise _field_error(name, "a whole number")
    return value


def _clamp_limit(limit: int | None, default: int) -> int:
    return min(1000, max(1, default if limit is None else limit))


def _read_list(body: Body, name: str) -> Sequence[object]:
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise _field_error(name, "a list")
    return value or ()


def _read_texts(body: Body, name: str) -> tuple[str, ...]:
    items = _read_list(body, name)
    if not all(isinstance(item, str) for item in items):
        raise _field_error(name, "a list of texts")
    return tuple(str(item) for item in items)


def _read_seconds(body: Body) -> float | None:
    milliseconds = _read_int(body, "deadline_ms")
    return None if milliseconds is None else max(0, milliseconds) / 1000


def _read_moment(body: Body, name: str) -> datetime | None:
    text = _read_text(body, name)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise _field_error(name, "a time like 2026-02-16T18:45:00+01:00") from None


def _read_event(value: object) -> Event | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _field_error("event", "an object with a type, webhook or cron")
    kind = _read_choice(value, "type", ("webhook", "cron"), "")
    return Event(kind, _read_text(value, "source"), _read_text(value, "event"), _read_text(value, "topic"))


def _read_scope(value: object) -> Scope:
    if value is None:
        return EVERYTHING
    if not isinstance(value, Mapping):
        raise _field_error("scope", "an object")
    if unknown := [name for name in value if name not in _FILTERS]:
        raise UsageError(f"'scope' has no {str(unknown[0])[:40]!r}. There are: {', '.join(_FILTERS)}.")
    return Scope(**{name: _FILTERS[name](value, name) for name in value})


def _read_day(scope: Body, name: str) -> date | None:
    text = _read_text(scope, name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise _field_error(name, "a day like 2026-02-16") from None


def _read_bool(scope: Body, name: str) -> bool | None:
    value = scope.get(name)
    if value is not None and not isinstance(value, bool):
        raise _field_error(name, "true, false or null")
    return value


def _read_categories(scope: Body, name: str) -> tuple[str, ...]:
    categories = _read_texts(scope, name)
    if not set(categories) <= set(CATEGORIES):
        raise _field_error(name, f"a list of {', '.join(CATEGORIES)}")
    return categories


def _read_audience(scope: Body, name: str) -> Any:
    """Null is refused, since it must not mean the owner's view."""
    return _read_choice({name: scope[name] or ""}, name, AUDIENCES, "")


# The reader of each filter of a scope.
_FILTERS: Mapping[str, Callable[[Body, str], Any]] = {
    "categories": _read_categories,
    "audience": _read_audience,
    "conversation": _read_text,
    "agents": _read_texts,
    "since": _read_day,
    "until": _read_day,
    "under": _read_text,
    "without": _read_texts,
    "archived": _read_bool,
}
