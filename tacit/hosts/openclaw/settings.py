"""Reads the host's settings from its parsed config. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

PLUGIN_ID = "tacit"  # of tacit's plugin
PLUGIN_KEY = f"plugins.entries.{PLUGIN_ID}"
HOOKS = ("aci-bootstrap", "ethos-context")  # the classic hooks
MIN_VERSION = (2026, 9)  # oldest supported version of the host
TESTED_VERSION = "2026.9.6"
DEFAULT_PORT = 18789
_ALLOW_PATHS = ("allowFrom", "dm.allowFrom")
_PREFIXES = {"telegram": ("tg:", "telegram:"), "whatsapp": ("whatsapp:",), "discord": ("discord:", "user:")}

Tree = Mapping[str, Any]


def lookup(tree: object, path: str, otherwise: Any = None) -> Any:
    """The value at a dotted path."""
    for name in path.split("."):
        if not isinstance(tree, Mapping) or name not in tree:
            return otherwise
        tree = tree[name]
    return tree


def version_of(text: str) -> tuple[int, ...]:
    """The first version in a text such as `OpenClaw 2026.9.6 (eb377ac)`; empty if there is none."""
    match = re.search(r"(?<![\d.])(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def is_too_old(version: tuple[int, ...]) -> bool:
    return bool(version) and version < MIN_VERSION


# ---------------------------------------------------------------- who may write


def senders(tree: Tree) -> dict[str, set[str]]:
    """The people that each channel allows, `*` for anyone. Disabled channels are left out."""
    channels = lookup(tree, "channels", {})
    people_by_channel: dict[str, set[str]] = {}
    for name, channel in channels.items() if isinstance(channels, Mapping) else ():
        if name == "defaults" or not isinstance(channel, Mapping) or channel.get("enabled") is False:
            continue
        people_by_channel[name] = {
            person for part in _accounts(channel) for person in _list_people(name, part)
        }
    return people_by_channel


def _accounts(channel: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield channel
    accounts = channel.get("accounts")
    if isinstance(accounts, Mapping):
        yield from (account for account in accounts.values() if isinstance(account, Mapping))


def _list_people(channel: str, part: Mapping[str, Any]) -> Iterator[str]:
    if part.get("dmPolicy") == "open":
        yield "*"
    for path in _ALLOW_PATHS:
        for person in lookup(part, path) or ():
            text = str(person).strip()
            if text:
                yield _strip_prefix(channel, text)


def _strip_prefix(channel: str, person: str) -> str:
    prefix = next(
        (candidate for candidate in _PREFIXES.get(channel, ()) if person.lower().startswith(candidate)), ""
    )
    return person[len(prefix) :]


def owners(tree: Tree) -> tuple[str, ...]:
    """Certain owners: the only person that a channel allows."""
    single = {channel: people for channel, people in senders(tree).items() if len(people) == 1}
    return tuple(f"{channel}:{person}" for channel, (person,) in sorted(single.items()) if person != "*")


def channels_without_owner(tree: Tree) -> tuple[str, ...]:
    """Channels whose owner is not certain."""
    known_channels = {owner.partition(":")[0] for owner in owners(tree)}
    return tuple(sorted(channel for channel in senders(tree) if channel not in known_channels))


def merges_senders(tree: Tree) -> bool:
    """Whether the host puts direct messages of several people into one session."""
    if lookup(tree, "session.dmScope", "main") != "main":
        return False
    return any(len(people) != 1 or "*" in people for people in senders(tree).values())


# ---------------------------------------------------------------- plugins and hooks


class PluginBlock(NamedTuple):
    """A reason why the host does not load the plugin as it should."""

    what: str
    todo: str


def find_blocks(tree: Tree) -> Iterator[PluginBlock]:
    if lookup(tree, "plugins.enabled") is False:
        yield PluginBlock(
            "plugins.enabled is false, so no plugin is loaded.", _set_hint("plugins.enabled", "true")
        )
    if PLUGIN_ID in (lookup(tree, "plugins.deny") or ()):
        yield PluginBlock("plugins.deny names tacit.", "Take it out of that list.")
    allow = lookup(tree, "plugins.allow")
    if allow and PLUGIN_ID not in allow:
        yield PluginBlock("plugins.allow does not name tacit.", "Add it to that list.")
    if lookup(tree, f"{PLUGIN_KEY}.enabled") is not True:
        yield PluginBlock("The plugin is not enabled.", f"Run: openclaw plugins enable {PLUGIN_ID}")
    if lookup(tree, f"{PLUGIN_KEY}.hooks.allowConversationAccess") is not True:
        yield PluginBlock(
            "The plugin may not see conversations: no turn gets memories, and nothing is kept.",
            _set_hint(f"{PLUGIN_KEY}.hooks.allowConversationAccess", "true"),
        )
    if lookup(tree, f"{PLUGIN_KEY}.hooks.allowPromptInjection") is False:
        yield PluginBlock(
            "The plugin may not add to prompts.",
            _set_hint(f"{PLUGIN_KEY}.hooks.allowPromptInjection", "true"),
        )


def _set_hint(path: str, value: str) -> str:
    return f"Run: openclaw config set {path} {value}"


def uses_hooks(tree: Tree) -> tuple[str, ...]:
    """The classic hooks in the config."""
    entries = lookup(tree, "hooks.internal.entries", {})
    return tuple(name for name in HOOKS if isinstance(entries, Mapping) and name in entries)


def is_dreaming(tree: Tree) -> bool:
    """Whether the host rewrites MEMORY.md at night; it does by default."""
    if lookup(tree, "plugins.slots.memory", "memory-core") != "memory-core":
        return False
    entry = "plugins.entries.memory-core"
    return (
        lookup(tree, f"{entry}.enabled") is not False
        and lookup(tree, f"{entry}.config.dreaming.enabled") is not False
    )


def slots(tree: Tree) -> dict[str, str]:
    """The plugins in the host's slots."""
    entries = lookup(tree, "plugins.slots", {})
    return {name: str(value) for name, value in entries.items()} if isinstance(entries, Mapping) else {}


def holds_slot(tree: Tree) -> bool:
    """Whether the owner made tacit's plugin the host's memory."""
    return slots(tree).get("memory") == PLUGIN_ID


def gateway_port(tree: Tree) -> int:
    port = lookup(tree, "gateway.port", DEFAULT_PORT)
    return port if isinstance(port, int) else DEFAULT_PORT


def workspace(tree: Tree) -> str:
    """The workspace of agents without their own; empty if the host's default applies."""
    return str(lookup(tree, "agents.defaults.workspace") or "")
