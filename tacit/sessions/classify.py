"""What kind of session a key belongs to, read by its segments and never by what is found inside one.

    agent:<a>:<main>                   main_session; orchestration if the config says so of the agent.
                                       <main> is main, or what the config has in sessions.main_keys
    agent:<a>:<main>:heartbeat         heartbeat_cron; so is agent:<a>:heartbeat
    agent:<a>:<main>:thread:<id>       external_dm, also with topic: whose messages a host folds into it
                                       cannot be told
    agent:<a>:direct:<peer>            private_dm if the config names the peer as an owner, else
    agent:<a>:<channel>:direct:<peer>  external_dm. `dm` is the older word; …:thread:<id> and
    agent:<a>:<channel>:<account>:direct:<peer>  …:topic:<id> are parts of it
    agent:<a>:<channel>:group:<id>     group_chat, also with channel or room, with an account before it and
                                       without the channel
    …:group:<id>:topic:<id>            forum_topic, also with thread; so is agent:<a>:<channel>:thread:<id>
    agent:<a>:cron:<job>[:run:<id>]    heartbeat_cron; a job that a webhook began has the same key
    agent:<a>:subagent:<id>            subagent, as deep as :subagent:<id> nests, also below cron
    agent:<a>:acp:<…>, boot, hook      fallback: a run that others may have begun or may read
    agent:<a>:dashboard:<…>, explicit  fallback: who sits there cannot be told. With one id behind it a main
                                       session, if sessions.main_keys has the word
    agent:<a>:<channel>:slash:<user>   fallback: everybody may read the answer to a command
    global, unknown                    fallback: a host's words for all sessions and for none
    cron:<…>, subagent:<…>, hook:<…>, heartbeat  as above, without an agent

A key of any other form, such as agent:<a>:<whatever>, has no known form: a fallback, whose audience is the
narrowest. So is one that no host makes: with characters that cannot be printed, angle brackets, a way out of
a folder, or of great length. What is not surely the owner's is never taken for the owner's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tacit.config.keys import HOST_WORDS
from tacit.model.search import Scope

SessionType: TypeAlias = Literal[
    "main_session", "private_dm", "external_dm", "forum_topic", "group_chat", "subagent", "heartbeat_cron",
    "orchestration", "fallback",
]  # fmt: skip
Form: TypeAlias = Literal[
    "", "main", "main thread", "direct", "group", "thread", "subagent", "cron", "heartbeat", "acp", "boot",
    "hook", "dashboard", "explicit", "slash", "global", "unknown",
]  # fmt: skip
Person: TypeAlias = tuple[str, str]  # channel, id; no channel: the id on any channel

DEFAULT_AGENT = "main"
MAIN = "agent:main:main"  # whose session it is where a host names none
MAIN_KEYS = (DEFAULT_AGENT,)
LONGEST_KEY = 512
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+@-]{0,63}")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_OUTWARD = re.compile(r"[<>\\]|(?:^|[:/])\.\.?(?:[:/]|$)")

_OF_NO_ACCOUNT = HOST_WORDS - {"main"}


@dataclass(frozen=True, slots=True)
class SessionKind:
    key: str  # as given, whatever is in it
    agent: str = DEFAULT_AGENT  # empty: a host names two, and it is neither's
    type: SessionType = "fallback"
    channel: str = ""
    peer: str = ""  # the other side of a direct message, or the group
    topic: str = ""
    form: Form = ""

    @property
    def known(self) -> bool:
        """Whether the key has one of the forms above."""
        return self.form != ""

    @property
    def is_main(self) -> bool:
        """Whether a host may have folded several senders into it."""
        return self.form == "main"


def classify(
    session_key: object,
    owners: Collection[str] = (),
    orchestration_agents: Collection[str] = (),
    main_keys: Collection[str] = MAIN_KEYS,
) -> SessionKind:
    """`owners`: the owner's ids, alone or after a channel (`telegram:7`). Case does not count, since hosts
    fold it."""
    key = session_key if isinstance(session_key, str) else ""
    parts = key[: LONGEST_KEY + 1].split(":")
    if parts[0] == "agent" and len(parts) > 1:
        if not is_name(parts[1]):
            return SessionKind(key)
        kind, rest = SessionKind(key, parts[1]), parts[2:]
    else:
        kind, rest = SessionKind(key), _without_agent(parts)
    if not _is_sane(key) or "" in rest:
        return kind
    return _placed(kind, rest, _Names(owners, orchestration_agents, main_keys))


def scope_of(kind: SessionKind, audience: str) -> Scope:
    """What a session may search, given whose knowledge its type may see. An owner sees all transcripts,
    a group its own, everybody else none."""
    if audience == "owner":
        return Scope(agents=(kind.agent,))
    if audience == "group":
        return Scope(audience="group", conversation=kind.key, agents=(kind.agent,))
    return Scope(audience="anyone", agents=(kind.agent,))


def person(text: str) -> Person:
    """Whom somebody means by `telegram:7` or `7`. The first part is a channel if it could be one, so that
    nobody's id on another channel can be `telegram:7`; `@ana:example.org` is an id."""
    channel, colon, identity = text.partition(":")
    if colon and identity and _PREFIX.fullmatch(channel):
        return folded(channel), folded(identity)
    return "", folded(text)


def is_owner(who: Person, owners: Iterable[str]) -> bool:
    """Whether somebody is named as an owner: by the id on that channel, or by the id alone."""
    channel, identity = who
    named = {person(owner) for owner in owners if owner not in ("", "*")}
    return ("", identity) in named or (channel != "" and (channel, identity) in named)


def is_name(text: str) -> bool:
    """Whether an agent could be called so in a key."""
    return _NAME.fullmatch(text) is not None


def folded(text: str) -> str:
    """Without the difference of case, which hosts do not keep. Beyond ASCII there are letters that fold into
    others (the Kelvin sign into k), so such a text is only itself."""
    return text.lower() if text.isascii() else text


class _Names:
    """What the config names."""

    def __init__(
        self, owners: Collection[str], orchestrating: Collection[str], main_keys: Collection[str]
    ) -> None:
        self.owners = owners
        self.orchestrating = frozenset(map(folded, orchestrating))
        self.main = frozenset(map(folded, main_keys))


def _without_agent(parts: list[str]) -> list[str]:
    alone = len(parts) == 1 and parts[0] in ("heartbeat", "global", "unknown")
    return parts if alone or parts[0] in ("cron", "subagent", "hook") else []


def _is_sane(key: str) -> bool:
    return len(key) <= LONGEST_KEY and key.isprintable() and not _OUTWARD.search(key)


def _placed(kind: SessionKind, rest: Sequence[str], names: _Names) -> SessionKind:
    match rest:
        case ["global" | "unknown" as form] if form == kind.key:
            return replace(kind, form=form)
        case [main] if main in names.main:
            return _main(kind, names)
        case ["dashboard" | "explicit" as word, _] if word in names.main:
            return _main(kind, names)
        case ["acp" | "boot" | "hook" | "dashboard" | "explicit" as form, _, *_]:
            return replace(kind, form=form)
        case ["heartbeat"]:
            return replace(kind, type="heartbeat_cron", form="heartbeat")
        case [main, "heartbeat"] if main in names.main:
            return replace(kind, type="heartbeat_cron", form="heartbeat")
        case [main, "topic" | "thread", _, *_] if main in names.main:
            return replace(kind, type="external_dm", topic=":".join(rest[2:]), form="main thread")
        case ["subagent", _, *_]:
            return _spawned(kind, rest)
        case ["cron", _, *_]:
            return _scheduled(kind, rest)
    return kind if rest and rest[0] in names.main else _talk(kind, rest, names)


def _main(kind: SessionKind, names: _Names) -> SessionKind:
    orchestrates = folded(kind.agent) in names.orchestrating
    return replace(kind, type="orchestration" if orchestrates else "main_session", form="main")


def _spawned(kind: SessionKind, rest: Sequence[str]) -> SessionKind:
    nested = len(rest) % 2 == 0 and set(rest[::2]) == {"subagent"}
    return replace(kind, type="subagent", form="subagent") if nested else kind


def _scheduled(kind: SessionKind, rest: Sequence[str]) -> SessionKind:
    below = rest[4:] if len(rest) > 3 and rest[2] == "run" else rest[2:]
    return _spawned(kind, below) if below else replace(kind, type="heartbeat_cron", form="cron")


def _talk(kind: SessionKind, rest: Sequence[str], names: _Names) -> SessionKind:
    """Sessions in which somebody writes."""
    match rest:
        case ["direct" | "dm", _, *_]:
            return _direct(kind, rest[1:], names)
        case ["group" | "channel" | "room", peer, *_] if peer not in HOST_WORDS:
            return _group(kind, rest[1:])
        case [channel, *_] if channel in HOST_WORDS or not _CHANNEL.fullmatch(channel):
            return kind
        case [channel, "direct" | "dm", _, *_]:
            return _direct(replace(kind, channel=channel), rest[2:], names)
        case [channel, "group" | "channel" | "room", _, *_]:
            return _group(replace(kind, channel=channel), rest[2:])
        case [channel, "topic" | "thread", _, *_]:
            topic = ":".join(rest[2:])
            return replace(kind, type="forum_topic", channel=channel, topic=topic, form="thread")
        case [_, "slash", _, *_]:
            return replace(kind, form="slash")
        case [channel, account, "direct" | "dm", _, *_] if _is_account(account):
            return _direct(replace(kind, channel=channel), rest[3:], names)
        case [channel, account, "group" | "channel" | "room", _, *_] if _is_account(account):
            return _group(replace(kind, channel=channel), rest[3:])
    return kind


def _is_account(name: str) -> bool:
    return name not in _OF_NO_ACCOUNT and _CHANNEL.fullmatch(name) is not None


def _direct(kind: SessionKind, tail: Sequence[str], names: _Names) -> SessionKind:
    peer, topic = _split(tail)
    own = is_owner((folded(kind.channel), folded(peer)), names.owners)
    return replace(kind, type="private_dm" if own else "external_dm", peer=peer, topic=topic, form="direct")


def _group(kind: SessionKind, tail: Sequence[str]) -> SessionKind:
    peer, topic = _split(tail)
    if topic:
        return replace(kind, type="forum_topic", peer=peer, topic=topic, form="thread")
    return replace(kind, type="group_chat", peer=peer, form="group")


def _split(tail: Sequence[str]) -> tuple[str, str]:
    """An id, which may have colons in it (`@ana:matrix.org`), and the topic behind it."""
    at = next((at for at in range(1, len(tail) - 1) if tail[at] in ("topic", "thread")), len(tail))
    return ":".join(tail[:at]), ":".join(tail[at + 1 :])
