"""`workspaces`: folders of agents, each a plain path or a group of path, agent and name.

Every workspace has a unique name, with which paths begin. It is set in the file, or else is the name of the
folder; if two folders have the same name, the second one gets a number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tacit.config.conversion import convert, find_nearest, quote_text, read_entries, show, value_error
from tacit.config.schema import WORKSPACE_KEYS, ConfigKey, Workspace
from tacit.config.yaml_tree import read_config_tree
from tacit.errors import ConfigError
from tacit.text.yaml_reader import ListNode, MappingNode, Node

_UNSAFE_CHARS = re.compile(r"[^\w.-]+")
_COMMENTED_LINE = re.compile(r"^#workspaces: .*$", re.MULTILINE)


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
    for workspace in unnamed:  # whoever is alone with a name has it, whatever numbers others need
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


# ---------------------------------------------------------------- one more in the file


def add_workspace(text: str, one: Workspace, where: str) -> str | None:
    """The text of the config with one more workspace and everything else unchanged. None if it is written in
    a way that is better edited by hand; the caller parses the result to be certain."""
    entry = show((one,))[1:-1]
    node = _find_node(text, where)
    if node is None:
        line = f"workspaces: [{entry}]"
        if _COMMENTED_LINE.search(text):
            return _COMMENTED_LINE.sub(lambda _: line, text, count=1)
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
    lines = text.split("\n")
    last = max([node.line, *(item.line for item in node.items)]) - 1
    if node.items and lines[last].lstrip().startswith("- "):
        indent = _indent_of(lines[last])
        end = next(
            (index for index in range(last + 1, len(lines)) if _indent_of(lines[index]) <= indent), len(lines)
        )
        return "\n".join([*lines[:end], f"{indent}- {entry}", *lines[end:]])
    before, bracket, after = lines[last].rpartition("]")
    if not bracket or node.line - 1 != last:
        return None
    comma = ", " if node.items else ""
    return "\n".join([*lines[:last], f"{before}{comma}{entry}{bracket}{after}", *lines[last + 1 :]])


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _find_node(text: str, where: str) -> ListNode | None:
    tree = read_config_tree(text, where)
    entries: Sequence[Any] = tree.entries if isinstance(tree, MappingNode) else ()
    for name, node in entries:
        if getattr(name, "text", "") == "workspaces" and isinstance(node, ListNode):
            return node
    return None
