"""Which models are left alone because they failed: `.tacit/breakers.json`, for all processes of a home.

After a few questions that failed in a row a model is asked nothing for a while. When that is over one process
may try, the others wait a little more; an answer closes the breaker, a failure leaves it open for twice as
long. So a cron job does not hammer a dead provider, and finds out by itself when it is back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.store import files
from tacit.store.home import Home

FAILURES = 3
_PAUSE, _LONGEST = 300.0, 3600.0
_TRYING = 120.0  # seconds that others wait for the one that tries


class State(NamedTuple):
    failures: int = 0
    until: float = 0.0  # by the clock on the wall
    why: str = ""


class Breakers:
    def __init__(self, home: Home, clock: Callable[[], float] = time.time) -> None:
        self._file, self._lock = home.private / "breakers.json", home.private / "breakers.lock"
        self._clock = clock

    def of(self, model: str) -> Breaker:
        return Breaker(self, model)

    def open(self) -> dict[str, tuple[float, str]]:
        """The models that are left alone now: for how many seconds, and why."""
        found = {model: (self._left(state), state.why) for model, state in self._states().items()}
        return {model: (left, why) for model, (left, why) in found.items() if left > 0}

    def wait(self, model: str) -> float:
        """Seconds until it may be asked. 0 after failures means: you are the one who tries."""
        if model not in self._states():
            return 0.0
        with files.locked(self._lock, 5.0):
            states = self._states()
            state = states.get(model, State())
            if left := self._left(state):
                return left
            if state.failures >= FAILURES:
                self._save(states | {model: state._replace(until=self._clock() + _TRYING)})
            return 0.0

    def tell(self, model: str, why: str) -> None:
        """`why` it failed; empty: it answered."""
        if not why and model not in self._states():
            return
        with files.locked(self._lock, 5.0):
            states = self._states()
            failures = states.get(model, State()).failures + 1
            if not why:
                states.pop(model, None)
            else:
                pause = min(_PAUSE * 2.0 ** max(0, failures - FAILURES), _LONGEST)
                until = self._clock() + pause if failures >= FAILURES else 0.0
                states[model] = State(min(failures, 1000), until, why[:300])
            self._save(states)

    def _left(self, state: State) -> float:
        """A clock that was set back must not keep a model away for years."""
        left = state.until - self._clock() if state.failures >= FAILURES else 0.0
        return max(0.0, min(left, _LONGEST))

    def _states(self) -> dict[str, State]:
        try:
            found = json.loads(self._file.read_bytes())
            return {
                str(model): State(int(one[0]), float(one[1]), str(one[2])) for model, one in found.items()
            }
        except (OSError, ValueError, TypeError, AttributeError, IndexError, KeyError, RecursionError):
            return {}

    def _save(self, states: dict[str, State]) -> None:
        files.replace(self._file, json.dumps(states).encode())


class Breaker:
    """That of one model. A disk that refuses is no reason to ask nothing."""

    def __init__(self, breakers: Breakers, model: str) -> None:
        self._breakers, self._model = breakers, model

    def wait(self) -> float:
        with suppress(OSError, StoreError):
            return self._breakers.wait(self._model)
        return 0.0

    def tell(self, why: str) -> None:
        with suppress(OSError, StoreError):
            self._breakers.tell(self._model, why)
