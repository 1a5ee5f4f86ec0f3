"""What counts as a use of a file, and when a conversation has absorbed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tacit.context.file_usage import ConversationText, LastUse, find_unused_files, split_conversation
from tacit.transcripts.model import KnowledgeChange, Message, ToolCall, Turn

AT = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
USER = """---
audience: owner
---
# Ines Hartwig

Runs a pottery studio with a web shop. Metric units and a 24-hour clock.

- Allergic to hazelnuts; cooks Italian.
- 东京的陶艺工作室每周三休息
"""
SOUL = "# Soul\n\nI am Jules, of the pottery studio.\n"
FILES = {"SOUL.md": SOUL, "USER.md": USER}
IDLE = ("What is the capital of Peru?", "Lima.")


def line_of(*texts: str, files: dict[str, str] = FILES) -> int:
    """The line of USER.md that they speak of; 0 for none."""
    found = find_unused_files(files, ["USER.md"], ConversationText((texts, IDLE), ()), 1)
    return found["USER.md"].line if found else 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Is the web shop down?", 6),
        ("I told them that all units are metric.", 6),
        ("Remember the allergy: I am allergic to hazelnuts!", 8),
        ("The hazelnut, then. Cook something Italian with hazelnuts", 8),
        ("东京的陶艺工作室什么时候休息？", 9),
    ],
)
def test_a_sentence_is_in_use_where_its_words_are_said_together(text: str, line: int) -> None:
    assert line_of(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ines?",
        "Are there hazelnuts?",  # one word may be there by chance
        "Any hazelnuts in it? She cooks well.",  # two of them, in two sentences
        "I saw a pottery studio in town.",  # SOUL.md says so too
        "What is the audience, and who is the owner?",  # the head is not content
        "Call me back this morning, please.",
        "工作很多",
    ],
)
def test_what_may_be_there_by_chance_is_no_use(text: str) -> None:
    assert line_of(text) == 0


def test_a_long_sentence_needs_a_third_of_its_words() -> None:
    words = "amber birch cedar delta ember fjord grove heron iris juniper kelp larch"
    files = {"SOUL.md": SOUL, "USER.md": f"{words}\n"}
    assert line_of("amber birch cedar", files=files) == 0
    assert line_of("amber birch cedar delta", files=files) == 1


@pytest.mark.parametrize(
    ("idle", "use"), [(0, None), (1, None), (2, None), (3, LastUse(4, 8)), (9, LastUse(10, 8))]
)
def test_a_file_is_absorbed_after_as_many_turns_without_it(idle: int, use: LastUse | None) -> None:
    used = ("Cook something.", "Nothing with hazelnuts, you are allergic to them.")
    said = ConversationText((IDLE, used, *[IDLE] * idle), ("And of Chile?",))
    assert find_unused_files(FILES, ["USER.md"], said, 3).get("USER.md") == use


def test_a_file_that_was_never_used_or_is_spoken_of_now_is_not_absorbed() -> None:
    used = ("I am allergic to hazelnuts.",)
    assert find_unused_files(FILES, ["USER.md"], ConversationText((IDLE,) * 9, ("Hm?",)), 1) == {}
    assert "USER.md" in find_unused_files(FILES, ["USER.md"], ConversationText((used, IDLE), ("Hm?",)), 1)
    now = ConversationText((used, IDLE), ("Hm?", "Is the web shop down?"))
    assert find_unused_files(FILES, ["USER.md"], now, 1) == {}
    assert find_unused_files(FILES, [], ConversationText((used, IDLE), ("Hm?",)), 1) == {}
    assert (
        find_unused_files(
            {"USER.md": "", "SOUL.md": SOUL}, ["USER.md"], ConversationText((used, IDLE), ()), 1
        )
        == {}
    )


def message(minute: int, role: str, text: str) -> Message:
    return Message(minute, AT + timedelta(minutes=minute), role, text)  # type: ignore[arg-type]


SAID: list[Turn] = [
    message(1, "agent", "Good morning!"),
    message(2, "user", "One"),
    message(3, "user", "and a half"),
    ToolCall(4, AT + timedelta(minutes=4), "spawn", "agent=forge", "a long report"),
    message(5, "agent", "Done"),
    message(6, "system", "[heartbeat]"),
    KnowledgeChange(7, AT + timedelta(minutes=7), "updated", "knowledge/x.md", "a line"),
    message(8, "user", "Two"),
    message(9, "agent", "Fine"),
]


def test_a_turn_is_what_the_user_says_and_all_that_follows_until_the_user_speaks_again() -> None:
    first, second = ("One", "and a half", "agent=forge", "Done"), ("Two", "Fine")
    assert split_conversation(SAID, "Three", None) == ConversationText((first, second), ("Three",))
    assert split_conversation([], "Three", None) == ConversationText((), ("Three",))


def test_a_message_that_is_not_answered_yet_is_the_newest_whether_it_was_kept_already_or_not() -> None:
    kept = split_conversation([*SAID, message(10, "user", "Three")], "Three", None)
    assert kept.turns == split_conversation(SAID, "Three", None).turns
    assert set(kept.newest) == {"Three"}


def test_what_the_host_cut_out_of_its_window_is_not_in_view() -> None:
    assert split_conversation(SAID, "", AT + timedelta(minutes=6)).turns == (("Two", "Fine"),)
    assert split_conversation(SAID, "", AT + timedelta(hours=1)).turns == ()
    much = [*SAID, message(10, "user", "Long"), message(11, "agent", "word " * 300_000)]
    assert [turn[0] for turn in split_conversation(much, "", None).turns] == []
    assert "Long" not in str(split_conversation(much, "", None))
