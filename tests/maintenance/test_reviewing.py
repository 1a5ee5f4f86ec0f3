"""Drafts wait, are looked at, and happen or go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tacit.errors import DraftRefused, TacitError, UsageError
from tacit.markdown.note_page import line_count
from tacit.review.model import ChangeRequest
from tests.conftest import GitLog
from tests.maintenance.life import GROUP, MEMORY, Life, archived_text, killed_at

SAID = "We decided to open the shop at nine."


def guest(life: Life) -> ChangeRequest:
    life.talk(SAID, key=GROUP, speaker="Guest")
    life.memory.services.extractor.learn_pending()
    (draft,) = life.memory.reviews.waiting()
    return draft


def rewrite(life: Life, new: str) -> ChangeRequest:
    memory = life.memory
    memory.commit()
    base = (life.root / MEMORY).read_bytes()
    wanted = memory.services.drafts.draft_text(
        MEMORY, base, new, category="memory", reason="shorter", sources=()
    )
    (draft,) = memory.reviews.propose([wanted])
    return draft


def test_an_approval_adds_the_lines_and_records_who_when_and_which_words(life: Life, git_log: GitLog) -> None:
    draft = guest(life)
    sha = life.memory.reviews.sha_of(draft)
    done = life.memory.services.review.approve(draft.id, "Ines")
    assert any("nine" in line for line in life.lines())
    assert life.memory.reviews.waiting() == []
    approved = next(one for one in life.memory.reviews.decisions() if one.what == "approved")
    assert (approved.by, approved.sha256, approved.request) == ("Ines", sha, draft.id)
    assert git_log("-1")[0].name == done.commit
    assert git_log("-1")[0].trailer("Approved-by") == ["Ines"]


def test_what_was_rejected_changes_nothing_and_does_not_come_again(life: Life) -> None:
    draft = guest(life)
    before = life.text()
    life.memory.services.review.reject(draft.id, "Ines", "no")
    (life.root / ".tacit/runs.jsonl").write_text("")  # as if it had never been read
    life.memory.services.extractor.learn_pending()
    assert life.memory.reviews.waiting() == []
    assert life.text() == before


def test_an_approval_is_taken_back_by_one_command_and_the_record_stays(life: Life) -> None:
    draft = guest(life)
    before = life.text()
    done = life.memory.services.review.approve(draft.id, "Ines")
    life.memory.history.undo(done.commit)
    assert life.text() == before
    assert [one.id for one in life.memory.reviews.waiting()] == [draft.id]
    assert "approved" in [one.what for one in life.memory.reviews.decisions()]


def test_lines_are_added_to_the_note_as_it_is_when_somebody_says_yes(life: Life) -> None:
    draft = guest(life)
    note = life.root / MEMORY
    note.write_text(note.read_text() + "\n- 2026-03-03: by hand\n")
    life.memory.services.review.approve(draft.id, "Ines")
    assert "by hand" in life.text()
    assert "nine" in life.text()


def test_a_rewrite_of_a_note_that_changed_is_refused_and_can_be_rebased(life: Life) -> None:
    text = life.text() + "\n- 2026-01-01: one\n" + "\n" * 5 + "- 2026-01-02: two\n"
    (life.root / MEMORY).write_text(text)
    draft = rewrite(life, text.replace("- 2026-01-01: one\n", "- 2026-01-01: ONE\n"))
    (life.root / MEMORY).write_text(text + "- 2026-03-03: by hand\n")
    with pytest.raises(DraftRefused, match="rebase"):
        life.memory.services.review.approve(draft.id, "Ines")
    assert "ONE" not in life.text()
    life.memory.services.review.rebase(draft.id, "Ines")
    life.memory.services.review.approve(draft.id, "Ines")
    assert "ONE" in life.text()
    assert "by hand" in life.text()


def test_a_rebase_that_meets_a_hand_edit_in_the_same_place_is_refused(life: Life) -> None:
    text = life.text() + "\n- 2026-01-01: one\n"
    (life.root / MEMORY).write_text(text)
    draft = rewrite(life, text.replace("one", "ONE"))
    (life.root / MEMORY).write_text(text.replace("one", "mine"))
    with pytest.raises(DraftRefused, match="same place"):
        life.memory.services.review.rebase(draft.id, "Ines")
    assert "mine" in life.text()


def test_what_a_draft_takes_out_of_memory_goes_to_the_archive(life: Life) -> None:
    text = life.text() + "\n- 2026-01-01: one of long ago\n- 2026-01-02: two\n"
    (life.root / MEMORY).write_text(text)
    draft = rewrite(life, text.replace("- 2026-01-01: one of long ago\n", ""))
    life.memory.services.review.approve(draft.id, "Ines")
    assert "long ago" not in life.text()
    assert "one of long ago" in life.text("archive/memory/2026-03.md")


def test_an_owners_policy_asks_for_one_of_the_approvers(life: Life) -> None:
    life.set("review: {lessons: owner, approvers: [Ines]}")
    life.talk("Lesson learned: never open the kiln above 100 degrees.")
    life.memory.services.extractor.learn_pending()
    (draft,) = life.memory.reviews.waiting()
    with pytest.raises(DraftRefused, match="approvers"):
        life.memory.services.review.approve(draft.id, "somebody")
    life.memory.services.review.approve(draft.id, "ines")
    assert "kiln" in life.text()


def test_an_edited_draft_is_what_is_approved(life: Life) -> None:
    draft = guest(life)
    file = life.root / life.memory.reviews.path_of(draft)
    life.memory.services.review.edit_draft(draft.id, file.read_text().replace("nine", "ten"), "Ines")
    life.memory.services.review.approve(draft.id, "Ines")
    assert "ten" in life.text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trust: other", "trust: owner"),
        ("policy: review", "policy: auto"),
        ("## knowledge/memory/MEMORY.md", "## somewhere"),
        ("draft: lines", "draft: bomb"),
    ],
)
def test_an_edit_may_not_make_it_another_draft(life: Life, old: str, new: str) -> None:
    draft = guest(life)
    file = life.root / life.memory.reviews.path_of(draft)
    before = file.read_text()
    assert old in before
    with pytest.raises(DraftRefused):
        life.memory.services.review.edit_draft(draft.id, before.replace(old, new), "Ines")
    assert file.read_text() == before


@pytest.mark.parametrize(
    "path", ["../evil.md", ".git/config.md", "raw/conversations/x.md", "memory-config.yaml.md", "/etc/x.md"]
)
def test_a_draft_cannot_reach_anything_but_notes(life: Life, path: str) -> None:
    draft = guest(life)
    file = life.root / life.memory.reviews.path_of(draft)
    file.write_text(file.read_text().replace("## knowledge/memory/MEMORY.md", f"## {path}"))
    with pytest.raises(TacitError, match=r"not a note|refused|cannot be approved"):
        life.memory.services.review.approve(draft.id, "Ines")
    assert not (life.root / path.lstrip("/")).exists() or path.startswith("/")
    assert [one.id for one in life.memory.reviews.waiting()] == [draft.id]


def test_a_file_in_drafts_that_is_none_is_a_problem_and_stops_nothing(life: Life) -> None:
    draft = guest(life)
    (life.root / "drafts/thoughts.md").write_text("# My thoughts\n")
    assert [one.id for one in life.memory.reviews.waiting()] == [draft.id]
    assert "thoughts" in life.memory.reviews.problems()[0].where
    with pytest.raises(UsageError, match="thoughts"):
        life.memory.reviews.find("thoughts")


def test_the_cap_counts_the_same_lines_everywhere(life: Life) -> None:
    assert line_count("a\nb") == line_count("a\nb\n") == 2


def test_an_approval_copies_nothing_to_the_archive_that_stays(life: Life) -> None:
    note = life.root / MEMORY
    note.write_text(
        note.read_text() + "- 2026-01-01: open at nine (superseded 2026-02-01)\n- 2026-02-01: at ten\n"
    )
    draft = rewrite(life, life.text() + "- 2026-02-03: closed on Mondays\n")
    assert life.memory.services.review.approve(draft.id, "ines").paths == (MEMORY,)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_approval_that_was_killed_is_done_once_more(
    life: Life, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    note = life.root / MEMORY
    note.write_text(note.read_text() + "- 2026-01-01: open at nine\n- 2026-02-01: closed on Mondays\n")
    draft = rewrite(life, life.text().replace("- 2026-01-01: open at nine\n", ""))
    with killed_at(monkeypatch, number):
        life.memory.services.review.approve(draft.id, "ines")
    life.memory.services.review.approve(draft.id, "ines")
    assert "at nine" not in life.text()
    assert archived_text(life).count("at nine") == 1
    assert life.memory.reviews.waiting() == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_move_that_was_killed_is_done_once_more(
    life: Life, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    unused = life.root / "knowledge/reference/unused.md"
    unused.write_text("# Unused\n\nNobody named it.\n")
    life.memory.commit()
    life.pass_time(days=200)
    life.memory.services.condenser.condense([], prune=False, archive=True)
    (draft,) = [one for one in life.memory.reviews.waiting() if one.target.endswith("unused.md")]
    with killed_at(monkeypatch, number):
        life.memory.services.review.approve(draft.id, "ines")
    life.memory.services.review.approve(draft.id, "ines")
    assert not unused.exists()
    assert archived_text(life).count("Nobody named it.") == 1


def test_a_rollup_that_waited_while_lines_were_learned_can_still_be_rebased(life: Life) -> None:
    page = life.root / "knowledge/journal/2026-03-02.md"
    page.write_text("## 2026-03-02\n\n- We decided to stay with Zahlfix until the new year.\n")
    life.talk("Hello there, how are things in the workshop?")
    life.now = datetime(2026, 3, 8, 23, 30, tzinfo=UTC)
    life.memory.work()
    life.pass_time(days=1)
    life.talk("We decided to fire the big plates at 1,215 degrees.")
    life.memory.work()
    (draft,) = [one for one in life.memory.reviews.waiting() if one.target == MEMORY]
    life.memory.services.review.rebase(draft.id, "ines")
    life.memory.services.review.approve(draft.id, "ines")
    assert "Zahlfix" in life.text()
    assert "1,215" in life.text()


def test_whoever_edits_a_draft_cannot_lead_it_past_the_approvers(life: Life) -> None:
    draft = guest(life)
    life.set("review: {approvers: [Ines]}")
    text = life.text(f"drafts/{draft.id}.md").replace(f"## {MEMORY}", "## knowledge/identity/SOUL.md")
    life.memory.services.review.edit_draft(draft.id, text, "guest")
    with pytest.raises(DraftRefused, match="may not approve"):
        life.memory.services.review.approve(draft.id, "guest")
    assert "at nine" in life.text(life.memory.services.review.approve(draft.id, "Ines").paths[0])


def test_a_policy_that_became_stricter_holds_for_drafts_that_wait(life: Life) -> None:
    draft = guest(life)
    life.set("review: {decisions: owner, approvers: [Ines]}")
    with pytest.raises(DraftRefused, match="may not approve"):
        life.memory.services.review.approve(draft.id, "guest")


def test_what_was_rejected_of_a_week_does_not_come_back_with_a_late_conversation(life: Life) -> None:
    page = life.root / "knowledge/journal/2026-03-02.md"
    page.write_text("## 2026-03-02\n\n- We decided to stay with Zahlfix until the new year.\n")
    life.talk("Hello there, how are things in the workshop?")
    life.now = datetime(2026, 3, 8, 23, 30, tzinfo=UTC)
    life.memory.work()
    (draft,) = [one for one in life.memory.reviews.waiting() if one.target == MEMORY]
    life.memory.services.review.reject(draft.id, "ines", "not so")
    page.write_text(page.read_text() + "- We decided to close on Mondays.\n")
    life.talk("And how are things in the garden?")
    life.pass_time(days=1)
    life.memory.work()
    (draft,) = [one for one in life.memory.reviews.waiting() if one.target == MEMORY]
    assert "Zahlfix" not in draft.body
    assert "Mondays" in draft.body


def test_a_draft_for_a_memory_that_is_too_long_to_be_committed_can_be_rebased(life: Life) -> None:
    note = life.root / MEMORY
    note.write_text(note.read_text() + "".join(f"- 2026-01-01: entry {n} of many\n" for n in range(250)))
    life.memory.work()
    (draft,) = life.memory.reviews.waiting()
    note.write_text(note.read_text() + "- 2026-03-02: by hand\n")
    life.memory.services.review.rebase(draft.id, "ines")
    life.memory.services.review.approve(draft.id, "ines")
    assert "by hand" in life.text()
    assert line_count(life.text()) <= 200
    assert {(life.text() + archived_text(life)).count(f"entry {n} of many") for n in range(250)} == {1}
