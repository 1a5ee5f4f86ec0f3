"""Which files the host loads by itself, by the rules of its version 2026.9. Pure.

all sessions    AGENTS SOUL IDENTITY USER BOOTSTRAP MEMORY, in this order, those that exist
group, topic    without MEMORY
cron            AGENTS SOUL IDENTITY USER
subagent        AGENTS
limits          20,000 characters of a file (USER.md 4,000), 60,000 in all; a longer file keeps three quarters
                from its head and one from its tail
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tacit.hosts.openclaw.settings import Tree, lookup
from tacit.text import tokens

NAMES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md", "MEMORY.md")
TYPES = ("main", "direct", "group", "topic", "subagent", "cron")
_SHARED_FILES = NAMES[:5]
_FILES_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "main": NAMES, "direct": NAMES, "group": _SHARED_FILES, "topic": _SHARED_FILES, "cron": NAMES[:4],
    "subagent": NAMES[:1],
}  # fmt: skip
_KIND_BY_TYPE = {
    "main_session": "main", "orchestration": "main", "private_dm": "direct", "external_dm": "direct",
    "group_chat": "group", "forum_topic": "topic", "subagent": "subagent", "heartbeat_cron": "cron",
}  # fmt: skip
_MAX_USER_CHARS = 4_000


class BootstrapLimits(NamedTuple):
    file: int = 20_000
    total: int = 60_000


class LoadedFile(NamedTuple):
    name: str
    chars: int  # in the file
    injected: int  # how many of them are in the prompt
    tokens: int  # cost of the injected part


def kind_of(session_type: str) -> str:
    """The everyday name of a session type; empty if it has none here."""
    return _KIND_BY_TYPE.get(session_type, "")


def read_limits(tree: Tree) -> BootstrapLimits:
    defaults = BootstrapLimits()
    file_limit, total_limit = (
        lookup(tree, f"agents.defaults.{name}") for name in ("bootstrapMaxChars", "bootstrapTotalMaxChars")
    )
    return BootstrapLimits(
        file_limit if isinstance(file_limit, int) else defaults.file,
        total_limit if isinstance(total_limit, int) else defaults.total,
    )


def simulate_load(
    kind: str,
    texts: Mapping[str, str],
    limits: BootstrapLimits = BootstrapLimits(),  # noqa: B008 - a value
) -> list[LoadedFile]:
    """`texts`: the workspace's files by name."""
    loaded, available = [], limits.total
    for name in _FILES_BY_KIND[kind]:
        if name in texts:
            max_chars = min(available, limits.file, _MAX_USER_CHARS if name == "USER.md" else limits.file)
            shortened = shorten(texts[name], max_chars)
            available -= len(shortened)
            loaded.append(LoadedFile(name, len(texts[name]), len(shortened), tokens.count(shortened)))
    return loaded


def shorten(text: str, most: int) -> str:
    """Shortens a file as the host does, without the line that the host puts between head and tail."""
    if len(text) <= most:
        return text
    head = most * 3 // 4
    return text[:head] + text[len(text) - (most - head) :]


def list_entries(kind: str, texts: Mapping[str, str], workspace: str) -> list[dict[str, object]]:
    """The list that the host gives to a hook."""
    result: list[dict[str, object]] = []
    for name in _FILES_BY_KIND[kind]:
        entry: dict[str, object] = {"name": name, "path": f"{workspace}/{name}", "missing": name not in texts}
        result.append(entry if entry["missing"] else {**entry, "content": texts[name]})
    return result
