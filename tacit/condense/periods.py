"""Days, weeks and months: which are due for condensation, and which of several machines condenses them.

A day is over at the first time of the schedule after its noon: with `0 23 * * *` that is 23:00 of the same
day, with `0 4 * * *` 04:00 of the next. A week is over with its Sunday, a month with its last day. Weeks
follow ISO 8601, so the last days of December may belong to week 1.

What must stay true:
- nothing is due before it is over, and missed periods stay due however old they are, the oldest first;
- a day or week is due again if conversations of it arrive after it was condensed; a month is condensed once;
- times are local to the home but compared as UTC, so that no clock change makes a day due twice or never.

Machines that share a remote claim a period by a lease: a ref on the remote that only one machine can create.
It names its owner, so that a machine that crashed can resume. Without a remote there is only one machine, and
the home's own lock is enough.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, NamedTuple

from tacit.errors import UsageError
from tacit.git.refs import list_leases, take_lease
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home

PeriodKind = Literal["day", "week", "month"]
_LAST_MINUTE_BEFORE_NOON = time(11, 59)  # the next minute is the first that counts
_MAX_CLOCK_SHIFT = timedelta(hours=3)  # more than any clock change
_RANKS: dict[PeriodKind, int] = {"day": 0, "week": 1, "month": 2}


class Period(NamedTuple):
    kind: PeriodKind
    name: str  # 2026-11-17, 2026-W46, 2026-10

    def __str__(self) -> str:
        """Its name in commits and in the log."""
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
        for offset in range((self.last - self.first).days + 1):
            yield (self.first + timedelta(days=offset)).isoformat()


def period_of(kind: PeriodKind, day: date) -> Period:
    """The day, week or month that contains a day."""
    if kind == "day":
        return Period("day", day.isoformat())
    if kind == "week":
        year, week, _ = day.isocalendar()
        return Period("week", f"{year:04d}-W{week:02d}")
    return Period("month", f"{day:%Y-%m}")


def find_due(
    schedule: str,
    zone: tzinfo,
    now: datetime,
    last_activity: Mapping[str, datetime],
    condensed: Mapping[str, datetime],
) -> list[Period]:
    """The periods to condense now, the oldest first.

    `last_activity`: the days with conversations, each with the time when the newest was finalized;
    `condensed`: the condensed periods, each with the time of its last run. Times must be aware of their zone.
    """
    newest: dict[Period, datetime] = {}
    for name, moment in last_activity.items():
        for period in _periods_around(name):
            newest[period] = max(newest.get(period, moment), moment, key=_to_utc)
    candidates = [
        period for period, moment in newest.items() if _is_wanted(period, moment, condensed.get(str(period)))
    ]
    finished = (period for period in candidates if _is_over(period, schedule, zone, now))
    return sorted(finished, key=lambda period: (period.last, _RANKS[period.kind]))


def next_time(schedule: str, zone: tzinfo, now: datetime) -> datetime:
    """The next time of a schedule, later than now."""
    times = _iter_times(schedule, now.astimezone(zone))
    following = next((moment for moment in times if _to_utc(moment) > _to_utc(now)), None)
    if following is None:
        raise UsageError(f"The schedule {schedule!r} never comes. Change it in memory-config.yaml.")
    return following


def last_time(schedule: str, zone: tzinfo, now: datetime) -> datetime | None:
    """The last time of a schedule, now or before; None if it never came."""
    # Start a little later: while an hour repeats, local time is behind what was due the first time.
    later = (now.astimezone(UTC) + _MAX_CLOCK_SHIFT).astimezone(zone)
    return next(
        (moment for moment in _iter_times(schedule, later, back=True) if _to_utc(moment) <= _to_utc(now)),
        None,
    )


def is_due(schedule: str, zone: tzinfo, since: datetime | None, now: datetime) -> bool:
    """Whether the schedule came due after `since`, up to now. Without `since` it is due."""
    last = last_time(schedule, zone, now)
    return last is not None and (since is None or _to_utc(last) > _to_utc(since))


def finished_at(period: Period, schedule: str, zone: tzinfo) -> datetime:
    return next_time(schedule, zone, datetime.combine(period.last, _LAST_MINUTE_BEFORE_NOON, zone))


def _periods_around(name: str) -> Iterable[Period]:
    try:
        day = date.fromisoformat(name)
    except ValueError:  # a folder that a person created
        return ()
    return (period_of("day", day), period_of("week", day), period_of("month", day))


def _is_wanted(period: Period, newest: datetime, last_run: datetime | None) -> bool:
    if last_run is None:
        return True
    return period.kind != "month" and _to_utc(newest) > _to_utc(last_run)


def _is_over(period: Period, schedule: str, zone: tzinfo, now: datetime) -> bool:
    if period.last > now.astimezone(zone).date():
        return False
    return _to_utc(finished_at(period, schedule, zone)) <= _to_utc(now)


def _iter_times(schedule: str, start: datetime, *, back: bool = False) -> Iterator[datetime]:
    from cronsim import CronSim, CronSimError

    try:
        yield from CronSim(schedule.upper(), start, reverse=back)
    except CronSimError:
        todo = "Write five fields such as `0 23 * * *` in memory-config.yaml."
        raise UsageError(f"{schedule!r} is no schedule. {todo}") from None


def _to_utc(moment: datetime) -> datetime:
    """Convert to UTC, because within one zone Python compares local times."""
    return moment.astimezone(UTC)


# Leases


def claim_periods(home: Home, git: Git, remote: str | None, names: list[str]) -> tuple[list[str], str]:
    """The names that we claimed, and why the others have to wait if the remote could not be reached."""
    if remote is None:
        return names, ""
    claimed: list[str] = []
    owner = machine_name(home)
    existing = list_leases(
        git, remote
    )  # one request for all: what others claimed stays due here until their commits arrive
    if isinstance(existing, str):
        return claimed, _not_reachable(remote, existing)
    for name in names:
        ref = name.replace(" ", "/")
        answer: bool | str = existing.get(ref) == git.blob_name(owner.encode())
        if ref not in existing:
            answer = take_lease(git, remote, ref, owner)
        if isinstance(answer, str):
            return claimed, _not_reachable(remote, answer)
        claimed += [name] if answer else []
    return claimed, ""


def _not_reachable(remote: str, why: str) -> str:
    return f"{remote} could not be asked whether another machine does it: {why}"


def machine_name(home: Home) -> str:
    """The name of this copy of the home, created once."""
    try:
        return home.machine.read_text().strip()
    except FileNotFoundError:
        files.make_directories(home.private)
        files.replace(home.machine, f"{secrets.token_hex(8)}\n".encode())
        return machine_name(home)
