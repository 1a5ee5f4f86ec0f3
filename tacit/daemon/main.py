"""The daemon of one home, from its start to its end.

    start   take the place · open the home · what a crash left · what hosts spooled · listen · work · say so
    end     say so · finish what was let in · finish the work · leave the place

Whatever a crash leaves is what the next start begins with: the lock is freed by the kernel, the socket is
made anew, sessions that were open go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tacit.api import OPERATIONS, SPOOLED, Body, Operation, Served
from tacit.app import load_config, memory_of, now, recover_quietly
from tacit.config import Config
from tacit.daemon.log import Log
from tacit.daemon.metrics import Metrics
from tacit.daemon.place import Info, Place
from tacit.daemon.server import Server
from tacit.daemon.work import Work
from tacit.errors import TacitError
from tacit.memory import Memory
from tacit.memory.live import Conversations
from tacit.store.home import Home
from tacit.text.wire import Json

_FINISH = 10.0  # seconds for what was let in, and again for the work
_LOOK = 5.0  # seconds between two looks whether the home is still ours
_MOVED = 3  # looks in a row that find the home elsewhere: who moves it back at once need not start us again


Ready: TypeAlias = Callable[[Info], None]


class Asked(NamedTuple):
    """`tcp`: None as the config says, 0 any free port. `ready` is called once it answers."""

    tcp: int | None = None
    ready: Ready = lambda info: None
    warn: Callable[[str], None] = lambda text: None


def run(home: Home, asked: Asked) -> int:
    """Serve until somebody says stop. Busy when another daemon has the home, ConfigError when the config is
    broken: nobody is answered by settings that were not meant."""
    home.require()
    place = Place(home)
    place.take()
    try:
        return asyncio.run(_serve(home, place, asked))
    finally:
        place.leave()


async def _serve(home: Home, place: Place, asked: Asked) -> int:
    log, metrics = Log(home.private / "daemon.log"), Metrics()
    memory = _opened(home, load_config(home).config, log)
    live = Conversations(memory)
    recover_quietly(memory)
    work = Work(
        Served(memory, live),
        log,
        reopened=lambda config: _opened(home, config, log),
        changed=lambda config: _retime(server, place, config.inject.deadline_ms),
        warn=asked.warn,
    )
    work.measure(metrics)
    work.drain_first()
    config = memory.config
    server = Server(
        work.served,
        config.serve,
        deadline_ms=config.inject.deadline_ms,
        metrics=metrics,
        log=log,
        operations=[_current(work, place, one) for one in OPERATIONS],
        about=work.about,
        skipped=work.skipped,
    )
    end = _End(server, work)
    try:
        tcp = await _listen(server, place, config.serve.tcp_port if asked.tcp is None else asked.tcp)
        work.start()
        info = place.announce(tcp, config.inject.deadline_ms)
        log.say("info", "started", version=info.version, tcp=tcp)
        notify("READY=1")
        asked.ready(info)
        why = await end.awaited(home, place, lambda: _listen_again(server, place, log))
    finally:
        notify("STOPPING=1")
        await server.stop(_FINISH)
        await asyncio.to_thread(work.stop, _FINISH)
    if why == "moved":
        log = _log_moved(home, end.moved_to, asked)
    elif why == "lost":
        asked.warn(f"{home.private} was replaced under this daemon. Start it again: tacit serve")
    log.say("info", "stopped", why=why)
    return 1 if why in ("lost", "moved") else 0


def _log_moved(home: Home, root: str, asked: Asked) -> Log:
    """The log went with the home."""
    log = Log(Path(root, ".tacit", "daemon.log"))
    log.say("warning", "moved", was=home.root, to=root)
    asked.warn(f"{home.root} was moved to {root}. Start its daemon there: tacit --home {root} serve")
    return log


def _opened(home: Home, config: Config, log: Log) -> Memory:
    """With all that a turn needs in memory already."""
    memory = memory_of(home, config, now)
    with suppress(TacitError, OSError):  # whoever searches is told
        for odd in memory.searcher.find("", limit=1, catch_up=0.0).degraded:
            if not odd.startswith("vector:"):  # the follower makes those, and says so if it cannot
                log.say("warning", "index", odd=odd)
    memory.turns.rehearse()
    return memory


def _current(work: Work, place: Place, operation: Operation) -> Operation:
    """On the home as it is now: a change of the config puts another Memory in its place. And on no other: who
    asks a daemon whose home was moved shall not get the answers of what is in its place."""

    def run(_: Served, body: Body) -> Json:
        place.require_held()
        if operation.name in SPOOLED:
            work.drain_before()
        return operation.run(work.served, body)

    return operation._replace(run=run)


def _retime(server: Server, place: Place, deadline_ms: int) -> None:
    server.deadline_ms = deadline_ms
    place.announce_deadline(deadline_ms)


async def _listen_again(server: Server, place: Place, log: Log) -> None:
    try:
        await server.listen(place.listen())
    except (TacitError, OSError) as error:
        log.sometimes("error", "socket_lost", error=error)
    else:
        log.say("warning", "socket_anew")


async def _listen(server: Server, place: Place, tcp: int | None) -> int | None:
    bound = place.listen()
    token = "" if tcp is None else place.token()
    return await server.start(bound, tcp_port=tcp, token=token)


class _End:
    """Waits for a reason to end. A second signal does not wait for anything."""

    def __init__(self, server: Server, work: Work) -> None:
        self._asked, self._why = server.asked, "asked"
        self.moved_to = ""  # where the home was last seen, when it is not in its place
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        loop.add_signal_handler(signal.SIGHUP, work.reload)

    def _signalled(self, number: signal.Signals) -> None:
        if self._asked.is_set():
            os._exit(128 + number)  # nothing that was acknowledged depends on a clean end
        self._why = number.name
        self._asked.set()

    async def awaited(self, home: Home, place: Place, listen_again: Callable[[], Awaitable[None]]) -> str:
        elsewhere = 0
        while not self._asked.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _LOOK)
            # A home that is gone for a while is still ours when it is back. One whose .tacit is another one
            # may have another daemon, and one that is somewhere else by now waits for us to let go of it.
            if not home.config.is_file():
                self.moved_to = place.moved_to()
                elsewhere = elsewhere + 1 if self.moved_to else 0
                if elsewhere >= _MOVED:
                    return "moved"
                continue
            elsewhere = 0
            if not place.holds():
                return "lost"
            if not place.is_bound() and not self._asked.is_set():
                await listen_again()
        return self._why


def notify(state: str) -> None:
    """Tell systemd, if it started us."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


def say(info: Info) -> None:
    """One line, for people and for who waits for it in a pipe."""
    more = f" and 127.0.0.1:{info.tcp}" if info.tcp else ""
    with suppress(OSError):
        print(f"tacit: listening on {info.socket}{more} (process {info.pid})", flush=True)


def complain(text: str) -> None:
    with suppress(OSError):
        print(f"tacit: {text}", file=sys.stderr, flush=True)
