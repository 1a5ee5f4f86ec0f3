"""The agent of a session: the one in its key, and the one that a host may name separately."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tacit.sessions.keys import MAIN_SESSION_KEY, classify, fold_case, is_agent_name

WORKER = "tacit-worker"  # the word after the agent, in keys of sessions that tacit itself starts
_UNREADABLE_AGENT = "?"  # no agent has this name


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
