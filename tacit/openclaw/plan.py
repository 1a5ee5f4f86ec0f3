"""What an install would change, as a value: it is shown first and done afterwards. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.openclaw.settings import ENTRY, HOOKS, Tree, at

_ABSENT = object()


class Key(NamedTuple):
    """One setting of the host."""

    path: str
    is_new: bool
    before: Any
    after: Any

    def lines(self) -> Iterator[str]:
        if not self.is_new:
            yield f"- {self.path} = {json.dumps(self.before)}"
        yield f"+ {self.path} = {json.dumps(self.after)}"


@dataclass(frozen=True, slots=True)
class Plan:
    host: str  # its version
    makes_home: bool = False
    config: tuple[str, str] | None = None  # of the home, before and after
    keys: tuple[Key, ...] = ()
    plugin: str = ""  # what becomes of it: installed, replaced; empty: it stays
    hooks: tuple[str, ...] = ()  # that are put into the host's folder
    notes: tuple[str, ...] = ()  # what the owner should know

    @property
    def is_empty(self) -> bool:
        return not (self.makes_home or self.config or self.keys or self.plugin or self.hooks)


def plugin_keys(home: str, python: str) -> dict[str, Any]:
    return {
        f"{ENTRY}.enabled": True,
        f"{ENTRY}.hooks.allowConversationAccess": True,
        f"{ENTRY}.config.home": home,
        f"{ENTRY}.config.python": python,
    }


def hook_keys(home: str) -> dict[str, Any]:
    keys: dict[str, Any] = {"hooks.internal.enabled": True}
    for name in HOOKS:
        keys |= {f"hooks.internal.entries.{name}.enabled": True, f"hooks.internal.entries.{name}.home": home}
    return keys


def changes(tree: Tree, wanted: Mapping[str, Any]) -> tuple[Key, ...]:
    """Which of the wanted settings are not there."""
    found = ((path, at(tree, path, _ABSENT), after) for path, after in wanted.items())
    return tuple(
        Key(path, before is _ABSENT, None if before is _ABSENT else before, after)
        for path, before, after in found
        if before is _ABSENT or before != after or type(before) is not type(after)
    )


def patch(values: Mapping[str, Any]) -> dict[str, Any]:
    """As `openclaw config patch` takes it. None takes a setting away."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        *folders, name = path.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = value
    return tree
