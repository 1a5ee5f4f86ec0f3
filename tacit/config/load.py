"""Text of memory-config.yaml → Loaded, or a ConfigError for its first fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tacit.config.checks import doubts, first_clash
from tacit.config.expand import asks_environment
from tacit.config.keys import KEYS, SECTIONS, Config, Key, Value, build
from tacit.config.overrides import convert_rules, rule_name
from tacit.config.tree import Items, Node, Scalar, Table, read_tree
from tacit.config.values import convert, found, named, nearest, show, shown
from tacit.config.workspaces import convert_workspaces
from tacit.errors import ConfigError
from tacit.model.problems import Problem

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Loaded:
    config: Config
    origins: Mapping[str, str]  # dotted key → "default" or "memory-config.yaml:LINE"
    problems: tuple[Problem, ...] = ()
    rules: tuple[str, ...] = ()  # where each of sessions.rules stands


class _Gathered:
    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []


def parse(text: str, *, where: str, environ: Mapping[str, str], trusted: bool, root: str = "") -> Loaded:
    """`trusted` means that this home was set up on this machine, by `tacit init`. `root`: the home.

    In a home that was not, keys that reach outside and values that ask the environment keep their
    defaults, and a Problem says so: a cloned folder must not be able to reach or to read anything.
    """
    got = _Gathered()
    for key, line, node in _entries(read_tree(text, where), "", where):
        _take(got, key, line, node, where=where, environ=environ, trusted=trusted)
    config = build(got.values)
    clash = first_clash(config, got.lines, root)
    if clash:
        raise ConfigError(where, clash[1], clash[0].what, clash[0].hint)
    got.problems.extend(doubts(config, where, got.lines))
    return Loaded(config, _origins(got.lines, where), tuple(got.problems), _rules(got.lines, config, where))


def _origins(lines: Mapping[str, int], where: str) -> dict[str, str]:
    return {name: _place(lines[name], where) if name in lines else DEFAULT for name in KEYS}


def _rules(lines: Mapping[str, int], config: Config, where: str) -> tuple[str, ...]:
    return tuple(_place(lines[rule_name(at)], where) for at in range(len(config.sessions.rules)))


def _place(line: int, where: str) -> str:
    return f"{where.rpartition('/')[2]}:{line}"


def _take(
    got: _Gathered, key: Key, line: int, node: Node, *, where: str, environ: Mapping[str, str], trusted: bool
) -> None:
    if not trusted and _asks(node):
        why = "environment variables and '~' are not expanded in it"
        got.problems.append(_untrusted(key, why, where, line))
        return
    value = _value(got, key, node, where, environ)
    if not trusted and key.rule.reaches and value != key.default:
        got.problems.append(_untrusted(key, "it may not reach outside", where, line))
        return
    got.values[key.name], got.lines[key.name] = value, line


def _value(got: _Gathered, key: Key, node: Node, where: str, environ: Mapping[str, str]) -> Value:
    if key.rule.kind == "workspace":
        return convert_workspaces(key, node, where, environ)
    if key.rule.kind != "override":
        return convert(key, node, where, environ)
    rules, lines = convert_rules(key, node, where, environ)
    got.lines.update(lines)
    return rules


def _asks(node: Node) -> bool:
    if isinstance(node, Items):
        return any(_asks(item) for item in node.items)
    if isinstance(node, Table):
        return any(_asks(value) for _, value in node.entries)
    return isinstance(node, Scalar) and node.kind == "text" and asks_environment(node.text)


def _untrusted(key: Key, why: str, where: str, line: int) -> Problem:
    return Problem(
        where,
        f"{key.name!r} stays {show(key.default)}: this home was not set up on this machine, so {why}.",
        "If you trust it, run `tacit init DIR` with its directory.",
        line,
        "warning",
    )


def _entries(node: Node | None, section: str, where: str) -> Iterator[tuple[Key, int, Node]]:
    """Each key with its line and its value, in the order of the file. A section may be left empty."""
    if node is None or (isinstance(node, Scalar) and node.kind == "null"):
        return
    if not isinstance(node, Table):
        raise _not_a_section(section, node, where)
    for name, line, value in named(node, section, where):
        if name in SECTIONS:
            yield from _entries(value, name + ".", where)
        elif name in KEYS:
            yield KEYS[name], line, value
        else:
            raise _unknown(name, section, line, where)


def _not_a_section(section: str, node: Node, where: str) -> ConfigError:
    owner = f"'{section[:-1]}'" if section else "the file"
    hint = "Write 'key: value' lines" + (" indented below it." if section else ".")
    return ConfigError(where, node.line, f"{owner} must hold keys, but is {found(node)}.", hint)


def _unknown(name: str, section: str, line: int, where: str) -> ConfigError:
    leaf, siblings = name[len(section) :], _names_in(section)
    near = nearest(leaf, siblings)
    if near:
        hint = f"Did you mean {section + near!r}?"
    elif elsewhere := nearest(leaf, [known.rpartition(".")[2] for known in KEYS]):
        hint = f"Did you mean {next(known for known in KEYS if known.endswith('.' + elsewhere))!r}?"
    else:
        hint = f"Keys {'of ' + repr(section[:-1]) if section else 'at the top'}: {', '.join(siblings)}."
    return ConfigError(where, line, f"unknown key {shown(name)}.", hint)


def _names_in(section: str) -> list[str]:
    inside = (known[len(section) :] for known in KEYS if known.startswith(section))
    return list(dict.fromkeys(name.partition(".")[0] for name in inside))
