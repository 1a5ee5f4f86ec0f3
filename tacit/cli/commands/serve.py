"""The commands that start and stop the daemon."""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from tacit.daemon_socket import Unreachable, send_request
from tacit.errors import Busy, HomeError, TacitError, UsageError
from tacit.git.hooks import find_program
from tacit.home import files
from tacit.home.layout import Home, find_home
from tacit.server import main as daemon
from tacit.server.autostart import Service, UserPaths, is_ours, render_service
from tacit.server.instance import DaemonInfo, find_daemon
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_quiet_option

_START_TIMEOUT_S = 120.0  # in the background: the first start may have to read many files


def serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tcp", metavar="PORT", nargs="?", type=_port, const=0,
        help="also listen on 127.0.0.1, for clients that have .tacit/daemon.token (default: any free port)",
    )  # fmt: skip
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--foreground", action="store_true", help="stay here until it is stopped (the default)")
    mode.add_argument("--detach", action="store_true", help="go to the background once it answers")
    mode.add_argument("--install", action="store_true", help="write a file for systemd or launchd")
    mode.add_argument("--uninstall", action="store_true", help="remove that file")
    parser.add_argument(
        "--ready-fd", metavar="FD", type=int, help="write a line to this file when it answers"
    )
    add_home_option(parser)
    add_quiet_option(parser)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use 1 to 65535, or 0 for any free one")
    return int(text)


def run_serve(options: argparse.Namespace) -> int:
    """Run the daemon: one warm process that answers hosts and does the work that is due.

    It listens on a unix socket that only you can open, and runs in the foreground until Ctrl-C or `tacit
    stop`. Hosts that find no daemon leave their messages in .tacit/spool, and the daemon picks them up from
    there.

        tacit serve                 in the foreground, until it is stopped
        tacit serve --detach        in the background
        tacit serve --install       write a file for systemd or launchd, which start it when you log in
    """
    home = find_home(options.home, os.environ)
    if options.uninstall:
        return _uninstall(_make_service(home, options))
    home.require()
    if options.install:
        return _install(_make_service(home, options))
    if options.detach:
        return _start_detached(home, options)
    return daemon.run(home, daemon.ServeOptions(options.tcp, _make_ready(options), daemon.print_warning))


def _make_ready(options: argparse.Namespace) -> daemon.ReadyCallback:
    def ready(info: DaemonInfo) -> None:
        if not options.quiet:
            daemon.print_ready(info)
        if options.ready_fd is not None:
            with suppress(OSError):
                os.write(options.ready_fd, b"ready\n")

    return ready


# ---------------------------------------------------------------- in the background


def _start_detached(home: Home, options: argparse.Namespace) -> int:
    """Fork twice, so that it has no parent, and wait until it answers or says why it cannot."""
    read_fd, write_fd = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read_fd)
        _become_daemon(home, options, write_fd)
    os.close(write_fd)
    os.waitpid(child, 0)
    answer = _wait_for_answer(read_fd)
    if answer != "ready":
        raise HomeError(answer or f"It ended at once. See {home.private}/daemon.log")
    info = find_daemon(home)
    if not options.quiet:
        if info is not None:
            daemon.print_ready(info)
        output.say(f"tacit: it runs in the background; its log is {home.private}/daemon.log")
    return 0


def _become_daemon(home: Home, options: argparse.Namespace, write_fd: int) -> None:
    code = 3
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        devnull = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(devnull, fd)
        code = daemon.run(home, daemon.ServeOptions(options.tcp, lambda info: _send(write_fd, "ready")))
    except (TacitError, OSError) as error:
        _send(write_fd, str(error))
        code = 1
    finally:
        os._exit(code)  # skip what the command line does at its end


def _send(write_fd: int, text: str) -> None:
    with suppress(OSError):
        os.write(write_fd, text.encode("utf-8", "replace")[:4000])
        os.close(write_fd)


def _wait_for_answer(read_fd: int) -> str:
    deadline, data = time.monotonic() + _START_TIMEOUT_S, b""
    while (remaining := deadline - time.monotonic()) > 0:
        if not select.select([read_fd], [], [], remaining)[0]:
            return (
                f"It does not answer after {_START_TIMEOUT_S:.0f} s, "
                f"but it may still do so. See: tacit status"
            )
        piece = os.read(read_fd, 4096)
        if not piece:
            break
        data += piece
    os.close(read_fd)
    return data.decode("utf-8", "replace")


# ---------------------------------------------------------------- started by the system


def _make_service(home: Home, options: argparse.Namespace) -> Service:
    program = find_program(sys.argv[0], sys.executable)
    extra = () if options.tcp is None else ("--tcp", str(options.tcp))
    user_home = os.path.expanduser("~")
    user = UserPaths(user_home, os.environ.get("XDG_CONFIG_HOME") or os.path.join(user_home, ".config"))
    return render_service(sys.platform, user, program, str(home.root), extra)


def _install(autostart: Service) -> int:
    file = Path(autostart.path)
    current = _read_own_file(file)
    if current != autostart.text:
        files.make_directories(file.parent)
        files.replace(file, autostart.text.encode("utf-8", "surrogateescape"), 0o600)
    output.say(f"{'Wrote' if current != autostart.text else 'Nothing to change in'} {file}:\n")
    output.say(autostart.text)
    output.say(f"Have it started, now and at every login, with:\n  {autostart.begin}")
    return 0


def _uninstall(autostart: Service) -> int:
    file = Path(autostart.path)
    if _read_own_file(file) is None:
        output.say(f"There is no {file}; nothing to remove.")
        return 0
    file.unlink()
    if os.path.islink(autostart.link):  # systemctl cannot disable a unit whose file is gone
        os.unlink(autostart.link)
    output.say(f"Removed {file}. If it still runs, end it with:\n  {autostart.end}")
    return 0


def _read_own_file(file: Path) -> str | None:
    """The text of the file, None if there is no file; UsageError if tacit did not write it."""
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    if not is_ours(text):
        raise UsageError(f"{file} is not of tacit's making, so it is left alone. Move it away first.")
    return text


_ASK_TIMEOUT_S = 5.0
_EXIT_TIMEOUT_S = 45.0  # the daemon finishes its work first


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_quiet_option(parser)


def run_stop(options: argparse.Namespace) -> int:
    """Stop `tacit serve`. It finishes acknowledged work first; open sessions can continue later."""
    home = find_home(options.home, os.environ).require()
    info = find_daemon(home)
    if info is None:
        _say_unless_quiet(options, f"No daemon runs for {home.root}.")
        return 0
    outcome = _ask_to_stop(info) or _signal_process(home, info)
    deadline = time.monotonic() + _EXIT_TIMEOUT_S
    while (current := find_daemon(home)) is not None and current.pid == info.pid:
        if time.monotonic() > deadline:
            raise Busy(
                f"Process {info.pid} was {outcome} and has not ended after {_EXIT_TIMEOUT_S:.0f} s. "
                f"See {home.private}/daemon.log; nothing is lost if you end it with: kill -9 {info.pid}"
            )
        time.sleep(0.02)
    _say_unless_quiet(options, f"The daemon of {home.root} (process {info.pid}) was {outcome} and has ended.")
    return 0


def _say_unless_quiet(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        output.say(text)


def _ask_to_stop(info: DaemonInfo) -> str:
    try:
        status, _ = send_request(info.socket, "POST", "/v1/stop", b"{}", _ASK_TIMEOUT_S)
    except Unreachable:
        return ""
    return "asked to stop" if status in (200, 202) or status == 503 else ""


def _signal_process(home: Home, info: DaemonInfo) -> str:
    """Signal a daemon that does not answer, but only if the process holds the lock: its id may be reused."""
    problem = f"The daemon of {home.root} does not answer"
    if not info.pid:
        raise Busy(f"{problem}: it is just being started. Try again in a moment.")
    try:
        process = os.pidfd_open(info.pid)
    except AttributeError:
        raise Busy(f"{problem}. End it with: kill {info.pid}") from None
    except ProcessLookupError:
        return "gone already"
    try:
        if not _has_open(info.pid, str(home.private / "daemon.lock")):
            raise Busy(
                f"{problem}, and process {info.pid} is not the one that holds it. See who does with: lsof"
            )
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGTERM)
    finally:
        os.close(process)
    return "signalled, because it did not answer,"


def _has_open(pid: int, path: str) -> bool:
    try:
        target = os.stat(path)
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), target):
                return True
    return False
