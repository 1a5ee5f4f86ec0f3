"""`workspaces`: folders of agents, each a plain path or a group of path, agent and name.

Every workspace has a name that no other has, by which paths begin. Somebody gives it, else it is that of the
folder; where two folders are called alike, the second one gets a number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tacit.config.keys import WORKSPACE, Key, Workspace
from tacit.config.tree import Items, Node, Table, read_tree
from tacit.config.values import convert, named, nearest, show, shown, wrong
from tacit.errors import ConfigError

_ODD = re.compile(r"[^\w.-]+")
_COMMENTED = re.compile(r"^#workspaces: .*$", re.MULTILINE)


def convert_workspaces(key: Key, node: Node, where: str, environ: Mapping[str, str]) -> tuple[Workspace, ...]:
    if not isinstance(node, Items):
        raise wrong(key, node, where, "Write it as [a, b].")
    found: list[Workspace] = []
    for item in node.items:
        one = _workspace(key, item, where, environ)
        for other in found:
            _refuse_twice(one, other, item.line, where)
        found.append(one)
    return tuple(found)


def _workspace(key: Key, node: Node, where: str, environ: Mapping[str, str]) -> Workspace:
    if not isinstance(node, Table):
        return Workspace(_part("path", node, where, environ))
    section, parts = f"{key.name}.", dict[str, str]()
    for name, line, value in named(node, section, where):
        part = name.removeprefix(section)
        if part not in WORKSPACE:
            near = nearest(part, tuple(WORKSPACE))
            hint = f"Did you mean {near!r}?" if near else f"Keys of a workspace: {', '.join(WORKSPACE)}."
            raise ConfigError(where, line, f"unknown key {shown(name)}.", hint)
        parts[part] = _part(part, value, where, environ)
    if "path" not in parts:
        what = f"a group in {key.name!r} has no path."
        raise ConfigError(where, node.line, what, "Add the folder, such as path: ~/.openclaw/workspace.")
    return Workspace(**parts)


def _part(name: str, node: Node, where: str, environ: Mapping[str, str]) -> str:
    key = WORKSPACE[name]
    value = convert(key, Items(node.line, (node,)) if key.rule.many else node, where, environ)
    return str(value[0]) if isinstance(value, tuple) else str(value)


def _refuse_twice(one: Workspace, other: Workspace, line: int, where: str) -> None:
    if one.path == other.path:
        raise ConfigError(where, line, f"'workspaces' names {shown(one.path)} twice.", "Keep one.")
    if one.name and one.name == other.name:
        what = f"two of 'workspaces' have the name {shown(one.name)}."
        raise ConfigError(where, line, what, "Give one of them another name.")


def adopted(workspaces: Sequence[Workspace]) -> tuple[Workspace, ...]:
    """With a name for each."""
    taken = {one.name for one in workspaces if one.name}
    names: dict[str, str] = {one.path: one.name for one in workspaces if one.name}
    unnamed = [one for one in workspaces if not one.name]
    for one in unnamed:  # whoever is alone with a name has it, whatever numbers others need
        if (own := _own_name(one.path)) not in taken:
            taken.add(own)
            names[one.path] = own
    for one in unnamed:
        if one.path not in names:
            own = _own_name(one.path)
            names[one.path] = next(name for at in count(2) if (name := f"{own}-{at}") not in taken)
            taken.add(names[one.path])
    return tuple(one._replace(name=names[one.path]) for one in workspaces)


def _own_name(path: str) -> str:
    """That of its folder, as a plain part of a path."""
    return _ODD.sub("-", posixpath.basename(path)).strip(".-") or "workspace"


# ---------------------------------------------------------------- one more in the file


def with_workspace(text: str, one: Workspace, where: str) -> str | None:
    """The text of the config with one more workspace, everything else as it was written. None where it is
    written in a way that is better changed by hand; whoever asks reads the result to be certain."""
    entry = show((one,))[1:-1]
    found = _node_of(text, where)
    if found is None:
        line = f"workspaces: [{entry}]"
        if _COMMENTED.search(text):
            return _COMMENTED.sub(lambda _: line, text, count=1)
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"
    lines = text.split("\n")
    last = max([found.line, *(item.line for item in found.items)]) - 1
    if found.items and lines[last].lstrip().startswith("- "):
        indent = _indent(lines[last])
        end = next((at for at in range(last + 1, len(lines)) if _indent(lines[at]) <= indent), len(lines))
        return "\n".join([*lines[:end], f"{indent}- {entry}", *lines[end:]])
    before, bracket, after = lines[last].rpartition("]")
    if not bracket or found.line - 1 != last:
        return None
    comma = ", " if found.items else ""
    return "\n".join([*lines[:last], f"{before}{comma}{entry}{bracket}{after}", *lines[last + 1 :]])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _node_of(text: str, where: str) -> Items | None:
    tree = read_tree(text, where)
    entries: Sequence[Any] = tree.entries if isinstance(tree, Table) else ()
    for name, node in entries:
        if getattr(name, "text", "") == "workspaces" and isinstance(node, Items):
            return node
    return None
