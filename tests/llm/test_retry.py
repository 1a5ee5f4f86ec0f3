"""Asking again, waiting, giving up, being counted: without a second of real time."""

from __future__ import annotations

import pytest

from tacit.circuit_breaker import CircuitBreaker
from tacit.errors import LimitReached
from tacit.llm.chat import ChatError, OverLimit
from tacit.llm.retry import MAX_ATTEMPTS, MeteredChat, RetryingChat
from tacit.text import tokens
from tests.llm.fakes import Meter, Says, outcomes


class Time:
    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Breaker(CircuitBreaker):
    def __init__(self, left: float = 0.0) -> None:
        self.left, self.told = left, list[str]()

    def wait(self) -> float:
        return self.left

    def tell(self, why: str) -> None:
        self.told.append(why)


def busy(wait: float | None = None) -> ChatError:
    return ChatError("busy", again=True, wait=wait)


def patient(chat: Says, time: Time, breaker: Breaker | None = None, dice: float = 0.5) -> RetryingChat:
    return RetryingChat(
        chat, breaker or Breaker(), timeout=60, clock=time.clock, sleep=time.sleep, dice=lambda: dice
    )


def ask(chat: RetryingChat, seconds: float = 300) -> str:
    return chat.answer("s", "u", max_tokens=8, seconds=seconds).text


def test_who_is_busy_is_asked_again_after_pauses_that_double() -> None:
    time, chat, breaker = Time(), Says(busy(), busy(), busy(), "yes"), Breaker()
    assert ask(patient(chat, time, breaker)) == "yes"
    assert time.slept == [1.0, 2.0, 4.0]
    assert breaker.told == [""]


def test_everybody_waits_a_little_differently() -> None:
    for dice, first in ((0.0, 0.5), (0.999, 1.499)):
        time = Time()
        ask(patient(Says(busy(), "yes"), time, dice=dice))
        assert time.slept == [first]


def test_what_the_server_asks_for_is_kept_to() -> None:
    time = Time()
    assert ask(patient(Says(busy(20.0), "yes"), time)) == "yes"
    assert time.slept == [20.5]


def test_a_wait_that_is_longer_than_the_time_is_not_waited_for() -> None:
    time, chat = Time(), Says(busy(3600.0), "yes")
    with pytest.raises(ChatError, match="busy"):
        ask(patient(chat, time))
    assert (time.slept, len(chat.asked)) == ([], 1)


def test_after_some_attempts_it_is_given_up_and_the_breaker_told_once() -> None:
    time, chat, breaker = Time(), Says(busy()), Breaker()
    with pytest.raises(ChatError):
        ask(patient(chat, time, breaker))
    assert len(chat.asked) == MAX_ATTEMPTS
    assert breaker.told == ["busy"]


def test_what_will_not_be_better_is_not_asked_again() -> None:
    chat, breaker = Says(ChatError("wrong key")), Breaker()
    with pytest.raises(ChatError, match="wrong key"):
        ask(patient(chat, Time(), breaker))
    assert len(chat.asked) == 1
    assert breaker.told == ["wrong key"]


def test_each_attempt_has_its_own_time_and_all_of_them_together_have_theirs() -> None:
    time, chat = Time(), Says(busy(), busy(), "yes")
    ask(patient(chat, time), seconds=61.5)
    assert [asked.seconds for asked in chat.asked] == [60.0, 60.0, 58.5]


def test_a_model_that_is_left_alone_is_not_asked() -> None:
    chat = Says("yes")
    with pytest.raises(ChatError, match="paused for 120 s"):
        ask(patient(chat, Time(), Breaker(120.0)))
    assert chat.asked == []


def test_a_limit_is_neither_asked_again_nor_the_model_s_fault() -> None:
    chat, breaker = Says(OverLimit("the limit of 5 calls")), Breaker()
    with pytest.raises(OverLimit):
        ask(patient(chat, Time(), breaker))
    assert (len(chat.asked), breaker.told) == (1, [])


def test_every_attempt_is_counted() -> None:
    meter = Meter()
    chat = MeteredChat(Says(busy(), ChatError("late", again=True, spent=True), "yes"), meter)
    time = Time()
    RetryingChat(chat, Breaker(), timeout=60, clock=time.clock, sleep=time.sleep).answer(
        "rules", "question", max_tokens=8, seconds=300
    )
    assert outcomes(meter.told) == ["begin", "failed", "begin", "failed", "begin", "ok"]
    most = meter.told[0][1]
    assert meter.told[1] == ("failed", 0, 0, "busy"), "nobody sends a bill for a refusal"
    assert meter.told[3] == ("failed", most, 8, "late"), "what was sent may be on the bill"
    assert meter.told[5] == ("ok", 8, 3, "")


def test_what_is_refused_is_not_asked() -> None:
    chat = Says("yes")
    with pytest.raises(OverLimit, match="enough"):
        MeteredChat(chat, Meter(LimitReached("enough"))).answer("s", "u", max_tokens=8, seconds=1)
    assert chat.asked == []


def test_a_bug_or_a_key_pressed_while_asking_is_counted_as_spent() -> None:
    meter = Meter()
    with pytest.raises(KeyboardInterrupt):
        MeteredChat(Says(KeyboardInterrupt()), meter).answer("s", "u", max_tokens=8, seconds=1)
    assert meter.told[1][0] == "failed"
    assert meter.told[1][1] == meter.told[0][1]


def test_a_question_is_counted_with_a_margin_for_models_that_cut_words_finer() -> None:
    meter = Meter()
    question = "Which kiln was fired on Friday? " * 100
    MeteredChat(Says("yes"), meter).answer("", question, max_tokens=8, seconds=5)
    (_, most, _), _ = meter.told
    assert most > 1.2 * tokens.count(question)  # type: ignore[operator]
