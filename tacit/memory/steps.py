"""The steps of a turn, none of which can break it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tacit.errors import TacitError
from tacit.model.context import Notice
from tacit.model.waiting import ANSWERED

_T = TypeVar("_T")


class Steps:
    """Runs the steps of a turn: what fails or comes too late is noted, and the turn goes on without it."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.notices: list[Notice] = []
        self.timings: dict[str, float] = {}
        self.untimely: set[str] = set()  # steps for which there was no time
        self.is_answered = ANSWERED.get()

    def share(self, part: float) -> float | None:
        """The monotonic time at which so much of the time that is left will be over."""
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
            self._tell_late(name)
        return otherwise

    def _tell_late(self, name: str) -> None:
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late and not any(notice.code == "deadline" for notice in self.notices):
            self.notices.append(Notice("deadline", f"The time was over when this was done: {name}."))
