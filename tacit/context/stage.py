"""Runs the steps of a turn so that none can break it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.context.model import Dropped
from tacit.deadline import IS_ANSWERED
from tacit.diagnostics import Notice
from tacit.errors import TacitError

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StepResult(Generic[_T_co]):
    """What one step of a turn returns, and what the receipt says about it."""

    value: _T_co
    notices: tuple[Notice, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class StageRunner:
    """Runs the steps of one turn and collects what its receipt says about them. If a step fails or there is
    no time left for it, a notice says so, and the turn goes on without it."""

    def __init__(self, seconds: float | None) -> None:
        self.began_ns = time.time_ns()
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.notices: list[Notice] = []
        self.dropped: list[Dropped] = []
        self.timings: dict[str, float] = {}  # milliseconds
        self.omitted: set[str] = set()  # steps that were left out for lack of time
        self.is_answered = IS_ANSWERED.get()

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def share(self, part: float) -> float | None:
        """The monotonic time when this part of the remaining time will be over."""
        if self.deadline is None:
            return None
        now = time.monotonic()
        return now + part * max(0.0, self.deadline - now)

    def note(self, notices: Iterable[Notice], dropped: Iterable[Dropped] = ()) -> None:
        self.notices += notices
        self.dropped += dropped

    def run(
        self, name: str, step: Callable[[], StepResult[_T]], otherwise: _T, *, always: bool = False
    ) -> _T:
        """The value of the step. `always`: run it even if the deadline is over."""
        if not always and self.is_late():
            self.omitted.add(name)
            self.notices.append(Notice("deadline", f"There was no time left for: {name}."))
            return otherwise
        began = time.perf_counter()
        try:
            result = step()
            self.note(result.notices, result.dropped)
            return result.value
        except (TacitError, OSError) as error:
            self.notices.append(Notice(name, str(error)))
        except Exception as error:  # noqa: BLE001 - a turn never breaks, even if tacit has a bug
            self.notices.append(Notice("bug", f"{name}: {type(error).__name__}: {error}"))
        finally:
            self.timings[name] = round((time.perf_counter() - began) * 1000, 3)
            if self.is_late() and not any(notice.code == "deadline" for notice in self.notices):
                self.notices.append(Notice("deadline", f"The time was over when this was done: {name}."))
        return otherwise
