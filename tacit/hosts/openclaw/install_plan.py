"""What an install would change, as a value to show first and apply afterwards. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.hosts.openclaw.settings import HOOKS, PLUGIN_KEY, Tree, lookup

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


@dataclass(frozen=True, slots=True)
class InstallPlan:
    host: str  # its version
    makes_home: bool = False
    config: tuple[str, str] | None = None  # the home's config, before and after
    keys: tuple[SettingChange, ...] = ()
    plugin: str = ""  # installed or replaced; empty: it stays
    hooks: tuple[str, ...] = ()  # to write into the host's folder
    notes: tuple[str, ...] = ()  # what the owner should know

    @property
    def is_empty(self) -> bool:
        return not (self.makes_home or self.config or self.keys or self.plugin or self.hooks)


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
