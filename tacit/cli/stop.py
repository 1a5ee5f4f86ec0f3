"""End `tacit serve`. What was acknowledged is finished first; open sessions stay open and go on later."""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import suppress

from tacit.client.socket import Unreachable, send_request
from tacit.errors import Busy
from tacit.home.layout import Home, find_home
from tacit.server.instance import DaemonInfo, find_daemon
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_quiet_option

_ASK_TIMEOUT_S = 5.0
_EXIT_TIMEOUT_S = 45.0  # the daemon finishes its work first


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    info = find_daemon(home)
    if info is None:
        _say(options, f"No daemon runs for {home.root}.")
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
    _say(options, f"The daemon of {home.root} (process {info.pid}) was {outcome} and has ended.")
    return 0


def _say(options: argparse.Namespace, text: str) -> None:
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
