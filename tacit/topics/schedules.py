"""Finds the schedules that came due, in the local time of the home.

Times that do not exist on the day when clocks go forward come due right after the jump; those that exist
twice on the day when clocks go back come due only the first time. Schedules by the hour or the minute
(`*/10 * * * *`) continue through both. A schedule is due once, however often it was missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from tacit.topics.model import Topic

_MAX_CLOCK_SHIFT = timedelta(hours=3)  # longer than clocks ever go back


class DueSchedule(NamedTuple):
    topic: Topic
    at: datetime  # the last time
    schedule: str


def as_value(one: DueSchedule) -> dict[str, Any]:
    """The JSON form."""
    return {
        "topic": one.topic.name,
        "at": one.at.isoformat(),
        "schedule": one.schedule,
        "path": one.topic.path,
        "agents": one.topic.agents,
    }


def find_due_schedules(topics: Iterable[Topic], since: datetime, until: datetime) -> list[DueSchedule]:
    """Schedules that came due after `since` and up to `until`, in the zone of `until`, earliest first.
    Schedules of topics with manual activation do not count."""
    last_times = [
        max(times, key=lambda schedule_due: schedule_due.at.astimezone(UTC))
        for topic in topics
        if topic.activation != "manual" and (times := _due_times(topic, since, until))
    ]
    return sorted(
        last_times, key=lambda schedule_due: (schedule_due.at.astimezone(UTC), schedule_due.topic.name)
    )


def _due_times(topic: Topic, since: datetime, until: datetime) -> list[DueSchedule]:
    schedules = [trigger.schedule for trigger in topic.triggers if trigger.type == "cron"]
    last_times = ((schedule, _last_time(schedule, until)) for schedule in schedules)
    return [
        DueSchedule(topic, moment, schedule)
        for schedule, moment in last_times
        if moment and _is_after(moment, since)
    ]


def _last_time(schedule: str, until: datetime) -> datetime | None:
    """The last time of the schedule up to `until`. Searches backwards from a little later: when an hour comes
    for the second time, local time is behind what was due in the first."""
    from cronsim import CronSim, CronSimError

    later = (until.astimezone(UTC) + _MAX_CLOCK_SHIFT).astimezone(until.tzinfo)
    try:
        times = CronSim(schedule.upper(), later, reverse=True)
    except CronSimError:
        return None
    return next((moment for moment in times if not _is_after(moment, until)), None)


def _is_after(moment: datetime, earlier: datetime) -> bool:
    """Compare in UTC: within one zone Python compares local times."""
    return moment.astimezone(UTC) > earlier.astimezone(UTC)


class _MachineZone(tzinfo):
    """The machine's time zone with daylight saving time: the zone of `astimezone()` has only one offset."""

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


MACHINE_ZONE: tzinfo = _MachineZone()
