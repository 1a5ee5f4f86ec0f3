"""Topics whose schedules came due since they were last acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from tacit.memory import Memory
from tacit.topics.acknowledged import acknowledge, last_acknowledged, lock_due
from tacit.topics.schedules import MACHINE_ZONE, DueSchedule, find_due_schedules


class DueTopics(NamedTuple):
    found: Sequence[DueSchedule]
    doubt: str  # why the start of the period is a guess


def local_now(memory: Memory) -> datetime:
    """The local time: schedules follow daylight saving time."""
    return memory.moment().astimezone(memory.zone or MACHINE_ZONE)


def find_due_topics(memory: Memory, now: datetime | None = None) -> DueTopics:
    now = now or local_now(memory)
    done = last_acknowledged(memory.home, now)
    return DueTopics(find_due_schedules(memory.turns.topics().topics, done.at, now), done.doubt)


def take_due_topics(memory: Memory) -> Sequence[DueSchedule]:
    """Return the due topics and acknowledge them. Of two processes at the same time only one gets them."""
    with lock_due(memory.home):
        now = local_now(memory)
        due_topics = find_due_topics(memory, now).found
        acknowledge(memory.home, now)
    return due_topics
