"""Changes one setting of memory-config.yaml without touching the rest of the file.

The caller parses the result again: a file in a form that is not understood here is left to its author.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tacit.config.conversion import show
from tacit.config.loader import read_config_tree
from tacit.config.schema import Workspace
from tacit.text.yaml_reader import ListNode, MappingNode

_COMMENTED_LINE = re.compile(r"^#workspaces: .*$", re.MULTILINE)


def add_items(text: str, key: str, items: Sequence[str]) -> str:
    """The text with these items added to a list at its top."""
    if not items:
        return text
    if match := re.search(rf"^{key}:[ \t]*(?:\[(.*?)\])?[ \t]*(#.*)?$", text, re.MULTILINE):
        if match[1] is None and (block := re.match(r"(?:\n([ \t]*)- .*)+", text[match.end() :])):
            added = "".join(f"\n{block[1]}- {_show_item(item)}" for item in items)
            end = match.end() + block.end()
            return text[:end] + added + text[end:]
        existing = (match[1] or "").strip().rstrip(",")
        comment = f"  {match[2]}" if match[2] else ""
        line = f"{key}: [{', '.join(filter(None, (existing, *map(_show_item, items))))}]{comment}"
        return text[: match.start()] + line + text[match.end() :]
    line = f"{key}: {show(tuple(items))}"
    if match := re.search(rf"^#{key}:.*$", text, re.MULTILINE):  # as in the starter file, with its default
        return text[: match.start()] + line + text[match.end() :]
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"


def set_word(text: str, section: str, key: str, word: str) -> str:
    """The text with `section.key` set to that word."""
    head = re.search(rf"^{section}:[ \t]*(?:#.*)?$", text, re.MULTILINE)
    if head is None:
        return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{section}:\n  {key}: {word}\n"
    below = re.compile(r"(?:\n(?:[ \t#].*)?$)*", re.MULTILINE).match(text, head.end())
    end = below.end() if below else head.end()
    for commented in ("", "#"):  # as set in the file, else as in the starter file, with its default
        pattern = re.compile(rf"^([ \t]+){commented}{key}:[ \t]*[^\s#]*", re.MULTILINE)
        if match := pattern.search(text, head.end(), end):
            return f"{text[: match.start()]}{match[1]}{key}: {word}{text[match.end() :]}"
    indent = re.compile(r"\n([ \t]+)\w").search(text, head.end(), end)
    return f"{text[: head.end()]}\n{indent[1] if indent else '  '}{key}: {word}{text[head.end() :]}"


def _show_item(item: str) -> str:
    return show((item,))[1:-1]


def add_workspace(text: str, workspace: Workspace, where: str) -> str | None:
    """The text of the config with one more workspace and everything else unchanged. None if it is written in
    a way that is better edited by hand; the caller parses the result to be certain."""
    entry = show((workspace,))[1:-1]
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
