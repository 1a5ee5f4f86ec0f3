"""The config for people: the table of `tacit config` and the file that `tacit init` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tacit.config.keys import KEYS, Key, Override, Value, Workspace, flatten
from tacit.config.load import Loaded
from tacit.config.values import Shown, show, wanted

_CREDENTIALS = re.compile(r"://[^/\s'\"]+@")

# What nearly everybody wants to look at on the first day; all other keys are only comments.
_LIVE = ("timezone", "owners", "git.auto_commit", "git.auto_push")

_HEAD = """\
# How this home works. Every setting is optional.
# A line that starts with '#' and no space is a setting with its default: remove the '#' to change it.
# `tacit config` shows what is in force and where it comes from.

"""

_NOTES = {
    "sessions": """\
  # What each type of session is given. files: identity files, null leaves the host's list as it is;
  # audience: whose knowledge it may see (owner | group | anyone), never wider than here;
  # token_budget: null means context_compiler.token_budget; lanes: null means inject.lanes.
"""
}


@dataclass(frozen=True, slots=True)
class Row:
    key: str
    value: Shown
    default: Value
    origin: str
    about: str
    allowed: str


def describe(loaded: Loaded) -> list[Row]:
    """One row per key, in the order of the starter file. Passwords inside addresses are masked."""
    values = flatten(loaded.config)
    return [
        Row(name, _shown(values[name]), key.default, loaded.origins[name], key.rule.about, wanted(key))
        for name, key in KEYS.items()
    ]


def _shown(value: Value) -> Shown:
    if isinstance(value, tuple):
        return tuple(_part(one) for one in value)  # type: ignore[return-value]
    return without_secret(value) if isinstance(value, str) else value


def _part(one: object) -> object:
    if isinstance(one, Workspace):
        return one.plain()
    return one.named() if isinstance(one, Override) else one


def without_secret(text: str) -> str:
    """Text as it may be shown: what stands before the @ of an address can be a password or a token."""
    return _CREDENTIALS.sub("://***@", text)


def starter() -> str:
    lines, section = [_HEAD], ""
    for name, key in KEYS.items():
        parts = name.split(".")
        if len(parts) > 1 and parts[0] != section:
            section = parts[0]
            lines.append(f"\n{section}:\n{_NOTES.get(section, '')}")
        if len(parts) < 3:
            lines.extend(_setting(name, key, "  " * (len(parts) - 1)))
        elif parts[2] == "files":
            lines.append(_session_line(parts[1]))
    return "".join(lines)


def _setting(name: str, key: Key, indent: str) -> Iterator[str]:
    yield f"{indent}# {key.rule.about}\n"
    yield from (f"{indent}#   {line}\n" for line in key.rule.example)
    mark = "" if name in _LIVE else "#"
    choices = f"  # {' | '.join(key.rule.choices)}" if key.rule.choices else ""
    yield f"{indent}{mark}{name.rpartition('.')[2]}: {show(key.default)}{choices}\n"


def _session_line(session: str) -> str:
    """The settings of one session type fit on one line, which keeps the table a table."""
    start = f"sessions.{session}."
    parts = [
        f"{name[len(start) :]}: {show(key.default)}" for name, key in KEYS.items() if name.startswith(start)
    ]
    return f"  #{session}: {{{', '.join(parts)}}}\n"
