"""Which schedules came due, by the clock on the wall of the home.

Hours of a schedule that do not exist on the day when clocks go forward come due when the clock has jumped;
those that exist twice on the day when it goes back come due the first time only. A schedule by the hour or
the minute (`*/10 * * * *`) goes on through both. What is due is due once, however often it was missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from tacit.model.topics import Topic

_TWICE = timedelta(hours=3)  # more than clocks ever go back


class Due(NamedTuple):
    topic: Topic
    at: datetime  # the last time
    schedule: str


def as_value(one: Due) -> dict[str, Any]:
    """For who reads JSON."""
    return {
        "topic": one.topic.name,
        "at": one.at.isoformat(),
        "schedule": one.schedule,
        "path": one.topic.path,
        "agents": one.topic.agents,
    }


def due(topics: Iterable[Topic], since: datetime, until: datetime) -> list[Due]:
    """After `since`, and at `until` or before, in the zone of `until`; the first to come due first.
    Topics that wake only by hand have no schedule that counts."""
    found = [
        max(times, key=lambda one: one.at.astimezone(UTC))
        for topic in topics
        if topic.activation != "manual" and (times := _times(topic, since, until))
    ]
    return sorted(found, key=lambda one: (one.at.astimezone(UTC), one.topic.name))


def _times(topic: Topic, since: datetime, until: datetime) -> list[Due]:
    schedules = [trigger.schedule for trigger in topic.triggers if trigger.type == "cron"]
    found = ((schedule, _last(schedule, until)) for schedule in schedules)
    return [Due(topic, at, schedule) for schedule, at in found if at and _is_after(at, since)]


def _last(schedule: str, until: datetime) -> datetime | None:
    """Backwards from a little later: while an hour comes for the second time, the clock on the wall is
    behind what was due in the first."""
    from cronsim import CronSim, CronSimError

    later = (until.astimezone(UTC) + _TWICE).astimezone(until.tzinfo)
    try:
        times = CronSim(schedule.upper(), later, reverse=True)
    except CronSimError:
        return None
    return next((at for at in times if not _is_after(at, until)), None)


def _is_after(one: datetime, other: datetime) -> bool:
    """In one zone Python compares the clocks on the wall."""
    return one.astimezone(UTC) > other.astimezone(UTC)


class _Machine(tzinfo):
    """The machine's own zone with its summer and winter: what `astimezone()` gives knows one offset only."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        if at is None:
            return None
        wall = at.replace(tzinfo=None)
        return wall - datetime.fromtimestamp(wall.timestamp(), UTC).replace(tzinfo=None, fold=0)

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002 - as every zone has it
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return None if at is None else at.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, at: datetime) -> datetime:
        local = at.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=self, fold=0)
        return wall if wall.utcoffset() == local.utcoffset() else wall.replace(fold=1)


MACHINE: tzinfo = _Machine()
