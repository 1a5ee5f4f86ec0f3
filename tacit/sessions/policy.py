"""What a session may see: the rule of its type, or one that the config sets for its agent, channel or topic.

The sender that a host names can only reduce what a session may see. The key makes a session the owner's; it
no longer is when another person writes in it, or may.

A host may name an agent separately from the key. With the default key, it is that agent's main session. If
the key names another agent, it is unclear whose session it is: it gets what all agents share.

A host may merge several senders into one session; `.tacit/senders.json` lists who was seen in each. What must
stay true:
- a sender that was seen once is not forgotten, in this process or another, as long as the disk allows;
- a turn never fails because of it, and waits for the disk only for a new sender;
- the file stays small: a session with many senders is not the owner's, so no more names are needed.

Without the file no sender has been seen. Only the owner can read the folder, and git ignores it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock
from typing import Any, TypeAlias

from tacit.config import Config, Override, SessionRule
from tacit.diagnostics import Notice
from tacit.errors import TacitError
from tacit.home import files
from tacit.home.layout import Home
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
MAX_SENDERS = 8  # names stored for one session
MAX_SESSIONS = 500
MORE_SENDERS = "\0more"  # stands for all other senders; no sender can have this name
_MAX_NAME_CHARS = 200  # longer names and keys are hashed
_MAX_FILE_BYTES = 4 << 20
_LOCK_TIMEOUT_S = 0.2  # a turn is waiting

_Seen: TypeAlias = dict[str, tuple[str, ...]]

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


class Senders:
    """Safe to use from several threads and in several processes."""

    def __init__(self, home: Home) -> None:
        self._root = home.root
        self._file = home.private / "senders.json"
        self._lock_file = home.private / "senders.lock"
        self._lock = Lock()
        self._seen: _Seen = {}
        self._unsaved: _Seen = {}
        self._stamp: tuple[int, ...] | None = None  # of the file when it was last read

    def seen(self, session_key: object, sender: object) -> frozenset[str]:
        """Add the sender and return all senders of the session. An empty sender is not added."""
        if not isinstance(session_key, str) or not isinstance(sender, str):
            return frozenset()
        key, name = _shorten_key(session_key), _shorten_key(sender)
        with self._lock:
            self._refresh()
            if name and _is_new_sender(self._seen.get(key, ()), name):
                _add_sender(self._seen, key, name)
                _add_sender(self._unsaved, key, name)
                self._save()
            return frozenset(self._seen.get(key, ()))

    def _refresh(self) -> None:
        stamp = self._read_stamp()
        if stamp != self._stamp:
            self._seen, self._stamp = _merge(self._read(), self._unsaved), stamp

    def _save(self) -> None:
        """If writing fails, the senders stay in memory, and the next sender tries again."""
        try:
            if not self._root.is_dir():  # never recreate a home that is gone
                return
            with files.hold_lock(self._lock_file, _LOCK_TIMEOUT_S):
                self._seen = _merge(self._read(), self._unsaved)
                data = json.dumps({"version": 1, "sessions": self._seen}, indent=1)
                files.replace(self._file, data.encode("ascii"))
                self._stamp, self._unsaved = self._read_stamp(), {}
        except (TacitError, OSError):
            pass

    def _read_stamp(self) -> tuple[int, ...] | None:
        try:
            info = os.stat(self._file, follow_symlinks=False)
        except OSError:
            return None
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _read(self) -> _Seen:
        """Read the file. A missing or foreign file counts as empty: the next sender replaces it."""
        try:
            fd = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > _MAX_FILE_BYTES:
                return {}
            with open(fd, "rb", closefd=False) as file:
                return _parse(json.loads(file.read(_MAX_FILE_BYTES)))
        except (OSError, ValueError, RecursionError):
            return {}
        finally:
            os.close(fd)


def _parse(data: Any) -> _Seen:
    sessions = data.get("sessions") if isinstance(data, dict) else None
    seen: _Seen = {}
    for key, names in sessions.items() if isinstance(sessions, dict) else ():
        if isinstance(names, list):
            for name in names:
                if isinstance(name, str) and name:
                    _add_sender(seen, key, name)
    return seen


def _merge(first: _Seen, other: _Seen) -> _Seen:
    merged = dict(first)
    for key, names in other.items():
        for name in names:
            _add_sender(merged, key, name)
    return merged


def _is_new_sender(names: tuple[str, ...], name: str) -> bool:
    return name not in names and MORE_SENDERS not in names


def _add_sender(seen: _Seen, key: str, name: str) -> None:
    names = seen.get(key, ())
    if not _is_new_sender(names, name):
        return
    if key not in seen and len(seen) >= MAX_SESSIONS:
        _drop_one_session(seen)
    seen[key] = (*names, MORE_SENDERS if len(names) >= MAX_SENDERS else name)


def _drop_one_session(seen: _Seen) -> None:
    """Drop the oldest session with one sender. Dropping one with several would make it the owner's again."""
    del seen[next((key for key, names in seen.items() if len(names) == 1), next(iter(seen)))]


def _shorten_key(text: str) -> str:
    if len(text) <= _MAX_NAME_CHARS:
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


class SessionProfiles:
    def __init__(self, home: Home, config: Config) -> None:
        self._config, self._senders = config, Senders(home)

    def profile_of(
        self,
        session_key: str,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        trial: bool = False,
    ) -> SessionProfile:
        """What a session may see, and by which rule. In a session that may mix several senders the sender is
        remembered, unless it is a trial."""
        key, sender_id = resolve_key(session_key, agent), sender_name(sender)
        senders: frozenset[str] = frozenset()
        if resolve_profile(key, self._config).kind.is_main:
            senders = self._senders.seen(key, "" if trial else sender_id)
        return resolve_profile(
            key, self._config, agent=agent, sender=sender_id, trigger=trigger, senders=senders
        )

    def scope_of(self, session_key: str) -> Scope:
        """What a session may search."""
        return self.profile_of(session_key).scope

    def senders_of(self, session_key: str) -> frozenset[str]:
        """The senders seen so far in a session that may mix several."""
        return self._senders.seen(session_key, "")
