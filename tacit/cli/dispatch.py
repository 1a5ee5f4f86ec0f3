"""Find the command, parse its arguments, run it, and map errors to exit codes. The only place that does."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from types import ModuleType

from tacit.cli.main import COMMANDS
from tacit.cli.output import warn
from tacit.errors import TacitError, UsageError


def dispatch(argv: list[str]) -> int:
    home, rest = _global_home(argv)
    if home == "":
        return _usage("--home needs a folder.")
    if not rest:
        return _usage("which command? See: tacit --help")
    name, *arguments = rest
    if name not in COMMANDS:
        return _usage(f"{name!r} is not a command.{_nearest(name)} See: tacit --help")
    parser = parser_for(name)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    if getattr(options, "home", None) is None:
        options.home = home
    return _run(module_of(name), options)


def module_of(name: str) -> ModuleType:
    return import_module(f"tacit.cli.{name}")


def parser_for(name: str) -> argparse.ArgumentParser:
    module = module_of(name)
    parser = argparse.ArgumentParser(
        prog=f"tacit {name}",
        description=(module.__doc__ or "").strip(),
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    module.arguments(parser)
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """With a width of its own: without one argparse imports much to find out, for each argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100)


def home_option(parser: argparse.ArgumentParser, default: str = "$TACIT_HOME, else ~/tacit") -> None:
    parser.add_argument("--home", metavar="DIR", default=None, help=f"the home (default: {default})")


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def quiet_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", "-q", action="store_true", help="print only problems")


def _run(module: ModuleType, options: argparse.Namespace) -> int:
    try:
        code: int = module.run(options)
        return code
    except UsageError as error:
        return _usage(str(error))
    except TacitError as error:
        warn(f"tacit: {error}")
        return 1
    except KeyboardInterrupt:
        print("tacit: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        raise  # no error: `entry` knows what to do
    except OSError as error:
        warn(f"tacit: {error.strerror or error}: {error.filename or ''}".rstrip(": "))
        return 1
    except Exception:  # noqa: BLE001 - the outer edge: anything that arrives here is a bug, and it is said as one
        import traceback

        traceback.print_exc()
        print("tacit: this is a bug in tacit. Nothing was acknowledged that is not on disk.", file=sys.stderr)
        return 3


def _global_home(argv: list[str]) -> tuple[str | None, list[str]]:
    """`tacit --home DIR command` as well as `tacit command --home DIR`."""
    if argv[0] == "--home":
        return (argv[1] if len(argv) > 1 else ""), argv[2:]
    if argv[0].startswith("--home="):
        return argv[0].removeprefix("--home="), argv[1:]
    return None, argv


def _usage(message: str) -> int:
    warn(f"tacit: {message}")
    return 2


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
