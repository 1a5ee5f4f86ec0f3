"""Which days, weeks and months are to be condensed now, and when the next look is due.

A day is over for us at the first time of the schedule after its noon: with `0 23 * * *` that is 23:00 of the
same day, with `0 4 * * *` four in the morning of the next. A week is over with its Sunday, a month with its
last day. Weeks are those of ISO 8601, so the last days of December may belong to week 1.

What must stay true:
- nothing is due before it is over, and what was missed is due however long ago it was, the oldest first;
- a day or week that was condensed is due again when conversations of it came later; a month is done once;
- times are those of the clock on the wall of the home, compared as moments, so that no change of clocks
  makes a day due twice or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, NamedTuple

from tacit.errors import UsageError

Kind = Literal["day", "week", "month"]
_NOON = time(11, 59)  # the next minute is the first that counts
_TWICE = timedelta(hours=3)  # more than clocks ever go back
_RANKS: dict[Kind, int] = {"day": 0, "week": 1, "month": 2}


class Period(NamedTuple):
    kind: Kind
    name: str  # 2026-11-17, 2026-W46, 2026-10

    def __str__(self) -> str:
        """As receipts name it."""
        return f"{self.kind} {self.name}"

    @property
    def first(self) -> date:
        if self.kind == "day":
            return date.fromisoformat(self.name)
        if self.kind == "week":
            year, _, week = self.name.partition("-W")
            return date.fromisocalendar(int(year), int(week), 1)
        return date.fromisoformat(f"{self.name}-01")

    @property
    def last(self) -> date:
        if self.kind == "day":
            return self.first
        if self.kind == "week":
            return self.first + timedelta(days=6)
        return (self.first + timedelta(days=31)).replace(day=1) - timedelta(days=1)

    @property
    def days(self) -> Iterator[str]:
        for at in range((self.last - self.first).days + 1):
            yield (self.first + timedelta(days=at)).isoformat()


def period_of(kind: Kind, day: date) -> Period:
    """The day, week or month in which a day lies."""
    if kind == "day":
        return Period("day", day.isoformat())
    if kind == "week":
        year, week, _ = day.isocalendar()
        return Period("week", f"{year:04d}-W{week:02d}")
    return Period("month", f"{day:%Y-%m}")


def due(
    schedule: str,
    zone: tzinfo,
    now: datetime,
    heard: Mapping[str, datetime],
    condensed: Mapping[str, datetime],
) -> list[Period]:
    """What is to be condensed now, the oldest first.

    `heard` has the days with conversations, each with the moment when the newest of them was sealed;
    `condensed` the periods that are done, each with the moment when it was. Moments carry their zone.
    """
    newest: dict[Period, datetime] = {}
    for name, at in heard.items():
        for period in _around(name):
            newest[period] = max(newest.get(period, at), at, key=_moment)
    found = [period for period, at in newest.items() if _wanted(period, at, condensed.get(str(period)))]
    over = (period for period in found if _is_over(period, schedule, zone, now))
    return sorted(over, key=lambda one: (one.last, _RANKS[one.kind]))


def next_time(schedule: str, zone: tzinfo, now: datetime) -> datetime:
    """The next time of a schedule, later than now."""
    times = _times(schedule, now.astimezone(zone))
    found = next((at for at in times if _moment(at) > _moment(now)), None)
    if found is None:
        raise UsageError(f"The schedule {schedule!r} never comes. Change it in memory-config.yaml.")
    return found


def last_time(schedule: str, zone: tzinfo, now: datetime) -> datetime | None:
    """The last time of a schedule, now or before; None where it never came."""
    # From a little later: while an hour comes for the second time, the wall is behind what was due in the
    # first.
    later = (now.astimezone(UTC) + _TWICE).astimezone(zone)
    return next((at for at in _times(schedule, later, back=True) if _moment(at) <= _moment(now)), None)


def came_due(schedule: str, zone: tzinfo, since: datetime | None, now: datetime) -> bool:
    """Whether a schedule came after `since`, and now or before. It was never done: it is due."""
    last = last_time(schedule, zone, now)
    return last is not None and (since is None or _moment(last) > _moment(since))


def over_at(period: Period, schedule: str, zone: tzinfo) -> datetime:
    return next_time(schedule, zone, datetime.combine(period.last, _NOON, zone))


def _around(name: str) -> Iterable[Period]:
    try:
        day = date.fromisoformat(name)
    except ValueError:  # a folder that somebody made
        return ()
    return (period_of("day", day), period_of("week", day), period_of("month", day))


def _wanted(period: Period, newest: datetime, done: datetime | None) -> bool:
    if done is None:
        return True
    return period.kind != "month" and _moment(newest) > _moment(done)


def _is_over(period: Period, schedule: str, zone: tzinfo, now: datetime) -> bool:
    if period.last > now.astimezone(zone).date():
        return False
    return _moment(over_at(period, schedule, zone)) <= _moment(now)


def _times(schedule: str, start: datetime, *, back: bool = False) -> Iterator[datetime]:
    from cronsim import CronSim, CronSimError

    try:
        yield from CronSim(schedule.upper(), start, reverse=back)
    except CronSimError:
        todo = "Write five fields such as `0 23 * * *` in memory-config.yaml."
        raise UsageError(f"{schedule!r} is no schedule. {todo}") from None


def _moment(at: datetime) -> datetime:
    """In one zone Python compares the clocks on the wall."""
    return at.astimezone(UTC)
