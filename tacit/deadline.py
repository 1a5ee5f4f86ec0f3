"""Whether a caller still waits for an answer, and until when."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar

# Set around a turn by the server or client that answers for it when it is late: whether that has happened.
IS_ANSWERED: ContextVar[Callable[[], bool]] = ContextVar("answered", default=lambda: False)
# Set around every request by the server: the monotonic time of its deadline.
DEADLINE: ContextVar[float | None] = ContextVar("until", default=None)


def is_over(deadline: float | None) -> bool:
    """Whether there is no point in going on: the time is over, or the caller already has an answer."""
    return IS_ANSWERED.get()() or (deadline is not None and time.monotonic() > deadline)
