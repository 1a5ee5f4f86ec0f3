"""Runs the steps of a turn so that none can break it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tacit.context.model import Notice
from tacit.deadline import IS_ANSWERED
from tacit.errors import TacitError

_T = TypeVar("_T")


class StageRunner:
    """Runs the steps of a turn: a step that fails or is late is noted, and the turn goes on without it."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.notices: list[Notice] = []
        self.timings: dict[str, float] = {}
        self.untimely: set[str] = set()  # steps that were skipped for lack of time
        self.is_answered = IS_ANSWERED.get()

    def share(self, part: float) -> float | None:
        """The monotonic time when this part of the remaining time will be over."""
        if self.deadline is None:
            return None
        now = time.monotonic()
        return now + part * max(0.0, self.deadline - now)

    def run(self, name: str, step: Callable[[], _T], otherwise: _T, *, always: bool = False) -> _T:
        began = time.perf_counter()
        if not always and self.deadline is not None and time.monotonic() > self.deadline:
            self.untimely.add(name)
            self.notices.append(Notice("deadline", f"There was no time left for: {name}."))
            return otherwise
        try:
            return step()
        except (TacitError, OSError) as error:
            self.notices.append(Notice(name, str(error)))
        except Exception as error:  # noqa: BLE001 - a turn never breaks, whatever is wrong with us
            self.notices.append(Notice("bug", f"{name}: {type(error).__name__}: {error}"))
        finally:
            self.timings[name] = round((time.perf_counter() - began) * 1000, 3)
            self._note_if_late(name)
        return otherwise

    def _note_if_late(self, name: str) -> None:
        is_late = self.deadline is not None and time.monotonic() > self.deadline
        if is_late and not any(notice.code == "deadline" for notice in self.notices):
            self.notices.append(Notice("deadline", f"The time was over when this was done: {name}."))
