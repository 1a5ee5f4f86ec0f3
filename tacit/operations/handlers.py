"""One function per operation: a request in, an answer out, both JSON objects.

The daemon runs them for its callers, the client for its own process. An invalid request is a UsageError that
names the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.context.receipt_codec import as_dict, describe_receipt
from tacit.context.request import Request
from tacit.errors import UsageError
from tacit.home.categories import CATEGORIES
from tacit.hosts.base import find_translation
from tacit.hosts.fields import normalize_fields
from tacit.memory import Memory
from tacit.operations.catalog import OPERATIONS
from tacit.operations.fields import (
    Body,
    Caller,
    caller_field,
    field_error,
    names_caller,
    read_bool,
    read_caller,
    read_choice,
    read_event,
    read_int,
    read_limit,
    read_list,
    read_message_text,
    read_scope,
    read_seconds,
    read_text,
    read_texts,
    read_time,
)
from tacit.privacy.audience import AUDIENCES
from tacit.search.file_reader import MAX_LINES
from tacit.search.model import EVERYTHING
from tacit.sessions.live_sessions import SessionRef
from tacit.sessions.policy import SessionProfile
from tacit.sessions.registry import SessionRegistry
from tacit.topics.schedules import find_due_topics, take_due_topics, to_json
from tacit.transcripts import spool
from tacit.wire import Json, compiled_form, found_form, notice_form


class OperationContext(NamedTuple):
    """What the operations need to run."""

    memory: Memory
    live: SessionRegistry


Handler: TypeAlias = Callable[[OperationContext, Body], Json]

_LANES = ("prompt", "runtime")


# ---------------------------------------------------------------- turns


def turn(served: OperationContext, body: Body) -> Json:
    """`lane`: prompt (default) for the whole prompt, runtime for what the host lacks. `keeps_text`: false if
    the host's conversation does not keep injected text."""
    body = _normalize_host(body)
    lane = read_choice(body, "lane", _LANES, "prompt")
    take = served.memory.inject if lane == "runtime" else served.memory.turn
    compiled = take(
        read_message_text(body, "turn") or "",
        **_read_turn(body),
        session_id=read_caller(body).session_id,
        tool=read_text(body, "tool"),
        keeps_text=read_bool(body, "keeps_text") is not False,
        seconds=read_seconds(body),
    )
    return compiled_form(compiled, full=bool(body.get("full")))


def dry_run(served: OperationContext, body: Body) -> Json:
    """A dry run of a turn: nothing is recorded and no deadline holds. `at`: the home as it was then."""
    lane = read_choice(body, "lane", _LANES, "prompt")
    request = Request(read_message_text(body, "turn") or "", **_read_turn(body), lane=lane)
    compiled = served.memory.services.turns.look(request, read_text(body, "at") or None)
    return compiled_form(compiled, full=bool(body.get("full")))


def _read_turn(body: Body) -> dict[str, Any]:
    caller = read_caller(body)
    return {
        "session_key": caller.session_key,
        "agent": caller.agent,
        "sender": caller.sender,
        "trigger": caller.trigger,
        "history": read_list(body, "history"),
        "budget": read_int(body, "budget"),
        "event": read_event(body.get("event")),
        "paths": read_texts(body, "paths"),
        "wake": read_texts(body, "wake"),
    }


def bootstrap(served: OperationContext, body: Body) -> Json:
    """`files`: the host's own list. The answer has a new one, or null if the host sent none. `message`: what
    the user wrote, if the host loads its files for each turn."""
    host, body = find_translation(body), _normalize_host(body)
    caller = read_caller(body)
    result = served.memory.services.bootstrap(
        caller.session_key,
        body.get("files"),
        read_text(body, "workspace") or None,
        agent=caller.agent,
        sender=caller.sender,
        trigger=caller.trigger,
        message=read_message_text(body, "turn") or "",
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
        "notices": [notice_form(notice.code, notice.text) for notice in receipt.notices],
    }


def _normalize_host(body: Body) -> Body:
    """Translate the fields of a known host into ours."""
    host = find_translation(body)
    return body if host is None else host.turn(body)


def search(served: OperationContext, body: Body) -> Json:
    """Search what the session may see; if the request names no caller, the owner asks."""
    body = _normalize_host(body)
    scope = _profile_of(served, read_caller(body)).scope if names_caller(body) else EVERYTHING
    category = read_choice(body, "category", ("", *CATEGORIES), "")
    if category:
        scope = replace(scope, categories=(category,))
    return found_form(served.memory.find(read_text(body, "query"), scope, read_limit(body, 10)))


def find(served: OperationContext, body: Body) -> Json:
    """Like `search`, for the owner, with all filters."""
    if field := caller_field(body):
        raise UsageError(
            f"{field!r} is not for /v1/find, where the owner asks. What a session may see: ask /v1/search."
        )
    scope = read_scope(body.get("scope"))
    return found_form(served.memory.find(read_text(body, "query"), scope, read_limit(body, 10)))


def _profile_of(served: OperationContext, caller: Caller, *, trial: bool = True) -> SessionProfile:
    """The profile of the caller. As a trial it is not recorded: a request is not a message in a session."""
    return served.memory.services.profiles.profile_of(
        caller.session_key, agent=caller.agent, sender=caller.sender, trigger=caller.trigger, trial=trial
    )


# ---------------------------------------------------------------- conversations


def message(served: OperationContext, body: Body) -> Json:
    """`sender`: who wrote it, as the host spells it. In a main session the senders decide whose it is."""
    caller, role, text = (
        read_caller(body),
        read_text(body, "role", "user"),
        read_message_text(body, "message"),
    )
    if text is None:
        raise field_error("text", "there, with what was said")
    if caller.sender and role == "user":  # some hosts name a sender for the agent's messages too
        _profile_of(served, caller, trial=False)
    result = served.live.message(
        _read_about(body),
        role,
        text,
        at=read_time(body, "at"),
        speaker=read_text(body, "speaker") or None,
        record=read_text(body, "id"),
    )
    return result._asdict()


def tool(served: OperationContext, body: Body) -> Json:
    if not read_text(body, "name"):
        raise field_error("name", "there, with the name of the tool")
    result = served.live.tool(
        _read_about(body),
        read_text(body, "name"),
        read_text(body, "summary"),
        read_text(body, "result"),
        at=read_time(body, "at"),
        record=read_text(body, "id"),
    )
    return result._asdict()


def end_session(served: OperationContext, body: Body) -> Json:
    """Also used for /new and /reset of a host: the state of the session in this process is dropped too."""
    about = _read_about(body)
    tags, record = tuple(read_texts(body, "tags")), read_text(body, "id")
    sealed = served.live.end(about, at=read_time(body, "at"), tags=tags, record=record)
    served.memory.session_ended(about.session_key, sealed=sealed is not None)
    if sealed is None:
        return {"session_id": about.session_id, "path": None, "sha256": None}
    return {"session_id": sealed.session_id, "path": sealed.path, "sha256": sealed.sha256}


def renew_session(served: OperationContext, body: Body) -> Json:
    """The host dropped earlier messages from its window, so injected text may be injected again."""
    key = read_caller(body).session_key
    served.memory.session_ended(key)
    return {"session_key": key}


def event(served: OperationContext, body: Body) -> Json:
    """Run the operations that an event of a host stands for."""
    host = find_translation(body)
    if host is None:
        raise field_error("host", "the name of a host")
    # An end that comes twice, directly and from the spool, must not end a session that began in between.
    extra = {"at": read_text(body, "at"), "id": read_text(body, "id")}
    results = [
        (
            call.operation,
            HANDLERS[call.operation](served, {**call.body, **_without_empty(extra, call.body)}),
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
    scope = _profile_of(served, read_caller(fields)).scope if names_caller(fields) else EVERYTHING
    first_line, count = read_int(body, "from"), read_int(body, "lines")
    reader = served.memory.services.file_reader
    result = reader.read(read_text(body, "path"), scope, first_line or 1, count or MAX_LINES)
    return result._asdict()


def remember(served: OperationContext, body: Body) -> Json:
    """Remember one line. If the request names no caller, the owner asks. `holds_slot`: the host says that we
    are its memory plugin. `shared`: others may read it; only the owner can say so, never a host."""
    is_host, body = find_translation(body) is not None, _normalize_host(body)
    profile = _profile_of(served, read_caller(body))
    text, to, holds_slot = read_text(body, "text"), read_text(body, "to"), body.get("holds_slot") is True
    by_owner = not names_caller(body) and not is_host
    shared = read_bool(body, "shared") is True
    result = served.memory.services.remembering.remember(
        text, to, profile, holds_slot=holds_slot, by_owner=by_owner, shared=shared
    )
    return result._asdict()


def explain_turns(served: OperationContext, body: Body) -> Json:
    """Explain in words what was injected into the last turns of a session."""
    body = _normalize_host(body)
    profile = _profile_of(served, read_caller(body))
    recorded = receipts.read_receipts(served.memory.home, profile.kind.key)
    visible = [receipts.redact_for_host(receipt) for receipt in recorded if _may_see(receipt, profile)]
    selected = visible[: read_limit(body, 1)]
    return {"text": "\n\n".join(map(describe_receipt, selected)) or "No turn of this session is on record."}


def _read_about(body: Body) -> SessionRef:
    caller = read_caller(body)
    return SessionRef(
        caller.session_key,
        caller.session_id,
        caller.agent,
        read_text(body, "channel") or None,
        read_text(body, "model") or None,
    )


# ---------------------------------------------------------------- receipts and due topics


def list_receipts(served: OperationContext, body: Body) -> Json:
    """Receipts, newest first. With a session key only those of the session, as far as it may see them."""
    limit = read_limit(body, 20)
    home = served.memory.home
    if not names_caller(body):
        return {"receipts": [as_dict(receipt) for receipt in receipts.recent(home, limit)]}
    profile = _profile_of(served, read_caller(body))
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
    receipt = receipts.find_by_id(served.memory.home, read_text(body, "id"))
    if receipt is not None and names_caller(body):
        receipt = (
            receipts.redact_for_host(receipt)
            if _may_see(receipt, _profile_of(served, read_caller(body)))
            else None
        )
    if receipt is None:
        raise UsageError(
            f"There is no receipt {read_text(body, 'id')[:40]!r}. See them with: tacit why -n 20"
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


def _refuse_unread(served: OperationContext, body: Body) -> Json:  # noqa: ARG001 - as every operation
    """An event that the relay did not understand. It is always refused, so the spool sets it aside."""
    operation, reason = read_text(body, "operation")[:20], read_text(body, "why")[:400]
    raise UsageError(f"`tacit-relay {operation}` did not understand an event: {reason}.")


HANDLERS: Mapping[str, Handler] = {
    "turn": turn,
    "look": dry_run,
    "bootstrap": bootstrap,
    "search": search,
    "find": find,
    "message": message,
    "tool": tool,
    "end_session": end_session,
    "renew": renew_session,
    "event": event,
    "read": read,
    "remember": remember,
    "why": explain_turns,
    "ipc": ipc,
    "list_receipts": list_receipts,
    "due": list_due_topics,
    "done_due": acknowledge_due_topics,
    "one_receipt": get_receipt,
}
# What may be in the spool: operations that hosts sent while no daemon ran.
_SPOOL_HANDLERS: Mapping[str, Handler] = {
    "unread": _refuse_unread,
    **{operation.name: HANDLERS[operation.name] for operation in OPERATIONS if operation.is_spooled},
}


def take_spooled(served: OperationContext, record: spool.SpooledEvent) -> None:
    """Run an operation from the spool."""
    if record.operation not in _SPOOL_HANDLERS:
        raise UsageError(f"{record.operation[:40]!r} is not an operation that hosts put into the spool.")
    _SPOOL_HANDLERS[record.operation](served, record.body)
