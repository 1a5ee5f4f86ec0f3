"""Which turns are of one conversation: what was given in it is not given again, and in the next one it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.memory import Memory
from tests.memory.homes import GROUP, NOW, OWNER, OWNERS, QUESTION, notice_codes, opened, settle, write

OTHER = "What did we say about drip hoses and litres?"
SAID = [("user", QUESTION), ("agent", "With drip hoses.")]
PAGE = "knowledge/journal/2026-03-10.md"


def settings(text: str = "") -> str:
    return f"inject: {{deadline_ms: 60000, debounce_ms: 0{text}}}\n{OWNERS}"


@pytest.fixture
def memory(garden: Path) -> Memory:
    settle(garden, settings())
    return opened(garden)


def common(one: Compiled, other: Compiled) -> set[str]:
    return {quote.text for quote in one.given} & {quote.text for quote in other.given}


# ---------------------------------------------------------------- it goes on


def test_a_transcript_that_begins_after_the_first_turn_is_of_the_same_conversation(memory: Memory) -> None:
    first = memory.inject(QUESTION)
    with memory.session(OWNER) as session:
        session.message("user", QUESTION)
        second = memory.inject(f"{QUESTION} And when?", history=SAID)
        session.message("agent", "At dawn.")
        third = memory.inject(f"{QUESTION} And how long?", history=[*SAID, ("agent", "At dawn.")])
    assert first.given
    assert not common(first, second) | common(first, third)
    assert second.receipt.session_id == third.receipt.session_id == session.session_id


def test_in_the_first_mode_a_transcript_does_not_begin_another_conversation(garden: Path) -> None:
    settle(garden, settings(", mode: first"))
    memory = opened(garden)
    memory.inject(QUESTION)
    with memory.session(OWNER) as session:
        session.message("user", QUESTION)
        assert memory.inject(OTHER, history=SAID).receipt.skipped == "not-first"


def test_a_conversation_that_gets_a_transcript_has_one_section_in_the_daily_note(garden: Path) -> None:
    settle(garden, settings(", lanes: [runtime, daily]"))
    memory = opened(garden)
    memory.inject(QUESTION)
    with memory.session(OWNER) as session:
        session.message("user", QUESTION)
        write(garden, "knowledge/reference/new.md", "# New\n\nHow we water the tomatoes in the greenhouse.\n")
        assert memory.inject(f"{QUESTION} And when?", history=SAID).given
    assert (garden / PAGE).read_text().count("<!-- adaptive-memory:session=") == 1


@pytest.mark.parametrize("between", ["HEARTBEAT_OK", "/status", ""])
def test_what_a_host_says_by_itself_begins_no_conversation(memory: Memory, between: str) -> None:
    first = memory.inject(QUESTION)
    memory.inject(OTHER, history=SAID)
    memory.inject(between)
    last = memory.inject(f"{QUESTION} And when?", history=[*SAID, ("user", OTHER)])
    assert first.given
    assert not common(first, last)
    assert first.receipt.session_id == last.receipt.session_id


def test_a_person_who_says_something_without_a_history_begins_one(memory: Memory) -> None:
    first = memory.inject(QUESTION, history=[("user", "Good morning")])
    memory.inject("hello")
    again = memory.inject(QUESTION, history=[("user", "hello"), ("agent", "Hello.")])
    assert common(first, again) == {quote.text for quote in first.given}


def test_first_turns_at_the_same_time_are_of_one_conversation(garden: Path) -> None:
    settle(garden, settings(", lanes: [runtime, daily]"))
    memory = opened(garden)
    memory.services.turns.warm()
    begin, made = threading.Barrier(6), []

    def ask(number: int) -> None:
        begin.wait()
        made.append(memory.inject(f"{QUESTION} {number}"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.receipt.session_id for one in made}) == 1
    assert (garden / PAGE).read_text().count("<!-- adaptive-memory:session=") == 1


def test_a_conversation_of_many_days_has_one_section_in_all_daily_notes(garden: Path) -> None:
    settle(garden, settings(", lanes: [runtime, daily]"))
    for day in range(5):
        write(garden, "knowledge/reference/new.md", f"# New\n\nHow we water the tomatoes, as of day {day}.\n")
        assert opened(garden, NOW + timedelta(days=day)).inject(QUESTION, session_id="S").given
    pages = sorted((garden / "knowledge/journal").glob("*.md"))
    assert [page.name for page in pages if "adaptive-memory" in page.read_text()] == ["2026-03-10.md"]


def test_the_sessions_own_transcript_is_not_searched_whoever_names_the_session(memory: Memory) -> None:
    said = "The tomatoes in the greenhouse get water from the quagga tank OWNSAID"
    with memory.session(GROUP, session_id="of the host") as session:
        session.message("user", said)
        asked = "Which water do tomatoes in the greenhouse get from the quagga tank?"
        mine = memory.inject(asked, session_key=GROUP, session_id="of the host")
        assert "OWNSAID" not in mine.text
        assert "OWNSAID" in memory.inject(asked, session_key=OWNER).text


# ---------------------------------------------------------------- it is over


def _by_the_host(memory: Memory) -> None:
    memory.session_ended(OWNER)


def _by_its_transcript(memory: Memory) -> None:
    with memory.session(OWNER) as session:
        session.message("user", QUESTION)


def _by_a_transcript_without_a_word(memory: Memory) -> None:
    with memory.session(OWNER):
        pass


ENDS = [_by_the_host, _by_its_transcript, _by_a_transcript_without_a_word]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_after_its_end_everything_may_be_given_again_whichever_process_ended_it(
    garden: Path, memory: Memory, end: Callable[[Memory], None], elsewhere: bool
) -> None:
    first = memory.inject(QUESTION)
    end(opened(garden) if elsewhere else memory)
    for after in (memory, opened(garden)):
        again = after.inject(f"{QUESTION} Tell me.")
        assert common(first, again) == {quote.text for quote in first.given}
        after.session_ended(OWNER)


def test_the_end_of_one_session_is_not_that_of_another_with_a_name(memory: Memory) -> None:
    first = memory.inject(QUESTION, session_id="mine")
    memory.session_ended(OWNER, "another")
    assert not common(first, memory.inject(f"{QUESTION} Tell me.", session_id="mine"))
    memory.session_ended(OWNER, "mine")
    assert common(first, memory.inject(f"{QUESTION} Tell me now.", session_id="mine"))


def test_the_end_of_a_session_leaves_no_cache_of_the_agent_that_the_host_named(memory: Memory) -> None:
    memory.inject(QUESTION, session_key=GROUP, agent="pumpkin")
    memory.session_ended(GROUP)
    again = memory.inject(QUESTION, session_key=GROUP, agent="pumpkin")
    assert "cache" not in notice_codes(again)


def test_where_no_turn_was_taken_an_end_writes_nothing(garden: Path) -> None:
    memory = opened(garden)
    memory.session_ended(OWNER)
    assert not (garden / ".tacit" / "receipts").exists()


# ---------------------------------------------------------------- the same turn once more


def test_a_turn_that_is_asked_for_again_is_made_anew_when_the_index_changed(memory: Memory) -> None:
    path = "knowledge/procedures/watering.md"
    first = memory.inject(QUESTION, session_key=GROUP, history=SAID[:1])
    assert "PROCEDUREWORD" in first.text
    write(memory.home.root, path, "---\naudience: owner\n---\n# Watering\n\nAt the root PROCEDUREWORD\n")
    again = memory.inject(QUESTION, session_key=GROUP, history=SAID[:1])
    assert "PROCEDUREWORD" not in again.text
    assert common(first, again), "the rest of it is given as before"


def test_a_turn_of_another_session_or_of_a_tool_is_not_the_same_turn(memory: Memory) -> None:
    first = memory.inject(QUESTION, history=SAID, session_id="one")
    other = memory.inject(QUESTION, history=SAID, session_id="two")
    assert first.receipt.id != other.receipt.id
    assert memory.inject(QUESTION, history=SAID, session_id="two", tool="memory_search").text == ""
