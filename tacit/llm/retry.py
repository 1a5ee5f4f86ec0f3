"""Counts, retries and pauses the calls of a chat model.

A turn asks once, and its call is counted (MeteredChat). A run also retries after temporary errors
(RetryingChat), and pauses a model that failed a few times in a row. The pause is kept in
`.tacit/breakers.json`, shared by all processes of a home: when it is over one process may try while the
others wait a little longer. So a cron job does not hammer a dead provider, and notices by itself when it is
back."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress

from tacit.circuit_breaker import BreakerState, CircuitBreaker, Pauses
from tacit.errors import LimitReached, StoreError
from tacit.home import files
from tacit.home.layout import Home
from tacit.llm.chat import Chat, ChatAnswer, ChatError, NotAsked, OverLimit
from tacit.llm.ledger import Meter
from tacit.text import tokens

MAX_ATTEMPTS = 4
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 30.0
_PAUSES = Pauses(first=300.0, longest=3600.0, trial=120.0)
_LOCK_TIMEOUT_S = 5.0
_MAX_REASON_CHARS = 300
_FRAME_TOKENS = 16  # tokens that a server puts around two messages
_MARGIN = 1.25  # other models may split text into more tokens than the vocabulary that counts them here


class MeteredChat:
    """Counts every call before and after it is made."""

    def __init__(self, chat: Chat, meter: Meter) -> None:
        self.name = chat.name
        self._chat, self._meter = chat, meter

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        tokens_in = round(_MARGIN * (tokens.count(system) + tokens.count(user))) + _FRAME_TOKENS
        try:
            call = self._meter.begin(tokens_in, max_tokens)
        except LimitReached as error:
            raise OverLimit(str(error)) from None
        try:
            answer = self._chat.answer(system, user, max_tokens=max_tokens, seconds=seconds)
        except ChatError as error:
            spent = (tokens_in, max_tokens) if error.spent else (0, 0)
            self._meter.end(call, "failed", *spent, str(error))
            raise
        except BaseException as error:
            self._meter.end(call, "failed", tokens_in, max_tokens, type(error).__name__)
            raise
        self._meter.end(call, "ok", answer.tokens_in, answer.tokens_out)
        return answer


class RetryingChat:
    def __init__(
        self,
        chat: Chat,
        breaker: CircuitBreaker,
        *,
        timeout: float,
        attempts: int = MAX_ATTEMPTS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self.name = chat.name
        self._chat, self._breaker = chat, breaker
        self._timeout, self._attempts = timeout, attempts
        self._clock, self._sleep, self._dice = clock, sleep, dice

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        """`seconds` covers all attempts and the pauses between them."""
        if seconds_left := self._breaker.wait():
            raise NotAsked(
                f"{self.name} failed several times in a row and is paused for {seconds_left:.0f} s more. "
                "See its last error with: tacit status"
            )
        try:
            answer = self._ask(system, user, max_tokens, seconds)
        except OverLimit:
            raise  # not the model's fault
        except ChatError as error:
            self._breaker.tell(str(error))
            raise
        self._breaker.tell("")
        return answer

    def _ask(self, system: str, user: str, max_tokens: int, seconds: float) -> ChatAnswer:
        end = self._clock() + seconds
        for attempt in range(1, self._attempts + 1):
            timeout = min(self._timeout, end - self._clock())
            try:
                return self._chat.answer(system, user, max_tokens=max_tokens, seconds=timeout)
            except ChatError as error:
                pause = self._pause(attempt, error.wait)
                is_last = attempt == self._attempts or self._clock() + pause >= end
                if not error.again or is_last:
                    raise
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _pause(self, attempt: int, wait: float | None) -> float:
        """Twice as long each time, with jitter; never less than the server asks for."""
        pause: float = min(_FIRST_PAUSE_S * 2.0 ** (attempt - 1), _MAX_PAUSE_S) * (0.5 + self._dice())
        return pause if wait is None else wait + self._dice()


class Breakers:
    """The circuit breakers of a home, by model."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.time) -> None:
        self._file, self._lock = home.private / "breakers.json", home.private / "breakers.lock"
        self._clock = clock

    def of(self, model: str) -> CircuitBreaker:
        return CircuitBreaker(_PAUSES, self._clock, _StoredState(self, model))

    def open(self) -> dict[str, tuple[float, str]]:
        """The paused models: for how many seconds, and why."""
        states = self.read()
        pauses = {model: self.of(model).seconds_left(state) for model, state in states.items()}
        return {model: (seconds, states[model].why) for model, seconds in pauses.items() if seconds > 0}

    def read(self) -> dict[str, BreakerState]:
        try:
            stored = json.loads(self._file.read_bytes())
            return {
                str(model): BreakerState(int(fields[0]), float(fields[1]), str(fields[2]))
                for model, fields in stored.items()
            }
        except (OSError, ValueError, TypeError, AttributeError, IndexError, KeyError, RecursionError):
            return {}

    def update(self, model: str, change: Callable[[BreakerState], BreakerState]) -> BreakerState:
        with files.hold_lock(self._lock, _LOCK_TIMEOUT_S):
            states = self.read()
            before = states.pop(model, BreakerState())
            after = change(before)
            if after != BreakerState():
                states[model] = after._replace(why=after.why[:_MAX_REASON_CHARS])
            if after != before:
                files.replace(self._file, json.dumps(states).encode())
        return before


class _StoredState:
    """The state of one breaker. If the file cannot be read or written, the model is asked anyway."""

    def __init__(self, breakers: Breakers, model: str) -> None:
        self._breakers, self._model = breakers, model

    def read(self) -> BreakerState:
        return self._breakers.read().get(self._model, BreakerState())

    def update(self, change: Callable[[BreakerState], BreakerState]) -> BreakerState:
        with suppress(OSError, StoreError):
            return self._breakers.update(self._model, change)
        return BreakerState()
