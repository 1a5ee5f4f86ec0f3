"""Keep a home warm: one process that answers hosts and does the work that is due.

It listens on a unix socket that only you can open, and stays in the foreground until Ctrl-C or `tacit stop`.
Hosts that find nobody there leave what they have to say in .tacit/spool, and it is taken from there.

    tacit serve                 here, until it is stopped
    tacit serve --detach        in the background
    tacit serve --install       a file for systemd or launchd, which start it when you log in
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path

from tacit.cli import output
from tacit.cli.dispatch import home_option, quiet_option
from tacit.daemon import main as daemon
from tacit.daemon.place import Info, running
from tacit.daemon.service import Service, User, is_ours, service
from tacit.errors import HomeError, TacitError, UsageError
from tacit.store import files
from tacit.store.home import Home, locate
from tacit.store.hooks import program_path

_PATIENCE = 120.0  # seconds for a start in the background: the first one may have to read many files


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tcp", metavar="PORT", nargs="?", type=_port, const=0,
        help="listen on 127.0.0.1 as well, for who has .tacit/daemon.token (default: any free port)",
    )  # fmt: skip
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--foreground", action="store_true", help="stay here until it is stopped (the default)")
    how.add_argument("--detach", action="store_true", help="go to the background once it answers")
    how.add_argument("--install", action="store_true", help="write a file for systemd or launchd")
    how.add_argument("--uninstall", action="store_true", help="remove that file")
    parser.add_argument(
        "--ready-fd", metavar="FD", type=int, help="write a line to this file when it answers"
    )
    home_option(parser)
    quiet_option(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use 1 to 65535, or 0 for any free one")
    return int(text)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ)
    if options.uninstall:
        return _uninstall(_service(home, options))
    home.require()
    if options.install:
        return _install(_service(home, options))
    if options.detach:
        return _detached(home, options)
    return daemon.run(home, daemon.Asked(options.tcp, _ready(options), daemon.complain))


def _ready(options: argparse.Namespace) -> daemon.Ready:
    def ready(info: Info) -> None:
        if not options.quiet:
            daemon.say(info)
        if options.ready_fd is not None:
            with suppress(OSError):
                os.write(options.ready_fd, b"ready\n")

    return ready


# ---------------------------------------------------------------- in the background


def _detached(home: Home, options: argparse.Namespace) -> int:
    """Fork twice, so that it belongs to nobody, and wait until it answers or says why not."""
    heard, said = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(heard)
        _become_daemon(home, options, said)
    os.close(said)
    os.waitpid(child, 0)
    answer = _until_told(heard)
    if answer != "ready":
        raise HomeError(answer or f"It ended at once. See {home.private}/daemon.log")
    info = running(home)
    if not options.quiet:
        if info is not None:
            daemon.say(info)
        output.say(f"tacit: it runs in the background; its log is {home.private}/daemon.log")
    return 0


def _become_daemon(home: Home, options: argparse.Namespace, said: int) -> None:
    code = 3
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        code = daemon.run(home, daemon.Asked(options.tcp, lambda info: _tell(said, "ready")))
    except (TacitError, OSError) as error:
        _tell(said, str(error))
        code = 1
    finally:
        os._exit(code)  # what the command line would do at its end is not for this process


def _tell(said: int, text: str) -> None:
    with suppress(OSError):
        os.write(said, text.encode("utf-8", "replace")[:4000])
        os.close(said)


def _until_told(heard: int) -> str:
    until, data = time.monotonic() + _PATIENCE, b""
    while (left := until - time.monotonic()) > 0:
        if not select.select([heard], [], [], left)[0]:
            return f"It does not answer after {_PATIENCE:.0f} s, but it may still do so. See: tacit status"
        piece = os.read(heard, 4096)
        if not piece:
            break
        data += piece
    os.close(heard)
    return data.decode("utf-8", "replace")


# ---------------------------------------------------------------- started by the system


def _service(home: Home, options: argparse.Namespace) -> Service:
    program = program_path(sys.argv[0], sys.executable)
    more = () if options.tcp is None else ("--tcp", str(options.tcp))
    mine = os.path.expanduser("~")
    user = User(mine, os.environ.get("XDG_CONFIG_HOME") or os.path.join(mine, ".config"))
    return service(sys.platform, user, program, str(home.root), more)


def _install(wanted: Service) -> int:
    file = Path(wanted.path)
    there = _there(file)
    if there != wanted.text:
        files.make_directories(file.parent)
        files.replace(file, wanted.text.encode("utf-8", "surrogateescape"), 0o600)
    output.say(f"{'Wrote' if there != wanted.text else 'Nothing to change in'} {file}:\n")
    output.say(wanted.text)
    output.say(f"Have it started, now and at every login, with:\n  {wanted.begin}")
    return 0


def _uninstall(wanted: Service) -> int:
    file = Path(wanted.path)
    if _there(file) is None:
        output.say(f"There is no {file}; nothing to remove.")
        return 0
    file.unlink()
    if os.path.islink(wanted.link):  # systemctl cannot disable what has no file any more
        os.unlink(wanted.link)
    output.say(f"Removed {file}. If it still runs, end it with:\n  {wanted.end}")
    return 0


def _there(file: Path) -> str | None:
    """What is in the file's place; a UsageError where that is not ours to change."""
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    if not is_ours(text):
        raise UsageError(f"{file} is not of tacit's making, so it is left alone. Move it away first.")
    return text
