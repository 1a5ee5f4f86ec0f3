"""The threads that do the work, what may wait for them, and what happens when one hangs.

What must stay true:
- at most so many calls are in flight; the next one is refused at once;
- urgent calls go first, and patient ones never hold all threads, so that a host's turn does not wait for
  somebody's long search;
- a call that could not begin in time is never begun;
- a thread that hangs is given up: another one takes its place, as long as there are spare ones. When it comes
  back after all, there is one too many, and it ends.

The threads are daemon threads: one that hangs must not keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["waiting", "running", "stuck", "done", "dropped"]


class Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class Job:
    """One call. `done` is called with its outcome in the thread that made it."""

    __slots__ = ("call", "done", "latest", "limit", "name", "patient", "started", "state")

    def __init__(
        self,
        name: str,
        call: Callable[[], Any],
        done: Callable[[Outcome], None],
        *,
        latest: float,
        limit: float,
        patient: bool = False,
    ) -> None:
        self.name, self.call, self.done, self.patient = name, call, done, patient
        self.latest = latest  # not begun after this
        self.limit = limit  # hangs after this; both by time.monotonic
        self.state: State = "waiting"
        self.started = 0.0


class Standing(NamedTuple):
    threads: int
    running: int
    waiting: int
    stuck: int
    patient: int


class Pool:
    def __init__(self, name: str, workers: int, waiting: int, *, spare: int | None = None) -> None:
        self._name, self._workers, self._waiting = name, workers, waiting
        self._spare = max(4, 2 * workers) if spare is None else spare
        self._patient_running = max(1, workers - 1)
        self._patient_waiting = waiting - waiting // 4
        self._lock = threading.Condition()
        self._urgent: deque[Job] = deque()
        self._patient: deque[Job] = deque()
        self._running: set[Job] = set()
        self._stuck: set[Job] = set()
        self._threads = 0  # those that can be counted on
        self._number = 0
        self._closed = False
        with self._lock:
            for _ in range(workers):
                self._start()

    def admit(self, job: Job) -> bool:
        """False: there is no room for it now."""
        with self._lock:
            if self._closed or not self._threads or not self._room(job.patient):
                return False
            (self._patient if job.patient else self._urgent).append(job)
            self._lock.notify()
            return True

    def drop(self, job: Job) -> bool:
        """Take it back if it has not begun."""
        with self._lock:
            if job.state != "waiting":
                return False
            job.state = "dropped"
            (self._patient if job.patient else self._urgent).remove(job)
            return True

    def give_up_stuck(self, now: float) -> list[Job]:
        """Put others in the place of threads that hang; tells which calls these are, each once."""
        with self._lock:
            found = [job for job in self._running if now > job.limit]
            for job in found:
                job.state = "stuck"
                self._running.discard(job)
                self._stuck.add(job)
                self._threads -= 1
                if len(self._stuck) <= self._spare:
                    self._start()
            return found

    def standing(self) -> Standing:
        with self._lock:
            patient = sum(job.patient for job in self._running)
            waiting = len(self._urgent) + len(self._patient)
            return Standing(self._threads, len(self._running), waiting, len(self._stuck), patient)

    def idle(self) -> bool:
        """Nothing waits, and nothing runs but what hangs."""
        with self._lock:
            return not (self._running or self._urgent or self._patient)

    def close(self) -> None:
        """Take no more; threads end when nothing waits any more."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    # ------------------------------------------------ under the lock

    def _room(self, patient: bool) -> bool:
        running, waiting = len(self._running), len(self._urgent) + len(self._patient)
        if running + waiting >= self._threads + self._waiting:
            return False
        busy = sum(job.patient for job in self._running)
        return not patient or busy + len(self._patient) < self._patient_running + self._patient_waiting

    def _start(self) -> None:
        self._threads += 1
        self._number += 1
        name = f"{self._name}-{self._number}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _next(self) -> Job | None:
        now = time.monotonic()
        while self._urgent:
            job = self._urgent.popleft()
            if job.latest > now:
                return job
            job.state = "dropped"
        while self._patient and sum(job.patient for job in self._running) < self._patient_running:
            job = self._patient.popleft()
            if job.latest > now:
                return job
            job.state = "dropped"
        return None

    # ------------------------------------------------ in a thread

    def _work(self) -> None:
        while (job := self._take()) is not None:
            try:
                outcome = Outcome(job.call())
            except BaseException as error:  # noqa: BLE001 - it is the caller's to judge; the thread goes on
                outcome = Outcome(error=error)
            stays = self._give_back(job)
            job.done(outcome)
            if not stays:
                return

    def _take(self) -> Job | None:
        with self._lock:
            while (job := self._next()) is None:
                if self._closed:
                    self._threads -= 1
                    return None
                self._lock.wait()
            job.state, job.started = "running", time.monotonic()
            self._running.add(job)
            return job

    def _give_back(self, job: Job) -> bool:
        """Whether this thread is still needed."""
        with self._lock:
            was_stuck = job in self._stuck
            self._running.discard(job)
            self._stuck.discard(job)
            job.state = "done"
            self._lock.notify()  # a patient one may be allowed to run now
            if not was_stuck:
                return True
            if self._threads >= self._workers:
                return False
            self._threads += 1
            return True
