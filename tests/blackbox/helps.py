"""Prints, as JSON, the commands, options and arguments that the help of the installed command names.

Runs by its path. All helps are asked in one process, through the entry point that pip installs, because there
are about a hundred of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from importlib.metadata import entry_points
from typing import Any

_OPTION = re.compile(r"^  (-.+?)(?:  |$)")
_NAME = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_COMMAND = re.compile(r"^ {2,4}([a-z][a-z-]+)(?:  |$)")


def help_of(*words: str) -> str:
    (entry,) = entry_points(group="console_scripts", name="tacit")
    sys.argv = ["tacit", *words, "--help"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        entry.load()()
    return printed.getvalue()


def describe(*words: str) -> dict[str, Any]:
    text = help_of(*words)
    _, _, rest = text.partition("\n\n")
    arguments, commands = _arguments(rest)
    lines = rest.split("\n")
    options = [name for line in lines if (found := _OPTION.match(line)) for name in _NAME.findall(found[1])]
    below = {name: describe(*words, name) for name in commands}
    return {"options": sorted(set(options)), "arguments": arguments, **({"commands": below} if below else {})}


def _arguments(text: str) -> tuple[list[str], list[str]]:
    """Positional arguments, and the commands that one of them stands for."""
    _, _, block = text.partition("positional arguments:\n")
    arguments, commands = [], []
    for line in block.partition("\n\n")[0].split("\n"):
        if re.match(r"^  \S", line):
            arguments.append(line.split()[0])
        elif found := re.match(r"^    ([a-z][\w-]*)(?:\s|$)", line):
            commands.append(found[1])
    return arguments, commands


def main() -> None:
    names = [found[1] for line in help_of().split("\n") if (found := _COMMAND.match(line))]
    print(json.dumps({name: describe(name) for name in names}))


if __name__ == "__main__":
    main()
