"""Parses the text of memory-config.yaml. The first error is raised as a ConfigError. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tacit.config.conversion import (
    asks_environment,
    convert,
    describe_node,
    find_nearest,
    quote_text,
    read_entries,
    show,
)
from tacit.config.groups import convert_rules, convert_workspaces, rule_name
from tacit.config.schema import KEYS, SECTIONS, Config, ConfigKey, Value, build_config
from tacit.config.validation import find_first_clash, find_warnings
from tacit.diagnostics import Problem
from tacit.errors import ConfigError
from tacit.text.yaml_reader import ListNode, MappingNode, Node, ScalarNode, YamlError, read_tree

DEFAULT = "default"
MAX_CHARS = 64 * 1024  # the parser manages about 100 KB a second, and a stranger may have written it
MAX_DEPTH = 8  # the deepest key needs five

_ANCHOR = ("anchors and aliases ('&name', '*name') are not allowed.",
           "Write the value out, or quote it if it is text.")  # fmt: skip
_TAG = ("tags ('!name') are not allowed.", "Write the plain value, or quote it if it is text.")
_SYNTAX_HINT = "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['."


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    config: Config
    origins: Mapping[str, str]  # dotted key → "default" or "memory-config.yaml:LINE"
    problems: tuple[Problem, ...] = ()
    rules: tuple[str, ...] = ()  # file and line of each of sessions.rules


class _Collected:
    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []


def parse(
    text: str, *, where: str, environ: Mapping[str, str], trusted: bool, root: str = ""
) -> LoadedConfig:
    """`trusted` means that this home was set up on this machine, by `tacit init`. `root`: the home.

    In an untrusted home, keys that reach outside and values that read the environment keep their defaults,
    and a Problem says so: a cloned folder must not be able to reach or read anything outside.
    """
    collected = _Collected()
    for key, line, node in _walk_entries(read_config_tree(text, where), "", where):
        _collect(collected, key, line, node, where=where, environ=environ, trusted=trusted)
    config = build_config(collected.values)
    clash = find_first_clash(config, collected.lines, root)
    if clash:
        raise ConfigError(where, clash[1], clash[0].what, clash[0].hint)
    collected.problems.extend(find_warnings(config, where, collected.lines))
    return LoadedConfig(
        config,
        _origins(collected.lines, where),
        tuple(collected.problems),
        _rule_places(collected.lines, config, where),
    )


def _origins(lines: Mapping[str, int], where: str) -> dict[str, str]:
    return {name: _format_place(lines[name], where) if name in lines else DEFAULT for name in KEYS}


def _rule_places(lines: Mapping[str, int], config: Config, where: str) -> tuple[str, ...]:
    return tuple(_format_place(lines[rule_name(index)], where) for index in range(len(config.sessions.rules)))


def _format_place(line: int, where: str) -> str:
    return f"{where.rpartition('/')[2]}:{line}"


def _collect(
    collected: _Collected,
    key: ConfigKey,
    line: int,
    node: Node,
    *,
    where: str,
    environ: Mapping[str, str],
    trusted: bool,
) -> None:
    if not trusted and _needs_environment(node):
        reason = "environment variables and '~' are not expanded in it"
        collected.problems.append(_untrusted_problem(key, reason, where, line))
        return
    value = _convert_value(collected, key, node, where, environ)
    if not trusted and key.rule.reaches and value != key.default:
        collected.problems.append(_untrusted_problem(key, "it may not reach outside", where, line))
        return
    collected.values[key.name], collected.lines[key.name] = value, line


def _convert_value(
    collected: _Collected, key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]
) -> Value:
    if key.rule.kind == "workspace":
        return convert_workspaces(key, node, where, environ)
    if key.rule.kind != "override":
        return convert(key, node, where, environ)
    rules, lines = convert_rules(key, node, where, environ)
    collected.lines.update(lines)
    return rules


def _needs_environment(node: Node) -> bool:
    if isinstance(node, ListNode):
        return any(_needs_environment(item) for item in node.items)
    if isinstance(node, MappingNode):
        return any(_needs_environment(value) for _, value in node.entries)
    return isinstance(node, ScalarNode) and node.kind == "text" and asks_environment(node.text)


def _untrusted_problem(key: ConfigKey, reason: str, where: str, line: int) -> Problem:
    return Problem(
        where,
        f"{key.name!r} stays {show(key.default)}: this home was not set up on this machine, so {reason}.",
        "If you trust it, run `tacit init DIR` with its directory.",
        line,
        "warning",
    )


def _walk_entries(node: Node | None, section: str, where: str) -> Iterator[tuple[ConfigKey, int, Node]]:
    """Each key with its line and its value, in the order of the file. A section may be left empty."""
    if node is None or (isinstance(node, ScalarNode) and node.kind == "null"):
        return
    if not isinstance(node, MappingNode):
        raise _section_error(section, node, where)
    for name, line, value in read_entries(node, section, where):
        if name in SECTIONS:
            yield from _walk_entries(value, name + ".", where)
        elif name in KEYS:
            yield KEYS[name], line, value
        else:
            raise _unknown_key_error(name, section, line, where)


def _section_error(section: str, node: Node, where: str) -> ConfigError:
    owner = f"'{section[:-1]}'" if section else "the file"
    hint = "Write 'key: value' lines" + (" indented below it." if section else ".")
    return ConfigError(where, node.line, f"{owner} must hold keys, but is {describe_node(node)}.", hint)


def _unknown_key_error(name: str, section: str, line: int, where: str) -> ConfigError:
    leaf, siblings = name[len(section) :], _names_in(section)
    near = find_nearest(leaf, siblings)
    if near:
        hint = f"Did you mean {section + near!r}?"
    elif elsewhere := find_nearest(leaf, [key.rpartition(".")[2] for key in KEYS]):
        hint = f"Did you mean {next(key for key in KEYS if key.endswith('.' + elsewhere))!r}?"
    else:
        hint = f"Keys {'of ' + repr(section[:-1]) if section else 'at the top'}: {', '.join(siblings)}."
    return ConfigError(where, line, f"unknown key {quote_text(name)}.", hint)


def _names_in(section: str) -> list[str]:
    inside = (key[len(section) :] for key in KEYS if key.startswith(section))
    return list(dict.fromkeys(name.partition(".")[0] for name in inside))


# YAML. What the file does not need is refused by name: aliases (a few lines can expand to gigabytes), tags,
# deep nesting, more than one document.


def read_config_tree(text: str, where: str) -> Node | None:
    """The tree, or None if the text has only comments."""
    if len(text) > MAX_CHARS:
        raise ConfigError(where, None, f"the file is longer than {MAX_CHARS} characters.", "Shorten it.")
    try:
        return read_tree(text, MAX_DEPTH, strict=True)
    except YamlError as error:
        raise ConfigError(where, error.line, *_describe_error(error)) from None


def _describe_error(error: YamlError) -> tuple[str, str]:
    if error.kind == "escape":
        return "this is not valid YAML.", "Look for an escape like '\\U'."
    return {
        "alias": _ANCHOR,
        "tag": _TAG,
        "depth": (f"nesting is deeper than {MAX_DEPTH} levels.", "No key is that deep."),
        "character": (f"{error.detail} is not allowed.".removeprefix("the "), "Remove it."),
        "documents": ("this is not valid YAML: but found another document.", _SYNTAX_HINT),
    }.get(error.kind) or (f"this is not valid YAML: {error.detail}.", _SYNTAX_HINT)
