"""Shows the config to people: the table of `tacit config` and the file that `tacit init` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tacit.config.conversion import DisplayValue, describe_expected, show
from tacit.config.loader import LoadedConfig
from tacit.config.schema import KEYS, ConfigKey, Override, Value, Workspace, flatten

_CREDENTIALS = re.compile(r"://[^/\s'\"]+@")

# What nearly everybody checks on the first day; all other keys are only comments.
_UNCOMMENTED_KEYS = ("timezone", "owners", "git.auto_commit", "git.auto_push")

_STARTER_HEAD = """\
# How this home works. Every setting is optional.
# A line that starts with '#' and no space is a setting with its default: remove the '#' to change it.
# `tacit config` shows what is in force and where it comes from.

"""

_SECTION_NOTES = {
    "sessions": """\
  # What each type of session is given. files: identity files, null leaves the host's list as it is;
  # audience: whose knowledge it may see (owner | group | anyone), never wider than here;
  # token_budget: null means context_compiler.token_budget; lanes: null means inject.lanes.
"""
}


@dataclass(frozen=True, slots=True)
class ConfigRow:
    key: str
    value: DisplayValue
    default: Value
    origin: str
    about: str
    allowed: str


def describe(loaded: LoadedConfig) -> list[ConfigRow]:
    """One row per key, in the order of the starter file. Passwords inside addresses are masked."""
    values = flatten(loaded.config)
    return [
        ConfigRow(
            name,
            _mask_value(values[name]),
            key.default,
            loaded.origins[name],
            key.rule.about,
            describe_expected(key),
        )
        for name, key in KEYS.items()
    ]


def _mask_value(value: Value) -> DisplayValue:
    if isinstance(value, tuple):
        return tuple(_describe_item(item) for item in value)  # type: ignore[return-value]
    return mask_secret(value) if isinstance(value, str) else value


def _describe_item(item: object) -> object:
    if isinstance(item, Workspace):
        return item.plain()
    return item.to_dict() if isinstance(item, Override) else item


def mask_secret(text: str) -> str:
    """Mask the part before the @ of addresses, which can be a password or a token."""
    return _CREDENTIALS.sub("://***@", text)


def render_starter() -> str:
    lines, section = [_STARTER_HEAD], ""
    for name, key in KEYS.items():
        parts = name.split(".")
        if len(parts) > 1 and parts[0] != section:
            section = parts[0]
            lines.append(f"\n{section}:\n{_SECTION_NOTES.get(section, '')}")
        if len(parts) < 3:
            lines.extend(_render_setting(name, key, "  " * (len(parts) - 1)))
        elif parts[2] == "files":
            lines.append(_render_session(parts[1]))
    return "".join(lines)


def _render_setting(name: str, key: ConfigKey, indent: str) -> Iterator[str]:
    yield f"{indent}# {key.rule.about}\n"
    yield from (f"{indent}#   {line}\n" for line in key.rule.example)
    mark = "" if name in _UNCOMMENTED_KEYS else "#"
    choices = f"  # {' | '.join(key.rule.choices)}" if key.rule.choices else ""
    yield f"{indent}{mark}{name.rpartition('.')[2]}: {show(key.default)}{choices}\n"


def _render_session(session: str) -> str:
    """The settings of one session type on one line, so that they read as a table."""
    start = f"sessions.{session}."
    parts = [
        f"{name[len(start) :]}: {show(key.default)}" for name, key in KEYS.items() if name.startswith(start)
    ]
    return f"  #{session}: {{{', '.join(parts)}}}\n"
