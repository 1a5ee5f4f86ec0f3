"""Reads the fields of a request, and who sent it.

An invalid field is a UsageError that names it. A session or sender that cannot be read counts as unknown, and
never as the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

from tacit.errors import UsageError
from tacit.home.categories import CATEGORIES
from tacit.hosts.fields import TEXT_FIELDS, NotUnderstood, find_text, normalize_fields
from tacit.privacy.audience import AUDIENCES
from tacit.search.model import EVERYTHING, Scope
from tacit.sessions.keys import MAIN_SESSION_KEY, resolve_key
from tacit.sessions.policy import sender_name
from tacit.topics.model import Event

Body: TypeAlias = Mapping[str, Any]

_MAX_LIMIT = 1000  # hits or receipts in an answer


# ---------------------------------------------------------------- the caller


class Caller(NamedTuple):
    """Which session a request is about, and who writes in it."""

    session_key: str
    agent: str | None
    sender: str
    trigger: str
    session_id: str


def read_caller(body: Body) -> Caller:
    fields = normalize_fields(body)
    return Caller(
        session_key_of(body),
        read_text(fields, "agent") or None,
        sender_name(fields.get("sender")),
        read_text(fields, "trigger"),
        read_text(fields, "session_id"),
    )


def session_key_of(body: Body) -> str:
    """The session key, even if the rest of the request is invalid."""
    fields = normalize_fields(body)
    return resolve_key(fields.get("session_key", MAIN_SESSION_KEY), fields.get("agent"))


def names_caller(body: Body) -> bool:
    """Whether the request names a session (null counts as an unknown one), or a sender or trigger in the main
    session, who may be a stranger."""
    return bool(caller_field(body))


def caller_field(body: Body) -> str:
    """The first field that names the caller; empty: none does, so the owner asks."""
    fields = normalize_fields(body)
    if "session_key" in fields:
        return "session_key"
    return next((name for name in ("sender", "trigger") if fields.get(name) not in (None, "")), "")


# ---------------------------------------------------------------- values


def field_error(name: str, expected: str) -> UsageError:
    return UsageError(f"{name!r} must be {expected}.")


def read_text(body: Body, name: str, default: str = "") -> str:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise field_error(name, "text")
    return value


def read_message_text(body: Body, operation: str) -> str | None:
    """The text of the message, under any of the names that hosts use; None: there is none."""
    field = TEXT_FIELDS[operation][0]
    if isinstance(body.get(field), int):  # a number counts as text only under a host's name for the field
        raise field_error(field, "text")
    try:
        return find_text(body, *TEXT_FIELDS[operation])
    except NotUnderstood as error:
        raise UsageError(f"{error}.") from None


def read_choice(body: Body, name: str, choices: Sequence[str], default: str) -> Any:
    value = read_text(body, name, default)
    if value not in choices:
        raise field_error(name, f"one of {', '.join(choice for choice in choices if choice)}")
    return value


def read_int(body: Body, name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)  # in the query of a GET every value is text
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**9):
        raise field_error(name, "a whole number")
    return value


def read_limit(body: Body, default: int) -> int:
    limit = read_int(body, "limit")
    return min(_MAX_LIMIT, max(1, default if limit is None else limit))


def read_list(body: Body, name: str) -> Sequence[object]:
    value = body.get(name)
    if value is not None and not isinstance(value, list):
        raise field_error(name, "a list")
    return value or ()


def read_texts(body: Body, name: str) -> tuple[str, ...]:
    items = read_list(body, name)
    if not all(isinstance(item, str) for item in items):
        raise field_error(name, "a list of texts")
    return tuple(str(item) for item in items)


def read_seconds(body: Body) -> float | None:
    milliseconds = read_int(body, "deadline_ms")
    return None if milliseconds is None else max(0, milliseconds) / 1000


def read_time(body: Body, name: str) -> datetime | None:
    text = read_text(body, name)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise field_error(name, "a time like 2026-02-16T18:45:00+01:00") from None


def read_event(value: object) -> Event | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise field_error("event", "an object with a type, webhook or cron")
    kind = read_choice(value, "type", ("webhook", "cron"), "")
    return Event(kind, read_text(value, "source"), read_text(value, "event"), read_text(value, "topic"))


def read_scope(value: object) -> Scope:
    if value is None:
        return EVERYTHING
    if not isinstance(value, Mapping):
        raise field_error("scope", "an object")
    if unknown := [name for name in value if name not in _FILTERS]:
        raise UsageError(f"'scope' has no {str(unknown[0])[:40]!r}. There are: {', '.join(_FILTERS)}.")
    return Scope(**{name: _FILTERS[name](value, name) for name in value})


def _read_day(scope: Body, name: str) -> date | None:
    text = read_text(scope, name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise field_error(name, "a day like 2026-02-16") from None


def read_bool(scope: Body, name: str) -> bool | None:
    value = scope.get(name)
    if value is not None and not isinstance(value, bool):
        raise field_error(name, "true, false or null")
    return value


def _read_categories(scope: Body, name: str) -> tuple[str, ...]:
    categories = read_texts(scope, name)
    if not set(categories) <= set(CATEGORIES):
        raise field_error(name, f"a list of {', '.join(CATEGORIES)}")
    return categories


def _read_audience(scope: Body, name: str) -> Any:
    """Null is refused, since it must not mean the owner's view."""
    return read_choice({name: scope[name] or ""}, name, AUDIENCES, "")


# The reader of each filter of a scope.
_FILTERS: Mapping[str, Callable[[Body, str], Any]] = {
    "categories": _read_categories,
    "audience": _read_audience,
    "conversation": read_text,
    "agents": read_texts,
    "since": _read_day,
    "until": _read_day,
    "under": read_text,
    "without": read_texts,
    "archived": read_bool,
}
