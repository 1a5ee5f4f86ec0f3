"""The threads that do the work, what may wait for them, and what happens when one hangs.

What must stay true:
- at most so many calls are in flight; the next one is refused at once;
- records find a thread even when there are many turns, and turns when there are many records; long calls
  never hold all places, so that a turn does not wait for somebody's search;
- what computes is no more than the machine has cores for: more at once makes all of them late;
- a turn that would not be done in time, as turns go now, is refused at once. Else under too much load every
  turn would get its place when its time is nearly over, and none would be done;
- a call that could not begin in time is never begun;
- a thread that hangs is given up: another one takes its place, as long as there are spare ones. When it comes
  back after all, there is one too many, and it ends.

The threads are daemon threads: one that hangs must not keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["waiting", "running", "stuck", "done", "dropped"]
# What keeps something said and is quickly done; what a host's turn waits for; what may take its time.
Kind: TypeAlias = Literal["record", "turn", "long"]
_QUICKLY = 0.1  # how much of what is usual the last turn makes


class Outcome(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class Job:
    """One call. `done` is called with its outcome in the thread that made it."""

    __slots__ = ("call", "done", "kind", "latest", "limit", "name", "started", "state")

    def __init__(
        self,
        name: str,
        call: Callable[[], Any],
        done: Callable[[Outcome], None],
        *,
        latest: float,
        limit: float,
        kind: Kind = "record",
    ) -> None:
        self.name, self.call, self.done, self.kind = name, call, done, kind
        self.latest = latest  # not begun after this
        self.limit = limit  # hangs after this; both by time.monotonic
        self.state: State = "waiting"
        self.started = 0.0


class Standing(NamedTuple):
    threads: int
    running: int
    waiting: int
    stuck: int


class Usual:
    """How long turns take these days, and by how much that varies."""

    def __init__(self) -> None:
        self._mean = self._spread = 0.0

    def saw(self, seconds: float) -> None:
        if not self._mean:
            self._mean, self._spread = seconds, 0.0
        self._spread += _QUICKLY * (abs(seconds - self._mean) - self._spread)
        self._mean += _QUICKLY * (seconds - self._mean)

    def needs(self, before: float) -> float:
        """Seconds till one is done that has so many others before it."""
        return before * self._mean + self._mean + 2 * self._spread


class Pool:
    """`at_once`: how many calls that compute may run together; a thread more than that is for records and for
    calls that hang."""

    def __init__(
        self, name: str, workers: int, waiting: int, *, at_once: int | None = None, spare: int | None = None
    ) -> None:
        self._name, self._workers, self._waiting = name, workers, waiting
        self._spare = max(4, 2 * workers) if spare is None else spare
        self._at_once = min(workers, at_once or workers)
        self._long_at_once = max(1, self._at_once - 1)
        self._long_waiting = waiting - waiting // 4
        self._usual = Usual()
        self._lock = threading.Condition()
        self._queues: dict[Kind, deque[Job]] = {"record": deque(), "turn": deque(), "long": deque()}
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
            if self._closed or not self._threads or not self._room(job):
                return False
            self._queues[job.kind].append(job)
            self._lock.notify()
            return True

    def drop(self, job: Job) -> bool:
        """Take it back if it has not begun."""
        with self._lock:
            if job.state != "waiting":
                return False
            job.state = "dropped"
            self._queues[job.kind].remove(job)
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
            return Standing(self._threads, len(self._running), self._all_waiting(), len(self._stuck))

    def idle(self) -> bool:
        """Nothing waits, and nothing runs but what hangs."""
        with self._lock:
            return not (self._running or self._all_waiting())

    def close(self) -> None:
        """Take no more; threads end when nothing waits any more."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    # ------------------------------------------------ under the lock

    def _all_waiting(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def _room(self, job: Job) -> bool:
        if len(self._running) + self._all_waiting() >= self._threads + self._waiting:
            return False
        if job.kind == "long":
            running = sum(other.kind == "long" for other in self._running)
            return running + len(self._queues["long"]) < self._long_at_once + self._long_waiting
        return job.kind == "record" or self._in_time(job)

    def _in_time(self, turn: Job) -> bool:
        now, waiting = time.monotonic(), len(self._queues["turn"])
        if not waiting and self._computing(now) < self._at_once:
            return True
        return now + self._usual.needs((waiting + 1) / self._at_once) <= turn.latest

    def _computing(self, now: float) -> int:
        """Without those whose time is over: they wait for something else than for the machine."""
        return sum(job.kind != "record" and now <= job.latest for job in self._running)

    def _start(self) -> None:
        self._threads += 1
        self._number += 1
        name = f"{self._name}-{self._number}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _next(self) -> Job | None:
        now = time.monotonic()
        return next(filter(None, (self._allowed(kind, now) for kind in self._order())), None)

    def _order(self) -> Sequence[Kind]:
        """Records first, unless they have all the threads that are not for turns."""
        records = sum(job.kind == "record" for job in self._running)
        enough = records >= max(1, self._workers - self._at_once)
        return ("turn", "record", "long") if enough else ("record", "turn", "long")

    def _allowed(self, kind: Kind, now: float) -> Job | None:
        if kind != "record" and self._computing(now) >= self._at_once:
            return None
        if kind == "long" and sum(job.kind == "long" for job in self._running) >= self._long_at_once:
            return None
        return self._first(kind, now)

    def _seconds_till_late(self) -> float | None:
        """When the place of one that computes can be given to another, though it is not done."""
        if not self._queues["turn"] and not self._queues["long"]:
            return None
        now = time.monotonic()
        ends = [job.latest - now for job in self._running if job.kind != "record" and job.latest >= now]
        return min(ends) + 0.001 if ends else None

    def _first(self, kind: Kind, now: float) -> Job | None:
        queue = self._queues[kind]
        while queue:
            job = queue.popleft()
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
                self._lock.wait(self._seconds_till_late())
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
            if job.kind == "turn":
                self._usual.saw(time.monotonic() - job.started)
            self._lock.notify()  # one that was not allowed to run may be now
            if not was_stuck:
                return True
            if self._threads >= self._workers:
                return False
            self._threads += 1
            return True
