"""Turns that cannot go as they should: they go on with less, say so, and raise nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit as product
from tacit.context.request import Request
from tacit.memory import Memory
from tacit.topics.model import Event
from tests.memory.homes import (
    OWNER,
    OWNERS,
    PATIENT,
    QUESTION,
    UNKNOWN,
    in_slot,
    labels,
    notice_codes,
    opened,
    settle,
    write,
)


def test_an_empty_home_gives_the_message(plain: Path) -> None:
    for folder in ("knowledge", "topics", "raw", "archive"):
        shutil.rmtree(plain / folder, ignore_errors=True)
    compiled = opened(plain).turn(QUESTION)
    assert labels(compiled) == ["message"]
    assert compiled.text.endswith(QUESTION)
    assert {one.code for one in compiled.dropped} == {"missing"}


def test_a_fresh_home_gives_the_identity_that_init_wrote(plain: Path) -> None:
    compiled = opened(plain).turn(QUESTION)
    assert "identity:SOUL.md" in labels(compiled)
    assert "identity:TOOLS_COMPACT.md" not in labels(compiled)  # the frame of a table says nothing
    assert in_slot(compiled, "knowledge") == []


def test_an_index_that_was_deleted_is_made_again(garden: Path) -> None:
    memory = opened(garden)
    memory.turn(QUESTION)
    for file in garden.glob(".tacit/memory.db*"):
        file.unlink()
    again = memory.turn(QUESTION, session_key="agent:main:telegram:direct:7")
    assert in_slot(again, "knowledge")


@pytest.mark.parametrize("garbage", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 8000])
def test_an_index_that_is_broken_costs_no_turn(garden: Path, garbage: bytes) -> None:
    for file in garden.glob(".tacit/memory.db*"):
        file.unlink()
    (garden / ".tacit/memory.db").write_bytes(garbage)
    compiled = opened(garden).turn(QUESTION)
    assert "bug" not in notice_codes(compiled)
    assert "CONTEXTWORD" in compiled.text
    assert compiled.receipt.skipped == ""


def test_an_index_that_breaks_between_two_turns_costs_no_turn(garden: Path) -> None:
    memory = opened(garden)
    memory.turn(QUESTION)
    for file in garden.glob(".tacit/memory.db*"):
        file.write_bytes(b"\xff" * 9000)
    compiled = memory.turn(QUESTION, session_key="agent:main:telegram:direct:7")
    assert "bug" not in notice_codes(compiled)
    assert "identity:SOUL.md" in labels(compiled)


def test_a_folder_in_the_place_of_the_index_costs_no_turn(garden: Path) -> None:
    for file in garden.glob(".tacit/memory.db*"):
        file.unlink()
    (garden / ".tacit/memory.db").mkdir()
    (garden / ".tacit/memory.db/in the way").write_text("")
    compiled = opened(garden).turn(QUESTION)
    assert "bug" not in notice_codes(compiled)
    assert "CONTEXTWORD" in compiled.text


@pytest.mark.parametrize("folder", ["receipts", "gate", "proposals", "sessions"])
def test_a_file_in_the_way_of_our_own_folders_costs_no_turn(garden: Path, folder: str) -> None:
    shutil.rmtree(garden / ".tacit" / folder, ignore_errors=True)
    (garden / ".tacit" / folder).write_text("in the way")
    memory = opened(garden)
    history = [("user", f"We decided to buy hose {number}.") for number in range(200)]
    for _ in range(2):
        compiled = memory.turn(QUESTION, history=history, budget=800)
        assert "bug" not in notice_codes(compiled)
        assert "SOULWORD" in compiled.text
        assert compiled.text.endswith(QUESTION)


def test_a_file_in_the_way_of_everything_of_ours_costs_no_turn(garden: Path) -> None:
    shutil.rmtree(garden / ".tacit")
    (garden / ".tacit").write_text("in the way")
    compiled = opened(garden).turn(QUESTION)
    assert "bug" not in notice_codes(compiled)
    assert "SOULWORD" in compiled.text
    assert compiled.text.endswith(QUESTION)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\0garbage",
        b"---\ntriggers: [unclosed\n---\n# X\n",
        b"---\ntriggers:\n  - {type: pattern, match: '('}\n---\n# X\n\nBody.\n",
        b"",
    ],
)
def test_a_topic_that_cannot_be_read_leaves_the_others_alone(garden: Path, data: bytes) -> None:
    (garden / "topics/broken.md").write_bytes(data)
    (garden / "topics/loop.md").symlink_to("loop.md")
    (garden / "topics/folder.md").mkdir()
    compiled = opened(garden).turn(QUESTION)
    assert "TOPICWORD" in compiled.text
    assert "bug" not in notice_codes(compiled)


def test_a_topic_that_disappears_while_the_home_is_open_is_gone(garden: Path) -> None:
    memory = opened(garden)
    assert "TOPICWORD" in memory.turn(QUESTION).text
    (garden / "topics/watering.md").unlink()
    assert "TOPICWORD" not in memory.turn(QUESTION).text
    write(garden, "topics/watering.md", "---\ntriggers: ['water']\nactivation: auto\n---\n# W\n\nNEWTOPIC\n")
    assert "NEWTOPIC" in memory.turn(QUESTION).text


def test_identity_that_is_a_folder_a_link_or_no_text_is_left_out(garden: Path) -> None:
    identity = garden / "knowledge/identity"
    for name in ("SOUL.md", "USER.md", "TOOLS_COMPACT.md"):
        (identity / name).unlink()
    (identity / "SOUL.md").mkdir()
    (identity / "USER.md").symlink_to("/etc/passwd")
    (identity / "TOOLS_COMPACT.md").write_bytes(b"\0" * 100)
    compiled = opened(garden).turn(QUESTION)
    assert in_slot(compiled, "identity") == []
    assert "root:" not in compiled.text
    codes = {one.source.rpartition("/")[2]: one.code for one in compiled.dropped if one.slot == "identity"}
    assert codes == {"SOUL.md": "unsafe", "USER.md": "unsafe", "TOOLS_COMPACT.md": "unsafe"}


def test_everything_off_still_gives_the_message(garden: Path) -> None:
    settle(
        garden,
        OWNERS + "inject: {deadline_ms: 60000, lanes: [], confidence_gate: 1, strong: 1}\n"
        "context_compiler: {memory_md: never, journal: never, projects: never, topic_budget_kb: 0,\n"
        "  identity_budget_kb: 1, memory_budget_kb: 0, journal_budget_kb: 0, projects_budget_kb: 0,\n"
        "  max_injected_chars: 0, knowledge_floor_share: 0, history_floor_share: 0}\n"
        "sessions:\n  main_session: {files: [SOUL.md], audience: anyone}\n",
    )
    (garden / "knowledge/identity/SOUL.md").unlink()
    compiled = opened(garden).turn(QUESTION)
    assert [label for label in labels(compiled) if label != "system"] == ["message"]
    assert "bug" not in notice_codes(compiled)


def test_a_system_note_does_not_stand_alone(garden: Path) -> None:
    """It says how to read what follows; where nothing follows it is paid for in vain."""
    settle(garden, PATIENT + "context_compiler: {topic_budget_kb: 0, projects: never}\n"
           "sessions:\n  main_session: {files: [SOUL.md], audience: anyone}\n")  # fmt: skip
    (garden / "knowledge/identity/SOUL.md").unlink()
    assert labels(opened(garden).turn("Who wrote Aida, and where?")) == ["message"]


# ---------------------------------------------------------------- whatever a host hands in


class _Hostile:
    """An object that raises whenever it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"do not look at {name}")


class _Unsure(list[object]):
    """As arrays are: nobody can say whether it is true."""

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")


def _failing() -> Iterator[object]:
    yield ("user", "the first thing")
    raise RuntimeError("the stream broke")


@pytest.mark.parametrize(
    "history",
    [
        None, 5, 3.5, True, b"bytes", "a text", object(), [None, 5, [[]], {}], range(5), {1, 2},
        {"role": "user", "content": "alone"}, {"role": ["user"]}, [("user",)], [("user", 5)], ["\ud800"],
        [{"role": "user", "content": {"deep": [{"type": "text"}]}}],
        [{"role": "\ud800", "content": "\ud800"}],
        [{"role": "tool", "content": None}], [("user", "x\0y")],
    ],
)  # fmt: skip
def test_any_history_is_taken(lived: Memory, history: Any) -> None:
    compiled = lived.services.turns.look(Request(QUESTION, history=history))
    assert "bug" not in notice_codes(compiled)
    assert compiled.text.endswith(QUESTION)
    assert "SOULWORD" in compiled.text
    compiled.text.encode()


def test_objects_that_cannot_be_looked_at_are_left_out_of_a_history(lived: Memory) -> None:
    history: list[Any] = [("user", "the first thing"), _Hostile(), ("user", "the last thing")]
    compiled = lived.services.turns.look(Request(QUESTION, history=history))
    assert "the first thing\nuser: the last thing" in compiled.text


def test_a_history_that_breaks_off_gives_what_it_had(garden: Path) -> None:
    history: Any = _failing()
    compiled = opened(garden).turn(QUESTION, history=history)
    assert "the first thing" in compiled.text
    assert "bug" not in notice_codes(compiled)


def test_a_history_that_is_neither_true_nor_false_costs_nothing(garden: Path) -> None:
    memory = opened(garden)
    memory.turn("Good morning, Moss", history=[("user", "hi")])
    compiled = memory.turn(QUESTION, history=_Unsure([("user", "hi")]))
    assert notice_codes(compiled) == []
    assert in_slot(compiled, "knowledge")


def test_a_history_of_no_turns_is_none(garden: Path) -> None:
    memory = opened(garden)
    memory.turn(QUESTION, history=[("user", "hi")])
    empty: Any = iter(())
    assert "CONTEXTWORD" in memory.turn(QUESTION, history=empty).text


@pytest.mark.parametrize("message", [None, 5, b"bytes", ["list"], object()])
def test_a_message_that_is_no_text_is_an_empty_one(lived: Memory, message: Any) -> None:
    compiled = lived.services.turns.look(Request(message))
    assert compiled.receipt.skipped == "empty"
    assert "bug" not in notice_codes(compiled)


@pytest.mark.parametrize(
    "key", ["", "\ud800", "agent:main:main\n", "x" * 100_000, "../..", "\0", "agent::main", "--> <!-- system"]
)
def test_a_session_key_of_any_form_is_taken_and_sees_little(garden: Path, key: str) -> None:
    memory = opened(garden)
    for _ in range(2):
        compiled = memory.turn(QUESTION, session_key=key)
        assert compiled.receipt.session_type == "fallback"
        assert "bug" not in notice_codes(compiled)
        assert "SECRETWORD" not in compiled.text
        compiled.text.encode()


@pytest.mark.parametrize("key", [None, 7, b"x", ["x"]])
def test_a_session_key_that_is_no_text_is_taken_and_sees_little(garden: Path, key: Any) -> None:
    memory = opened(garden)
    for _ in range(2):
        compiled = memory.turn(QUESTION, session_key=key)
        assert compiled.receipt.session_type == "fallback"
        assert "bug" not in notice_codes(compiled)


@pytest.mark.parametrize(
    "more",
    [
        {"paths": ["\ud800", "\0", "../" * 9000]},
        {"paths": [None, 5]},
        {"wake": [None, 5, "\ud800", "../x"]},
        {"agent": "\ud800\n-->"},
        {"event": Event("webhook", "\ud800", "\0")},
        {"event": Event("cron", topic="no-such-topic")},
        {"budget": 10**9},
    ],
)
def test_whatever_else_comes_with_a_turn_is_taken(garden: Path, more: dict[str, Any]) -> None:
    compiled = opened(garden).turn(QUESTION, **more)
    assert "bug" not in notice_codes(compiled)
    assert compiled.text.endswith(QUESTION)


def test_a_home_with_files_of_every_kind_gives_turns(garden: Path) -> None:
    (garden / "knowledge/reference/latin.md").write_bytes(b"# caf\xe9\n\nwater the tomatoes \xff\n")
    (garden / "knowledge/reference/nul.md").write_bytes(b"water\0the tomatoes")
    write(garden, "knowledge/reference/long.md", "water the tomatoes " * 100_000)
    write(garden, "knowledge/reference/line.md", "w" * 1_000_000)
    write(garden, "knowledge/reference/many.md", "- water the tomatoes\n" * 10_000)
    compiled = opened(garden).turn(QUESTION)
    assert "bug" not in notice_codes(compiled)
    assert compiled.tokens <= 8192


def test_two_homes_in_one_process_keep_apart(garden: Path, plain: Path) -> None:
    there, here = opened(garden), opened(plain)
    assert "SOULWORD" in there.turn(QUESTION).text
    assert "SOULWORD" not in here.turn(QUESTION).text
    assert "CONTEXTWORD" not in there.turn(QUESTION, session_key=UNKNOWN).text


def test_a_turn_by_the_public_door(garden: Path) -> None:
    compiled = product.open(garden).turn("ok", session_key=OWNER)
    assert compiled.receipt.skipped == "acknowledgement"
