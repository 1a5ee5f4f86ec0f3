"""A circuit breaker: after a few failures in a row calls are refused for a while, and then tried again.

One class for all uses. Where its state is kept decides who shares it: in memory, the threads of a process;
in a file (tacit/llm/retry.py), all processes of a home."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol

MAX_FAILURES = 3  # in a row, after which calls are refused


class BreakerState(NamedTuple):
    failures: int = 0
    until: float = 0.0  # a time of the clock
    why: str = ""


class Pauses(NamedTuple):
    """In seconds."""

    first: float
    longest: float  # each further failure doubles the pause, up to this
    trial: float = 0.0  # after a pause, how long others wait for the caller that tries first


class BreakerStore(Protocol):
    def read(self) -> BreakerState: ...

    def update(self, change: Callable[[BreakerState], BreakerState]) -> BreakerState:
        """Replace the state and return the one before, as one step."""


class CircuitBreaker:
    def __init__(
        self, pauses: Pauses, clock: Callable[[], float] = time.monotonic, store: BreakerStore | None = None
    ) -> None:
        self._pauses, self._clock = pauses, clock
        self._store = store or _InMemory()

    def wait(self) -> float:
        """Seconds until a call may be made. 0 after a pause means that this caller tries first."""
        if self._store.read().failures < MAX_FAILURES:
            return 0.0
        return self.seconds_left(self._store.update(self._claim_trial))

    def tell(self, why: str) -> None:
        """Report why a call failed; empty if it succeeded."""
        if why or self._store.read() != BreakerState():
            self._store.update(lambda state: self._count(state, why))

    def seconds_left(self, state: BreakerState) -> float:
        """At most the longest pause, even if the clock was set back."""
        seconds = state.until - self._clock() if state.failures >= MAX_FAILURES else 0.0
        return max(0.0, min(seconds, self._pauses.longest))

    def _claim_trial(self, state: BreakerState) -> BreakerState:
        if state.failures < MAX_FAILURES or self.seconds_left(state):
            return state
        return state._replace(until=self._clock() + self._pauses.trial)

    def _count(self, state: BreakerState, why: str) -> BreakerState:
        if not why:
            return BreakerState()
        failures = min(state.failures + 1, 1000)
        if failures < MAX_FAILURES:
            return BreakerState(failures, 0.0, why)
        pause = min(self._pauses.first * 2.0 ** (failures - MAX_FAILURES), self._pauses.longest)
        return BreakerState(failures, self._clock() + pause, why)


class _InMemory:
    def __init__(self) -> None:
        self._lock, self._state = Lock(), BreakerState()

    def read(self) -> BreakerState:
        with self._lock:
            return self._state

    def update(self, change: Callable[[BreakerState], BreakerState]) -> BreakerState:
        with self._lock:
            before, self._state = self._state, change(self._state)
        return before
