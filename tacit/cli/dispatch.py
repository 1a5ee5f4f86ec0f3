"""Find the command, parse its arguments, run it, and map errors to exit codes. The only place that does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from tacit.cli.commands import load_commands
from tacit.errors import GitError, TacitError, UsageError
from tacit.terminal.arguments import utf8_argument
from tacit.terminal.output import warn

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeAlias

    AddArguments: TypeAlias = Callable[[argparse.ArgumentParser], None]
    Run: TypeAlias = Callable[[argparse.Namespace], int]


def dispatch(argv: list[str]) -> int:
    home, rest = _split_global_home(argv)
    if home == "":
        return _report_usage("--home needs a folder.")
    if not rest:
        return _report_usage("which command? See: tacit --help")
    name, *arguments = rest
    if name not in load_commands():
        return _report_usage(f"{name!r} is not a command.{_suggest(name)} See: tacit --help")
    parser = parser_for(name)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    if getattr(options, "home", None) is None:
        options.home = home
    return _run_command(load_command(name)[1], options)


def load_command(name: str) -> tuple[AddArguments, Run, str]:
    """Import a command: the function that adds its arguments, the one that runs it, and its help text."""
    module, function = import_module(load_commands()[name][0]), name.replace("-", "_")
    if hasattr(module, "run"):
        return module.arguments, module.run, (module.__doc__ or "").strip()
    run: Run = getattr(module, f"run_{function}")
    text = "\n".join(line.removeprefix("    ") for line in (run.__doc__ or "").strip().split("\n"))
    return getattr(module, f"{function}_arguments"), run, text


def parser_for(name: str) -> argparse.ArgumentParser:
    add_arguments, _, text = load_command(name)
    parser = _Parser(prog=f"tacit {name}", description=text, formatter_class=_Formatter, allow_abbrev=False)
    add_arguments(parser)
    return parser


class _Parser(argparse.ArgumentParser):
    """Explains how to pass text like `-x` or `--really?`, which argparse takes for options."""

    _arguments: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._arguments = args or ()
        return super().parse_known_args(args, namespace)

    def print_help(self, file: Any = None) -> None:
        (file or sys.stdout).write(self.format_help())  # argparse would swallow the error of a full disk

    def error(self, message: str) -> NoReturn:
        takes_text = any(action.type is utf8_argument for action in self._get_positional_actions())
        if takes_text and "required" in message and any(map(self._is_unknown, self._arguments)):
            message += f"\n  Put -- before text that starts with a hyphen: {self.prog} … -- -text"
        super().error(message)

    def _is_unknown(self, argument: str) -> bool:
        is_known = argument.partition("=")[0] in self._option_string_actions
        return len(argument) > 1 and argument.startswith("-") and not is_known


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Sets the width: without one argparse imports a lot to find it out, for each argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100)


def _run_command(run: Run, options: argparse.Namespace) -> int:
    try:
        return run(options)
    except UsageError as error:
        return _report_usage(str(error))
    except TacitError as error:
        warn(f"tacit: {_explain(error)}")
        return 1
    except KeyboardInterrupt:
        print("tacit: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise  # not an error: `entry` handles it
    except OSError as error:
        warn(f"tacit: {error.strerror or error}: {error.filename or ''}".rstrip(": "))
        return 1
    except Exception:  # noqa: BLE001 - the outer edge: anything that arrives here is a bug, and is reported as one
        import traceback

        traceback.print_exc()
        print("tacit: this is a bug in tacit. Nothing was acknowledged that is not on disk.", file=sys.stderr)
        return 3


_GIT_ERRORS = {
    "Read-only file system": "The file system is read-only; reading still works. Make it writable.",
    "No space left on device": "The disk is full. Free some space and try again.",
    "Disk quota exceeded": "The disk quota is used up. Free some space and try again.",
    "Permission denied": "This user may not write there. See who owns what with: tacit doctor",
}


def _explain(error: TacitError) -> str:
    """Explain what git says about the disk; leave every other error as it is."""
    detail = error.detail if isinstance(error, GitError) else ""
    meaning = next((advice for pattern, advice in _GIT_ERRORS.items() if pattern in detail), None)
    return str(error) if meaning is None else f"{str(error).partition(chr(10))[0]} {meaning}"


def _split_global_home(argv: list[str]) -> tuple[str | None, list[str]]:
    """Accept `tacit --home DIR command` as well as `tacit command --home DIR`."""
    if argv[0] == "--home":
        return (argv[1] if len(argv) > 1 else ""), argv[2:]
    if argv[0].startswith("--home="):
        return argv[0].removeprefix("--home="), argv[1:]
    return None, argv


def _report_usage(message: str) -> int:
    warn(f"tacit: {message}")
    return 2


def _suggest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, load_commands(), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
