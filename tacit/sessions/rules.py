"""What a session may have: the rule of its type, or one that the config sets for its agent, channel or topic.

Pure: who asks says which senders were seen in a session before. Whom a host names as the sender can only take
away. A session is the owner's by its key; it stops being so when somebody else writes in it, or may.

A host may name an agent beside the key. With the key that stands for none, it is that agent's main session.
Where the key names another one, nobody can tell whose session it is: it gets what all agents share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tacit.config import Config, Override, SessionRule
from tacit.model.context import Notice
from tacit.model.search import AUDIENCES, Scope
from tacit.sessions.agents import agents_of, meant_key
from tacit.sessions.classify import SessionKind, classify, folded, is_owner, person, scope_of

_OWNERS = ("main_session", "orchestration", "private_dm", "heartbeat_cron")  # types that are the owner's
_HEARTBEAT = "HEARTBEAT.md"
_OUTSIDE = ("webhook", "hook")  # triggers
ANYBODY = "*"  # a sender that cannot be read; no owner is called so
_SHOWN = 40  # characters of what a host gave, in a notice

_NOBODYS = {
    "acp": "a run of another program, which others may read",
    "boot": "a run that the host began, which others may read",
    "hook": "a run that somebody outside began",
    "dashboard": "a session of the host's dashboard, and its key does not tell who sits there",
    "explicit": "a session that somebody named by hand, and its key does not tell who",
    "slash": "a command on a channel, and others may read the answer",
    "global": "one session for everybody who writes to the host",
    "unknown": "a session that the host itself knows nothing about",
}
_MAY_BE_MAIN = ("dashboard", "explicit")


@dataclass(frozen=True, slots=True)
class Profile:
    kind: SessionKind
    rule: SessionRule  # its lanes are named, never None
    won: str  # where in the config the rule stands, for people: sessions.group_chat, rule 2 of sessions.rules
    notices: tuple[Notice, ...] = ()  # what an operator should know about this session
    number: int = 0  # of the rule in sessions.rules, from 1; 0: it is that of the type
    agents: tuple[str, ...] = ()  # that the host names, in the key and beside it

    @property
    def scope(self) -> Scope:
        """What it may search."""
        return scope_of(self.kind, self.rule.audience)


def profile_of(
    session_key: object,
    config: Config,
    *,
    agent: object = None,
    sender: object = "",
    trigger: object = "",
    senders: Collection[str] = (),
) -> Profile:
    """`sender`: who wrote the message, as the host spells it (`telegram:7` or `7`); empty where the host does
    not say. `trigger`: what began the run (user, heartbeat, cron, webhook). `senders`: all that this session
    has seen."""
    sessions, agents = config.sessions, agents_of(session_key, agent)
    read = classify(
        meant_key(session_key, agent), config.owners, sessions.orchestration_agents, sessions.main_keys
    )
    outside = _from_outside(trigger)
    doubt = outside or _unread(read) or _not_the_owners(read, config.owners, sender_of(sender), senders)
    is_narrowed = read.type in _OWNERS or (outside and read.type != "fallback")
    kind = replace(read, type="external_dm") if doubt and is_narrowed else read
    rule, number = _narrowest(kind, agents, config)
    won = f"rule {number} of sessions.rules" if number else f"sessions.{kind.type}"
    kind = replace(kind, agent=agents[0] if len(agents) == 1 else "")
    notices = tuple(notice for notice in (doubt, _two_agents(agents)) if notice)
    return Profile(kind, _with_heartbeat(rule, trigger), won, notices, number, agents)


def sender_of(value: object) -> str:
    """Who wrote, as text, whatever a host gave. Empty: it does not say. What is neither a text nor a number
    is somebody, and may be anybody."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ANYBODY


def _narrowest(kind: SessionKind, agents: Sequence[str], config: Config) -> tuple[SessionRule, int]:
    """Of the agents that a host names the rule of the one that may see least."""
    rules = [_rule_of(replace(kind, agent=agent), config) for agent in reversed(agents)]
    return min(rules, key=lambda found: AUDIENCES.index(found[0].audience))


def _rule_of(kind: SessionKind, config: Config) -> tuple[SessionRule, int]:
    """With its number in sessions.rules, 0 for that of the type."""
    rule: SessionRule = getattr(config.sessions, kind.type)
    overrides = enumerate(config.sessions.rules, 1)
    number, settings = next(
        ((number, dict(one.settings)) for number, one in overrides if _holds(one, kind)), (0, {})
    )
    rule = replace(rule, **settings)
    return replace(rule, lanes=config.inject.lanes if rule.lanes is None else rule.lanes), number


def _holds(override: Override, kind: SessionKind) -> bool:
    return all(_same(name, value, getattr(kind, name)) for name, value in override.conditions)


def _same(name: str, wanted: str, found: str) -> bool:
    return wanted == found if name == "type" else folded(wanted) == folded(found)


def _with_heartbeat(rule: SessionRule, trigger: object) -> SessionRule:
    """A heartbeat or a job that runs in the owner's session keeps its instructions; no other session gets
    them by claiming to be one."""
    if trigger not in ("heartbeat", "cron") or rule.audience != "owner" or rule.files is None:
        return rule
    return replace(rule, files=tuple(dict.fromkeys((*rule.files, _HEARTBEAT))))


# ---------------------------------------------------------------- whose it is


def _from_outside(trigger: object) -> Notice | None:
    """A job that a webhook began: its key may look like one of the owner's own."""
    if not isinstance(trigger, str) or folded(trigger).partition(":")[0] not in _OUTSIDE:
        return None
    return Notice("nobodys", f"This is {_NOBODYS['hook']}: only what anyone may see is given.")


def _two_agents(agents: Sequence[str]) -> Notice | None:
    if len(agents) == 1:
        return None
    in_key, beside = map(_shown, agents)
    return Notice(
        "agents",
        f"The session key names the agent {in_key}, and the host names {beside} beside it: only what all "
        "agents share is given. Let the host give the key of the agent's own session.",
    )


def _unread(kind: SessionKind) -> Notice | None:
    """What an operator should know about a key that does not tell whose the session is."""
    if not kind.known:
        return Notice(
            "unknown-key",
            f"The session key {_shown(kind.key)} has no form that tacit knows: the host's own files stay, "
            "and only what anyone may see is added. If it is a main session, add its last word to "
            "sessions.main_keys.",
        )
    if kind.form == "main thread":
        return Notice(
            "main-thread",
            "This is a thread of the main session, and its key does not tell who writes in it: only what "
            "anyone may see is given. Let the host keep senders apart (OpenClaw: session.dmScope).",
        )
    if kind.type == "fallback":
        todo = f" If it is yours alone, add {kind.form} to sessions.main_keys."
        return Notice(
            "nobodys",
            f"This is {_NOBODYS[kind.form]}: only what anyone may see is given."
            + (todo if kind.form in _MAY_BE_MAIN else ""),
        )
    return None


def _not_the_owners(
    kind: SessionKind, owners: Collection[str], sender: str, senders: Collection[str]
) -> Notice | None:
    """Why a session that its key gives to the owner is not the owner's this time."""
    if kind.type not in _OWNERS:
        return None
    if sender == ANYBODY:
        return _unreadable()
    if owners and sender:
        return None if _is_owner(kind, sender, owners) else _stranger(sender)
    if not kind.is_main:
        return None
    everybody = {folded(one) for one in (*senders, sender) if one}
    if owners:
        return None if all(_is_owner(kind, one, owners) for one in everybody) else _stranger_before()
    return _several() if len(everybody) > 1 or ANYBODY in everybody else None


def _is_owner(kind: SessionKind, sender: str, owners: Collection[str]) -> bool:
    """In the owner's own direct messages a sender is on the same channel, unless the host says otherwise."""
    if kind.peer and folded(sender) == folded(kind.peer):
        return True
    channel, identity = person(sender)
    return is_owner((channel or folded(kind.channel), identity), owners)


def _unreadable() -> Notice:
    return Notice(
        "not-owner",
        "The host says who writes here, but neither as a text nor as a number, so only what anyone may see "
        "is given.",
    )


def _stranger(sender: str) -> Notice:
    return Notice(
        "not-owner",
        f"{_shown(sender)} writes here and is not in owners, so only what anyone may see is given. If that "
        "is you, add it to owners in memory-config.yaml.",
    )


def _stranger_before() -> Notice:
    return Notice(
        "not-owner",
        "Somebody who is not in owners wrote in this session before, and the host does not say who writes "
        "now, so only what anyone may see is given. If it was you, add that id to owners in "
        "memory-config.yaml; else let the host keep senders apart (OpenClaw: session.dmScope).",
    )


def _several() -> Notice:
    return Notice(
        "several-senders",
        "Several senders have written in this session, so it is nobody's: only what anyone may see is given. "
        "Name your own ids in owners in memory-config.yaml, or let the host keep senders apart (OpenClaw: "
        "session.dmScope).",
    )


def _shown(text: str) -> str:
    shown = ascii(text[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
