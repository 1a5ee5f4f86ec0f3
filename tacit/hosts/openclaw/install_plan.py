"""What an install would change in the host's settings, and what an uninstall takes back: values to show first
and apply afterwards. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.hosts.openclaw import json5
from tacit.hosts.openclaw.settings import HOOKS, PLUGIN_ID, PLUGIN_KEY, Tree, lookup

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


# ---------------------------------------------------------------- taking it back

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
    absent = object()
    yield from (path for path in _OWN_PATHS if lookup(tree, path, absent) is not absent)


def settings_to_revert(tree: Tree, keys: Sequence[SettingChange]) -> Iterator[tuple[str, Any]]:
    """Settings of others that an install changed, and that are unchanged since: path and old value. None: it
    did not exist."""
    for key in keys:
        is_own = any(key.path == path or key.path.startswith(f"{path}.") for path in _OWN_PATHS)
        if not is_own and lookup(tree, key.path) == key.after:
            yield key.path, None if key.is_new else key.before
