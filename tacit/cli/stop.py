"""End `tacit serve`. What was acknowledged is finished first; open sessions stay open and go on later."""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import suppress

from tacit.cli import output
from tacit.cli.dispatch import home_option, quiet_option
from tacit.daemon.place import Info, running
from tacit.errors import Busy
from tacit.net.local import Unreachable, ask
from tacit.store.home import Home, locate

_ASK = 5.0  # seconds for an answer
_END = 45.0  # seconds from there to the end: it finishes what it was asked to do


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    info = running(home)
    if info is None:
        _say(options, f"No daemon runs for {home.root}.")
        return 0
    how = _asked(info) or _signalled(home, info)
    until = time.monotonic() + _END
    while (still := running(home)) is not None and still.pid == info.pid:
        if time.monotonic() > until:
            raise Busy(
                f"Process {info.pid} was {how} and has not ended after {_END:.0f} s. "
                f"See {home.private}/daemon.log; nothing is lost if you end it with: kill -9 {info.pid}"
            )
        time.sleep(0.02)
    _say(options, f"The daemon of {home.root} (process {info.pid}) was {how} and has ended.")
    return 0


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        output.say(text)


def _asked(info: Info) -> str:
    try:
        status, _ = ask(info.socket, "POST", "/v1/stop", b"{}", _ASK)
    except Unreachable:
        return ""
    return "asked to stop" if status in (200, 202) or status == 503 else ""


def _signalled(home: Home, info: Info) -> str:
    """For one that does not answer. Only the process that holds the lock is signalled, whoever has its
    number by now."""
    why = f"The daemon of {home.root} does not answer"
    if not info.pid:
        raise Busy(f"{why}: it is just being started. Try again in a moment.")
    try:
        process = os.pidfd_open(info.pid)
    except AttributeError:
        raise Busy(f"{why}. End it with: kill {info.pid}") from None
    except ProcessLookupError:
        return "gone already"
    try:
        if not _has_open(info.pid, str(home.private / "daemon.lock")):
            raise Busy(f"{why}, and process {info.pid} is not the one that holds it. See who does with: lsof")
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGTERM)
    finally:
        os.close(process)
    return "signalled, because it did not answer,"


def _has_open(pid: int, path: str) -> bool:
    try:
        wanted = os.stat(path)
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), wanted):
                return True
    return False
