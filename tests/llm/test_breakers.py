"""All processes of a home pause a model that failed; then one of them tries it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.circuit_breaker import MAX_FAILURES, CircuitBreaker, Pauses
from tacit.home.layout import Home
from tacit.llm.retry import Breakers


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def fresh(home: Path, clock: Clock) -> Breakers:
    """As another process sees it."""
    return Breakers(Home(home), clock)


def fail(home: Path, clock: Clock, times: int = MAX_FAILURES, model: str = "m") -> None:
    for _ in range(times):
        fresh(home, clock).of(model).tell("status 500")


def test_it_opens_after_some_failures_in_a_row_and_for_that_model_alone(home: Path, clock: Clock) -> None:
    fail(home, clock, MAX_FAILURES - 1)
    assert fresh(home, clock).of("m").wait() == 0
    fail(home, clock, 1)
    assert fresh(home, clock).of("m").wait() == 300
    assert fresh(home, clock).of("other").wait() == 0
    assert fresh(home, clock).open() == {"m": (300.0, "status 500")}


def test_an_answer_in_between_counts_from_nothing(home: Path, clock: Clock) -> None:
    fail(home, clock, MAX_FAILURES - 1)
    fresh(home, clock).of("m").tell("")
    fail(home, clock, MAX_FAILURES - 1)
    assert fresh(home, clock).of("m").wait() == 0


def test_after_the_pause_one_process_tries_and_the_others_wait(home: Path, clock: Clock) -> None:
    fail(home, clock)
    clock.now += 301
    assert fresh(home, clock).of("m").wait() == 0
    assert fresh(home, clock).of("m").wait() > 0
    fresh(home, clock).of("m").tell("")
    assert fresh(home, clock).of("m").wait() == 0
    assert fresh(home, clock).open() == {}


def test_each_failure_after_that_doubles_the_pause_up_to_an_hour(home: Path, clock: Clock) -> None:
    fail(home, clock)
    pauses = []
    for _ in range(6):
        fail(home, clock, 1)
        pauses.append(fresh(home, clock).of("m").wait())
    assert pauses == [600, 1200, 2400, 3600, 3600, 3600]


def test_one_that_tries_and_dies_does_not_keep_it_open_for_ever(home: Path, clock: Clock) -> None:
    fail(home, clock)
    clock.now += 301
    fresh(home, clock).of("m").wait()  # and is killed
    clock.now += 121
    assert fresh(home, clock).of("m").wait() == 0


def test_a_clock_that_was_set_back_keeps_no_model_away_for_years(home: Path, clock: Clock) -> None:
    fail(home, clock)
    clock.now -= 100_000_000
    assert fresh(home, clock).of("m").wait() <= 3600


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"m": 7}', b'{"m": [1]}', b"\xff", b'{"m": ["a", 0, ""]}']
)
def test_a_file_that_cannot_be_read_opens_nothing(home: Path, clock: Clock, content: bytes) -> None:
    (home / ".tacit").mkdir(exist_ok=True)
    (home / ".tacit" / "breakers.json").write_bytes(content)
    assert fresh(home, clock).of("m").wait() == 0
    fail(home, clock)
    assert fresh(home, clock).of("m").wait() == 300


def test_a_disk_that_refuses_is_no_reason_to_ask_nothing(home: Path, clock: Clock) -> None:
    (home / ".tacit").mkdir(exist_ok=True)
    (home / ".tacit" / "breakers.lock").mkdir()
    breaker = fresh(home, clock).of("m")
    breaker.tell("status 500")
    assert breaker.wait() == 0


def test_in_memory_a_success_between_failures_starts_the_count_anew(clock: Clock) -> None:
    breaker = CircuitBreaker(Pauses(first=30.0, longest=30.0), clock)
    for why in ("down", "down", "", "down", "down"):
        breaker.tell(why)
        assert breaker.wait() == 0.0
    breaker.tell("down")
    assert breaker.wait() == 30.0
    clock.now += 31
    assert (breaker.wait(), breaker.wait()) == (0.0, 0.0), "where no trial is set all may try"
