"""Parses YAML text to a small tree with line numbers. The only module here that uses the YAML library.

Features that the file does not need are refused by name: aliases (a few lines can expand to gigabytes), tags
(they create Python objects), deep nesting, more than one document.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tacit.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_CHARS = 64 * 1024  # the parser manages about 100 KB a second, and a stranger may have written it
MAX_DEPTH = 8  # the deepest key needs five

ScalarKind = Literal["text", "whole", "number", "flag", "null", "date"]
_KINDS: dict[str, ScalarKind] = {
    "int": "whole",
    "float": "number",
    "bool": "flag",
    "null": "null",
    "timestamp": "date",
}


class ScalarNode(NamedTuple):
    line: int
    kind: ScalarKind
    text: str
    quoted: bool = False


class ListNode(NamedTuple):
    line: int
    items: tuple[Node, ...]


class MappingNode(NamedTuple):
    line: int
    entries: tuple[tuple[Node, Node], ...]


Node = ScalarNode | ListNode | MappingNode


def read_tree(text: str, where: str) -> Node | None:
    """The tree, or None if the text has only comments."""
    if len(text) > MAX_CHARS:
        raise ConfigError(where, None, f"the file is longer than {MAX_CHARS} characters.", "Shorten it.")
    import yaml  # 20 ms, and most commands import this package long before they need it

    try:
        root = _compose(text, where)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"character U+{error.character:04X} is not allowed."
        raise ConfigError(where, line, message, "Remove it.") from None
    except yaml.YAMLError as error:
        raise _yaml_error(error, where) from None
    except (ValueError, OverflowError, RecursionError):
        # The library raises these for impossible escapes and version numbers, without a position.
        raise ConfigError(where, None, "this is not valid YAML.", "Look for an escape like '\\U'.") from None
    return None if root is None else _convert_node(root)


def _compose(text: str, where: str) -> yaml.Node | None:
    """With PyYAML's parser in C, fifty times as fast; for errors the one in Python gives better messages."""
    import yaml

    for loader in (getattr(yaml, "CSafeLoader", None), yaml.SafeLoader):
        try:
            if loader is not None:
                _refuse_tricks(yaml.parse(text, Loader=loader), where)
                root: yaml.Node | None = yaml.compose(text, Loader=loader)
                return root
        except (yaml.YAMLError, ValueError, OverflowError):
            if loader is yaml.SafeLoader:
                raise
    return None


def _yaml_error(error: yaml.YAMLError, where: str) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    return ConfigError(
        where,
        None if mark is None else mark.line + 1,
        f"this is not valid YAML: {problem}.",
        "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['.",
    )


def _refuse_tricks(events: Iterable[Any], where: str) -> None:
    import yaml

    depth = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = "anchors and aliases ('&name', '*name') are not allowed."
            raise ConfigError(where, line, message, "Write the value out, or quote it if it is text.")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None):
            message = "tags ('!name') are not allowed."
            raise ConfigError(where, line, message, "Write the plain value, or quote it if it is text.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            message = f"nesting is deeper than {MAX_DEPTH} levels."
            raise ConfigError(where, line, message, "No key is that deep.")


def _convert_node(node: yaml.Node) -> Node:
    import yaml

    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return ListNode(line, tuple(_convert_node(item) for item in node.value))
    if isinstance(node, yaml.MappingNode):
        return MappingNode(
            line, tuple((_convert_node(key), _convert_node(value)) for key, value in node.value)
        )
    kind = _KINDS.get(node.tag.rpartition(":")[2], "text")
    return ScalarNode(line, kind, node.value, quoted=bool(getattr(node, "style", None)))
