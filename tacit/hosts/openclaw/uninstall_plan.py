"""Which of the host's settings are tacit's, and whether removing them restores the old config. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit.hosts.openclaw import json5
from tacit.hosts.openclaw.install_plan import SettingChange
from tacit.hosts.openclaw.settings import HOOKS, PLUGIN_ID, PLUGIN_KEY, Tree, lookup

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
    """Settings of others that an install changed and nobody has changed since: path and old value. None: it
    did not exist."""
    for key in keys:
        is_own = any(key.path == path or key.path.startswith(f"{path}.") for path in _OWN_PATHS)
        if not is_own and lookup(tree, key.path) == key.after:
            yield key.path, None if key.is_new else key.before
