"""Whose agent a session is: the one in its key, and the one that a host may name beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tacit.sessions.classify import MAIN, classify, folded, is_name

WORKER = "tacit-worker"  # the word behind the agent, in keys of sessions that tacit itself began
_UNREAD = "?"  # no agent is called so


def agent_of(value: object) -> str:
    """Whom a host names beside the key, as text; empty: nobody. What is neither a text nor a number is an
    agent that nobody knows."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _UNREAD


def meant_key(session_key: object, agent: object = None) -> str:
    """The key as a host means it: with another agent named, the one that stands for no session in particular
    is that agent's main session. What is no text is a key that nobody can read."""
    key = session_key if isinstance(session_key, str) else ""
    name = agent_of(agent)
    return f"agent:{name}:main" if key == MAIN and is_name(name) else key


def agents_of(session_key: object, agent: object = None) -> tuple[str, ...]:
    """Whom a host names: one agent, or two where the key and what stands beside it do not agree."""
    key = meant_key(session_key, agent)
    in_key, beside = classify(key).agent, agent_of(agent)
    if not beside or folded(beside) == folded(in_key):
        return (in_key,)
    return (in_key, beside) if key.startswith("agent:") else (beside,)


def excluded_agent(agents: Sequence[str], excluded: Collection[str]) -> str:
    """The first of the agents of a session that a list in the config excludes; empty: none. Case does not
    count, since hosts fold it."""
    names = frozenset(map(folded, excluded))
    return next((agent for agent in agents if folded(agent) in names), "")


def is_own_work(session_key: object) -> bool:
    """Whether tacit itself began the session, to have a model read something: `agent:<a>:tacit-worker…`. It
    is neither kept nor learned from, or memory would feed on itself."""
    parts = session_key.split(":") if isinstance(session_key, str) else []
    return WORKER in (parts[0:1] if parts[:1] != ["agent"] else parts[2:3])
