"""YAML text → a small tree with line numbers. The only module here that knows the YAML library.

What the file cannot need is refused by name: aliases (a few lines can unfold into gigabytes), tags
(they ask for Python objects), deep nesting, more than one document.
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


class Scalar(NamedTuple):
    line: int
    kind: ScalarKind
    text: str
    quoted: bool = False


class Items(NamedTuple):
    line: int
    items: tuple[Node, ...]


class Table(NamedTuple):
    line: int
    entries: tuple[tuple[Node, Node], ...]


Node = Scalar | Items | Table


def read_tree(text: str, where: str) -> Node | None:
    """None when the text holds nothing but comments."""
    if len(text) > MAX_CHARS:
        raise ConfigError(where, None, f"the file is longer than {MAX_CHARS} characters.", "Shorten it.")
    import yaml  # 20 ms, and most commands import this package long before they need it

    try:
        root = _composed(text, where)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"character U+{error.character:04X} is not allowed."
        raise ConfigError(where, line, what, "Remove it.") from None
    except yaml.YAMLError as error:
        raise _bad_yaml(error, where) from None
    except (ValueError, OverflowError, RecursionError):
        # The library lets these out for impossible escapes and version numbers, without a place.
        raise ConfigError(where, None, "this is not valid YAML.", "Look for an escape like '\\U'.") from None
    return None if root is None else _node(root)


def _composed(text: str, where: str) -> yaml.Node | None:
    """With PyYAML's parser in C, fifty times as fast; what that one refuses, the other explains better."""
    import yaml

    for loader in (getattr(yaml, "CSafeLoader", None), yaml.SafeLoader):
        try:
            if loader is not None:
                _refuse_tricks(yaml.parse(text, Loader=loader), where)
                found: yaml.Node | None = yaml.compose(text, Loader=loader)
                return found
        except (yaml.YAMLError, ValueError, OverflowError):
            if loader is yaml.SafeLoader:
                raise
    return None


def _bad_yaml(error: yaml.YAMLError, where: str) -> ConfigError:
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
            what = "anchors and aliases ('&name', '*name') are not allowed."
            raise ConfigError(where, line, what, "Write the value out, or quote it if it is text.")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None):
            what = "tags ('!name') are not allowed."
            raise ConfigError(where, line, what, "Write the plain value, or quote it if it is text.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            what = f"nesting is deeper than {MAX_DEPTH} levels."
            raise ConfigError(where, line, what, "No key is that deep.")


def _node(node: yaml.Node) -> Node:
    import yaml

    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return Items(line, tuple(_node(item) for item in node.value))
    if isinstance(node, yaml.MappingNode):
        return Table(line, tuple((_node(key), _node(value)) for key, value in node.value))
    kind = _KINDS.get(node.tag.rpartition(":")[2], "text")
    return Scalar(line, kind, node.value, quoted=bool(getattr(node, "style", None)))
