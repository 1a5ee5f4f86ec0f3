"""What of the host's config is ours, and whether taking it out leaves what was there before. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit.openclaw.plan import Key
from tacit.openclaw.settings import ENTRY, HOOKS, ID, Tree, at
from tacit.text import json5

_OURS = (ENTRY, f"plugins.installs.{ID}", *(f"hooks.internal.entries.{name}" for name in HOOKS))
_OF_THE_HOST = ("meta",)  # which it writes anew at every change
_LISTS = ("plugins.allow",)  # in which the host may name us


def is_as_before(before: bytes | None, now: bytes, keys: Sequence[Key] = ()) -> bool:
    """Whether the file differs from what it was by nothing but ours, and by what the host writes itself."""
    try:
        was = json5.parse(before.decode()) if before is not None else {}
        found = json5.parse(now.decode())
    except ValueError:  # also for what is no UTF-8
        return False
    return bool(_bare(was, keys) == _bare(found, keys))


def _bare(tree: Any, keys: Sequence[Key]) -> Any:
    paths = {*_OURS, *_OF_THE_HOST, *(key.path for key in keys)}
    return _without(tree, tuple(paths))


def _without(tree: Any, paths: Sequence[str], at_path: str = "") -> Any:
    """Without these, and without tables that are empty then."""
    if at_path in _LISTS and isinstance(tree, list):
        return [one for one in tree if one != ID]
    if not isinstance(tree, Mapping):
        return tree
    made = {}
    for name, value in tree.items():
        path = f"{at_path}.{name}" if at_path else name
        kept = _without(value, paths, path)
        if path not in paths and kept != {}:
            made[name] = kept
    return made


def leftovers(tree: Tree) -> Iterator[str]:
    """Settings of ours that are still there."""
    absent = object()
    yield from (path for path in _OURS if at(tree, path, absent) is not absent)


def undone(tree: Tree, keys: Sequence[Key]) -> Iterator[tuple[str, Any]]:
    """Settings besides ours that an install changed and nobody has changed since: path and what it was.
    None: it was not there."""
    for key in keys:
        is_ours = any(key.path == path or key.path.startswith(f"{path}.") for path in _OURS)
        if not is_ours and at(tree, key.path) == key.after:
            yield key.path, None if key.is_new else key.before
