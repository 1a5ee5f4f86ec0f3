"""`sessions.rules`: the only key that contains groups of keys. Each becomes an Override, with its lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.config.conversion import convert, find_nearest, quote_text, read_entries, value_error
from tacit.config.schema import CONDITIONS, OVERRIDE_KEYS, ConfigKey, Override
from tacit.errors import ConfigError
from tacit.text.yaml_reader import ListNode, MappingNode, Node

_SETTINGS = tuple(name for name in OVERRIDE_KEYS if name not in CONDITIONS)


def rule_name(at: int) -> str:
    """The key for the line of a rule; for a setting in it, `.files` or so is appended."""
    return f"sessions.rules[{at}]"


def convert_rules(
    key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]
) -> tuple[tuple[Override, ...], dict[str, int]]:
    if not isinstance(node, ListNode):
        raise value_error(key, node, where, "Write it as [{type: …, files: …}].")
    rules, lines = [], {}
    for index, item in enumerate(node.items):
        if not isinstance(item, MappingNode):
            raise value_error(key, item, where, "Write it as {type: …, files: …}.")
        values, part_lines = _convert_parts(key, item, where, environ)
        lines[rule_name(index)] = item.line
        lines.update((f"{rule_name(index)}.{name}", line) for name, line in part_lines.items())
        rules.append(_make_override(key, item, values, where))
    return tuple(rules), lines


def _convert_parts(
    key: ConfigKey, table: MappingNode, where: str, environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, int]]:
    section = f"{key.name}."
    values, lines = {}, {}
    for name, line, node in read_entries(table, section, where):
        part = name.removeprefix(section)
        if part not in OVERRIDE_KEYS:
            near = find_nearest(part, tuple(OVERRIDE_KEYS))
            hint = (
                f"Did you mean {section + near!r}?"
                if near
                else f"Keys of a rule: {', '.join(OVERRIDE_KEYS)}."
            )
            raise ConfigError(where, line, f"unknown key {quote_text(name)}.", hint)
        values[part], lines[part] = convert(OVERRIDE_KEYS[part], node, where, environ), line
    return values, lines


def _make_override(key: ConfigKey, table: MappingNode, values: Mapping[str, Any], where: str) -> Override:
    """Conditions and settings in the order of the schema, so that equivalent rules are equal."""
    conditions = tuple((name, values[name]) for name in CONDITIONS if name in values)
    settings = tuple((name, values[name]) for name in _SETTINGS if name in values)
    if not conditions:
        message = f"a rule in {key.name!r} has no condition, so it would hold for all sessions."
        raise ConfigError(where, table.line, message, f"Add one of {', '.join(CONDITIONS)}.")
    if not settings:
        message = f"a rule in {key.name!r} sets nothing."
        raise ConfigError(where, table.line, message, f"Add one of {', '.join(_SETTINGS)}.")
    return Override(conditions, settings)
