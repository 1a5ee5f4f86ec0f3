"""Nothing is learned from a file in a merge conflict or written into one, and nothing is lost by it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tacit.errors import MergeConflict, TacitError
from tacit.home.layout import REVIEWED
from tests.maintenance.life import GROUP, MEMORY, Life, answering

DECIDED = "We decided to fire the big plates at 1,215 degrees."
JOURNAL = "knowledge/journal/2026-03-02.md"
USER = "knowledge/identity/USER.md"
MERGE = "<<<<<<< HEAD\n- ours\n=======\n- theirs\n>>>>>>> b\n"


def mark(life: Life, path: str) -> str:
    """Put a conflict at the end of a file; returns what was there."""
    file = life.root / path
    before = file.read_text() if file.exists() else "# Page\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.chmod(0o600) if file.exists() else None
    file.write_text(before + MERGE)
    return before


@pytest.mark.parametrize("path", [MEMORY, USER])
def test_learning_waits_for_a_note_in_conflict_and_goes_on_by_itself(life: Life, path: str) -> None:
    life.talk(DECIDED)
    before = mark(life, path)
    done = life.memory.services.extractor.learn_pending()
    assert done.sessions == ()
    assert done.waiting == 1
    assert f"{path} has unresolved merge conflict markers" in done.failed[0]
    assert life.text(path) == before + MERGE
    assert life.memory.services.extractor.learn_pending().sessions == ()
    (life.root / path).write_text(before)
    assert len(life.memory.services.extractor.learn_pending().sessions) == 1
    assert any("1,215" in line for line in life.lines())


def test_a_model_is_asked_once_while_a_note_is_in_conflict(life: Life) -> None:
    asked = []

    def answer(task: str, text: str) -> list[dict[str, str]]:
        asked.append(task)
        return []

    life.set("lifecycle: {extractors: [decisions, facts]}")
    life.ask = answering(answer)
    life.talk(DECIDED)
    before = mark(life, USER)
    life.memory.services.extractor.learn_pending()
    first = len(asked)
    life.memory.services.extractor.learn_pending()
    life.memory.services.extractor.learn_pending()
    assert len(asked) == first
    (life.root / USER).write_text(before)
    assert len(life.memory.services.extractor.learn_pending().sessions) == 1


def test_nothing_is_learned_from_a_conversation_in_conflict_and_others_are_not_kept_waiting(
    life: Life,
) -> None:
    path = life.talk(DECIDED)
    before = mark(life, path)
    life.talk("We decided to sell the old kiln.")
    done = life.memory.services.extractor.learn_pending()
    assert len(done.sessions) == 1
    assert path in done.failed[0]
    assert not any("1,215" in line for line in life.lines())
    (life.root / path).write_text(before)
    life.memory.services.extractor.learn_pending()
    assert any("1,215" in line for line in life.lines())


def test_a_day_is_not_condensed_into_a_page_in_conflict_and_is_caught_up_with(life: Life) -> None:
    life.talk(DECIDED)
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    before = mark(life, JOURNAL)
    with pytest.raises(MergeConflict, match=JOURNAL):
        life.memory.services.condenser.condense_due()
    assert life.text(JOURNAL) == before + MERGE
    (life.root / JOURNAL).write_text(before)
    assert life.memory.services.condenser.condense_due().periods == ("day 2026-03-02",)
    assert "1,215" in life.text(JOURNAL)


def test_a_conversation_in_conflict_is_in_no_summary_until_it_is_resolved(life: Life) -> None:
    path = life.talk(DECIDED)
    life.talk("We decided to sell the old kiln.")
    before = mark(life, path)
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    life.memory.services.condenser.condense_due()
    assert "1,215" not in life.text(JOURNAL)
    assert "old kiln" in life.text(JOURNAL)
    (life.root / path).write_text(before)
    life.pass_time(days=1)
    life.memory.services.condenser.condense_due()
    assert "1,215" in life.text(JOURNAL)


def test_all_that_is_due_is_done_except_what_a_conflict_holds_up(life: Life) -> None:
    life.talk(DECIDED)
    mark(life, MEMORY)
    life.pass_time(days=1)
    done = life.memory.work()
    assert any(MEMORY in str(problem) for problem in done.problems)
    assert life.text(MEMORY).endswith(MERGE)


def test_a_draft_is_not_approved_into_a_note_in_conflict_nor_out_of_one(life: Life) -> None:
    life.talk("We decided to open the shop at nine.", key=GROUP, speaker="Guest")
    life.memory.services.extractor.learn_pending()
    (draft,) = life.memory.reviews.waiting()
    before = mark(life, MEMORY)
    with pytest.raises(MergeConflict, match=MEMORY):
        life.memory.services.review.approve(draft.id, "Ines")
    assert [one.id for one in life.memory.reviews.waiting()] == [draft.id]
    (life.root / MEMORY).write_text(before)
    draft_file = life.memory.reviews.path_of(draft)
    text = mark(life, draft_file)
    with pytest.raises(TacitError, match="merge conflict"):
        life.memory.services.review.approve(draft.id, "Ines")
    (life.root / draft_file).write_text(text)
    reviewed = mark(life, REVIEWED)
    with pytest.raises(MergeConflict, match=REVIEWED):
        life.memory.services.review.approve(draft.id, "Ines")
    (life.root / REVIEWED).write_text(reviewed)
    life.memory.services.review.approve(draft.id, "Ines")
    assert any("nine" in line for line in life.lines())
