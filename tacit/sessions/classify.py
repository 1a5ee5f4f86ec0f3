"""What kind of session a key belongs to, read by its segments and never by what is found inside one.

    agent:<agent>:main                                  the owner's, or an orchestrating agent's
    agent:<agent>[:<channel>[:<account>]]:direct:<peer> `dm` is the older word
    agent:<agent>:<channel>:group:<id>                  also channel and room
    …:topic:<id>, …:thread:<id>                         a part of one of these
    agent:<agent>:subagent:<id>, agent:<agent>:cron:<job>[:run:<id>], agent:<agent>[:main]:heartbeat
    cron:<job>, subagent:<id>, heartbeat                the same without an agent

A key of any other form is a fallback, whose audience is the narrowest. So is one that no host makes:
with characters that cannot be printed, angle brackets, a way out of a folder, or of great length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tacit.model.search import Scope

SessionType: TypeAlias = Literal[
    "main_session", "private_dm", "external_dm", "forum_topic", "group_chat", "subagent", "heartbeat_cron",
    "orchestration", "fallback",
]  # fmt: skip

DEFAULT_AGENT = "main"
LONGEST_KEY = 512
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_OUTWARD = re.compile(r"[<>\\]|(?:^|[:/])\.\.?(?:[:/]|$)")


@dataclass(frozen=True, slots=True)
class SessionKind:
    key: str  # as given, whatever is in it
    agent: str = DEFAULT_AGENT
    type: SessionType = "fallback"
    channel: str = ""
    peer: str = ""  # the other side of a direct message, or the group
    topic: str = ""

    @property
    def known(self) -> bool:
        """Whether the key has one of the forms above."""
        return self.type != "fallback"


def classify(
    session_key: object, owners: Collection[str] = (), orchestration_agents: Collection[str] = ()
) -> SessionKind:
    """`owners`: the owner's ids, alone or after a channel (`telegram:7`). Case does not count, since hosts
    fold it."""
    key = session_key if isinstance(session_key, str) else ""
    parts = key[: LONGEST_KEY + 1].split(":")
    if parts[0] == "agent" and len(parts) > 1:
        if not _NAME.fullmatch(parts[1]):
            return SessionKind(key)
        kind, rest = SessionKind(key, parts[1]), parts[2:]
    else:
        kind, rest = SessionKind(key), parts if parts[0] in ("cron", "subagent", "heartbeat") else []
    if not _is_sane(key) or "" in rest:
        return kind
    return _placed(kind, rest, frozenset(map(str.lower, owners)), orchestration_agents)


def scope_of(kind: SessionKind, audience: str) -> Scope:
    """What a session may search, given whose knowledge its type may see. An owner sees all transcripts,
    a group its own, everybody else none."""
    if audience == "owner":
        return Scope(agents=(kind.agent,))
    if audience == "group":
        return Scope(audience="group", conversation=kind.key, agents=(kind.agent,))
    return Scope(audience="anyone", agents=(kind.agent,))


def _is_sane(key: str) -> bool:
    return len(key) <= LONGEST_KEY and key.isprintable() and not _OUTWARD.search(key)


def _placed(
    kind: SessionKind, rest: Sequence[str], owners: Collection[str], orchestrating: Collection[str]
) -> SessionKind:
    match rest:
        case ["main"]:
            return replace(kind, type="orchestration" if kind.agent in orchestrating else "main_session")
        case ["subagent", _, *_]:
            return replace(kind, type="subagent")
        case ["heartbeat", *_] | ["main", "heartbeat"]:
            return replace(kind, type="heartbeat_cron")
        case ["cron", _, *more]:
            return replace(kind, type="subagent" if "subagent" in more else "heartbeat_cron")
        case ["direct" | "dm", _, *_]:
            return _direct(kind, "", rest[1:], owners)
        case [channel, "direct" | "dm", _, *_]:
            return _direct(kind, channel, rest[2:], owners)
        case [channel, "group" | "channel" | "room", _, *_]:
            return _group(kind, channel, rest[2:])
        case [channel, "topic" | "thread", _, *_]:
            return replace(kind, type="forum_topic", channel=channel, topic=":".join(rest[2:]))
        case [channel, _, "direct" | "dm", _, *_]:
            return _direct(kind, channel, rest[3:], owners)
    return kind


def _direct(kind: SessionKind, channel: str, tail: Sequence[str], owners: Collection[str]) -> SessionKind:
    peer, topic = _split(tail)
    is_owner = peer.lower() in owners or (channel != "" and f"{channel}:{peer}".lower() in owners)
    return replace(
        kind, type="private_dm" if is_owner else "external_dm", channel=channel, peer=peer, topic=topic
    )


def _group(kind: SessionKind, channel: str, tail: Sequence[str]) -> SessionKind:
    peer, topic = _split(tail)
    return replace(
        kind, type="forum_topic" if topic else "group_chat", channel=channel, peer=peer, topic=topic
    )


def _split(tail: Sequence[str]) -> tuple[str, str]:
    """An id, which may have colons in it (`@ana:matrix.org`), and the topic behind it."""
    at = next((at for at in range(1, len(tail) - 1) if tail[at] in ("topic", "thread")), len(tail))
    return ":".join(tail[:at]), ":".join(tail[at + 1 :])
