"""The daemon of one home, from its start to its end.

    start   take the lock · open the home · recover · drain the spool · listen · start jobs · announce
    end     announce · finish admitted requests · finish jobs · release the lock

The daemon starts the same way after a crash: the kernel has freed the lock, the socket is created again, and
open sessions go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tacit.app import create_memory, load_config, recover_quietly, utc_now
from tacit.config import Config
from tacit.deadline import DEADLINE
from tacit.errors import TacitError
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.operations.catalog import OPERATIONS_BY_NAME
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.server.instance import DaemonInfo, DaemonInstance
from tacit.server.jobs import JobRunner
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.server.router import Server
from tacit.sessions.registry import SessionRegistry
from tacit.wire import Json

_FINISH_TIMEOUT_S = 10.0  # seconds for admitted requests, and again for the jobs
_WARMUP_TIMEOUT_S = 30.0  # seconds for loading what the first request needs
_CHECK_INTERVAL_S = 5.0  # seconds between two checks that the home is still ours
_MAX_MOVED_CHECKS = 3  # in a row that find the home elsewhere: after a quick move back the daemon goes on


ReadyCallback: TypeAlias = Callable[[DaemonInfo], None]


class ServeOptions(NamedTuple):
    """`tcp`: None takes the config's port, 0 any free port. `ready` is called once the server answers."""

    tcp: int | None = None
    ready: ReadyCallback = lambda info: None
    warn: Callable[[str], None] = lambda text: None


def run(home: Home, asked: ServeOptions) -> int:
    """Serve until told to stop. Raises Busy if another daemon has the home, and ConfigError if the config is
    broken: the daemon never runs with settings that the owner did not choose."""
    home.require()
    instance = DaemonInstance(home)
    instance.take()
    try:
        return asyncio.run(_serve(home, instance, asked))
    finally:
        instance.leave()


async def _serve(home: Home, instance: DaemonInstance, options: ServeOptions) -> int:
    log, metrics = Log(home.private / "daemon.log"), Metrics()
    memory = _open_memory(home, load_config(home).config, log)
    live = SessionRegistry(memory.services)
    recover_quietly(memory)
    runner = JobRunner(
        OperationContext(memory, live),
        log,
        reopened=lambda config: _open_memory(home, config, log),
        changed=lambda config: _update_deadline(server, instance, config.inject.deadline_ms),
        warn=options.warn,
    )
    runner.measure(metrics)
    runner.drain_first()
    config = memory.config
    server = Server(
        lambda name, body: _run_operation(runner, instance, name, body),
        config.serve,
        deadline_ms=config.inject.deadline_ms,
        metrics=metrics,
        log=log,
        about=runner.about,
        skipped=runner.note_skip,
    )
    stop_waiter = _StopWaiter(server, runner)
    try:
        tcp = await _listen(server, instance, config.serve.tcp_port if options.tcp is None else options.tcp)
        runner.start()
        info = instance.announce(tcp, config.inject.deadline_ms)
        log.say("info", "started", version=info.version, tcp=tcp)
        notify_systemd("READY=1")
        options.ready(info)
        reason = await stop_waiter.wait(home, instance, lambda: _listen_again(server, instance, log))
    finally:
        notify_systemd("STOPPING=1")
        await server.stop(_FINISH_TIMEOUT_S)
        await asyncio.to_thread(runner.stop, _FINISH_TIMEOUT_S)
    if reason == "moved":
        log = _log_move(home, stop_waiter.moved_to, options)
    elif reason == "lost":
        options.warn(f"{home.private} was replaced under this daemon. Start it again: tacit serve")
    log.say("info", "stopped", why=reason)
    return 1 if reason in ("lost", "moved") else 0


def _log_move(home: Home, root: str, options: ServeOptions) -> Log:
    """Log the move in the home's new place, where the log is now."""
    log = Log(Path(root, ".tacit", "daemon.log"))
    log.say("warning", "moved", was=home.root, to=root)
    options.warn(f"{home.root} was moved to {root}. Start its daemon there: tacit --home {root} serve")
    return log


def _open_memory(home: Home, config: Config, log: Log) -> Memory:
    """Open the home and load everything that a turn needs."""
    memory = create_memory(home, config, utc_now)
    token = DEADLINE.set(time.monotonic() + _WARMUP_TIMEOUT_S)  # files of megabytes are for the follower
    try:
        with suppress(TacitError, OSError):  # each search reports it
            for reason in memory.services.searcher.find("", limit=1, catch_up=0.0).degraded:
                if not reason.startswith("vector:"):  # the follower makes those, and says so if it cannot
                    log.say("warning", "index", odd=reason)
        memory.services.turns.rehearse()
    finally:
        DEADLINE.reset(token)
    return memory


def _run_operation(runner: JobRunner, instance: DaemonInstance, name: str, body: Json) -> Json:
    """Run the operation on the current Memory, which is replaced when the config changes. If the home was
    moved, it is refused: another home may be in its place, and must not answer."""
    instance.require_held()
    if OPERATIONS_BY_NAME[name].is_spooled:
        runner.drainer.drain_before()
    return HANDLERS[name](runner.served, body)


def _update_deadline(server: Server, instance: DaemonInstance, deadline_ms: int) -> None:
    server.deadline_ms = deadline_ms
    instance.announce_deadline(deadline_ms)


async def _listen_again(server: Server, instance: DaemonInstance, log: Log) -> None:
    try:
        await server.listen(instance.listen())
    except (TacitError, OSError) as error:
        log.sometimes("error", "socket_lost", error=error)
    else:
        log.say("warning", "socket_anew")


async def _listen(server: Server, instance: DaemonInstance, tcp: int | None) -> int | None:
    sock = instance.listen()
    token = "" if tcp is None else instance.token()
    return await server.start(sock, tcp_port=tcp, token=token)


class _StopWaiter:
    """Waits for a reason to stop. A second signal ends the process at once."""

    def __init__(self, server: Server, runner: JobRunner) -> None:
        self._stop_requested, self._reason = server.stop_requested, "asked"
        self.moved_to = ""  # where the home was last seen, when it is not in its place
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._handle_signal, number)
        loop.add_signal_handler(signal.SIGHUP, runner.reload)

    def _handle_signal(self, number: signal.Signals) -> None:
        if self._stop_requested.is_set():
            os._exit(128 + number)  # nothing that was acknowledged depends on a clean end
        self._reason = number.name
        self._stop_requested.set()

    async def wait(
        self, home: Home, instance: DaemonInstance, listen_again: Callable[[], Awaitable[None]]
    ) -> str:
        elsewhere = 0
        while not self._stop_requested.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop_requested.wait(), _CHECK_INTERVAL_S)
            # A home that is gone for a while is still ours when it is back. If .tacit was replaced, another
            # daemon may hold it; if the home was moved, a new daemon waits for us to release the lock.
            if not home.config.is_file():
                self.moved_to = instance.moved_to()
                elsewhere = elsewhere + 1 if self.moved_to else 0
                if elsewhere >= _MAX_MOVED_CHECKS:
                    return "moved"
                continue
            elsewhere = 0
            if not instance.holds():
                return "lost"
            if not instance.is_bound() and not self._stop_requested.is_set():
                await listen_again()
        return self._reason


def notify_systemd(state: str) -> None:
    """Tell systemd, if it started us."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


def print_ready(info: DaemonInfo) -> None:
    """Print one line, for people and for programs that read it from a pipe."""
    tcp_part = f" and 127.0.0.1:{info.tcp}" if info.tcp else ""
    with suppress(OSError):
        print(f"tacit: listening on {info.socket}{tcp_part} (process {info.pid})", flush=True)


def print_warning(text: str) -> None:
    with suppress(OSError):
        print(f"tacit: {text}", file=sys.stderr, flush=True)
