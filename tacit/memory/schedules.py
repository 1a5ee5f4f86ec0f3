"""Topics whose schedules came due since somebody last said that he had them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from tacit.memory.memory import Memory
from tacit.store.due import last_done, mark_done, marking
from tacit.watch.due import MACHINE, Due, due


class CameDue(NamedTuple):
    found: Sequence[Due]
    doubt: str  # why the moment since when is a guess


def wall(memory: Memory) -> datetime:
    """Now, by a clock on the wall: schedules go by summer and winter time."""
    return memory.moment().astimezone(memory.zone or MACHINE)


def came_due(memory: Memory, now: datetime | None = None) -> CameDue:
    now = now or wall(memory)
    done = last_done(memory.home, now)
    return CameDue(due(memory.turns.topics().topics, done.at, now), done.doubt)


def take_due(memory: Memory) -> Sequence[Due]:
    """And they are due no more. What two take at the same time is for one of them."""
    with marking(memory.home):
        now = wall(memory)
        found = came_due(memory, now).found
        mark_done(memory.home, now)
    return found
