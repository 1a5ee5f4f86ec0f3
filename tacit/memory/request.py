"""What a host asks for, and the answer where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from tacit.model.context import Compiled, Notice, Receipt
from tacit.model.topics import Event
from tacit.sessions.agents import agent_of, meant_key
from tacit.sessions.classify import MAIN
from tacit.sessions.rules import sender_of
from tacit.text.ours import without_ours
from tacit.text.redact import clean

_SHOWN = 120  # characters of the message in a receipt


@dataclass(frozen=True, slots=True)
class Request:
    """What a host asks for. `seconds`: the time there is, None for as long as it takes. `trial`: asked by
    hand, so it is no turn of the session and leaves no trace in it."""

    message: str
    session_key: str = MAIN
    agent: str | None = None
    session_id: str = ""  # empty: as the receipts tell
    joins: bool = False  # the id is that of the transcript that is open under the key: the host named none
    transcript: str = ""  # of this very session, which is not searched: the host has it
    history: Sequence[object] = ()
    budget: int | None = None
    event: Event | None = None
    paths: tuple[str, ...] = ()  # in tool calls since the last turn, besides those in the history
    wake: tuple[str, ...] = ()  # topics asked for by name
    seconds: float | None = None
    trial: bool = False
    quiet: bool = False  # leaves no receipt
    lane: Literal["prompt", "runtime"] = "prompt"
    sender: str = ""  # who wrote the message, as the host spells it
    trigger: str = ""  # what began the run: user, heartbeat, cron, webhook
    tool: str = ""  # on whose behalf the host asks, where it is a tool
    keeps_text: bool = True  # what a turn was given stays in the conversation that the model sees


def sane(request: Request) -> Request:
    """With text where there has to be text, whatever a host gave."""
    agent = agent_of(request.agent) or None
    return replace(
        request,
        message=request.message if isinstance(request.message, str) else "",
        session_key=meant_key(request.session_key, agent),
        agent=agent,
        paths=tuple(keepable(path) for path in request.paths if isinstance(path, str)),
        wake=tuple(keepable(name) for name in request.wake if isinstance(name, str)),
        session_id=_text(request.session_id),
        sender=sender_of(request.sender),
        trigger=_text(request.trigger),
        tool=_text(request.tool),
        keeps_text=request.keeps_text is not False,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def nothing(
    message: str, code: str, reason: str, now: datetime, asked: Mapping[str, Any] | None = None
) -> Compiled:
    """The answer where there is none: the turn goes on with what the host has."""
    given = asked or {}
    key = meant_key(given.get("session_key", MAIN), given.get("agent"))
    said = keepable(_text(message))
    receipt = Receipt(
        id="", at=now.isoformat(), session_key=key, session_id="", session_type="", agent="",
        message_hash=digest(said), message=shown(said), budget=0, tokens=0,
        characters=0, sections=(), dropped=(), skipped=code, notices=(Notice(code, reason),),
        lane=_text(given.get("lane")) or "prompt",
    )  # fmt: skip
    return Compiled("", 0, (), (), receipt)


def keepable(text: str) -> str:
    """What of it may leave the turn: it is looked for, kept in a receipt, shown to a model."""
    return clean(without_ours(text)).text


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shown(said: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(said[: 2 * _SHOWN].split())[:_SHOWN]
