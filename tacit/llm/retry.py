"""Retries a chat model after temporary errors, and pauses it after repeated failures.

For runs. A turn asks once: see tacit/topics/model_gate.py."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from tacit.llm.chat import Chat, ChatAnswer, ChatError, NotAsked, OverLimit

MAX_ATTEMPTS = 4
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 30.0


class CircuitBreaker(Protocol):
    """Counts the failures in a row of one model."""

    def wait(self) -> float:
        """Seconds until it may be asked."""

    def tell(self, why: str) -> None:
        """Report why it failed; empty if it answered."""


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
                f"{self.name} failed several times in a row and is left alone for {seconds_left:.0f} s more. "
                "See what it said with: tacit status"
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
