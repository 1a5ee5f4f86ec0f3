"""What is measured is what the figures say."""

from __future__ import annotations

from itertools import islice

from bench import turn


def test_bench_turn_asks_no_question_twice() -> None:
    asked = [one.message for one in islice(turn.asked(1_000, 300), 300)]
    assert len(asked) == len(set(asked)) == 300


def test_bench_turn_takes_an_answer_from_the_cache_for_an_error() -> None:
    assert "cache" in turn._FAILURE_CODES
