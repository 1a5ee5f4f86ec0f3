"""The host's settings, read from its parsed config: what it allows, what an install changes there, and
what an uninstall takes back. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tacit.hosts.openclaw import json5

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


# ---------------------------------------------------------------- what an install changes

_ABSENT = object()


class SettingChange(NamedTuple):
    """One changed setting of the host."""

    path: str
    is_new: bool
    before: Any
    after: Any

    def lines(self) -> Iterator[str]:
        if not self.is_new:
            yield f"- {self.path} = {json.dumps(self.before)}"
        yield f"+ {self.path} = {json.dumps(self.after)}"


def plugin_keys(home: str, python: str) -> dict[str, Any]:
    return {
        f"{PLUGIN_KEY}.enabled": True,
        f"{PLUGIN_KEY}.hooks.allowConversationAccess": True,
        f"{PLUGIN_KEY}.config.home": home,
        f"{PLUGIN_KEY}.config.python": python,
    }


def hook_keys(home: str) -> dict[str, Any]:
    keys: dict[str, Any] = {"hooks.internal.enabled": True}
    for name in HOOKS:
        keys |= {f"hooks.internal.entries.{name}.enabled": True, f"hooks.internal.entries.{name}.home": home}
    return keys


def find_changes(tree: Tree, wanted: Mapping[str, Any]) -> tuple[SettingChange, ...]:
    """The wanted settings that are missing or different."""
    values = ((path, lookup(tree, path, _ABSENT), after) for path, after in wanted.items())
    return tuple(
        SettingChange(path, before is _ABSENT, None if before is _ABSENT else before, after)
        for path, before, after in values
        if before is _ABSENT or before != after or type(before) is not type(after)
    )


def build_patch(values: Mapping[str, Any]) -> dict[str, Any]:
    """The input for `openclaw config patch`. None removes a setting."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *folders, name = path.split(".")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[name] = value
    return tree


# ---------------------------------------------------------------- what an uninstall takes back

_OWN_PATHS = (
    PLUGIN_KEY,
    f"plugins.installs.{PLUGIN_ID}",
    *(f"hooks.internal.entries.{name}" for name in HOOKS),
)
_HOST_PATHS = ("meta",)  # the host rewrites it at every change
_LIST_PATHS = ("plugins.allow",)  # the host may add tacit to them


def is_unchanged(before: bytes | None, now: bytes, keys: Sequence[SettingChange] = ()) -> bool:
    """Whether the file differs only by tacit's settings and by what the host writes itself."""
    try:
        old = json5.parse(before.decode()) if before is not None else {}
        new = json5.parse(now.decode())
    except ValueError:  # also raised for invalid UTF-8
        return False
    return bool(_strip_paths(old, keys) == _strip_paths(new, keys))


def _strip_paths(tree: Any, keys: Sequence[SettingChange]) -> Any:
    paths = {*_OWN_PATHS, *_HOST_PATHS, *(key.path for key in keys)}
    return _remove_paths(tree, tuple(paths))


def _remove_paths(tree: Any, paths: Sequence[str], at_path: str = "") -> Any:
    """Removes these paths, and tables that are empty then."""
    if at_path in _LIST_PATHS and isinstance(tree, list):
        return [item for item in tree if item != PLUGIN_ID]
    if not isinstance(tree, Mapping):
        return tree
    result = {}
    for name, value in tree.items():
        path = f"{at_path}.{name}" if at_path else name
        remainder = _remove_paths(value, paths, path)
        if path not in paths and remainder != {}:
            result[name] = remainder
    return result


def find_leftovers(tree: Tree) -> Iterator[str]:
    """Settings of tacit's that are still there."""
    yield from (path for path in _OWN_PATHS if lookup(tree, path, _ABSENT) is not _ABSENT)


def settings_to_revert(tree: Tree, keys: Sequence[SettingChange]) -> Iterator[tuple[str, Any]]:
    """Settings of others that an install changed, and that are unchanged since: path and old value. None: it
    did not exist."""
    for key in keys:
        is_own = any(key.path == path or key.path.startswith(f"{path}.") for path in _OWN_PATHS)
        if not is_own and lookup(tree, key.path) == key.after:
            yield key.path, None if key.is_new else key.before
