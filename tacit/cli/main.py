"""Parse, dispatch, and turn every outcome into an exit code: 0 ok, 1 problem found, 2 usage, 3 bug.

A command's module is imported only when the command is called: starting is part of every answer.
"""

from __future__ import annotations

import os
import sys

from tacit.cli.commands import load_commands
from tacit.terminal import CANNOT_WRITE, drop_output
from tacit.version import VERSION


def entry() -> int:
    _fill_closed_streams()
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()  # the reader closed the pipe
        return 0
    except OSError as error:
        drop_output()
        print(f"tacit: {CANNOT_WRITE}: {error.strerror or error}", file=sys.stderr)
        return 1
    return code


def _fill_closed_streams() -> None:
    """cron and daemons start programs with 0, 1 and 2 closed. The next file we open would then get such a
    number, and output meant for the terminal would be written into it."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
    # typeshed says that they cannot be None. sys.stdin stays: its readers must find out that it is closed.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def main(argv: list[str]) -> int:
    if argv in (["--version"], ["-V"]):
        print(f"tacit {VERSION}")
        return 0
    if not argv or argv in (["--help"], ["-h"], ["help"]):
        print(overview())
        return 0 if argv else 2
    from tacit.cli.dispatch import dispatch

    return dispatch(argv)


def overview() -> str:
    commands = load_commands()
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in commands.items()]
    return "\n".join(
        [
            "tacit: memory and context for AI agents, kept in files you own",
            "",
            "usage: tacit [--home DIR] COMMAND ...",
            "",
            *lines,
            "",
            "  --home DIR  the home to use (default: $TACIT_HOME, else ~/tacit)",
            "  --version   print the version",
            "",
            "`tacit COMMAND --help` says more. Exit codes: 0 ok, 1 problem found, 2 usage, 3 bug.",
        ]
    )


if __name__ == "__main__":
    sys.exit(entry())
