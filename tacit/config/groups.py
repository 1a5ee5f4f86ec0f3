"""The two keys that contain groups of keys: `sessions.rules` and `workspaces`.

Every workspace has a unique name, with which paths begin. It is set in the file, or else is the name of the
folder; if two folders have the same name, the second one gets a number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tacit.config.conversion import convert, find_nearest, quote_text, read_entries, value_error
from tacit.config.schema import CONDITIONS, OVERRIDE_KEYS, WORKSPACE_KEYS, ConfigKey, Override, Workspace
from tacit.errors import ConfigError
from tacit.text.yaml_reader import ListNode, MappingNode, Node

_SETTINGS = tuple(name for name in OVERRIDE_KEYS if name not in CONDITIONS)
_UNSAFE_CHARS = re.compile(r"[^\w.-]+")


def rule_name(index: int) -> str:
    """The key for the line of a rule; for a setting in it, `.files` or so is appended."""
    return f"sessions.rules[{index}]"


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


def convert_workspaces(
    key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]
) -> tuple[Workspace, ...]:
    if not isinstance(node, ListNode):
        raise value_error(key, node, where, "Write it as [a, b].")
    converted: list[Workspace] = []
    for item in node.items:
        workspace = _convert_workspace(key, item, where, environ)
        for other in converted:
            _refuse_duplicate(workspace, other, item.line, where)
        converted.append(workspace)
    return tuple(converted)


def _convert_workspace(key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]) -> Workspace:
    if not isinstance(node, MappingNode):
        return Workspace(_convert_part("path", node, where, environ))
    section, parts = f"{key.name}.", dict[str, str]()
    for name, line, value in read_entries(node, section, where):
        part = name.removeprefix(section)
        if part not in WORKSPACE_KEYS:
            near = find_nearest(part, tuple(WORKSPACE_KEYS))
            hint = f"Did you mean {near!r}?" if near else f"Keys of a workspace: {', '.join(WORKSPACE_KEYS)}."
            raise ConfigError(where, line, f"unknown key {quote_text(name)}.", hint)
        parts[part] = _convert_part(part, value, where, environ)
    if "path" not in parts:
        message = f"a group in {key.name!r} has no path."
        raise ConfigError(where, node.line, message, "Add the folder, such as path: ~/assistant.")
    return Workspace(**parts)


def _convert_part(name: str, node: Node, where: str, environ: Mapping[str, str]) -> str:
    key = WORKSPACE_KEYS[name]
    value = convert(key, ListNode(*node[:3], "", (node,)) if key.rule.many else node, where, environ)
    return str(value[0]) if isinstance(value, tuple) else str(value)


def _refuse_duplicate(workspace: Workspace, other: Workspace, line: int, where: str) -> None:
    if workspace.path == other.path:
        raise ConfigError(where, line, f"'workspaces' names {quote_text(workspace.path)} twice.", "Keep one.")
    if workspace.name and workspace.name == other.name:
        message = f"two of 'workspaces' have the name {quote_text(workspace.name)}."
        raise ConfigError(where, line, message, "Give one of them another name.")


def assign_names(workspaces: Sequence[Workspace]) -> tuple[Workspace, ...]:
    """The workspaces with a name for each."""
    used_names = {workspace.name for workspace in workspaces if workspace.name}
    names: dict[str, str] = {workspace.path: workspace.name for workspace in workspaces if workspace.name}
    unnamed = [workspace for workspace in workspaces if not workspace.name]
    for workspace in unnamed:  # a folder name that is unique needs no number
        if (folder_name := _folder_name(workspace.path)) not in used_names:
            used_names.add(folder_name)
            names[workspace.path] = folder_name
    for workspace in unnamed:
        if workspace.path not in names:
            folder_name = _folder_name(workspace.path)
            names[workspace.path] = next(
                name for number in count(2) if (name := f"{folder_name}-{number}") not in used_names
            )
            used_names.add(names[workspace.path])
    return tuple(workspace._replace(name=names[workspace.path]) for workspace in workspaces)


def _folder_name(path: str) -> str:
    """The name of its folder, as a plain part of a path."""
    return _UNSAFE_CHARS.sub("-", posixpath.basename(path)).strip(".-") or "workspace"
