"""What was asked once can be played back, also after a crash, and nothing is asked then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tacit.llm.chat import ChatError
from tacit.llm.recording import Mode, RecordedChat, Recording
from tests.llm.fakes import Says


def recorded(
    path: Path, mode: Mode, chat: Says | None, task: str = "extract", name: str = ""
) -> RecordedChat:
    return RecordedChat(Recording(path, mode), task, chat, name)


def ask(chat: RecordedChat, user: str = "u", max_tokens: int = 8) -> str:
    return chat.answer("s", user, max_tokens=max_tokens, seconds=1).text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def test_a_run_is_played_back_word_for_word_without_a_model(path: Path) -> None:
    chat = Says("one", "two", "ä\ud800\n")
    first = recorded(path, "record", chat)
    said = [first.answer("s", user, max_tokens=8, seconds=1) for user in ("a", "b", "\udfff")]
    again = recorded(path, "replay", None, name="fake:m")
    assert [again.answer("s", user, max_tokens=8, seconds=9) for user in ("a", "b", "\udfff")] == said
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_same_question_has_one_answer_in_a_run_and_when_it_is_played_back(path: Path) -> None:
    chat = Says("one", "two")
    first = recorded(path, "record", chat)
    assert [ask(first), ask(first)] == ["one", "one"]
    assert len(chat.asked) == 1
    again = recorded(path, "replay", None, name="fake:m")
    assert [ask(again), ask(again), ask(again)] == ["one", "one", "one"]


@pytest.mark.parametrize(
    "other",
    [{"name": "other:m"}, {"task": "prune"}, {"system": "S"}, {"user": "U"}, {"max_tokens": 9}],
)
def test_another_model_task_text_or_length_is_another_question(path: Path, other: dict[str, Any]) -> None:
    ask(recorded(path, "record", Says("one")))
    asked = {"name": "fake:m", "task": "extract", "system": "s", "user": "u", "max_tokens": 8, **other}
    again = recorded(path, "replay", None, asked["task"], asked["name"])
    with pytest.raises(ChatError, match=r"calls\.jsonl holds no answer of .* task"):
        again.answer(asked["system"], asked["user"], max_tokens=asked["max_tokens"], seconds=1)


def test_playing_back_never_asks_even_where_a_model_is_there(path: Path) -> None:
    chat = Says("one")
    with pytest.raises(ChatError, match="'u'"):
        ask(recorded(path, "replay", chat))
    assert chat.asked == []


def test_a_run_that_was_killed_goes_on_where_it_was(path: Path) -> None:
    ask(recorded(path, "both", Says("one")), "a")
    chat = Says("two")
    on = recorded(path, "both", chat)
    assert [ask(on, "a"), ask(on, "b")] == ["one", "two"]
    assert [asked.user for asked in chat.asked] == ["b"]


def test_recording_anew_asks_anew_and_the_later_answer_counts(path: Path) -> None:
    ask(recorded(path, "record", Says("old")))
    assert ask(recorded(path, "record", Says("new"))) == "new"
    assert ask(recorded(path, "replay", None, name="fake:m")) == "new"


def test_a_torn_last_line_is_not_there_and_takes_nothing_with_it(path: Path) -> None:
    first = recorded(path, "both", Says("one", "two"))
    ask(first, "a")
    ask(first, "b")
    path.write_bytes(path.read_bytes()[:-30])
    chat = Says("two again")
    on = recorded(path, "both", chat)
    assert [ask(on, "a"), ask(on, "b")] == ["one", "two again"]
    again = recorded(path, "replay", None, name="fake:m")
    assert [ask(again, "a"), ask(again, "b")] == ["one", "two again"]


@pytest.mark.parametrize(
    "line", ["", "{}", "[]", "null", '{"answer": 7}', "{" * 10_000, '{"answer": {"text": 7}}']
)
def test_lines_that_are_no_calls_are_passed_over(path: Path, line: str) -> None:
    path.write_text(line + "\n")
    assert ask(recorded(path, "both", Says("one"))) == "one"
    assert ask(recorded(path, "replay", None, name="fake:m")) == "one"


def test_errors_are_not_kept(path: Path) -> None:
    with pytest.raises(ChatError, match="busy"):
        ask(recorded(path, "both", Says(ChatError("busy"))))
    assert ask(recorded(path, "both", Says("one"))) == "one"


def test_an_answer_that_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="could not be kept"):
        ask(recorded(tmp_path / "missing" / "calls.jsonl", "record", Says("one")))
