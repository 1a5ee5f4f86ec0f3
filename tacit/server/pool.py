"""The worker threads, their queues, and what happens when a thread hangs.

What must stay true:
- the number of calls in flight is limited; one more is refused at once;
- large records run one at a time and leave a thread for turns: each may take many seconds, and later ones of
  its conversation wait for it. A hung one still counts, so that large records never take all threads;
- records get a thread even when there are many turns, and turns when there are many records; long calls never
  hold all slots, so that a turn does not wait for a search;
- computing calls never outnumber the cores: more at once would make all of them late;
- a turn that would miss its deadline at the current pace is refused at once. Otherwise, under too much load,
  every turn would start when its time is nearly over, and none would finish;
- a call whose time ran out in the queue is never started;
- a hung thread is given up and replaced, as long as there are spares. If it comes back after all, there is
  one thread too many, and it ends.

The threads are daemon threads: a hung one must not keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

WorkState: TypeAlias = Literal["waiting", "running", "stuck", "done", "dropped"]
# record: keeps a message, quick. large: keeps megabytes. turn: a host waits for it. long: may take its time.
WorkKind: TypeAlias = Literal["record", "large", "turn", "long"]
_MAX_WAITING_LARGE = 8  # each of them may be many megabytes
_COMPUTING_KINDS: tuple[WorkKind, ...] = ("turn", "long")
_RECORDING_KINDS: tuple[WorkKind, ...] = ("record", "large")
_SMOOTHING = 0.1  # the weight of the last turn in the averages


class WorkResult(NamedTuple):
    value: Any = None
    error: BaseException | None = None


class WorkItem:
    """One call. `done` is called with its outcome, in the thread that ran it."""

    __slots__ = ("call", "done", "kind", "latest", "limit", "name", "started", "state")

    def __init__(
        self,
        name: str,
        call: Callable[[], Any],
        done: Callable[[WorkResult], None],
        *,
        latest: float,
        limit: float,
        kind: WorkKind = "record",
    ) -> None:
        self.name, self.call, self.done, self.kind = name, call, done, kind
        self.latest = latest  # not started after this
        self.limit = limit  # counts as hung after this; both by time.monotonic
        self.state: WorkState = "waiting"
        self.started = 0.0


class PoolStats(NamedTuple):
    threads: int
    running: int
    waiting: int
    stuck: int


class TurnTimes:
    """Moving averages of how long turns take and by how much that varies."""

    def __init__(self) -> None:
        self._mean = self._spread = 0.0

    def saw(self, seconds: float) -> None:
        if not self._mean:
            self._mean, self._spread = seconds, 0.0
        self._spread += _SMOOTHING * (abs(seconds - self._mean) - self._spread)
        self._mean += _SMOOTHING * (seconds - self._mean)

    def needs(self, before: float) -> float:
        """Seconds until a turn is done that has this many others before it."""
        return before * self._mean + self._mean + 2 * self._spread


class Pool:
    """`at_once`: how many computing calls may run together; further threads are for records and for replacing
    hung calls."""

    def __init__(
        self, name: str, workers: int, waiting: int, *, at_once: int | None = None, spare: int | None = None
    ) -> None:
        self._name, self._workers, self._max_waiting = name, workers, waiting
        self._max_spare = max(4, 2 * workers) if spare is None else spare
        self._max_computing = min(workers, at_once or workers)
        self._max_long = max(1, self._max_computing - 1)
        self._max_waiting_long = waiting - waiting // 4
        self._turn_times = TurnTimes()
        self._lock = threading.Condition()
        self._queues: dict[WorkKind, deque[WorkItem]] = {
            kind: deque[WorkItem]() for kind in ("record", "large", "turn", "long")
        }
        self._running: set[WorkItem] = set()
        self._stuck: set[WorkItem] = set()
        self._threads = 0  # without hung ones
        self._thread_number = 0
        self._closed = False
        with self._lock:
            for _ in range(workers):
                self._start_thread()

    def admit(self, job: WorkItem) -> bool:
        """Queue the job. False: there is no room for it now."""
        with self._lock:
            if self._closed or not self._threads or not self._has_room(job):
                return False
            self._queues[job.kind].append(job)
            self._lock.notify()
            return True

    def drop(self, job: WorkItem) -> bool:
        """Take the job back if it has not started."""
        with self._lock:
            if job.state != "waiting":
                return False
            job.state = "dropped"
            self._queues[job.kind].remove(job)
            return True

    def give_up_stuck(self, now: float) -> list[WorkItem]:
        """Replace hung threads, and return their jobs, each only once."""
        with self._lock:
            hung = [job for job in self._running if now > job.limit]
            for job in hung:
                job.state = "stuck"
                self._running.discard(job)
                self._stuck.add(job)
                self._threads -= 1
                if len(self._stuck) <= self._max_spare:
                    self._start_thread()
            return hung

    def standing(self) -> PoolStats:
        with self._lock:
            return PoolStats(self._threads, len(self._running), self._count_waiting(), len(self._stuck))

    def idle(self) -> bool:
        """Whether nothing waits and nothing runs, apart from hung calls."""
        with self._lock:
            return not (self._running or self._count_waiting())

    def close(self) -> None:
        """Accept no more jobs; threads end when the queues are empty."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    # ------------------------------------------------ under the lock

    def _count_waiting(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def _has_room(self, job: WorkItem) -> bool:
        if len(self._running) + self._count_waiting() >= self._threads + self._max_waiting:
            return False
        if job.kind == "long":
            running = sum(other.kind == "long" for other in self._running)
            return running + len(self._queues["long"]) < self._max_long + self._max_waiting_long
        if job.kind == "large":
            return len(self._queues["large"]) < _MAX_WAITING_LARGE
        return job.kind == "record" or self._is_in_time(job)

    def _is_in_time(self, turn: WorkItem) -> bool:
        now, waiting = time.monotonic(), len(self._queues["turn"])
        if not waiting and self._count_computing(now) < self._max_computing:
            return True
        return now + self._turn_times.needs((waiting + 1) / self._max_computing) <= turn.latest

    def _count_computing(self, now: float) -> int:
        """Without calls whose time is over: they wait for something other than the processor."""
        return sum(job.kind in _COMPUTING_KINDS and now <= job.latest for job in self._running)

    def _has_large(self) -> bool:
        """Whether a large record is running or hung."""
        return any(job.kind == "large" for jobs in (self._running, self._stuck) for job in jobs)

    def _start_thread(self) -> None:
        self._threads += 1
        self._thread_number += 1
        name = f"{self._name}-{self._thread_number}"
        threading.Thread(target=self._run_thread, name=name, daemon=True).start()

    def _next_job(self) -> WorkItem | None:
        now = time.monotonic()
        return next(filter(None, (self._next_allowed(kind, now) for kind in self._kind_order())), None)

    def _kind_order(self) -> Sequence[WorkKind]:
        """Records first, unless they already hold all threads that are not reserved for turns."""
        enough = self._count_recording() >= max(1, self._workers - self._max_computing)
        return ("turn", "record", "large", "long") if enough else ("record", "turn", "large", "long")

    def _count_recording(self) -> int:
        return sum(job.kind in _RECORDING_KINDS for job in self._running)

    def _next_allowed(self, kind: WorkKind, now: float) -> WorkItem | None:
        if kind in _COMPUTING_KINDS and self._count_computing(now) >= self._max_computing:
            return None
        if kind in _RECORDING_KINDS and not self._may_record(kind):
            return None
        if kind == "long" and sum(job.kind == "long" for job in self._running) >= self._max_long:
            return None
        return self._pop_first(kind, now)

    def _may_record(self, kind: WorkKind) -> bool:
        has_large = self._has_large()
        if kind == "large" and has_large:
            return False
        leaves_one = self._count_recording() < max(1, self._workers - 1)
        return leaves_one or (kind == "record" and not has_large)

    def _seconds_until_slot(self) -> float | None:
        """Seconds until a computing call runs over time, so that its slot can go to another."""
        if not self._queues["turn"] and not self._queues["long"]:
            return None
        now = time.monotonic()
        ends = [
            job.latest - now for job in self._running if job.kind in _COMPUTING_KINDS and job.latest >= now
        ]
        return min(ends) + 0.001 if ends else None

    def _pop_first(self, kind: WorkKind, now: float) -> WorkItem | None:
        queue = self._queues[kind]
        while queue:
            job = queue.popleft()
            if job.latest > now:
                return job
            job.state = "dropped"
        return None

    # ------------------------------------------------ in a thread

    def _run_thread(self) -> None:
        while (job := self._take_job()) is not None:
            try:
                outcome = WorkResult(job.call())
            except BaseException as error:  # noqa: BLE001 - it is the caller's to judge; the thread goes on
                outcome = WorkResult(error=error)
            stays = self._return_job(job)
            job.done(outcome)
            if not stays:
                return

    def _take_job(self) -> WorkItem | None:
        with self._lock:
            while (job := self._next_job()) is None:
                if self._closed:
                    self._threads -= 1
                    return None
                self._lock.wait(self._seconds_until_slot())
            job.state, job.started = "running", time.monotonic()
            self._running.add(job)
            return job

    def _return_job(self, job: WorkItem) -> bool:
        """Whether this thread is still needed."""
        with self._lock:
            was_stuck = job in self._stuck
            self._running.discard(job)
            self._stuck.discard(job)
            job.state = "done"
            if job.kind == "turn":
                self._turn_times.saw(time.monotonic() - job.started)
            self._lock.notify()  # a job that had to wait may be allowed to run now
            if not was_stuck:
                return True
            if self._threads >= self._workers:
                return False
            self._threads += 1
            return True
