"""Runs calls in threads for the event loop: each has a deadline, and a hung one is replaced.

Workers run operations; `aside` answers even when all workers hang; `reader` parses large bodies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from tacit.deadline import DEADLINE, IS_ANSWERED
from tacit.errors import Busy, TacitError
from tacit.server.failures import FailureReporter
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.server.pool import Pool, WorkItem, WorkKind, WorkResult


class Executor:
    def __init__(
        self,
        workers: int,
        waiting: int,
        cores: int,
        *,
        stuck_after: float,
        metrics: Metrics,
        log: Log,
        failures: FailureReporter,
    ) -> None:
        self._metrics, self._log, self._failures = metrics, log, failures
        self._stuck_after = stuck_after
        # Two at least: one of them may wait for a model on another machine.
        self.workers = Pool("tacit-worker", workers, waiting, at_once=max(2, cores))
        self.aside = Pool("tacit-aside", 1, 16)
        self.reader = Pool("tacit-reader", 1, 64)
        self._pools = (self.workers, self.aside, self.reader)
        self.given_up = 0  # calls that hung
        gauge, stats = partial(metrics.gauge, quick=True), self.workers.standing
        gauge("tacit_in_flight", "Requests that are worked on.", lambda: stats().running)
        gauge("tacit_waiting", "Requests that wait for a worker.", lambda: stats().waiting)
        gauge("tacit_workers", "Workers that can be counted on.", lambda: stats().threads)
        gauge("tacit_workers_stuck", "Workers that hang now.", lambda: stats().stuck)

    async def run(
        self,
        pool: Pool,
        name: str,
        call: Callable[[], Any],
        deadline: float,
        grace: float,
        kind: WorkKind = "record",
    ) -> WorkResult | str:
        """The outcome; or `full`: it was not admitted; `waited`: its time ran out before it began, and it
        will not begin; `late`: it is still running."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[WorkResult | str] = loop.create_future()

        def run() -> Any:
            answered_token, until_token = IS_ANSWERED.set(answered.done), DEADLINE.set(deadline)
            try:
                return call()
            finally:
                IS_ANSWERED.reset(answered_token)
                DEADLINE.reset(until_token)

        job = WorkItem(
            name,
            run,
            lambda outcome: self._post_outcome(loop, answered, outcome),
            latest=deadline,
            limit=deadline + grace + self._stuck_after,
            kind=kind,
        )
        if not pool.admit(job):
            return "full"
        timers = [
            loop.call_at(deadline, _expire, pool, job, answered, False),
            loop.call_at(deadline + grace, _expire, pool, job, answered, True),
        ]
        try:
            return await answered
        finally:
            for timer in timers:
                timer.cancel()

    def _post_outcome(
        self,
        loop: asyncio.AbstractEventLoop,
        answered: asyncio.Future[WorkResult | str],
        outcome: WorkResult,
    ) -> None:
        with suppress(RuntimeError):  # the loop is closed, and no request waits
            loop.call_soon_threadsafe(self._accept_outcome, answered, outcome)

    def _accept_outcome(self, answered: asyncio.Future[WorkResult | str], outcome: WorkResult) -> None:
        if answered.done():
            self._metrics.late.add()
            if outcome.error is not None and not isinstance(outcome.error, TacitError):
                self._failures.log_bug("late", outcome.error)
        else:
            answered.set_result(outcome)

    async def run_aside(self, pool: Pool, name: str, call: Callable[[], Any], seconds: float) -> Any:
        """Run a short call in a thread without waiting for the workers; Busy if it takes too long."""
        outcome = await self.run(pool, name, call, time.monotonic() + seconds, 0.0)
        if not isinstance(outcome, WorkResult):
            raise Busy("This could not be looked up in time. Try again in a moment.")
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def run_later(self, name: str, call: Callable[[], object], seconds: float) -> None:
        """Run a short call without waiting for it, or not at all if many wait."""
        latest = time.monotonic() + seconds
        limit = latest + self._stuck_after
        self.aside.admit(WorkItem(name, call, lambda _: None, latest=latest, limit=limit))

    def give_up_stuck(self) -> None:
        for pool in self._pools:
            for job in pool.give_up_stuck(time.monotonic()):
                self._report_stuck(job, pool)

    def _report_stuck(self, job: WorkItem, pool: Pool) -> None:
        self.given_up += 1
        self._metrics.stuck.add()
        self._log.say(
            "error",
            "stuck",
            operation=job.name,
            seconds=round(time.monotonic() - job.started, 1),
            workers=pool.standing().threads,
            stuck=pool.standing().stuck,
        )

    def close(self) -> None:
        for pool in self._pools:
            pool.close()


def _expire(pool: Pool, job: WorkItem, answered: asyncio.Future[WorkResult | str], is_last: bool) -> None:
    if answered.done():
        return
    if pool.drop(job) or job.state == "dropped":
        answered.set_result("waited")
    elif is_last:
        answered.set_result("late")
