"""Schedules by the clock on the wall, also on the two days of the year when it jumps."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.clock import MACHINE_ZONE
from tacit.topics.model import Topic, Trigger
from tacit.topics.schedules import find_due_schedules
from tests.conftest import ZONE

TOPIC = Topic("brief", "topics/brief.md", "Brief", "The morning", "Do it.")


def cron(*schedules: str, name: str = "brief") -> Topic:
    return replace(TOPIC, name=name, triggers=tuple(Trigger("cron", schedule=one) for one in schedules))


def at(text: str) -> datetime:
    """On the wall in Berlin; with an offset, the very moment."""
    when = datetime.fromisoformat(text)
    return when.astimezone(MACHINE_ZONE) if when.tzinfo else when.replace(tzinfo=MACHINE_ZONE)


def found(schedule: str, since: str, until: str) -> list[str]:
    return [one.at.isoformat() for one in find_due_schedules([cron(schedule)], at(since), at(until))]


@pytest.fixture
def new_york() -> Iterator[None]:
    os.environ["TZ"] = "EST5EDT,M3.2.0,M11.1.0"
    time.tzset()
    yield
    os.environ["TZ"] = ZONE
    time.tzset()


# ---------------------------------------------------------------- on any day


def test_what_came_due_is_due_and_nothing_else() -> None:
    topics = [cron("0 8 * * *"), cron("0 20 * * *", name="evening"), replace(TOPIC, name="never")]
    (one,) = find_due_schedules(topics, at("2026-02-16T07:00"), at("2026-02-16T09:00"))
    assert (one.topic.name, one.schedule) == ("brief", "0 8 * * *")
    assert one.at.isoformat() == "2026-02-16T08:00:00+01:00"


def test_the_moment_itself_belongs_to_the_time_before_it() -> None:
    assert found("0 8 * * *", "2026-02-16T07:59:59", "2026-02-16T08:00") == ["2026-02-16T08:00:00+01:00"]
    assert found("0 8 * * *", "2026-02-16T08:00", "2026-02-16T09:00") == []
    assert found("0 8 * * *", "2026-02-16T07:00", "2026-02-16T07:59:59.999") == []


def test_missed_many_times_it_is_due_once_for_the_last_of_them() -> None:
    assert found("0 8 * * *", "2026-02-01T00:00", "2026-02-16T07:00") == ["2026-02-15T08:00:00+01:00"]
    assert found("* * * * *", "2020-01-01T00:00", "2026-02-16T07:00:30") == ["2026-02-16T07:00:00+01:00"]


def test_of_several_schedules_the_last_counts_and_the_first_due_come_first() -> None:
    topics = [cron("0 6 * * *", "0 8 * * *", "0 7 * * *"), cron("30 7 * * *", name="a"), cron("0 8 * * *")]
    named = [replace(topic, name=f"{topic.name}{number}") for number, topic in enumerate(topics)]
    made = find_due_schedules(named, at("2026-02-16T00:00"), at("2026-02-16T12:00"))
    assert [(one.topic.name, f"{one.at:%H:%M}", one.schedule) for one in made] == [
        ("a1", "07:30", "30 7 * * *"),
        ("brief0", "08:00", "0 8 * * *"),
        ("brief2", "08:00", "0 8 * * *"),
    ]


def test_a_topic_that_wakes_by_hand_only_is_never_due() -> None:
    by_hand = replace(cron("* * * * *"), activation="manual")
    assert find_due_schedules([by_hand], at("2026-01-01T00:00"), at("2026-02-01T00:00")) == []


@pytest.mark.parametrize("schedule", ["", "often", "61 * * * *", "0 0 30 2 *", "* * * * * * *"])
def test_a_schedule_that_is_none_hinders_nobody(schedule: str) -> None:
    topics = [cron(schedule), cron("0 8 * * *", name="good")]
    assert [
        one.topic.name for one in find_due_schedules(topics, at("2026-02-16T00:00"), at("2026-02-17T00:00"))
    ] == ["good"]


def test_a_rare_day_is_found_however_long_ago_it_was() -> None:
    assert found("0 0 29 FEB *", "2020-01-01T00:00", "2027-06-01T00:00") == ["2024-02-29T00:00:00+01:00"]
    assert found("0 8 * * mon#1", "2026-01-01T00:00", "2026-02-16T00:00") == ["2026-02-02T08:00:00+01:00"]


def test_nothing_is_due_in_a_time_that_ends_before_it_begins() -> None:
    assert found("* * * * *", "2026-02-17T00:00", "2026-02-16T00:00") == []


# ---------------------------------------------------------------- when the clock jumps


def test_the_offset_is_that_of_the_day_and_not_that_of_now() -> None:
    assert found("0 8 * * *", "2026-03-27T12:00", "2026-03-28T12:00") == ["2026-03-28T08:00:00+01:00"]
    assert found("0 8 * * *", "2026-03-28T12:00", "2026-03-29T12:00") == ["2026-03-29T08:00:00+02:00"]


def test_a_time_that_does_not_exist_comes_when_the_clock_has_jumped() -> None:
    night = "2026-03-28T12:00", "2026-03-29T12:00"
    assert found("30 2 * * *", *night) == ["2026-03-29T03:00:00+02:00"]
    assert found("30 2 * * *", "2026-03-29T01:59", "2026-03-29T03:00") == ["2026-03-29T03:00:00+02:00"]
    assert found("30 2 * * *", "2026-03-29T03:00", "2026-03-30T02:00") == []


def test_a_time_that_exists_twice_comes_the_first_time() -> None:
    first, second = "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"
    assert found("30 2 * * *", "2026-10-25T01:00", "2026-10-25T04:00") == [first]
    assert found("30 2 * * *", "2026-10-25T01:50", "2026-10-25T02:10+01:00") == [first]
    assert found("30 2 * * *", "2026-10-25T02:10+01:00", "2026-10-25T02:40+01:00") == []
    assert found("30 2 * * *", first, second) == []


def test_what_goes_by_the_hour_goes_on_through_both() -> None:
    hours = [f"2026-10-25T{hour:02}:30:00+00:00" for hour in range(4)]
    seen = [made for pair in pairwise(hours) for made in found("0 * * * *", *pair)]
    assert seen == ["2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00", "2026-10-25T04:00:00+01:00"]


@pytest.mark.usefixtures("new_york")
def test_the_clock_of_another_machine_is_another() -> None:
    assert found("30 2 * * *", "2026-03-08T00:00", "2026-03-08T12:00") == ["2026-03-08T03:00:00-04:00"]


SCHEDULES = ["30 2 * * *", "0 3 * * *", "59 1 * * *", "0 0 * * *", "15,45 1-3 * * *", "0 2 29 3 *"]
CHANGES = [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]


@given(
    st.sampled_from(SCHEDULES),
    st.sampled_from(CHANGES),
    st.lists(st.integers(-30 * 60, 30 * 60), min_size=2, max_size=12, unique=True),
)
def test_however_often_one_looks_each_time_is_seen_once(
    schedule: str, change: datetime, minutes: list[int]
) -> None:
    looks = [(change + timedelta(minutes=m, seconds=7)).astimezone(MACHINE_ZONE) for m in sorted(minutes)]
    topics = [cron(schedule)]
    seen = [
        one.at.astimezone(UTC)
        for since, until in pairwise(looks)
        for one in find_due_schedules(topics, since, until)
    ]
    assert seen == sorted(set(seen))
    last = [one.at.astimezone(UTC) for one in find_due_schedules(topics, looks[0], looks[-1])]
    assert seen[-1:] == last


@given(st.integers(0, 2**31), st.sampled_from(CHANGES), st.integers(-5_000, 5_000))
def test_the_machines_zone_gives_every_moment_back(seconds: int, change: datetime, near: int) -> None:
    for moment in (datetime.fromtimestamp(seconds, UTC), change + timedelta(seconds=near)):
        local = moment.astimezone(MACHINE_ZONE)
        assert local.astimezone(UTC) == moment
        assert local.utcoffset() == moment.astimezone().utcoffset()
        assert local.tzname() == moment.astimezone().tzname()
