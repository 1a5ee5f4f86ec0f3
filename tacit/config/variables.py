"""Expands `~`, `$NAME` and `${NAME}` in a string, from the variables passed in."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOLLAR = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*)|)")


class UndefinedVariable(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class BadDollar(Exception):
    pass


def asks_environment(text: str) -> bool:
    return _is_home(text) or any(not match[1] for match in _DOLLAR.finditer(text))


def expand(text: str, environ: Mapping[str, str]) -> str:
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
        raise BadDollar
    return _look_up(name, environ)


def _look_up(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise UndefinedVariable(name)
    return environ[name]
