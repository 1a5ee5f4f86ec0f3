"""The request for a turn, and the empty answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from tacit.context.model import Compiled, Receipt
from tacit.diagnostics import Notice
from tacit.privacy.redaction import clean
from tacit.privacy.strip_injected import remove_injected
from tacit.sessions.keys import MAIN_SESSION_KEY, agent_name, resolve_key
from tacit.sessions.policy import sender_name
from tacit.topics.model import Event

_MAX_PREVIEW_CHARS = 120  # of the message in a receipt


@dataclass(frozen=True, slots=True)
class Request:
    """A host's request for a turn. `seconds`: the deadline, None for no limit. `trial`: a dry run, which is
    no turn of the session and leaves no trace in it."""

    message: str
    session_key: str = MAIN_SESSION_KEY
    agent: str | None = None
    session_id: str = ""  # empty: taken from the receipts
    joins: bool = False  # the host gave no id: it is the id of the open transcript of the key
    transcript: str = ""  # of this session; it is not searched, since the host has it
    history: Sequence[object] = ()
    budget: int | None = None
    event: Event | None = None
    paths: tuple[str, ...] = ()  # in tool calls since the last turn, in addition to the history
    wake: tuple[str, ...] = ()  # names of topics to activate
    seconds: float | None = None
    trial: bool = False
    quiet: bool = False  # write no receipt
    lane: Literal["prompt", "runtime"] = "prompt"
    sender: str = ""  # who wrote the message, as the host writes it
    trigger: str = ""  # what started the run: user, heartbeat, cron, webhook
    tool: str = ""  # the tool for which the host asks, if any
    keeps_text: bool = True  # the injected text of a turn stays in the conversation that the model sees


def normalize_request(request: Request) -> Request:
    """Make sure that text fields hold text: a host may pass any JSON."""
    agent = agent_name(request.agent) or None
    return replace(
        request,
        message=request.message if isinstance(request.message, str) else "",
        session_key=resolve_key(request.session_key, agent),
        agent=agent,
        paths=tuple(sanitize(path) for path in request.paths if isinstance(path, str)),
        wake=tuple(sanitize(name) for name in request.wake if isinstance(name, str)),
        session_id=_as_text(request.session_id),
        sender=sender_name(request.sender),
        trigger=_as_text(request.trigger),
        tool=_as_text(request.tool),
        keeps_text=request.keeps_text is not False,
    )


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def empty_result(
    message: str, code: str, reason: str, now: datetime, request_fields: Mapping[str, Any] | None = None
) -> Compiled:
    """The empty answer: the turn goes on with what the host has."""
    fields = request_fields or {}
    key = resolve_key(fields.get("session_key", MAIN_SESSION_KEY), fields.get("agent"))
    text = sanitize(_as_text(message))
    receipt = Receipt(
        id="", at=now.isoformat(), session_key=key, session_id="", session_type="", agent="",
        message_hash=text_digest(text), message=preview(text), budget=0, tokens=0,
        characters=0, sections=(), dropped=(), skipped=code, notices=(Notice(code, reason),),
        lane=_as_text(fields.get("lane")) or "prompt",
    )  # fmt: skip
    return Compiled("", 0, (), (), receipt)


def sanitize(text: str) -> str:
    """Remove injected and private text: the rest may be searched for, stored and shown to a model."""
    return clean(remove_injected(text)).text


def text_digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def preview(text: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(text[: 2 * _MAX_PREVIEW_CHARS].split())[:_MAX_PREVIEW_CHARS]
