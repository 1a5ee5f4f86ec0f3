"""Schedules of topics: which came due since they were last acknowledged, in the local time of the home.

Times that do not exist on the day when clocks go forward come due right after the jump; those that exist
twice on the day when clocks go back come due only the first time. Schedules by the hour or the minute
(`*/10 * * * *`) continue through both. A schedule is due once, however often it was missed.

`.tacit/due.json` holds the time of the last acknowledgement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tacit.home import files
from tacit.home.layout import Home
from tacit.topics.model import Topic

_MAX_CLOCK_SHIFT = timedelta(hours=3)  # longer than clocks ever go back
_FIRST_PERIOD = timedelta(hours=24)  # how far back to look the first time


class DueSchedule(NamedTuple):
    topic: Topic
    at: datetime  # the last time
    schedule: str


def to_json(due: DueSchedule) -> dict[str, Any]:
    return {
        "topic": due.topic.name,
        "at": due.at.isoformat(),
        "schedule": due.schedule,
        "path": due.topic.path,
        "agents": due.topic.agents,
    }


def find_due_schedules(topics: Iterable[Topic], since: datetime, until: datetime) -> list[DueSchedule]:
    """Schedules that came due after `since` and up to `until`, in the zone of `until`, earliest first.
    Schedules of topics with manual activation do not count."""
    due = [
        max(times, key=lambda last: last.at.astimezone(UTC))
        for topic in topics
        if topic.activation != "manual" and (times := _due_times(topic, since, until))
    ]
    return sorted(due, key=lambda last: (last.at.astimezone(UTC), last.topic.name))


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


# Due topics


class DueTopics(NamedTuple):
    schedules: list[DueSchedule]
    doubt: str  # why the start of the period is a guess


def find_due_topics(home: Home, topics: Iterable[Topic], now: datetime) -> DueTopics:
    """Topics that came due since the last acknowledgement."""
    last = find_last_acknowledgement(home, now)
    return DueTopics(find_due_schedules(topics, last.at, now), last.doubt)


def take_due_topics(home: Home, topics: Iterable[Topic], clock: Callable[[], datetime]) -> list[DueSchedule]:
    """Return the due topics and acknowledge them. Of two processes at the same time only one gets them, so
    the time is read under the lock."""
    with lock_due(home):
        now = clock()
        due = find_due_topics(home, topics, now).schedules
        acknowledge(home, now)
    return due


# The last acknowledgement


class Acknowledgement(NamedTuple):
    at: datetime  # in the caller's time zone
    doubt: str = ""  # why it is a guess


def find_last_acknowledgement(home: Home, now: datetime) -> Acknowledgement:
    try:
        text = _file(home).read_text(encoding="utf-8")
    except FileNotFoundError:
        return Acknowledgement(subtract_elapsed(now, _FIRST_PERIOD))
    except (OSError, ValueError):
        text = ""
    try:
        done = datetime.fromisoformat(json.loads(text)["done"]).astimezone(now.tzinfo)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        done = None
    if done is None or done.astimezone(UTC) > now.astimezone(UTC):
        doubt = ".tacit/due.json names no moment in the past, so the last 24 hours count."
        return Acknowledgement(subtract_elapsed(now, _FIRST_PERIOD), doubt)
    return Acknowledgement(done)


def acknowledge(home: Home, now: datetime) -> None:
    """Call it within `lock_due`, with the time up to which due topics were read."""
    with files.explain_disk_errors("remember that this was looked at"):
        files.replace(_file(home), json.dumps({"done": now.isoformat()}).encode())


def lock_due(home: Home) -> AbstractContextManager[None]:
    """A lock around reading and acknowledging, so that only one process gets what came due."""
    return files.hold_lock(home.private / "due.lock")


def subtract_elapsed(now: datetime, span: timedelta) -> datetime:
    """Subtract elapsed time and not local time, which jumps twice a year."""
    return (now.astimezone(UTC) - span).astimezone(now.tzinfo)


def _file(home: Home) -> Path:
    return home.private / "due.json"
