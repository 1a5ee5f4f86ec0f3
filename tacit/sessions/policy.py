"""What a session may see: the rule of its type, or one that the config sets for its agent, channel or topic.

Pure: the caller passes the senders seen in a session before. The sender that a host names can only reduce
what a session may see. The key makes a session the owner's; it no longer is when another person writes in it,
or may.

A host may name an agent separately from the key. With the default key, it is that agent's main session. If
the key names another agent, it is unclear whose session it is: it gets what all agents share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tacit.config import Config, Override, SessionRule
from tacit.diagnostics import Notice
from tacit.privacy.audience import AUDIENCES
from tacit.search.model import Scope
from tacit.sessions.keys import (
    SessionKind,
    classify,
    fold_case,
    is_owner_on,
    named_agents,
    resolve_key,
    search_scope,
)

_OWNER_TYPES = ("main_session", "orchestration", "private_dm", "heartbeat_cron")  # session types of the owner
_HEARTBEAT_FILE = "HEARTBEAT.md"
_OUTSIDE_TRIGGERS = ("webhook", "hook")  # triggers
UNREADABLE_SENDER = "*"  # a sender that cannot be read; no owner has this name
_MAX_SHOWN_CHARS = 40  # of a host's value, in a notice

_FALLBACK_FORMS = {
    "acp": "a run of another program, which others may read",
    "boot": "a run that the host started, which others may read",
    "hook": "a run that was started from outside",
    "dashboard": "a session of the host's dashboard, and its key does not say who uses it",
    "explicit": "a session that was named by hand, and its key does not say by whom",
    "slash": "a command on a channel, and others may read the answer",
    "global": "one session for all people who write to the host",
    "unknown": "a session that the host itself knows nothing about",
}
_POSSIBLE_MAIN_FORMS = ("dashboard", "explicit")


@dataclass(frozen=True, slots=True)
class SessionProfile:
    kind: SessionKind
    rule: SessionRule  # with its lanes filled in, never None
    won: str  # place in the config, for people: sessions.group_chat, rule 2 of sessions.rules
    notices: tuple[Notice, ...] = ()  # what an operator should know about this session
    number: int = 0  # of the rule in sessions.rules, from 1; 0: the rule of the type
    agents: tuple[str, ...] = ()  # that the host names, in the key and separately

    @property
    def scope(self) -> Scope:
        """What the session may search."""
        return search_scope(self.kind, self.rule.audience)


def resolve_profile(
    session_key: object,
    config: Config,
    *,
    agent: object = None,
    sender: object = "",
    trigger: object = "",
    senders: Collection[str] = (),
) -> SessionProfile:
    """`sender`: who wrote the message, as the host writes it (`telegram:7` or `7`); empty if the host does
    not say. `trigger`: what started the run (user, heartbeat, cron, webhook). `senders`: all senders seen in
    this session."""
    sessions, agents = config.sessions, named_agents(session_key, agent)
    classified = classify(
        resolve_key(session_key, agent), config.owners, sessions.orchestration_agents, sessions.main_keys
    )
    outside_notice = _check_trigger(trigger)
    doubt = (
        outside_notice
        or _check_key(classified)
        or _check_senders(classified, config.owners, sender_name(sender), senders)
    )
    is_narrowed = classified.type in _OWNER_TYPES or (outside_notice and classified.type != "fallback")
    kind = replace(classified, type="external_dm") if doubt and is_narrowed else classified
    rule, number = _narrowest_rule(kind, agents, config)
    won = f"rule {number} of sessions.rules" if number else f"sessions.{kind.type}"
    kind = replace(kind, agent=agents[0] if len(agents) == 1 else "")
    notices = tuple(notice for notice in (doubt, _check_agents(agents)) if notice)
    return SessionProfile(kind, _with_heartbeat(rule, trigger), won, notices, number, agents)


def sender_name(value: object) -> str:
    """The sender as text. Empty: the host does not say. A value that is neither text nor a number may
    stand for any person."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else UNREADABLE_SENDER


def _narrowest_rule(kind: SessionKind, agents: Sequence[str], config: Config) -> tuple[SessionRule, int]:
    """The rule of the named agent that may see least."""
    rules = [_find_rule(replace(kind, agent=agent), config) for agent in reversed(agents)]
    return min(rules, key=lambda entry: AUDIENCES.index(entry[0].audience))


def _find_rule(kind: SessionKind, config: Config) -> tuple[SessionRule, int]:
    """The rule and its number in sessions.rules; 0: the rule of the type."""
    rule: SessionRule = getattr(config.sessions, kind.type)
    overrides = enumerate(config.sessions.rules, 1)
    number, settings = next(
        ((number, dict(override.settings)) for number, override in overrides if _matches(override, kind)),
        (0, {}),
    )
    rule = replace(rule, **settings)
    return replace(rule, lanes=config.inject.lanes if rule.lanes is None else rule.lanes), number


def _matches(override: Override, kind: SessionKind) -> bool:
    return all(_is_same(name, value, getattr(kind, name)) for name, value in override.conditions)


def _is_same(name: str, wanted: str, value: str) -> bool:
    return wanted == value if name == "type" else fold_case(wanted) == fold_case(value)


def _with_heartbeat(rule: SessionRule, trigger: object) -> SessionRule:
    """A heartbeat or a job in the owner's session gets its instructions; no other session gets them by
    claiming to be one."""
    if trigger not in ("heartbeat", "cron") or rule.audience != "owner" or rule.files is None:
        return rule
    return replace(rule, files=tuple(dict.fromkeys((*rule.files, _HEARTBEAT_FILE))))


# ---------------------------------------------------------------- the owner's or not


def _check_trigger(trigger: object) -> Notice | None:
    """A job that a webhook started: its key may look like one of the owner's."""
    if not isinstance(trigger, str) or fold_case(trigger).partition(":")[0] not in _OUTSIDE_TRIGGERS:
        return None
    return Notice("nobodys", f"This is {_FALLBACK_FORMS['hook']}: only what anyone may see is given.")


def _check_agents(agents: Sequence[str]) -> Notice | None:
    if len(agents) == 1:
        return None
    in_key, beside = map(_quote, agents)
    return Notice(
        "agents",
        f"The session key names the agent {in_key}, and the host names {beside} beside it: only what all "
        "agents share is given. Let the host give the key of the agent's own session.",
    )


def _check_key(kind: SessionKind) -> Notice | None:
    """A notice for the operator if the key does not tell whose session it is."""
    if not kind.known:
        return Notice(
            "unknown-key",
            f"The session key {_quote(kind.key)} has no form that tacit knows: the host's own files stay, "
            "and only what anyone may see is added. If it is a main session, add its last word to "
            "sessions.main_keys.",
        )
    if kind.form == "main thread":
        return Notice(
            "main-thread",
            "This is a thread of the main session, and its key does not tell who writes in it: only what "
            "anyone may see is given. Let the host keep senders apart (its setting session.dmScope, "
            "if it has one).",
        )
    if kind.type == "fallback":
        advice = f" If it is yours alone, add {kind.form} to sessions.main_keys."
        return Notice(
            "nobodys",
            f"This is {_FALLBACK_FORMS[kind.form]}: only what anyone may see is given."
            + (advice if kind.form in _POSSIBLE_MAIN_FORMS else ""),
        )
    return None


def _check_senders(
    kind: SessionKind, owners: Collection[str], sender: str, senders: Collection[str]
) -> Notice | None:
    """Why a session is not the owner's this time, although its key says so."""
    if kind.type not in _OWNER_TYPES:
        return None
    if sender == UNREADABLE_SENDER:
        return _unreadable_notice()
    if owners and sender:
        return None if _is_owner(kind, sender, owners) else _stranger_notice(sender)
    if not kind.is_main:
        return None
    all_senders = {fold_case(name) for name in (*senders, sender) if name}
    if owners:
        return None if all(_is_owner(kind, name, owners) for name in all_senders) else _past_stranger_notice()
    return _several_senders_notice() if len(all_senders) > 1 or UNREADABLE_SENDER in all_senders else None


def _is_owner(kind: SessionKind, sender: str, owners: Collection[str]) -> bool:
    """In the owner's direct messages, the sender is on the same channel."""
    if kind.peer and fold_case(sender) == fold_case(kind.peer):
        return True
    return is_owner_on(kind.channel, sender, owners)


def _unreadable_notice() -> Notice:
    return Notice(
        "not-owner",
        "The host says who writes here, but neither as a text nor as a number, so only what anyone may see "
        "is given.",
    )


def _stranger_notice(sender: str) -> Notice:
    return Notice(
        "not-owner",
        f"{_quote(sender)} writes here and is not in owners, so only what anyone may see is given. If that "
        "is you, add it to owners in memory-config.yaml.",
    )


def _past_stranger_notice() -> Notice:
    return Notice(
        "not-owner",
        "A person who is not in owners wrote in this session before, and the host does not say who writes "
        "now, so only what anyone may see is given. If it was you, add that id to owners in "
        "memory-config.yaml; else let the host keep senders apart (its setting session.dmScope, if it has "
        "one).",
    )


def _several_senders_notice() -> Notice:
    return Notice(
        "several-senders",
        "Several senders have written in this session, so it is not the owner's: only what anyone may see is "
        "given. Name your own ids in owners in memory-config.yaml, or let the host keep senders apart (its "
        "setting session.dmScope, if it has one).",
    )


def _quote(text: str) -> str:
    quoted = ascii(text[: _MAX_SHOWN_CHARS + 1])
    return quoted if len(quoted) <= _MAX_SHOWN_CHARS else f"{quoted[: _MAX_SHOWN_CHARS - 1]}…"
