"""Which files the host loads by itself, by its own rules as 2026.9 has them. Pure.

all sessions    AGENTS SOUL IDENTITY USER BOOTSTRAP MEMORY, in this order, those that are there
group, topic    without MEMORY
cron            AGENTS SOUL IDENTITY USER
subagent        AGENTS
limits          20,000 characters of a file (USER.md 4,000), 60,000 in all; of a longer one three quarters
                from its head and one from its tail
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tacit.openclaw.settings import Tree, at
from tacit.text import tokens

NAMES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md", "MEMORY.md")
TYPES = ("main", "direct", "group", "topic", "subagent", "cron")
_SHARED = NAMES[:5]
_LOADS: Mapping[str, tuple[str, ...]] = {
    "main": NAMES, "direct": NAMES, "group": _SHARED, "topic": _SHARED, "cron": NAMES[:4],
    "subagent": NAMES[:1],
}  # fmt: skip
_OF_TYPE = {
    "main_session": "main", "orchestration": "main", "private_dm": "direct", "external_dm": "direct",
    "group_chat": "group", "forum_topic": "topic", "subagent": "subagent", "heartbeat_cron": "cron",
}  # fmt: skip
_MOST_USER = 4_000


class Limits(NamedTuple):
    file: int = 20_000
    total: int = 60_000


class Loaded(NamedTuple):
    name: str
    chars: int  # in the file
    injected: int  # of them in the prompt
    tokens: int  # that those cost


def kind_of(session_type: str) -> str:
    """As people say it; empty for one that is of no kind here."""
    return _OF_TYPE.get(session_type, "")


def limits_of(tree: Tree) -> Limits:
    found = Limits()
    most, total = (
        at(tree, f"agents.defaults.{name}") for name in ("bootstrapMaxChars", "bootstrapTotalMaxChars")
    )
    return Limits(
        most if isinstance(most, int) else found.file, total if isinstance(total, int) else found.total
    )


def loads(kind: str, texts: Mapping[str, str], limits: Limits = Limits()) -> list[Loaded]:  # noqa: B008 - a value
    """`texts`: the workspace's files by name."""
    found, left = [], limits.total
    for name in _LOADS[kind]:
        if name in texts:
            most = min(left, limits.file, _MOST_USER if name == "USER.md" else limits.file)
            shown = cut(texts[name], most)
            left -= len(shown)
            found.append(Loaded(name, len(texts[name]), len(shown), tokens.count(shown)))
    return found


def cut(text: str, most: int) -> str:
    """As the host shortens a file, without the line that it puts between."""
    if len(text) <= most:
        return text
    head = most * 3 // 4
    return text[:head] + text[len(text) - (most - head) :]


def entries(kind: str, texts: Mapping[str, str], workspace: str) -> list[dict[str, object]]:
    """The list that the host gives to a hook."""
    listed: list[dict[str, object]] = []
    for name in _LOADS[kind]:
        entry: dict[str, object] = {"name": name, "path": f"{workspace}/{name}", "missing": name not in texts}
        listed.append(entry if entry["missing"] else {**entry, "content": texts[name]})
    return listed
