"""Commands that a text names, and whether the program would understand them."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator

from tacit.cli.commands import load_commands
from tacit.cli.dispatch import parser_for


def commands(text: str) -> Iterator[str]:
    """What stands as code, begins with the name of the program and says more than that."""
    yield from (one for one in re.findall(r"`([^`\n]+)`", text) if one.startswith("tacit "))
    yield from re.findall(r"^(?:    )?\$ (tacit [^#|>\n]+)", text, re.MULTILINE)


def fault(command: str) -> str:
    """What the program would not understand. What stands for something, as HOST does, is not looked at."""
    _, name, *words = shlex.split(command)
    if name == "--version" or name.isupper():
        return ""
    if name not in load_commands():
        return f"there is no tacit {name}"
    parser = parser_for(name)
    while (below := _below(parser)) and words and not words[0].isupper():
        if words[0] not in below:
            return option_fault(parser, words, 0) or ("" if words[0].startswith("-") else f"no {words[0]}")
        parser, words = below[words[0]], words[1:]
    return next(filter(None, (option_fault(parser, words, at) for at in range(len(words)))), "")


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    choices = [action.choices for action in parser._get_positional_actions()]
    return next((dict(one) for one in choices if isinstance(one, dict)), {})


def option_fault(parser: argparse.ArgumentParser, words: list[str], at: int) -> str:
    if not words[at].startswith("-"):
        return ""
    option = parser._option_string_actions.get(words[at].partition("=")[0])
    if option is None:
        return f"{parser.prog} has no option {words[at]}"
    value = words[at + 1] if at + 1 < len(words) else ""
    is_wrong = option.choices and value not in option.choices and not value.isupper()
    return f"{words[at]} takes no {value}" if is_wrong else ""
