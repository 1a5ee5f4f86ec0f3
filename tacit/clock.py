"""The time of a home: now, in its zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo


class Clock:
    """`zone`: the home's; None: the machine's."""

    def __init__(self, now: Callable[[], datetime], zone: tzinfo | None) -> None:
        self._now, self.zone = now, zone

    def now(self) -> datetime:
        """Now, to the millisecond, with the offset that the home's zone has now."""
        return to_milliseconds(self.in_zone(self._now()))

    def in_zone(self, moment: datetime) -> datetime:
        """The moment in the home's zone. A time without a zone is in that zone already."""
        return (moment if moment.tzinfo else moment.replace(tzinfo=self.zone)).astimezone(self.zone)

    def local_now(self) -> datetime:
        """Now, in a zone that knows daylight saving time, as schedules need it."""
        return self.now().astimezone(self.zone or MACHINE_ZONE)


def to_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


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
