"""A question that was asked before, in another session, must not hide what answers it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.memory import Memory
from tests.memory.homes import NOW, OWNER, OWNER_DM, opened, write

QUESTION = "What did we decide about the glaze recipe?"
NOTE = "knowledge/reference/glazes.md"


def fill(root: Path, *, with_note: bool = True) -> None:
    """Notes about a studio; one of them answers."""
    for number in range(30):
        text = f"# Shelf {number}\n\n- Bowls of batch {number} are sold at market number {number}.\n"
        write(root, f"knowledge/reference/shelf-{number}.md", text)
    if with_note:
        write(root, NOTE, "# Glazes\n\n- We decided on the ash recipe: two parts of ash, one of clay.\n")


def talk(memory: Memory, number: int, *said: str) -> None:
    begun = NOW.replace(day=number + 1)
    session = memory.session(f"{OWNER}:{number}", started=begun, session_id=f"ses_{number}")
    for turn, text in enumerate(said):
        session.message("agent" if turn % 2 else "user", text, begun)
    session.end(begun)


def ready(memory: Memory) -> Memory:
    memory.commit()
    memory.services.searcher.catch_up(20)
    return memory


def given(compiled: Compiled) -> list[str]:
    return [block.source.rpartition(":")[0] for block in compiled.sections if block.slot == "knowledge"]


def relevance(compiled: Compiled) -> float | None:
    return next(block.score for block in compiled.sections if NOTE in block.source)


@pytest.mark.parametrize("asked", [QUESTION, "hi, what did we decide about the glaze recipe"])
@pytest.mark.parametrize("times", [1, 2, 6])
def test_the_note_that_answers_is_given_however_often_the_question_was_asked(
    plain: Path, asked: str, times: int
) -> None:
    fill(plain)
    memory = ready(opened(plain))
    first = memory.inject(asked, session_key=OWNER_DM)
    assert given(first) == [NOTE]
    for number in range(times):
        talk(memory, number, QUESTION, "Understood.")
    ready(memory)
    again = memory.inject(asked, session_key=OWNER)
    assert given(again)[0] == NOTE
    assert QUESTION not in again.text
    assert relevance(again) == pytest.approx(relevance(first), abs=0.2)
    assert "echo" in {one.code for one in again.dropped}


def test_what_was_answered_before_is_given_beside_the_note(plain: Path) -> None:
    fill(plain)
    memory = opened(plain)
    talk(memory, 0, QUESTION, "Ash, as Mira wanted.")
    talk(memory, 1, QUESTION, "Understood.")
    text = ready(memory).inject(QUESTION, session_key=OWNER_DM).text
    assert "two parts of ash" in text
    assert "Ash, as Mira wanted." in text


def test_what_was_answered_before_is_given_where_no_note_is_about_it(plain: Path) -> None:
    fill(plain, with_note=False)
    memory = opened(plain)
    talk(memory, 0, QUESTION, "Ash, as Mira wanted.")
    compiled = ready(memory).inject(QUESTION, session_key=OWNER_DM)
    assert "Ash, as Mira wanted." in compiled.text
    assert QUESTION not in compiled.text


def test_a_statement_that_was_made_before_is_given_when_it_is_made_again(plain: Path) -> None:
    fill(plain)
    said = "Forge was set up on Monday, with the ash recipe on its shelf."
    memory = opened(plain)
    talk(memory, 0, said, "Noted: Forge it is.")
    compiled = ready(memory).inject(said, session_key=OWNER_DM)
    assert said in compiled.text
    assert "echo" not in {one.code for one in compiled.dropped}
