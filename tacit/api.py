"""The operations of a home, each listed once: what it is called, how it is asked, what it answers.

The daemon serves them over HTTP, the client asks a daemon for them or runs them itself. A request is a JSON
object, an answer too. What is wrong with a request is a UsageError that names the field; but whoever the
session and the sender are said to be, if that cannot be read it is nobody we know, and never the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

from tacit.errors import UsageError
from tacit.hosts import host_of
from tacit.memory import Memory
from tacit.memory.live import About, Conversations, Kept
from tacit.memory.reading import MOST_LINES
from tacit.memory.reading import read as read_file
from tacit.memory.remember import remember as keep_line
from tacit.memory.request import Request
from tacit.memory.schedules import came_due, take_due
from tacit.model.context import Receipt
from tacit.model.search import AUDIENCES, CATEGORIES, EVERYTHING, Scope
from tacit.model.topics import Event
from tacit.net.event import in_our_words
from tacit.sessions.agents import meant_key
from tacit.sessions.classify import MAIN
from tacit.sessions.rules import Profile, sender_of
from tacit.store import receipts, spool
from tacit.text.receipts import as_dict, in_words
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
    """`lane`: prompt (default) for the whole prompt, runtime for what the host lacks. `keeps_text`: false
    where the host's conversation does not keep what a turn was given."""
    body = _of_host(body)
    lane = _choice(body, "lane", ("prompt", "runtime"), "prompt")
    take = served.memory.inject if lane == "runtime" else served.memory.turn
    who = _who(body)
    compiled = take(
        _text(in_our_words(body), "message"),
        session_key=who.session_key,
        agent=who.agent,
        history=_list(body, "history"),
        budget=_whole(body, "budget"),
        event=_event(body.get("event")),
        paths=_texts(body, "paths"),
        wake=_texts(body, "wake"),
        sender=who.sender,
        trigger=who.trigger,
        session_id=who.session_id,
        tool=_text(body, "tool"),
        keeps_text=_truth(body, "keeps_text") is not False,
        seconds=_seconds(body),
    )
    return compiled_form(compiled, full=bool(body.get("full")))


def look(served: Served, body: Body) -> Json:
    """A turn to look at: it counts as none, and takes the time it needs. `at`: as the home was then."""
    who = _who(body)
    request = Request(
        _text(in_our_words(body), "message"),
        who.session_key,
        who.agent,
        history=_list(body, "history"),
        budget=_whole(body, "budget"),
        event=_event(body.get("event")),
        paths=_texts(body, "paths"),
        wake=_texts(body, "wake"),
        lane=_choice(body, "lane", ("prompt", "runtime"), "prompt"),
        sender=who.sender,
        trigger=who.trigger,
    )
    compiled = served.memory.turns.look(request, _text(body, "at") or None)
    return compiled_form(compiled, full=bool(body.get("full")))


def bootstrap(served: Served, body: Body) -> Json:
    """`files`: the host's own list. The answer has a fresh one; `files` is null where the host gave none.
    `message`: what the user wrote, where the host loads its files for each turn."""
    host, body = host_of(body), _of_host(body)
    who = _who(body)
    done = served.memory.bootstrapped(
        who.session_key,
        body.get("files"),
        _text(body, "workspace") or None,
        agent=who.agent,
        sender=who.sender,
        trigger=who.trigger,
        message=_text(in_our_words(body), "message"),
    )
    receipt = done.receipt
    files = done.files
    if host is not None and files is not None and done.changed:
        files = host.listed(who.session_key, files)
    return {
        "files": files,
        "changed": done.changed,
        "receipt": receipt.id,
        "tokens": receipt.tokens,
        "host_tokens": receipt.host_tokens,
        "session_type": receipt.session_type,
        "rule": receipt.rule,
        "notices": [{"code": notice.code, "text": notice.text} for notice in receipt.notices],
    }


def _of_host(body: Body) -> Body:
    """Of a host that is known by name its own words are understood."""
    host = host_of(body)
    if host is None:
        return body
    said: Body = host.turn(body)
    return said


def search(served: Served, body: Body) -> Json:
    """In what a session may see; without a session key the owner asks."""
    body = _of_host(body)
    scope = _profile(served, _who(body)).scope if _names_session(body) else EVERYTHING
    category = _choice(body, "category", ("", *CATEGORIES), "")
    if category:
        scope = replace(scope, categories=(category,))
    limit = _whole(body, "limit")
    return found_form(served.memory.find(_text(body, "query"), scope, _limited(limit, 10)))


def find(served: Served, body: Body) -> Json:
    """As `search`, for the owner, with all filters."""
    if _names_session(body):
        raise UsageError(
            "'session_key' is not for /v1/find, where the owner asks. What a session may see: ask /v1/search."
        )
    scope = _scope(body.get("scope"))
    return found_form(served.memory.find(_text(body, "query"), scope, _limited(_whole(body, "limit"), 10)))


# ---------------------------------------------------------------- who asks


class _Who(NamedTuple):
    """Which session a request is about, and who writes in it."""

    session_key: str
    agent: str | None
    sender: str
    trigger: str
    session_id: str


def _who(body: Body) -> _Who:
    said = in_our_words(body)
    return _Who(
        session_key_of(body),
        _text(said, "agent") or None,
        sender_of(said.get("sender")),
        _text(said, "trigger"),
        _text(said, "session_id"),
    )


def session_key_of(body: Body) -> str:
    """Also of a request that makes no sense otherwise."""
    said = in_our_words(body)
    return meant_key(said.get("session_key", MAIN), said.get("agent"))


def _names_session(body: Body) -> bool:
    """With any value: one that is null is no session that anybody knows."""
    return "session_key" in in_our_words(body)


def _profile(served: Served, who: _Who, *, trial: bool = True) -> Profile:
    """As a trial it leaves no trace: to ask for something is not to write in a session."""
    return served.memory.profile_of(
        who.session_key, agent=who.agent, sender=who.sender, trigger=who.trigger, trial=trial
    )


# ---------------------------------------------------------------- conversations


def message(served: Served, body: Body) -> Json:
    """`sender`: who wrote it, as the host spells it. Who writes in a main session decides whose it is."""
    who, role = _who(body), _text(body, "role", "user")
    if who.sender and role == "user":  # what the agent says has a sender too, with some hosts
        _profile(served, who, trial=False)
    kept = served.live.message(
        _about(body),
        role,
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
    tags, record = tuple(_texts(body, "tags")), _text(body, "id")
    sealed = served.live.end(about, at=_moment(body, "at"), tags=tags, record=record)
    served.memory.session_ended(about.session_key, sealed=sealed is not None)
    if sealed is None:
        return {"session_id": about.session_id, "path": None, "sha256": None}
    return {"session_id": sealed.session_id, "path": sealed.path, "sha256": sealed.sha256}


def renew(served: Served, body: Body) -> Json:
    """The host took what was said before out of its window: what was given then may be given again."""
    key = _who(body).session_key
    served.memory.session_ended(key)
    return {"session_key": key}


def event(served: Served, body: Body) -> Json:
    """What a host tells in its own words, and the operations that it means."""
    host = host_of(body)
    if host is None:
        raise _wrong("host", "the name of a host")
    # An end that comes twice, by the daemon's door and by the spool, must not end what began in between.
    more = {"at": _text(body, "at"), "id": _text(body, "id")}
    done = [(one.operation, _MEANT[one.operation](served, {**one.body, **_without_empty(more, one.body)}))
            for one in host.event(body)]  # fmt: skip
    return {"done": [{"operation": name, **answer} for name, answer in done], "session_id": ""}


def _without_empty(otherwise: Body, said: Body) -> Body:
    return {name: value for name, value in otherwise.items() if value and not said.get(name)}


def read(served: Served, body: Body) -> Json:
    """One file, as far as the session may see it. `from` is a line here, and nobody who writes."""
    body = _of_host(body)
    asked = {name: value for name, value in body.items() if name != "from"}
    scope = _profile(served, _who(asked)).scope if _names_session(asked) else EVERYTHING
    first, count = _whole(body, "from"), _whole(body, "lines")
    found = read_file(served.memory, _text(body, "path"), scope, first or 1, count or MOST_LINES)
    return found._asdict()


def remember(served: Served, body: Body) -> Json:
    """One line for later sessions. Without a session key the owner asks. `holds_slot`: the host says that its
    place for a memory plugin is ours."""
    body = _of_host(body)
    profile = _profile(served, _who(body))
    text, to, holds_slot = _text(body, "text"), _text(body, "to"), body.get("holds_slot") is True
    by_owner = not _names_session(body)
    done = keep_line(served.memory, text, to, profile, holds_slot=holds_slot, by_owner=by_owner)
    return done._asdict()


def why(served: Served, body: Body) -> Json:
    """Why the last turns of a session were given what they were given, in words."""
    body = _of_host(body)
    profile = _profile(served, _who(body))
    found = receipts.of_session(served.memory.home, profile.kind.key)
    mine = [receipts.for_host(one) for one in found if _is_for(one, profile)]
    shown = mine[: _limited(_whole(body, "limit"), 1)]
    return {"text": "\n\n".join(map(in_words, shown)) or "No turn of this session is on record."}


_MEANT: Mapping[str, Callable[[Served, Body], Json]] = {
    "message": message, "tool": tool, "end_session": end_session, "renew": renew,
}  # fmt: skip


def _about(body: Body) -> About:
    who = _who(body)
    return About(
        who.session_key,
        who.session_id,
        who.agent,
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
    if not _names_session(body):
        return {"receipts": [as_dict(one) for one in receipts.recent(home, limit)]}
    profile = _profile(served, _who(body))
    found = receipts.of_session(home, profile.kind.key)
    mine = (receipts.for_host(one) for one in found if _is_for(one, profile))
    return {"receipts": [as_dict(one) for one in islice(mine, limit)]}


def _is_for(receipt: Receipt, profile: Profile) -> bool:
    """Whether who asks may see what was seen then: others may write in the owner's session, and for another
    agent."""
    then = AUDIENCES.index(receipt.audience) if receipt.audience in AUDIENCES else len(AUDIENCES)
    is_same = receipt.session_key == profile.kind.key and receipt.agent == profile.kind.agent
    return is_same and then <= AUDIENCES.index(profile.rule.audience)


def one_receipt(served: Served, body: Body) -> Json:
    """With a session key only one of its own, without what that session may not see."""
    found = receipts.by_id(served.memory.home, _text(body, "id"))
    if found is not None and _names_session(body):
        found = receipts.for_host(found) if _is_for(found, _profile(served, _who(body))) else None
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
    """`{"action":"search","payload":{"query":…,"limit":5}}`, or the same without a payload. Which session
    asks may stand in either."""
    payload, action = body.get("payload"), body.get("action")
    asked = {**_session_fields(body), **in_our_words(payload)} if isinstance(payload, Mapping) else body
    if action != "search":
        return {"status": "error", "error": f"Unknown action {str(action)[:40]!r}. There is: search."}
    try:
        found = search(served, {**asked, "limit": asked.get("limit") or 5})
    except UsageError as error:
        return {"status": "error", "error": str(error)}
    return {"status": "ok", "data": {"results": [_ethos(hit) for hit in found["hits"]]}}


def _session_fields(body: Body) -> dict[str, Any]:
    said = in_our_words(body)
    return {name: said[name] for name in ("session_key", "agent", "sender", "trigger") if name in said}


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
    Operation("renew", "POST", "/v1/session/renew", renew),
    Operation("event", "POST", "/v1/event", event),
    Operation("read", "POST", "/v1/read", read),
    Operation("remember", "POST", "/v1/remember", remember),
    Operation("why", "POST", "/v1/why", why),
    Operation("ipc", "POST", "/v1/ipc", ipc),
    Operation("list_receipts", "GET", "/v1/receipts", list_receipts),
    Operation("due", "GET", "/v1/due", due),
    Operation("done_due", "POST", "/v1/due/done", done_due),
    Operation("one_receipt", "GET", "/v1/receipts/{id}", one_receipt),
)
SPOOLED = ("message", "tool", "end_session", "event")  # what a host may leave in the spool


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


def _scope(value: object) -> Scope:
    if value is None:
        return EVERYTHING
    if not isinstance(value, Mapping):
        raise _wrong("scope", "an object")
    if unknown := [name for name in value if name not in _FILTERS]:
        raise UsageError(f"'scope' has no {str(unknown[0])[:40]!r}. There are: {', '.join(_FILTERS)}.")
    return Scope(**{name: _FILTERS[name](value, name) for name in value})


def _day(scope: Body, name: str) -> date | None:
    text = _text(scope, name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise _wrong(name, "a day like 2026-02-16") from None


def _truth(scope: Body, name: str) -> bool | None:
    value = scope.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(name, "true, false or null")
    return value


def _categories(scope: Body, name: str) -> tuple[str, ...]:
    found = _texts(scope, name)
    if not set(found) <= set(CATEGORIES):
        raise _wrong(name, f"a list of {', '.join(CATEGORIES)}")
    return found


def _audience(scope: Body, name: str) -> Any:
    """Null is refused: it is no wish for the owner's view."""
    return _choice({name: scope[name] or ""}, name, AUDIENCES, "")


# How each filter of a scope is read.
_FILTERS: Mapping[str, Callable[[Body, str], Any]] = {
    "categories": _categories,
    "audience": _audience,
    "conversation": _text,
    "agents": _texts,
    "since": _day,
    "until": _day,
    "under": _text,
    "without": _texts,
    "archived": _truth,
}
