"""`sessions.rules`: the one key that holds groups of keys. Each becomes an Override, with its lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.config.keys import CONDITIONS, OVERRIDE, Key, Override
from tacit.config.tree import Items, Node, Table
from tacit.config.values import convert, named, nearest, shown, wrong
from tacit.errors import ConfigError

_SETTINGS = tuple(name for name in OVERRIDE if name not in CONDITIONS)


def rule_name(at: int) -> str:
    """Under which the line of a rule is kept; that of a setting in it is kept with `.files` behind."""
    return f"sessions.rules[{at}]"


def convert_rules(
    key: Key, node: Node, where: str, environ: Mapping[str, str]
) -> tuple[tuple[Override, ...], dict[str, int]]:
    if not isinstance(node, Items):
        raise wrong(key, node, where, "Write it as [{type: …, files: …}].")
    rules, lines = [], {}
    for at, item in enumerate(node.items):
        if not isinstance(item, Table):
            raise wrong(key, item, where, "Write it as {type: …, files: …}.")
        values, inside = _parts(key, item, where, environ)
        lines[rule_name(at)] = item.line
        lines.update((f"{rule_name(at)}.{name}", line) for name, line in inside.items())
        rules.append(_override(key, item, values, where))
    return tuple(rules), lines


def _parts(
    key: Key, table: Table, where: str, environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, int]]:
    section = f"{key.name}."
    values, lines = {}, {}
    for name, line, node in named(table, section, where):
        part = name.removeprefix(section)
        if part not in OVERRIDE:
            near = nearest(part, tuple(OVERRIDE))
            hint = f"Did you mean {section + near!r}?" if near else f"Keys of a rule: {', '.join(OVERRIDE)}."
            raise ConfigError(where, line, f"unknown key {shown(name)}.", hint)
        values[part], lines[part] = convert(OVERRIDE[part], node, where, environ), line
    return values, lines


def _override(key: Key, table: Table, values: Mapping[str, Any], where: str) -> Override:
    """In the order of keys.py, so that two rules that say the same are the same."""
    conditions = tuple((name, values[name]) for name in CONDITIONS if name in values)
    settings = tuple((name, values[name]) for name in _SETTINGS if name in values)
    if not conditions:
        what = f"a rule in {key.name!r} has no condition, so it would hold for all sessions."
        raise ConfigError(where, table.line, what, f"Add one of {', '.join(CONDITIONS)}.")
    if not settings:
        what = f"a rule in {key.name!r} sets nothing."
        raise ConfigError(where, table.line, what, f"Add one of {', '.join(_SETTINGS)}.")
    return Override(conditions, settings)
