"""One node of the file → one checked value, or a ConfigError that says what would be right."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tacit.config.expand import BadDollar, UndefinedVariable, expand
from tacit.config.keys import CONDITIONS, OVERRIDE, WORKSPACE, Key, Kind, Override, Value, Workspace
from tacit.config.tree import Node, Scalar, Table
from tacit.errors import ConfigError

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
_PLAIN = r"[A-Za-z_/][A-Za-z0-9_./-]*"
_WORDS_OF_YAML = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_PART = r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?"

_WANTED: dict[Kind, str] = {
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
    f"({', '.join(name for name in OVERRIDE if name not in CONDITIONS)})",
    "workspace": f"an absolute path or a group of {', '.join(WORKSPACE)}",
}

# As `tacit config` tells a value: a rule by the names that it names.
Shown: TypeAlias = Value | tuple[str | Mapping[str, Value], ...]


def shown(text: str) -> str:
    """Quoted and with control characters escaped: the text may come from a stranger's file."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def wanted(key: Key) -> str:
    rule = key.rule
    one = f"one of {', '.join(rule.choices)}" if rule.choices else _WANTED[rule.kind]
    if rule.low is not None and rule.high is not None:
        one += f" from {rule.low:.15g} to {rule.high:.15g}"
    return (f"a list where each item is {one}" if rule.many else one) + (", or null" if rule.nullable else "")


def convert(key: Key, node: Node, where: str, environ: Mapping[str, str]) -> Value:
    if key.rule.nullable and isinstance(node, Scalar) and node.kind == "null":
        return None
    if not key.rule.many:
        return _one(key, node, where, environ)
    if isinstance(node, Scalar | Table):
        raise wrong(key, node, where, "Write it as [a, b].")
    return tuple(str(_one(key, item, where, environ)) for item in node.items)


def _one(key: Key, node: Node, where: str, environ: Mapping[str, str]) -> bool | int | float | str:
    if not isinstance(node, Scalar):
        raise wrong(key, node, where)
    if key.rule.kind == "flag":
        return _flag(key, node, where)
    if key.rule.kind in ("whole", "number"):
        return _number(key, node, where)
    return _text(key, node, where, environ)


def named(table: Table, section: str, where: str) -> Iterator[tuple[str, int, Node]]:
    """The entries of a group: full name, line, value. No name is there twice."""
    seen: dict[str, int] = {}
    for name_node, value in table.entries:
        name = section + _name(name_node, where)
        if name in seen:
            what = f"the key {shown(name)} is there twice, first on line {seen[name]}."
            raise ConfigError(where, name_node.line, what, "Keep one.")
        seen[name] = name_node.line
        yield name, name_node.line, value


def _name(node: Node, where: str) -> str:
    if not isinstance(node, Scalar):
        what = f"a key must be a plain word, but is {found(node)}."
        raise ConfigError(where, node.line, what, "Remove it.")
    if "." in node.text:
        # Else one setting could be written in two places and the second would win unseen.
        what = f"the key {shown(node.text)} has a dot."
        hint = "Write the part after the dot indented below the part before it."
        raise ConfigError(where, node.line, what, hint)
    return node.text


def _flag(key: Key, node: Scalar, where: str) -> bool:
    if node.kind != "flag":
        quoted = node.quoted and node.text.lower() in _TRUE + _FALSE
        raise wrong(key, node, where, "Remove the quotes." if quoted else "")
    return node.text.lower() in _TRUE


def _number(key: Key, node: Scalar, where: str) -> int | float:
    whole = key.rule.kind == "whole"
    fits = node.kind == "whole" or (node.kind == "number" and not whole)
    if not fits or not re.fullmatch(_WHOLE if whole else _NUMBER, node.text):
        raise wrong(key, node, where, _number_hint(node, whole))
    number = int(node.text) if whole else float(node.text)
    low, high = key.rule.low, key.rule.high
    if (low is not None and number < low) or (high is not None and number > high):
        raise wrong(key, node, where)
    return number


def _number_hint(node: Scalar, whole: bool) -> str:
    if node.kind == "text" and node.quoted and re.fullmatch(_NUMBER, node.text):
        return "Remove the quotes."
    if node.kind == "whole" and whole and node.text.isdecimal():
        return ""  # plain digits already, and far out of range
    if node.kind in ("whole", "number") or re.fullmatch(_NUMBER, node.text):
        return f"Write it in plain digits like {'30' if whole else '0.5'}."
    return ""


def _text(key: Key, node: Scalar, where: str, environ: Mapping[str, str]) -> str:
    if node.kind != "text":
        raise wrong(key, node, where, "" if node.kind == "null" else "Put it in quotes.")
    text = _expanded(key, node, where, environ)
    good = bool(text) and text == text.strip() and not re.search(_CONTROL, text)
    if not good or not _fits(key, text):
        raise wrong(key, node, where, _text_hint(key, text))
    return posixpath.normpath(text) if key.rule.kind == "path" else text


def _expanded(key: Key, node: Scalar, where: str, environ: Mapping[str, str]) -> str:
    try:
        return expand(node.text, environ)
    except UndefinedVariable as error:
        what = f"{key.name!r} uses the variable {shown(error.name)}, which is not set."
        raise ConfigError(where, node.line, what, "Set it, or write '$$' for a dollar sign.") from None
    except BadDollar:
        what = f"{key.name!r} has a '$' that names no variable: {shown(node.text)}."
        raise ConfigError(where, node.line, what, "Write '$$' for a dollar sign.") from None


def _fits(key: Key, text: str) -> bool:
    return text in key.rule.choices if key.rule.choices else _CHECKS[key.rule.kind](text)


def _text_hint(key: Key, text: str) -> str:
    if key.rule.kind == "path":
        return "Start it with '/', with '~/' or with a variable that holds an absolute path."
    if key.rule.kind == "owner" and ":" in text and not text.endswith(":*"):
        return "Write the channel, a colon and the id without blanks, like telegram:7."
    near = nearest(text, sorted(_zones())) if key.rule.kind == "zone" else nearest(text, key.rule.choices)
    return f"Did you mean {near!r}?" if near else ""


def nearest(text: str, names: Sequence[str]) -> str | None:
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
    # The table of zones belongs to the machine, like an imported module. One that has none cannot judge.
    from zoneinfo import ZoneInfo

    try:
        return bool(ZoneInfo(text))
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a folder of zones such as Europe
        return not _zones()


def _zones() -> set[str]:
    from zoneinfo import available_timezones

    return available_timezones()


def _is_owner(text: str) -> bool:
    """No host means everybody by 'telegram:*', but a person might. Nobody is ever called 'telegram:' or
    'telegram: 7', so who writes that would not be known."""
    parts = text.split(":")
    return parts[-1] not in ("", "*") and parts[0] != "" and all(part == part.strip() for part in parts)


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


_CHECKS: dict[Kind, Callable[[str], bool]] = {
    "path": posixpath.isabs,
    "zone": _is_zone,
    "name": bool,
    "word": _matches(_WORD),
    "owner": _is_owner,
    "file": _matches(_FILE),
    "model": lambda text: posixpath.isabs(text) or re.fullmatch(_MODEL, text) is not None,
    "index": _matches(_INDEX),
    "branch": _matches(_BRANCH),
    "remote": _matches(_REMOTE),
    "schedule": _is_schedule,
    "price": _matches(_PRICE),
}


def show(value: Shown) -> str:
    """As it would stand in the file."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(_item(item) for item in value)}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _item(item: object) -> str:
    if isinstance(item, Workspace):
        item = item.plain()
    if isinstance(item, str):
        return _quoted(item)
    names = item.named() if isinstance(item, Override) else item
    assert isinstance(names, Mapping)
    return f"{{{', '.join(f'{name}: {show(value)}' for name, value in names.items())}}}"


def _quoted(value: str) -> str:
    if re.fullmatch(_PLAIN, value) and value.lower() not in _WORDS_OF_YAML:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def found(node: Node) -> str:
    if not isinstance(node, Scalar):
        return "a group of keys" if isinstance(node, Table) else "a list"
    if node.kind == "null":
        return "empty"
    if node.kind == "text":
        return f"the text {shown(node.text)}"
    return _cut(node.text)


def wrong(key: Key, node: Node, where: str, hint: str = "") -> ConfigError:
    return ConfigError(where, node.line, f"{key.name!r} must be {wanted(key)}, but is {found(node)}.", hint)
