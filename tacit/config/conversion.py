"""Converts one node of the file to a checked value. A ConfigError says what would be right."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tacit.config.schema import (
    CONDITIONS,
    OVERRIDE_KEYS,
    WORKSPACE_KEYS,
    ConfigKey,
    Override,
    Value,
    ValueKind,
    Workspace,
)
from tacit.errors import ConfigError
from tacit.text.yaml_reader import MappingNode, Node, ScalarNode

_WHOLE = r"[-+]?(0|[1-9][0-9]{0,17})"
_NUMBER = r"[-+]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,2})?"
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")

_WORD = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_CONTROL = "[\x00-\x1f\x7f-\x9f\ud800-\udfff]"
_FILE = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.md"
_MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/@+#-]*"
_DOLLARS = r"[0-9]{1,6}(\.[0-9]{1,6})?"
_INDEX = r"sqlite|postgres(ql)?://[^\s]+"
_BRANCH = r"(?!.*\.lock(/|$))[A-Za-z0-9_]+([./-][A-Za-z0-9_]+)*"
_PRICE = rf"[A-Za-z0-9][A-Za-z0-9._:/@+#-]*( {_DOLLARS}){{2}}"
_ZONE = r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*"
# Only shapes that name a place. git also takes 'ext::command' and options in this position.
_REMOTE = (
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
    r"|(https|ssh)://([^\s@/-][^\s@/]*@)?[A-Za-z0-9\[][^\s@/]*(/[^\s]*)?"
    r"|(file://)?/[^\x00]*"
    r"|[A-Za-z0-9_.]+@[A-Za-z0-9][A-Za-z0-9.-]*:(?!:)[^\s]+"
)
_PLAIN_VALUE = r"[A-Za-z_/][A-Za-z0-9_./-]*"
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_PART = r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?"

_EXPECTED: dict[ValueKind, str] = {
    "flag": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "path": "an absolute path",
    "zone": "'local' or a time zone like Europe/Berlin",
    "name": "an agent's id",
    "word": "a plain word",
    "owner": "an id (not '*')",
    "file": "the plain name of a .md file",
    "model": "a model's name or an absolute path",
    "index": "'sqlite' or an address like postgresql://host/name",
    "branch": "a branch name",
    "remote": "a remote's name, an absolute path or an https or ssh address",
    "price": "a model's name or how it begins, and dollars per million tokens read and written, "
    "like 'openai:gpt-5-mini 0.25 2'",
    "schedule": "five cron fields of numbers and * , - / like '0 23 * * *'",
    "override": f"a group of conditions ({', '.join(CONDITIONS)}) and settings "
    f"({', '.join(name for name in OVERRIDE_KEYS if name not in CONDITIONS)})",
    "workspace": f"an absolute path or a group of {', '.join(WORKSPACE_KEYS)}",
}

# The text before a colon that is part of an id: @ana:example.org, 4917012345:12@s.whatsapp.net
_ID_BEGINNING = re.compile(r"[@!#$+]|\d+\Z|.*\s", re.DOTALL)
_DOLLAR = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)|)")

# A value as `tacit config` shows it: a rule as a mapping of what it sets.
DisplayValue: TypeAlias = Value | tuple[str | Mapping[str, Value], ...]


def quote_text(text: str) -> str:
    """Quoted and with control characters escaped: the text may come from a stranger's file."""
    return repr(_shorten(text))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def describe_expected(key: ConfigKey) -> str:
    rule = key.rule
    expected = f"one of {', '.join(rule.choices)}" if rule.choices else _EXPECTED[rule.kind]
    if rule.low is not None and rule.high is not None:
        expected += f" from {rule.low:.15g} to {rule.high:.15g}"
    return (f"a list where each item is {expected}" if rule.many else expected) + (
        ", or null" if rule.nullable else ""
    )


def convert(key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]) -> Value:
    if key.rule.nullable and isinstance(node, ScalarNode) and node.kind == "null":
        return None
    if not key.rule.many:
        return _convert_scalar(key, node, where, environ)
    if isinstance(node, ScalarNode | MappingNode):
        raise value_error(key, node, where, "Write it as [a, b].")
    return tuple(str(_convert_scalar(key, item, where, environ)) for item in node.items)


def _convert_scalar(
    key: ConfigKey, node: Node, where: str, environ: Mapping[str, str]
) -> bool | int | float | str:
    if not isinstance(node, ScalarNode):
        raise value_error(key, node, where)
    if key.rule.kind == "flag":
        return _convert_flag(key, node, where)
    if key.rule.kind in ("whole", "number"):
        return _convert_number(key, node, where)
    return _convert_text(key, node, where, environ)


def read_entries(table: MappingNode, section: str, where: str) -> Iterator[tuple[str, int, Node]]:
    """The entries of a group: full name, line, value. Names are unique."""
    lines_by_name: dict[str, int] = {}
    for name_node, value in table.entries:
        name = section + _read_name(name_node, where)
        if name in lines_by_name:
            message = f"the key {quote_text(name)} is there twice, first on line {lines_by_name[name]}."
            raise ConfigError(where, name_node.line, message, "Keep one.")
        lines_by_name[name] = name_node.line
        yield name, name_node.line, value


def _read_name(node: Node, where: str) -> str:
    if not isinstance(node, ScalarNode):
        message = f"a key must be a plain word, but is {describe_node(node)}."
        raise ConfigError(where, node.line, message, "Remove it.")
    if "." in node.text:
        # Otherwise one setting could be written in two places and the second would silently win.
        message = f"the key {quote_text(node.text)} has a dot."
        hint = "Write the part after the dot indented below the part before it."
        raise ConfigError(where, node.line, message, hint)
    return node.text


def _convert_flag(key: ConfigKey, node: ScalarNode, where: str) -> bool:
    if node.kind != "flag":
        is_quoted_flag = node.style and node.text.lower() in _TRUE + _FALSE
        raise value_error(key, node, where, "Remove the quotes." if is_quoted_flag else "")
    return node.text.lower() in _TRUE


def _convert_number(key: ConfigKey, node: ScalarNode, where: str) -> int | float:
    whole = key.rule.kind == "whole"
    has_right_kind = node.kind == "whole" or (node.kind == "number" and not whole)
    if not has_right_kind or not re.fullmatch(_WHOLE if whole else _NUMBER, node.text):
        raise value_error(key, node, where, _number_hint(node, whole))
    number = int(node.text) if whole else float(node.text)
    low, high = key.rule.low, key.rule.high
    if (low is not None and number < low) or (high is not None and number > high):
        raise value_error(key, node, where)
    return number


def _number_hint(node: ScalarNode, whole: bool) -> str:
    if node.kind == "text" and node.style and re.fullmatch(_NUMBER, node.text):
        return "Remove the quotes."
    if node.kind == "whole" and whole and node.text.isdecimal():
        return ""  # plain digits already, and far out of range
    if node.kind in ("whole", "number") or re.fullmatch(_NUMBER, node.text):
        return f"Write it in plain digits like {'30' if whole else '0.5'}."
    return ""


def _convert_text(key: ConfigKey, node: ScalarNode, where: str, environ: Mapping[str, str]) -> str:
    if node.kind != "text":
        raise value_error(key, node, where, "" if node.kind == "null" else "Put it in quotes.")
    text = _expand_variables(key, node, where, environ)
    is_clean = bool(text) and text == text.strip() and not re.search(_CONTROL, text)
    if not is_clean or not _is_allowed(key, text):
        raise value_error(key, node, where, _text_hint(key, text))
    return posixpath.normpath(text) if key.rule.kind == "path" else text


def _expand_variables(key: ConfigKey, node: ScalarNode, where: str, environ: Mapping[str, str]) -> str:
    try:
        return _expand(node.text, environ)
    except _UndefinedVariable as error:
        message = f"{key.name!r} uses the variable {quote_text(error.name)}, which is not set."
        raise ConfigError(where, node.line, message, "Set it, or write '$$' for a dollar sign.") from None
    except _BadDollar:
        message = f"{key.name!r} has a '$' that names no variable: {quote_text(node.text)}."
        raise ConfigError(where, node.line, message, "Write '$$' for a dollar sign.") from None


# Variables and `~`


class _UndefinedVariable(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _BadDollar(Exception):
    pass


def asks_environment(text: str) -> bool:
    return _is_home(text) or any(not match[1] for match in _DOLLAR.finditer(text))


def _expand(text: str, environ: Mapping[str, str]) -> str:
    """Values of variables are not expanded a second time."""
    home = ""
    if _is_home(text):
        home, text = _look_up("HOME", environ), text[1:]
    return home + _DOLLAR.sub(lambda match: _replace_match(match, environ), text)


def _is_home(text: str) -> bool:
    return text == "~" or text.startswith("~/")


def _replace_match(match: re.Match[str], environ: Mapping[str, str]) -> str:
    if match[1]:
        return "$"
    name = match[2] or match[3]
    if not name:
        raise _BadDollar
    return _look_up(name, environ)


def _look_up(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise _UndefinedVariable(name)
    return environ[name]


# Checks of text


def _is_allowed(key: ConfigKey, text: str) -> bool:
    return text in key.rule.choices if key.rule.choices else _TEXT_CHECKS[key.rule.kind](text)


def _text_hint(key: ConfigKey, text: str) -> str:
    if key.rule.kind == "path":
        return "Start it with '/', with '~/' or with a variable that holds an absolute path."
    if key.rule.kind == "owner" and ":" in text and not text.endswith(":*"):
        return "Write the channel, a colon and the id without blanks, like telegram:7."
    near = (
        find_nearest(text, sorted(_known_zones()))
        if key.rule.kind == "zone"
        else find_nearest(text, key.rule.choices)
    )
    return f"Did you mean {near!r}?" if near else ""


def find_nearest(text: str, names: Sequence[str]) -> str | None:
    import difflib  # only a wrong file needs it

    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(text[:80].lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def _is_schedule(text: str) -> bool:
    parts = text.split(" ")
    if len(parts) != len(_CRON_RANGES):
        return False
    return all(_is_cron_field(part, *limits) for part, limits in zip(parts, _CRON_RANGES, strict=True))


def _is_cron_field(text: str, low: int, high: int) -> bool:
    for part in text.split(","):
        match = re.fullmatch(_CRON_PART, part)
        if not match or match[3] in ("0", "00"):
            return False
        numbers = [int(number) for number in match.group(1, 2) if number]
        if numbers != sorted(numbers) or any(not low <= number <= high for number in numbers):
            return False
    return True


def _is_zone(text: str) -> bool:
    if text == "local":
        return True
    if not re.fullmatch(_ZONE, text):
        return False
    # The table of zones belongs to the machine, like an imported module. Without one, any zone is accepted.
    from zoneinfo import ZoneInfo

    try:
        return bool(ZoneInfo(text))
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a folder of zones such as Europe
        return not _known_zones()


def _known_zones() -> set[str]:
    from zoneinfo import available_timezones

    return available_timezones()


def _is_owner(text: str) -> bool:
    """Refuses 'telegram:*', which no host uses but a person might write to mean all people, and ids such as
    'telegram:' or 'telegram: 7', which never match."""
    parts = text.split(":")
    is_channel_plain = len(parts) == 1 or not any(map(str.isspace, parts[0]))  # or it would be part of the id
    return (
        is_channel_plain
        and parts[-1] not in ("", "*")
        and parts[0] != ""
        and all(part == part.strip() for part in parts)
    )


def split_channel(text: str) -> tuple[str, str]:
    """The channel in front of a person's id, if there is one: ids may have colons too."""
    channel, _, identity = text.partition(":")
    is_channel = channel and identity and not _ID_BEGINNING.match(channel)
    return (channel, identity) if is_channel else ("", text)


def _matches_pattern(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


_TEXT_CHECKS: dict[ValueKind, Callable[[str], bool]] = {
    "path": posixpath.isabs,
    "zone": _is_zone,
    "name": bool,
    "word": _matches_pattern(_WORD),
    "owner": _is_owner,
    "file": _matches_pattern(_FILE),
    "model": lambda text: posixpath.isabs(text) or re.fullmatch(_MODEL, text) is not None,
    "index": _matches_pattern(_INDEX),
    "branch": _matches_pattern(_BRANCH),
    "remote": _matches_pattern(_REMOTE),
    "schedule": _is_schedule,
    "price": _matches_pattern(_PRICE),
}


def show(value: DisplayValue) -> str:
    """The value as written in the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(_show_item(item) for item in value)}]"
    return _quote(value) if isinstance(value, str) else str(value)


def _show_item(item: object) -> str:
    if isinstance(item, Workspace):
        item = item.plain()
    if isinstance(item, str):
        return _quote(item)
    entries = item.to_dict() if isinstance(item, Override) else item
    assert isinstance(entries, Mapping)
    return f"{{{', '.join(f'{name}: {show(value)}' for name, value in entries.items())}}}"


def _quote(value: str) -> str:
    if re.fullmatch(_PLAIN_VALUE, value) and value.lower() not in _YAML_WORDS:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def describe_node(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        return "a group of keys" if isinstance(node, MappingNode) else "a list"
    if node.kind == "null":
        return "empty"
    if node.kind == "text":
        return f"the text {quote_text(node.text)}"
    return _shorten(node.text)


def value_error(key: ConfigKey, node: Node, where: str, hint: str = "") -> ConfigError:
    return ConfigError(
        where,
        node.line,
        f"{key.name!r} must be {describe_expected(key)}, but is {describe_node(node)}.",
        hint,
    )
