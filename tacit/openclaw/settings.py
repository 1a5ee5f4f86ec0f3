"""What the host's config says, as values. Pure: who found the file hands over what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

ID = "tacit"  # of our plugin
ENTRY = f"plugins.entries.{ID}"
HOOKS = ("aci-bootstrap", "ethos-context")  # the classic ones
OLDEST = (2026, 9)  # of the hosts that this was built for
TESTED = "2026.9.6"
PORT = 18789
_ALLOWED = ("allowFrom", "dm.allowFrom")
_PREFIXES = {"telegram": ("tg:", "telegram:"), "whatsapp": ("whatsapp:",), "discord": ("discord:", "user:")}

Tree = Mapping[str, Any]


def at(tree: object, path: str, otherwise: Any = None) -> Any:
    """The value at a dotted path."""
    for name in path.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return otherwise
        tree = tree[name]
    return tree


def version_of(text: str) -> tuple[int, ...]:
    """The first version in a text, `OpenClaw 2026.9.6 (eb377ac)`; empty where there is none."""
    found = re.search(r"(?<![\d.])(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def is_too_old(version: tuple[int, ...]) -> bool:
    return bool(version) and version < OLDEST


# ---------------------------------------------------------------- who may write


def senders(tree: Tree) -> dict[str, set[str]]:
    """Whom each channel lets in by name, `*` for anybody. A channel that is off is none."""
    channels = at(tree, "channels", {})
    found: dict[str, set[str]] = {}
    for name, channel in channels.items() if isinstance(channels, Mapping) else ():
        if name == "defaults" or not isinstance(channel, Mapping) or channel.get("enabled") is False:
            continue
        found[name] = {person for part in _accounts(channel) for person in _listed(name, part)}
    return found


def _accounts(channel: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield channel
    accounts = channel.get("accounts")
    if isinstance(accounts, Mapping):
        yield from (one for one in accounts.values() if isinstance(one, Mapping))


def _listed(channel: str, part: Mapping[str, Any]) -> Iterator[str]:
    if part.get("dmPolicy") == "open":
        yield "*"
    for path in _ALLOWED:
        for person in at(part, path) or ():
            text = str(person).strip()
            if text:
                yield _bare(channel, text)


def _bare(channel: str, person: str) -> str:
    prefix = next((one for one in _PREFIXES.get(channel, ()) if person.lower().startswith(one)), "")
    return person[len(prefix) :]


def owners(tree: Tree) -> tuple[str, ...]:
    """Who must be the owner: on a channel that lets in one person, that person."""
    alone = {channel: people for channel, people in senders(tree).items() if len(people) == 1}
    return tuple(f"{channel}:{person}" for channel, (person,) in sorted(alone.items()) if person != "*")


def unsure(tree: Tree) -> tuple[str, ...]:
    """Channels whose owner cannot be told."""
    known = {one.partition(":")[0] for one in owners(tree)}
    return tuple(sorted(channel for channel in senders(tree) if channel not in known))


def folds_senders(tree: Tree) -> bool:
    """Whether the host puts the direct messages of several people into one session."""
    if at(tree, "session.dmScope", "main") != "main":
        return False
    return any(len(people) != 1 or "*" in people for people in senders(tree).values())


# ---------------------------------------------------------------- plugins and hooks


class Blocked(NamedTuple):
    """Why the host does not load our plugin as it should."""

    what: str
    todo: str


def blocks(tree: Tree) -> Iterator[Blocked]:
    if at(tree, "plugins.enabled") is False:
        yield Blocked("plugins.enabled is false, so no plugin is loaded.", _set("plugins.enabled", "true"))
    if ID in (at(tree, "plugins.deny") or ()):
        yield Blocked("plugins.deny names tacit.", "Take it out of that list.")
    allow = at(tree, "plugins.allow")
    if allow and ID not in allow:
        yield Blocked("plugins.allow does not name tacit.", "Add it to that list.")
    if at(tree, f"{ENTRY}.enabled") is not True:
        yield Blocked("The plugin is not enabled.", f"Run: openclaw plugins enable {ID}")
    if at(tree, f"{ENTRY}.hooks.allowConversationAccess") is not True:
        yield Blocked(
            "The plugin may not see conversations: no turn gets memories, and nothing is kept.",
            _set(f"{ENTRY}.hooks.allowConversationAccess", "true"),
        )
    if at(tree, f"{ENTRY}.hooks.allowPromptInjection") is False:
        yield Blocked(
            "The plugin may not add to prompts.", _set(f"{ENTRY}.hooks.allowPromptInjection", "true")
        )


def _set(path: str, value: str) -> str:
    return f"Run: openclaw config set {path} {value}"


def uses_hooks(tree: Tree) -> tuple[str, ...]:
    """Which of the classic hooks the config names."""
    entries = at(tree, "hooks.internal.entries", {})
    return tuple(name for name in HOOKS if isinstance(entries, Mapping) and name in entries)


def dreams(tree: Tree) -> bool:
    """Whether the host rewrites MEMORY.md at night; it does unless told otherwise."""
    if at(tree, "plugins.slots.memory", "memory-core") != "memory-core":
        return False
    entry = "plugins.entries.memory-core"
    return (
        at(tree, f"{entry}.enabled") is not False
        and at(tree, f"{entry}.config.dreaming.enabled") is not False
    )


def slots(tree: Tree) -> dict[str, str]:
    """Which plugins others have put into the host's slots."""
    found = at(tree, "plugins.slots", {})
    return {name: str(value) for name, value in found.items()} if isinstance(found, Mapping) else {}


def holds_slot(tree: Tree) -> bool:
    """Whether the owner put our plugin in the place of the host's memory."""
    return slots(tree).get("memory") == ID


def gateway_port(tree: Tree) -> int:
    port = at(tree, "gateway.port", PORT)
    return port if isinstance(port, int) else PORT


def workspace(tree: Tree) -> str:
    """Of the agents that name none of their own; empty where the host's default holds."""
    return str(at(tree, "agents.defaults.workspace") or "")
