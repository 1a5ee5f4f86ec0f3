"""Which days, weeks and months are due, and when."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.condense.periods import Period, find_due, finished_at, is_due, last_time, next_time, period_of
from tacit.errors import UsageError

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
LATE = "0 23 * * *"
EARLY = "0 4 * * *"


def heard(*days: str, hour: int = 20, zone: ZoneInfo = BERLIN) -> dict[str, datetime]:
    return {day: datetime.fromisoformat(f"{day}T{hour:02d}:00").replace(tzinfo=zone) for day in days}


def names(periods: list[Period]) -> list[str]:
    return [str(period) for period in periods]


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def test_a_day_is_due_from_the_time_of_the_schedule_on() -> None:
    talks = heard("2026-11-17")
    assert find_due(LATE, BERLIN, at("2026-11-17T22:59"), talks, {}) == []
    assert names(find_due(LATE, BERLIN, at("2026-11-17T23:00"), talks, {})) == ["day 2026-11-17"]


def test_a_schedule_in_the_small_hours_closes_the_day_before() -> None:
    talks = heard("2026-11-17")
    assert find_due(EARLY, BERLIN, at("2026-11-18T03:59"), talks, {}) == []
    assert names(find_due(EARLY, BERLIN, at("2026-11-18T04:00"), talks, {})) == ["day 2026-11-17"]


def test_what_is_done_is_due_again_only_for_conversations_that_came_later() -> None:
    talks = heard("2026-11-17")
    done = {"day 2026-11-17": at("2026-11-17T23:00:30")}
    now = at("2026-11-18T09:00")
    assert find_due(LATE, BERLIN, now, talks, done) == []
    later = {"2026-11-17": at("2026-11-18T00:20")}
    assert names(find_due(LATE, BERLIN, now, later, done)) == ["day 2026-11-17"]


def test_a_week_is_due_after_its_sunday_and_a_month_after_its_last_day() -> None:
    talks = heard("2026-10-30")
    sunday = at("2026-11-01T22:59")
    assert names(find_due(LATE, BERLIN, sunday, talks, {})) == ["day 2026-10-30", "month 2026-10"]
    assert names(find_due(LATE, BERLIN, sunday + timedelta(minutes=1), talks, {})) == [
        "day 2026-10-30", "month 2026-10", "week 2026-W44",
    ]  # fmt: skip


def test_after_ten_days_off_everything_missed_is_due_the_oldest_first() -> None:
    days = [(date(2026, 11, 6) + timedelta(days=at)).isoformat() for at in range(11)]
    done = {f"day {day}": at(f"{day}T23:00") for day in days[:1]}
    found = find_due(LATE, BERLIN, at("2026-11-16T12:00"), heard(*days), done)
    assert names(found) == [
        "day 2026-11-07", "day 2026-11-08", "week 2026-W45", *(f"day 2026-11-{n:02d}" for n in range(9, 16)),
        "week 2026-W46",
    ]  # fmt: skip


def test_years_end_in_the_week_that_iso_gives_them_to() -> None:
    found = find_due(LATE, BERLIN, at("2027-01-04T00:00"), heard("2026-12-31", "2027-01-01"), {})
    assert names(found) == ["day 2026-12-31", "month 2026-12", "day 2027-01-01", "week 2026-W53"]
    assert str(period_of("week", date(2024, 12, 30))) == "week 2025-W01"
    assert period_of("week", date(2024, 12, 30)).last == date(2025, 1, 5)
    assert period_of("month", date(2024, 2, 3)).last == date(2024, 2, 29)


def test_a_week_is_rolled_up_again_for_late_conversations_and_a_month_is_not() -> None:
    done = {
        "day 2026-10-28": at("2026-10-28T23:00"),
        "week 2026-W44": at("2026-11-01T23:00"),
        "month 2026-10": at("2026-10-31T23:00"),
    }
    talks = {"2026-10-28": at("2026-11-03T08:00")}
    found = find_due(LATE, BERLIN, at("2026-11-03T09:00"), talks, done)
    assert names(found) == ["day 2026-10-28", "week 2026-W44"]


def test_a_folder_that_is_no_day_is_nobody_s_and_the_future_is_never_due() -> None:
    talks = {**heard("2027-05-05"), "notes": at("2026-11-01T10:00")}
    assert find_due(LATE, BERLIN, at("2026-11-17T23:30"), talks, {}) == []


@pytest.mark.parametrize(
    ("zone", "day", "schedule", "moment"),
    [
        (BERLIN, "2026-03-28", "30 2 * * *", "2026-03-29T01:00:00+00:00"),  # 02:30 does not exist: at 03:00
        (BERLIN, "2026-10-24", "30 2 * * *", "2026-10-25T00:30:00+00:00"),  # the first of two
        (BERLIN, "2026-03-29", LATE, "2026-03-29T21:00:00+00:00"),
        (BERLIN, "2026-10-25", LATE, "2026-10-25T22:00:00+00:00"),
        (NEW_YORK, "2026-03-07", "30 2 * * *", "2026-03-08T07:00:00+00:00"),
        (NEW_YORK, "2026-10-31", "30 1 * * *", "2026-11-01T05:30:00+00:00"),
        (NEW_YORK, "2026-11-01", LATE, "2026-11-02T04:00:00+00:00"),
    ],
)
def test_days_end_once_when_clocks_change(zone: ZoneInfo, day: str, schedule: str, moment: str) -> None:
    over = finished_at(Period("day", day), schedule, zone)
    assert over.astimezone(UTC).isoformat() == moment
    talks = heard(day, zone=zone)
    assert names(find_due(schedule, zone, over.astimezone(UTC) - timedelta(seconds=1), talks, {})) == []
    assert f"day {day}" in names(find_due(schedule, zone, over.astimezone(UTC), talks, {}))
    done = {str(period_of(kind, date.fromisoformat(day))): over for kind in ("day", "week", "month")}
    hours = [over.astimezone(UTC) + timedelta(minutes=30 * n) for n in range(8)]
    assert [find_due(schedule, zone, one, talks, done) for one in hours] == [[]] * 8


@given(
    st.integers(0, 2 * 365 * 24 * 60),
    st.lists(st.dates(date(2026, 1, 1), date(2027, 12, 31)), max_size=8),
    st.sampled_from([BERLIN, NEW_YORK]),
    st.sampled_from([LATE, EARLY, "30 2 * * *", "0 23 * * 0"]),
)
def test_nothing_is_due_before_it_is_over_and_doing_it_makes_it_undue(
    minutes: int, days: list[date], zone: ZoneInfo, schedule: str
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    talks = heard(*(day.isoformat() for day in days if day <= moment.date()), hour=0, zone=zone)
    found = find_due(schedule, zone, moment, talks, {})
    assert all(finished_at(one, schedule, zone).astimezone(UTC) <= moment for one in found)
    assert found == sorted(found, key=lambda one: one.last)
    done = {str(one): max(moment, *(talks[day] for day in talks)) for one in found}
    assert [one for one in find_due(schedule, zone, moment, talks, done) if one in found] == []


def test_the_next_time_is_later_than_now_and_the_last_is_not() -> None:
    now = at("2026-11-17T23:00")
    assert next_time(LATE, BERLIN, now) == at("2026-11-18T23:00")
    assert last_time(LATE, BERLIN, now) == now
    assert next_time("0 0 * * 0", NEW_YORK, now).isoformat() == "2026-11-22T00:00:00-05:00"


def test_pruning_comes_due_once_for_each_time_that_passed() -> None:
    weekly = "0 0 * * 0"
    assert is_due(weekly, BERLIN, None, at("2026-11-17T12:00"))
    assert is_due(weekly, BERLIN, at("2026-11-14T23:00"), at("2026-11-17T12:00"))
    assert not is_due(weekly, BERLIN, at("2026-11-15T00:00"), at("2026-11-17T12:00"))


def test_a_schedule_that_is_none_says_what_to_write() -> None:
    with pytest.raises(UsageError, match="five fields"):
        next_time("at night", BERLIN, at("2026-11-17T12:00"))
