"""A clock that stands still, for every Python process that starts with this folder on PYTHONPATH.

`BLACKBOX_NOW` holds the moment, in ISO form with an offset. It is read at every call, so a process may
move its own clock. Only the calendar stands still: timers and the times of files go on, because
deadlines and locks need them.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

VARIABLE = "BLACKBOX_NOW"
RealDate = dt.date
RealDatetime = dt.datetime


class _AnyDatetime(type):
    """Values that C code made are of the real class; they count as well."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, RealDatetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, RealDatetime)


class FixedDatetime(RealDatetime, metaclass=_AnyDatetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        moment = RealDatetime.fromisoformat(os.environ[VARIABLE])
        local = moment.astimezone(tz)
        return cls.combine(local.date(), local.timetz() if tz else local.time())

    @classmethod
    def today(cls) -> Any:
        return cls.now()

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(dt.UTC).replace(tzinfo=None)


class _AnyDate(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, RealDate)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, RealDate)


class FixedDate(RealDate, metaclass=_AnyDate):
    @classmethod
    def today(cls) -> Any:
        return RealDatetime.fromisoformat(os.environ[VARIABLE]).astimezone().date()


if os.environ.get(VARIABLE):
    for fixed, name in ((FixedDatetime, "datetime"), (FixedDate, "date")):
        fixed.__name__ = fixed.__qualname__ = name
        fixed.__module__ = "datetime"
        setattr(dt, name, fixed)
