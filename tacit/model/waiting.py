"""Whether somebody still waits for what is being made."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# Set around a turn by who answers in its place when it is late: whether who asked went on without it.
ANSWERED: ContextVar[Callable[[], bool]] = ContextVar("answered", default=lambda: False)
