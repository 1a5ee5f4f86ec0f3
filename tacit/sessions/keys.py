"""The kind of session that a key belongs to, read from whole segments and never from a part of one.

    agent:<a>:<main>                   main_session; orchestration if the config says so of the agent.
                                       <main> is main, or what the config has in sessions.main_keys
    agent:<a>:<main>:session:<id>      the same: one of several open sessions of the owner, in a coding agent
    agent:<a>:<main>:heartbeat         heartbeat_cron; so is agent:<a>:heartbeat
    agent:<a>:<main>:thread:<id>       external_dm, also with topic: the key does not tell whose messages
                                       a host merges into it
    agent:<a>:direct:<peer>            private_dm if the config names the peer as an owner, else
    agent:<a>:<channel>:direct:<peer>  external_dm. `dm` is the older word; …:thread:<id> and
    agent:<a>:<channel>:<account>:direct:<peer>  …:topic:<id> are parts of it
    agent:<a>:<channel>:group:<id>     group_chat, also with channel or room, with an account before it and
                                       without the channel
    …:group:<id>:topic:<id>            forum_topic, also with thread; so is agent:<a>:<channel>:thread:<id>
    agent:<a>:cron:<job>[:run:<id>]    heartbeat_cron; a job that a webhook started has the same key
    agent:<a>:subagent:<id>            subagent, as deep as :subagent:<id> nests, also below cron
    agent:<a>:acp:<…>, boot, hook      fallback: a run that others may have started or may read
    agent:<a>:dashboard:<…>, explicit  fallback: the key does not tell the user. With one id after it a main
                                       session, if sessions.main_keys has the word
    agent:<a>:<channel>:slash:<user>   fallback: everybody may read the answer to a command
    global, unknown                    fallback: a host's words for all sessions and for none
    cron:<…>, subagent:<…>, hook:<…>, heartbeat  as above, without an agent

A key of any other form, such as agent:<a>:<other>, is a fallback, which has the narrowest audience. So is a
key that no host makes: with unprintable characters, angle brackets, path traversal or excessive length. A
session counts as the owner's only when that can be proved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tacit.config.conversion import split_channel
from tacit.config.schema import HOST_WORDS
from tacit.search.model import Scope

SessionType: TypeAlias = Literal[
    "main_session", "private_dm", "external_dm", "forum_topic", "group_chat", "subagent", "heartbeat_cron",
    "orchestration", "fallback",
]  # fmt: skip
KeyForm: TypeAlias = Literal[
    "", "main", "main thread", "direct", "group", "thread", "subagent", "cron", "heartbeat", "acp", "boot",
    "hook", "dashboard", "explicit", "slash", "global", "unknown",
]  # fmt: skip
SenderId: TypeAlias = tuple[str, str]  # channel, id; no channel: the id on any channel

DEFAULT_AGENT = "main"
MAIN_SESSION_KEY = "agent:main:main"  # used if a host names no session
MAIN_KEYS = (DEFAULT_AGENT,)
MAX_KEY_CHARS = 512
_NAME_PATTERN = re.compile(r"[^\W_][\w.-]{0,63}")
_CHANNEL_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+@-]{0,63}")
_UNSAFE_PATTERN = re.compile(r"[<>\\]|(?:^|[:/])\.\.?(?:[:/]|$)")

WORKER = "tacit-worker"  # the word after the agent, in keys of sessions that tacit itself starts
_UNREADABLE_AGENT = "?"  # no agent has this name
_RESERVED_ACCOUNT_WORDS = HOST_WORDS - {"main"}


@dataclass(frozen=True, slots=True)
class SessionKind:
    key: str  # as given, unchecked
    agent: str = DEFAULT_AGENT  # empty: the host names two, and it belongs to neither
    type: SessionType = "fallback"
    channel: str = ""
    peer: str = ""  # the other side of a direct message, or the group
    topic: str = ""
    form: KeyForm = ""

    @property
    def known(self) -> bool:
        """Whether the key has one of the forms above."""
        return self.form != ""

    @property
    def is_main(self) -> bool:
        """Whether a host may have merged several senders into it."""
        return self.form == "main"


def classify(
    session_key: object,
    owners: Collection[str] = (),
    orchestration_agents: Collection[str] = (),
    main_keys: Collection[str] = MAIN_KEYS,
) -> SessionKind:
    """`owners`: the owner's ids, alone or after a channel (`telegram:7`). Case is ignored, since hosts
    fold it."""
    key = session_key if isinstance(session_key, str) else ""
    parts = key[: MAX_KEY_CHARS + 1].split(":")
    if parts[0] == "agent" and len(parts) > 1:
        if not is_agent_name(parts[1]):
            return SessionKind(key)
        kind, rest = SessionKind(key, parts[1]), parts[2:]
    else:
        kind, rest = SessionKind(key), _parts_without_agent(parts)
    if not _is_sane(key) or "" in rest:
        return kind
    return _classify_rest(kind, rest, _ConfiguredNames(owners, orchestration_agents, main_keys))


def search_scope(kind: SessionKind, audience: str) -> Scope:
    """What a session may search, given its audience. An owner sees all transcripts, a group its own,
    everybody else none."""
    if audience == "owner":
        return Scope(agents=(kind.agent,))
    if audience == "group":
        return Scope(audience="group", conversation=kind.key, agents=(kind.agent,))
    return Scope(audience="anyone", agents=(kind.agent,))


def parse_sender(text: str) -> SenderId:
    """Parse `telegram:7` or `7`: no id on another channel can be `telegram:7`."""
    channel, identity = split_channel(text)
    return fold_case(channel), fold_case(identity)


def is_owner(who: SenderId, owners: Iterable[str]) -> bool:
    """Whether a person is listed as an owner: by the id on that channel, or by the id alone."""
    channel, identity = who
    named = {parse_sender(owner) for owner in owners if owner not in ("", "*")}
    return ("", identity) in named or (channel != "" and (channel, identity) in named)


def is_owner_on(channel: str, sender: str, owners: Iterable[str]) -> bool:
    """Whether a sender on this channel is an owner. Without a channel, only the sender's own prefix counts.
    An id that begins with another channel is still an id on this one."""
    named_channel, identity = parse_sender(sender)
    own_channel = fold_case(channel)
    if named_channel and own_channel and named_channel != own_channel:
        return is_owner((own_channel, fold_case(sender)), owners)
    return is_owner((named_channel or own_channel, identity), owners)


def is_agent_name(text: str) -> bool:
    """Whether this can be an agent's name in a key."""
    return _NAME_PATTERN.fullmatch(text) is not None


def fold_case(text: str) -> str:
    """Fold case, which hosts do not keep. Only ASCII: beyond it, some letters fold into others (the Kelvin
    sign into k)."""
    return text.lower() if text.isascii() else text


def agent_name(value: object) -> str:
    """The agent that a host names separately, as text; empty: none. A value that is neither text nor a number
    becomes an unknown agent."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _UNREADABLE_AGENT


def resolve_key(session_key: object, agent: object = None) -> str:
    """The key that a host means: if it names another agent with the default key, that is the agent's main
    session. A key that is no text becomes empty."""
    key = session_key if isinstance(session_key, str) else ""
    name = agent_name(agent)
    return f"agent:{name}:main" if key == MAIN_SESSION_KEY and is_agent_name(name) else key


def named_agents(session_key: object, agent: object = None) -> tuple[str, ...]:
    """The agents that a host names: one, or two if the key and the separate name disagree."""
    key = resolve_key(session_key, agent)
    in_key, beside = classify(key).agent, agent_name(agent)
    if not beside or fold_case(beside) == fold_case(in_key):
        return (in_key,)
    return (in_key, beside) if key.startswith("agent:") else (beside,)


def find_excluded_agent(agents: Sequence[str], excluded: Collection[str]) -> str:
    """The first of a session's agents that the config excludes; empty: none. Case is ignored, since hosts
    fold it."""
    names = frozenset(map(fold_case, excluded))
    return next((agent for agent in agents if fold_case(agent) in names), "")


def is_own_work(session_key: object) -> bool:
    """Whether tacit itself started the session, to have a model read something: `agent:<a>:tacit-worker…`. It
    is neither captured nor learned from, or memory would feed on itself."""
    parts = session_key.split(":") if isinstance(session_key, str) else []
    return WORKER in (parts[0:1] if parts[:1] != ["agent"] else parts[2:3])


class _ConfiguredNames:
    """Names from the config."""

    def __init__(
        self, owners: Collection[str], orchestrating: Collection[str], main_keys: Collection[str]
    ) -> None:
        self.owners = owners
        self.orchestrating = frozenset(map(fold_case, orchestrating))
        self.main = frozenset(map(fold_case, main_keys))


def _parts_without_agent(parts: list[str]) -> list[str]:
    is_alone = len(parts) == 1 and parts[0] in ("heartbeat", "global", "unknown")
    return parts if is_alone or parts[0] in ("cron", "subagent", "hook") else []


def _is_sane(key: str) -> bool:
    return len(key) <= MAX_KEY_CHARS and key.isprintable() and not _UNSAFE_PATTERN.search(key)


def _classify_rest(kind: SessionKind, rest: Sequence[str], names: _ConfiguredNames) -> SessionKind:
    match rest:
        case ["global" | "unknown" as form] if form == kind.key:
            return replace(kind, form=form)
        case [main] | [main, "session", _] if main in names.main:
            return _classify_main(kind, names)
        case ["dashboard" | "explicit" as word, _] if word in names.main:
            return _classify_main(kind, names)
        case ["acp" | "boot" | "hook" | "dashboard" | "explicit" as form, _, *_]:
            return replace(kind, form=form)
        case ["heartbeat"]:
            return replace(kind, type="heartbeat_cron", form="heartbeat")
        case [main, "heartbeat"] if main in names.main:
            return replace(kind, type="heartbeat_cron", form="heartbeat")
        case [main, "topic" | "thread", _, *_] if main in names.main:
            return replace(kind, type="external_dm", topic=":".join(rest[2:]), form="main thread")
        case ["subagent", _, *_]:
            return _classify_subagent(kind, rest)
        case ["cron", _, *_]:
            return _classify_cron(kind, rest)
    return kind if rest and rest[0] in names.main else _classify_conversation(kind, rest, names)


def _classify_main(kind: SessionKind, names: _ConfiguredNames) -> SessionKind:
    is_orchestrating = fold_case(kind.agent) in names.orchestrating
    return replace(kind, type="orchestration" if is_orchestrating else "main_session", form="main")


def _classify_subagent(kind: SessionKind, rest: Sequence[str]) -> SessionKind:
    is_nested = len(rest) % 2 == 0 and set(rest[::2]) == {"subagent"}
    return replace(kind, type="subagent", form="subagent") if is_nested else kind


def _classify_cron(kind: SessionKind, rest: Sequence[str]) -> SessionKind:
    below = rest[4:] if len(rest) > 3 and rest[2] == "run" else rest[2:]
    return _classify_subagent(kind, below) if below else replace(kind, type="heartbeat_cron", form="cron")


def _classify_conversation(kind: SessionKind, rest: Sequence[str], names: _ConfiguredNames) -> SessionKind:
    """Classify sessions with messages from people."""
    match rest:
        case ["direct" | "dm", _, *_]:
            return _classify_direct(kind, rest[1:], names)
        case ["group" | "channel" | "room", peer, *_] if peer not in HOST_WORDS:
            return _classify_group(kind, rest[1:])
        case [channel, *_] if channel in HOST_WORDS or not _CHANNEL_PATTERN.fullmatch(channel):
            return kind
        case [channel, "direct" | "dm", _, *_]:
            return _classify_direct(replace(kind, channel=channel), rest[2:], names)
        case [channel, "group" | "channel" | "room", _, *_]:
            return _classify_group(replace(kind, channel=channel), rest[2:])
        case [channel, "topic" | "thread", _, *_]:
            topic = ":".join(rest[2:])
            return replace(kind, type="forum_topic", channel=channel, topic=topic, form="thread")
        case [_, "slash", _, *_]:
            return replace(kind, form="slash")
        case [channel, account, "direct" | "dm", _, *_] if _is_account(account):
            return _classify_direct(replace(kind, channel=channel), rest[3:], names)
        case [channel, account, "group" | "channel" | "room", _, *_] if _is_account(account):
            return _classify_group(replace(kind, channel=channel), rest[3:])
    return kind


def _is_account(name: str) -> bool:
    return name not in _RESERVED_ACCOUNT_WORDS and _CHANNEL_PATTERN.fullmatch(name) is not None


def _classify_direct(kind: SessionKind, tail: Sequence[str], names: _ConfiguredNames) -> SessionKind:
    peer, topic = _split_peer(tail)
    is_own = is_owner((fold_case(kind.channel), fold_case(peer)), names.owners)
    return replace(
        kind, type="private_dm" if is_own else "external_dm", peer=peer, topic=topic, form="direct"
    )


def _classify_group(kind: SessionKind, tail: Sequence[str]) -> SessionKind:
    peer, topic = _split_peer(tail)
    if topic:
        return replace(kind, type="forum_topic", peer=peer, topic=topic, form="thread")
    return replace(kind, type="group_chat", peer=peer, form="group")


def _split_peer(tail: Sequence[str]) -> tuple[str, str]:
    """Split an id, which may contain colons (`@ana:matrix.org`), from the topic after it."""
    index = next(
        (index for index in range(1, len(tail) - 1) if tail[index] in ("topic", "thread")), len(tail)
    )
    return ":".join(tail[:index]), ":".join(tail[index + 1 :])
