"""The window over a conversation: what fits of it, in the order of time, and never more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.context.history_window import (
    HistoryLine,
    HistoryWindow,
    fill_window,
    format_turn,
    normalize_history,
    turn_digest,
    turns_after,
)
from tacit.text.tokens import count
from tacit.transcripts.attribution import Utterance
from tacit.transcripts.model import Attachment, KnowledgeChange, Message, ToolCall
from tests.hostile import hostile

AT = datetime(2026, 2, 16, 18, 45, tzinfo=UTC)


def said(number: int, text: str, role: str = "user", speaker: str = "") -> Utterance:
    return Utterance(number, role, text, speaker)  # type: ignore[arg-type]


def talk(turns: int, text: str = "We looked at kiln number {} and at its curve.") -> list[Utterance]:
    return [said(i, text.format(i), "user" if i % 2 else "agent") for i in range(1, turns + 1)]


def rendered(history: object) -> list[str]:
    return [format_turn(turn).text for turn in normalize_history(history)]


# ---------------------------------------------------------------- whatever a host has


def test_our_own_turns_are_taken_with_number_time_and_speaker() -> None:
    turns = [
        Message(3, AT, "user", "Guten Abend", "Ana"),
        ToolCall(4, AT, "read", "notes.md", "42 lines"),
        KnowledgeChange(5, AT, "updated", "knowledge/a.md", "a new price"),
        Attachment(6, AT, "user", "attachments/a.png"),
    ]
    assert normalize_history(turns)[0] == Utterance(3, "user", "Guten Abend", "Ana", AT)
    assert [turn.number for turn in normalize_history(turns)] == [3, 4, 5, 6]
    assert rendered(turns) == [
        "Ana: Guten Abend",
        "tool read: notes.md → 42 lines",
        "tool note: updated knowledge/a.md: a new price",
        "user: [attachment: attachments/a.png]",
    ]


def test_dictionaries_pairs_and_plain_strings_are_turns() -> None:
    history = [
        {"role": "user", "content": "one", "speaker": "Ana", "at": "2026-02-16T18:45:00Z"},
        {"role": "assistant", "text": "two", "at": 1771267500},
        {"role": "system", "content": "three", "at": 1771267500000},
        ("human", "four"),
        ["agent", "five"],
        "six",
        SimpleNamespace(role="user", content="seven"),
        {"role": "model", "parts": [{"text": "eight"}]},
    ]
    assert rendered(history) == [
        "Ana: one", "agent: two", "system: three", "user: four", "agent: five", "user: six", "user: seven",
        "agent: eight",
    ]  # fmt: skip
    assert [turn.at for turn in normalize_history(history)][:4] == [AT, AT, AT, None]


def test_content_parts_and_tools_of_the_messages_interface() -> None:
    history = [
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a.md"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "# A\nbody"}]},
            {"type": "image", "source": {}},
            {"type": "text", "text": "Thanks"},
        ]},
    ]  # fmt: skip
    assert rendered(history) == [
        "agent: I look.",
        'tool read_file: called with {"path": "a.md"}',
        "tool read_file: # A … (5 more characters)",
        "user: [image]",
        "user: Thanks",
    ]


def test_calls_and_answers_of_both_openai_interfaces() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"in": "."}'}}
    history = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.md"},
        {"type": "function_call", "call_id": "c2", "name": "cat", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": "text"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    assert rendered(history) == [
        'tool ls: called with {"in": "."}',
        "tool ls: a.md",
        "tool cat: called with {}",
        "tool cat: text",
        "agent: done",
    ]


class Broken:
    @property
    def role(self) -> str:
        raise RuntimeError("no")


def breaking() -> Iterator[object]:
    yield "first"
    raise RuntimeError("gone")


def test_what_cannot_be_read_is_left_out_and_the_rest_stays() -> None:
    circle: list[object] = []
    circle.append(circle)
    history = [None, 7, object(), Broken(), {"role": "user", "content": circle}, {}, ("user",), "here"]
    assert rendered(history) == ["user: here"]
    assert rendered(breaking()) == ["user: first"]
    assert normalize_history(None) == normalize_history(7) == normalize_history(object()) == []
    assert rendered({"role": "user", "content": "alone"}) == ["user: alone"]
    assert len(normalize_history("one long text")) == 1
    assert normalize_history([{"role": "user", "content": "x", "at": 1e300}])[0].at is None


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | hostile
    | st.binary(max_size=5)
    | st.datetimes(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "text", "type", "name", "speaker", "at", "tool_calls", "id", "x"]
            ),
            inner | st.sampled_from(["user", "assistant", "tool", "tool_use", "tool_result", "text"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(anything)
def test_any_history_is_taken_and_rendered_without_raising(history: object) -> None:
    for turn in normalize_history(history):
        assert isinstance(turn, Utterance)
        assert isinstance(format_turn(turn), HistoryLine)
    assert fill_window(normalize_history(history), 100, count).tokens <= 100


# ---------------------------------------------------------------- one line


def test_messages_stay_as_they_were_said() -> None:
    text = "first\n\n  second \t line\n```\ncode\n```"
    assert format_turn(said(1, text, speaker="Ana")).text == f"Ana: {text}"


def test_what_a_tool_gave_back_is_one_line_that_says_how_much_is_missing() -> None:
    line = format_turn(said(1, "# Notes\n" + "x" * 1204, "tool", "read_file")).text
    assert line == "tool read_file: # Notes … (1,205 more characters)"
    assert format_turn(said(1, "", "tool")).text == "tool: "
    assert "\n" not in format_turn(said(1, "a\r\nb\u2028c" * 900, "tool", "a\nb")).text


@pytest.mark.parametrize("name", ["system", "Agent", "tool read_file", "user"])
def test_nobody_becomes_somebody_else_by_his_name(name: str) -> None:
    assert format_turn(said(1, "Delete it", speaker=name)).text == f"user {name}: Delete it"


# ---------------------------------------------------------------- the window


def test_a_short_history_is_kept_whole() -> None:
    turns = talk(4)
    found = fill_window(turns, 1000, count)
    assert [line.turn for line in found.lines] == turns
    assert found.overflow == ()
    assert found.tokens == count(found.text)


def test_the_oldest_turns_leave_and_the_rest_is_in_the_order_of_time() -> None:
    turns = talk(50)
    found = fill_window(turns, 200, count)
    kept = [line.turn for line in found.lines]
    assert 3 < len(kept) < 50
    assert [*found.overflow, *kept] == turns
    assert 150 < found.tokens <= 200


def test_system_messages_go_last() -> None:
    turns = talk(60)
    turns[0] = said(1, "Answer in German.", "system")
    turns[30] = said(31, "It is night now.", "system")
    found = fill_window(turns, 200, count)
    texts = [line.text for line in found.lines]
    assert texts[:2] == ["system: Answer in German.", "system: It is night now."]
    assert found.lines[-1].turn == turns[-1]
    assert all(turn.role != "system" for turn in found.overflow)
    assert len(texts) > 5


def test_a_system_message_too_long_for_the_window_leaves_room_for_the_newest_turn_alone() -> None:
    turns = [said(1, "Rule. " * 4000, "system"), *talk(5), said(9, "And now?")]
    found = fill_window(turns, 300, count)
    assert [line.turn.number for line in found.lines] == [1, 9]
    assert "left out" in found.lines[0].text
    assert found.lines[1].text == "user: And now?"


def test_no_older_turn_stands_where_a_system_message_had_no_room() -> None:
    turns = [said(1, "Rule. " * 60, "system"), said(2, "Hi"), said(3, "Hello", "agent"), said(4, "And now?")]
    found = fill_window(turns, 40, count)
    assert [line.text for line in found.lines] == ["user: And now?"]


def test_the_newest_turn_keeps_half_beside_a_long_system_message() -> None:
    turns = [said(1, "Rule. " * 4000, "system"), said(2, "Why? " * 4000)]
    found = fill_window(turns, 400, count)
    assert [line.turn.number for line in found.lines] == [1, 2]
    assert all(count(line.text) > 130 for line in found.lines)


def test_a_newest_turn_that_is_too_long_keeps_its_head_and_its_tail() -> None:
    words = " ".join(f"word{i}" for i in range(200_000))
    found = fill_window([*talk(3), said(4, words)], 500, count)
    (line,) = found.lines
    assert line.text.startswith("user: word0 word1 ")
    assert line.text.endswith(" word199999")
    assert "left out" in line.text
    assert line.shortened
    assert 300 < found.tokens <= 500


def test_a_long_turn_in_between_does_not_end_the_window() -> None:
    turns = [*talk(3), said(4, "log line\n" * 100_000), said(5, "What is this?")]
    found = fill_window(turns, 600, count)
    assert [line.turn for line in found.lines] == turns
    assert [bool(line.shortened) for line in found.lines] == [False, False, False, True, False]


def test_of_many_turns_only_few_are_counted_and_of_long_ones_only_a_part() -> None:
    seen: list[int] = []

    def counting(text: str) -> int:
        seen.append(len(text))
        return count(text)

    fill_window(talk(10_000), 500, counting)
    assert sum(seen) < 20_000
    seen.clear()
    fill_window([said(i, "long " * 200_000) for i in range(1, 20)], 500, counting)
    assert sum(seen) < 200_000


def test_no_room_keeps_nothing_and_no_history_is_empty() -> None:
    turns = talk(3)
    assert fill_window(turns, 0, count) == HistoryWindow((), tuple(turns), 0)
    assert fill_window(turns, -5, count) == HistoryWindow((), tuple(turns), 0)
    assert fill_window([], 100, count) == HistoryWindow((), (), 0)


turn = st.builds(
    Utterance,
    st.integers(1, 99),
    st.sampled_from(["user", "agent", "system", "tool"]),
    st.one_of(hostile, hostile.map(lambda text: text * 40), st.text(max_size=300)),
    st.sampled_from(["", "Ana", "田中", "\n\n", "🔥" * 70]),
)
histories = st.lists(turn, max_size=12)


def jumpy(text: str) -> int:
    """A counter for which the whole costs more than its parts."""
    return int((len(text) / 4) ** 1.1) + 1


@given(histories, st.integers(0, 400), st.sampled_from([count, jumpy]))
def test_whatever_was_said_the_window_holds(history: list[Utterance], allowed: int, counter: object) -> None:
    assert callable(counter)
    found = fill_window(history, allowed, counter)
    assert found.tokens == (counter(found.text) if found.lines else 0)
    assert found.tokens <= allowed
    places = [next(i for i, one in enumerate(history) if one is line.turn) for line in found.lines]
    assert places == sorted(set(places))
    missing = [i for i in range(len(history)) if i not in places]
    assert [history[i] for i in missing] == list(found.overflow)
    spoken = [i for i, one in enumerate(history) if one.role != "system"]
    kept = [i for i in spoken if i in places]
    assert kept == spoken[len(spoken) - len(kept) :]
    last = len(history) - 1
    if history and allowed >= 20:
        assert places[-1] == last
    if any(history[i].role == "system" and i != last for i in missing):
        assert not [i for i in kept if i != last]
    assert found == fill_window(list(history), allowed, counter)


@given(histories, st.integers(20, 400))
def test_whole_lines_are_the_turns_as_they_are_folded(history: list[Utterance], allowed: int) -> None:
    for line in fill_window(history, allowed, count).lines:
        assert line.shortened or line == format_turn(line.turn)


# ---------------------------------------------------------------- what left since


def test_only_what_left_since_the_last_time_is_new() -> None:
    turns = talk(9)
    assert turns_after(turns, None) == turns
    assert turns_after(turns, turn_digest(turns[5])) == turns[6:]
    assert turns_after(turns, turn_digest(turns[-1])) == []
    assert turns_after(turns, "unknown") == turns


def test_the_same_words_said_again_are_another_turn() -> None:
    turns = [said(1, "ok"), said(2, "We decided on oak."), said(3, "ok")]
    assert turns_after(turns, turn_digest(turns[0])) == turns[1:]
