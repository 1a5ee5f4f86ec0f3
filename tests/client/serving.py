"""A home that is served: the daemon's own place and server, on a loop of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import tacit
from tacit.home.layout import Home
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.server.instance import DaemonInstance
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.server.router import Server
from tacit.sessions.registry import SessionRegistry


@contextmanager
def serving(
    root: Path, *, workers: int = 4, waiting: int = 32, deadline_ms: int = 30_000
) -> Iterator[OperationContext]:
    memory = tacit.open(root)
    served = OperationContext(memory, SessionRegistry(memory.services))
    serve = replace(memory.config.serve, workers=workers, waiting=waiting)
    up, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        log = Log(root / ".tacit" / "daemon.log")
        server = Server(
            lambda name, body: HANDLERS[name](served, body),
            serve,
            deadline_ms=deadline_ms,
            metrics=Metrics(),
            log=log,
        )
        with DaemonInstance(Home(root)) as place:
            await server.start(place.listen())
            place.announce()
            up.set()
            await over.wait()
            await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert up.wait(30), "the server did not come up"
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()
        served.live.close()
