from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.dates import DayRange, find_days, is_vague
from tests.hostile import hostile

WEDNESDAY = date(2026, 5, 13)


def spoken(text: str, today: date = WEDNESDAY) -> str | None:
    found = find_days(text, today)
    if found is None:
        return None
    return str(found.first) if found.first == found.last else f"{found.first} {found.last}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-05-04", "2026-05-04"),
        ("2026/05/04", "2026-05-04"),
        ("2026.5.4", "2026-05-04"),
        ("what is in notes/2026-05-04.md?", "2026-05-04"),
        ("at 2026-05-04T12:00:00Z", "2026-05-04"),
        ("4.5.2026", "2026-05-04"),
        ("13/05/2026", "2026-05-13"),
        ("05/13/2026", "2026-05-13"),
        ("05/05/2026", "2026-05-05"),
        ("2026-05", "2026-05-01 2026-05-31"),
        ("4 May 2026", "2026-05-04"),
        ("4th of May, 2026", "2026-05-04"),
        ("May 4th, 2026", "2026-05-04"),
        ("may 4 2026", "2026-05-04"),
        ("Feb. 3, 2025", "2025-02-03"),
        ("May 2026", "2026-05-01 2026-05-31"),
        ("february 2024", "2024-02-01 2024-02-29"),
        ("Q3 2025", "2025-07-01 2025-09-30"),
        ("2025-Q4", "2025-10-01 2025-12-31"),
        ("in 2025", "2025-01-01 2025-12-31"),
        ("the plan for 2025?", "2025-01-01 2025-12-31"),
    ],
)
def test_days_with_a_year(text: str, expected: str) -> None:
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what did we do in May?", "2026-05-01 2026-05-31"),
        ("in June", "2025-06-01 2025-06-30"),
        ("last May", "2025-05-01 2025-05-31"),
        ("this May", "2026-05-01 2026-05-31"),
        ("mid-April", "2026-04-01 2026-04-30"),
        ("in march", "2026-03-01 2026-03-31"),
        ("the end of February", "2026-02-01 2026-02-28"),
        ("10 May", "2026-05-10"),
        ("May 20", "2025-05-20"),
        ("on may 4th", "2026-05-04"),
        ("on march 4", "2026-03-04"),
        ("29 February", "2024-02-29"),
        ("in Q1", "2026-01-01 2026-03-31"),
        ("in Q3", "2025-07-01 2025-09-30"),
    ],
)
def test_without_a_year_it_is_the_latest_that_has_begun(text: str, expected: str) -> None:
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2026-05-13"),
        ("this morning", "2026-05-13"),
        ("What did we do yesterday?", "2026-05-12"),
        ("last night", "2026-05-12 2026-05-13"),
        ("the day before yesterday", "2026-05-11"),
        ("What error did Alice report last Tuesday?", "2026-05-12"),
        ("on Monday", "2026-05-11"),
        ("on Wednesday", "2026-05-06"),
        ("Sunday", "2026-05-10"),
        ("on Thu", "2026-05-07"),
        ("this Monday", "2026-05-11"),
        ("Tuesday last week", "2026-05-05"),
        ("this week", "2026-05-11 2026-05-17"),
        ("last week's notes", "2026-05-04 2026-05-10"),
        ("last weekend", "2026-05-09 2026-05-10"),
        ("over the weekend", "2026-05-09 2026-05-10"),
        ("this month", "2026-05-01 2026-05-31"),
        ("last month", "2026-04-01 2026-04-30"),
        ("last quarter", "2026-01-01 2026-03-31"),
        ("this year", "2026-01-01 2026-12-31"),
        ("last year", "2025-01-01 2025-12-31"),
        ("3 days ago", "2026-05-10"),
        ("two weeks ago", "2026-04-27 2026-05-03"),
        ("5 months ago", "2025-12-01 2025-12-31"),
        ("a year ago", "2025-01-01 2025-12-31"),
        ("a couple of weeks ago", "2026-04-20 2026-05-03"),
        ("a few days ago", "2026-05-07 2026-05-11"),
        ("in the last week", "2026-05-06 2026-05-13"),
        ("the past 3 days", "2026-05-10 2026-05-13"),
        ("over the last two months", "2026-03-13 2026-05-13"),
    ],
)
def test_days_counted_from_today(text: str, expected: str) -> None:
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("since March", "2026-03-01 2026-05-13"),
        ("since last week", "2026-05-04 2026-05-13"),
        ("after yesterday's meeting", "2026-05-12 2026-05-13"),
        ("since 2099", "2099-01-01"),
        ("before May 2026", "1970-01-01 2026-05-01"),
        ("until yesterday", "1970-01-01 2026-05-12"),
        ("between May 3 and May 9", "2026-05-03 2026-05-09"),
        ("between may 3 and may 9", "2026-05-03 2026-05-09"),
        ("between May 3 and 9", "2026-05-03 2026-05-09"),
        ("May 10-12, 2025", "2025-05-10 2025-05-12"),
        ("3–9 May", "2026-05-03 2026-05-09"),
        ("from May 3 to May 9, 2025", "2025-05-03 2025-05-09"),
        ("May 11 to May 15", "2026-05-11 2026-05-15"),
        ("between Dec 20 and Jan 5", "2025-12-20 2026-01-05"),
        ("from March to May", "2026-03-01 2026-05-31"),
        ("from November to January", "2025-11-01 2026-01-31"),
        ("from Monday to Friday", "2026-05-11 2026-05-15"),
        ("2026-05-09 to 2026-05-04", "2026-05-04 2026-05-09"),
        ("compare 2025-03 with May 2026", "2025-03-01 2026-05-31"),
    ],
)
def test_days_from_one_to_another(text: str, expected: str) -> None:
    assert spoken(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("am 4. Mai 2026", "2026-05-04"),
        ("im März", "2026-03-01 2026-03-31"),
        ("seit Dezember", "2025-12-01 2026-05-13"),
        ("letzten Dienstag", "2026-05-12"),
        ("gestern", "2026-05-12"),
        ("vorgestern", "2026-05-11"),
        ("letzte Woche", "2026-05-04 2026-05-10"),
        ("dieses Jahr", "2026-01-01 2026-12-31"),
        ("am Wochenende", "2026-05-09 2026-05-10"),
        ("vor drei Wochen", "2026-04-20 2026-04-26"),
        ("in den letzten drei Tagen", "2026-05-10 2026-05-13"),
        ("vom 3. bis 9. Mai", "2026-05-03 2026-05-09"),
        ("im Jahr 2025", "2025-01-01 2025-12-31"),
        ("1er mai 2026", "2026-05-01"),
        ("en août", "2025-08-01 2025-08-31"),
        ("depuis mars", "2026-03-01 2026-05-13"),
        ("qu'est-ce qu'on a fait hier ?", "2026-05-12"),
        ("avant-hier", "2026-05-11"),
        ("aujourd’hui", "2026-05-13"),
        ("lundi dernier", "2026-05-11"),
        ("la semaine dernière", "2026-05-04 2026-05-10"),
        ("le mois dernier", "2026-04-01 2026-04-30"),
        ("il y a deux jours", "2026-05-11"),
        ("les 3 derniers jours", "2026-05-10 2026-05-13"),
        ("du 3 au 9 mai", "2026-05-03 2026-05-09"),
        ("4 de mayo de 2026", "2026-05-04"),
        ("en enero", "2026-01-01 2026-01-31"),
        ("ayer", "2026-05-12"),
        ("el lunes pasado", "2026-05-11"),
        ("la semana pasada", "2026-05-04 2026-05-10"),
        ("este mes", "2026-05-01 2026-05-31"),
        ("hace tres meses", "2026-02-01 2026-02-28"),
        ("entre el 3 y el 9 de mayo", "2026-05-03 2026-05-09"),
    ],
)
def test_german_french_and_spanish(text: str, expected: str) -> None:
    assert spoken(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What did we decide about the payment gateway?",
        "may I ask something?",
        "May I ask something?",
        "it may be so",
        "the PR that came in may be broken",
        "may 4 people join?",
        "march on",
        "the last march on Rome",
        "Mars 2020 was a rover",
        "on Mars",
        "mayo in the fridge",
        "April and June called Julio",
        "la casa de Julio",
        "was ist hier passiert?",
        "every Monday",
        "next Monday",
        "next week",
        "tomorrow",
        "this Friday",
        "500 days of summer",
        "the 2025 report",
        "port 2025",
        "Q3",
        "v1.2.3 and 2026.05",
        "05/04/2026",
        "0000-01-01",
        "2026-02-30",
        "2026-13-01",
        "Feb 30",
        "99 May",
        "12026-05-04",
    ],
)
def test_what_names_no_day(text: str) -> None:
    assert find_days(text, WEDNESDAY) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what happened in May, then?", "in May"),
        ("all since the end of March", "of March"),
        ("what  did Ana\nsay the day before\nyesterday", "the day before yesterday"),
        ("between May 3 and May 9 we met", "between May 3 and May 9"),
        ("in 2024 or 2026-05-04", "in 2024, 2026-05-04"),
    ],
)
def test_the_words_that_said_so_are_kept(text: str, words: str) -> None:
    found = find_days(text, WEDNESDAY)
    assert found is not None
    assert found.text == words


def test_words_are_vague_that_no_note_has_for_its_day() -> None:
    assert all(map(is_vague, ("yesterday", "two weeks ago", "last month", "la semaine dernière")))
    assert not any(map(is_vague, ("last Tuesday", "in May", "2026-05-04", "in 2025", "Q3 2025")))


def test_a_moment_will_do_for_today() -> None:
    assert find_days("yesterday", datetime(2026, 5, 13, 8, tzinfo=UTC)) == DayRange(
        date(2026, 5, 12), date(2026, 5, 12), "yesterday"
    )


SAYINGS = st.sampled_from(
    [
        "in",
        "since",
        "before",
        "until",
        "from",
        "between",
        "to",
        "and",
        "last",
        "this",
        "the",
        "next",
        "May",
        "may",
        "march",
        "29",
        "30",
        "31",
        "1",
        "0",
        "February",
        "2026",
        "9999",
        "0000",
        "2026-02-30",
        "9999-12-31",
        "0001-01-01",
        "1999",
        "Q1",
        "Monday",
        "week",
        "weeks",
        "month",
        "year",
        "ago",
        "vor",
        "il",
        "y",
        "a",
        "hace",
        "999",
        "a",
        "few",
        "couple",
        "of",
        "days",
        "yesterday",
        "weekend",
        "-",
        "–",
        ",",
        ".",
        "31.12.9999",
        "12/31/9999",
        "hier",
        "est",
        "mars",
        "en",
        "de",
    ]
)


@given(
    st.one_of(hostile, st.text(), st.lists(SAYINGS, max_size=12).map(" ".join)),
    st.one_of(st.dates(), st.sampled_from([date.min, date.max, date(2024, 2, 29)])),
)
def test_no_text_and_no_day_raises(text: str, today: date) -> None:
    found = find_days(text, today)
    assert found is None or (found.first <= found.last and found.text)


@pytest.mark.parametrize(
    "unit", ["1 ", "1/", "May ", "in ", "today ", "2026-05-04 ", "4 May and ", "a couple of "]
)
def test_a_long_text_is_read_to_twenty_thousand_characters(unit: str) -> None:
    text = unit * 20_000
    assert find_days(text + " yesterday", WEDNESDAY) == find_days(text, WEDNESDAY)
