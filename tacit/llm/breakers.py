"""Circuit breakers of models: `.tacit/breakers.json`, shared by all processes of a home.

After a few failures in a row a model is paused. When the pause is over one process may try while the others
wait a little longer; an answer closes the breaker, a failure doubles the pause. So a cron job does not hammer
a dead provider, and notices by itself when it is back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.home import files
from tacit.home.layout import Home

MAX_FAILURES = 3
_FIRST_PAUSE_S, _MAX_PAUSE_S = 300.0, 3600.0
_TRIAL_S = 120.0  # how long other processes wait for the one that tries


class BreakerState(NamedTuple):
    failures: int = 0
    until: float = 0.0  # by the clock on the wall
    why: str = ""


class Breakers:
    def __init__(self, home: Home, clock: Callable[[], float] = time.time) -> None:
        self._file, self._lock = home.private / "breakers.json", home.private / "breakers.lock"
        self._clock = clock

    def of(self, model: str) -> ModelBreaker:
        return ModelBreaker(self, model)

    def open(self) -> dict[str, tuple[float, str]]:
        """The paused models: for how many seconds, and why."""
        pauses = {
            model: (self._seconds_left(state), state.why) for model, state in self._read_states().items()
        }
        return {model: (seconds, why) for model, (seconds, why) in pauses.items() if seconds > 0}

    def wait(self, model: str) -> float:
        """Seconds until it may be asked. 0 after failures means that the caller is the one that tries."""
        if model not in self._read_states():
            return 0.0
        with files.hold_lock(self._lock, 5.0):
            states = self._read_states()
            state = states.get(model, BreakerState())
            if seconds := self._seconds_left(state):
                return seconds
            if state.failures >= MAX_FAILURES:
                self._save(states | {model: state._replace(until=self._clock() + _TRIAL_S)})
            return 0.0

    def tell(self, model: str, why: str) -> None:
        """Report a failure and its reason, or success with an empty `why`."""
        if not why and model not in self._read_states():
            return
        with files.hold_lock(self._lock, 5.0):
            states = self._read_states()
            failures = states.get(model, BreakerState()).failures + 1
            if not why:
                states.pop(model, None)
            else:
                pause = min(_FIRST_PAUSE_S * 2.0 ** max(0, failures - MAX_FAILURES), _MAX_PAUSE_S)
                until = self._clock() + pause if failures >= MAX_FAILURES else 0.0
                states[model] = BreakerState(min(failures, 1000), until, why[:300])
            self._save(states)

    def _seconds_left(self, state: BreakerState) -> float:
        """At most the longest pause, even if the clock was set back."""
        seconds = state.until - self._clock() if state.failures >= MAX_FAILURES else 0.0
        return max(0.0, min(seconds, _MAX_PAUSE_S))

    def _read_states(self) -> dict[str, BreakerState]:
        try:
            stored = json.loads(self._file.read_bytes())
            return {
                str(model): BreakerState(int(fields[0]), float(fields[1]), str(fields[2]))
                for model, fields in stored.items()
            }
        except (OSError, ValueError, TypeError, AttributeError, IndexError, KeyError, RecursionError):
            return {}

    def _save(self, states: dict[str, BreakerState]) -> None:
        files.replace(self._file, json.dumps(states).encode())


class ModelBreaker:
    """The breaker of one model. If its file cannot be read or written, the model is asked anyway."""

    def __init__(self, breakers: Breakers, model: str) -> None:
        self._breakers, self._model = breakers, model

    def wait(self) -> float:
        with suppress(OSError, StoreError):
            return self._breakers.wait(self._model)
        return 0.0

    def tell(self, why: str) -> None:
        with suppress(OSError, StoreError):
            self._breakers.tell(self._model, why)
