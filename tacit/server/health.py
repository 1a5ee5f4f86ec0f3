"""What the daemon reports about itself: its health, and its metrics."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from tacit.errors import Busy
from tacit.server.executor import Executor
from tacit.server.failures import FailureReporter
from tacit.server.metrics import Metrics
from tacit.version import VERSION
from tacit.wire import Json


class HealthReporter:
    """`describe_home` adds fields to the report; it may take a moment, but no more than `timeout` seconds."""

    def __init__(
        self,
        executor: Executor,
        failures: FailureReporter,
        metrics: Metrics,
        *,
        describe_home: Callable[[], Json] | None,
        count_connections: Callable[[], int],
        timeout: float,
    ) -> None:
        self._executor, self._failures, self._metrics = executor, failures, metrics
        self._describe_home, self._count_connections, self._timeout = (
            describe_home,
            count_connections,
            timeout,
        )
        self._started, self._started_clock = time.time(), time.monotonic()

    async def metrics_text(self) -> str:
        try:
            text: str = await self._executor.run_aside(
                self._executor.aside, "metrics", self._metrics.text, self._timeout
            )
        except Busy:
            return self._metrics.text(quick=True)
        return text

    async def report(self) -> Json:
        stats = self._executor.workers.standing()
        health: Json = {
            "status": "ok",
            "version": VERSION,
            "pid": os.getpid(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self._started)),
            "uptime_seconds": round(time.monotonic() - self._started_clock, 1),
            "workers": {"count": stats.threads, "busy": stats.running, "stuck": stats.stuck},
            "given_up": self._executor.given_up,
            "waiting": stats.waiting,
            "connections": self._count_connections(),
            "refused": int(self._metrics.refused.value("busy")),
            "problems": [],
        }
        if stats.stuck:
            health["problems"].append(
                f"{stats.stuck} of the workers hang and were given up; {stats.threads} still work. "
                "See stuck in .tacit/daemon.log. A restart frees them."
            )
        home_report = await self._home_report()
        health["problems"] += home_report.pop("problems", [])
        if health["problems"]:
            health["status"] = "degraded"
        return {**home_report, **health}

    async def _home_report(self) -> Json:
        if self._describe_home is None:
            return {}
        try:
            return dict(
                await self._executor.run_aside(
                    self._executor.aside, "health", self._describe_home, self._timeout
                )
            )
        except Busy:
            return {"problems": ["The state of the home could not be read in time."]}
        except Exception as error:  # noqa: BLE001 - the caller gets an answer in any case
            return {
                "problems": [
                    f"The state of the home could not be read: see {self._failures.log_bug('health', error)}."
                ]
            }
