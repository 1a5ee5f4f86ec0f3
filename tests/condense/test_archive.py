"""What moves to archive/, and what never does."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.condense.prune import NoteUsage, prune_journals, score, score_and_evict
from tacit.learn.model import Move
from tests.condense import sampled

TODAY = date(2026, 11, 18)


def old(path: str, days: int = 400, **more: bool | int) -> NoteUsage:
    return NoteUsage(path, TODAY - timedelta(days=days), **more)  # type: ignore[arg-type]


def test_pages_older_than_the_retention_move_by_the_day_in_their_name() -> None:
    there = ["knowledge/journal/2026-08-19.md", "knowledge/journal/2026-08-20.md"]
    assert prune_journals(there, TODAY, 90) == [
        Move(there[0], "archive/journal/2026-08-19.md", "archive", "older than 90 days")
    ]


@pytest.mark.parametrize(
    "path",
    [
        "knowledge/journal/ideas.md",
        "knowledge/journal/2020-13-45.md",
        "knowledge/journal/2020-01-01-notes.md",
        "knowledge/journal/sub/2020-01-01.md",
        "archive/journal/2020-01-01.md",
        "knowledge/reference/2020-01-01.md",
    ],
)
def test_what_is_no_dated_page_of_the_journal_stays(path: str) -> None:
    assert prune_journals([path], TODAY, 90) == []


def test_nothing_moves_onto_a_page_that_is_there() -> None:
    there = ["knowledge/journal/2026-01-01.md", "archive/journal/2026-01-01.md"]
    [move] = prune_journals(there, TODAY, 90)
    assert move.to == "archive/journal/2026-01-01-2.md"


def test_a_note_that_nothing_refers_to_is_not_archived_for_that_alone() -> None:
    """Nought references times anything is nought: by the bare formula every such note would go after 31
    days."""
    path = "knowledge/reference/glazes.md"
    assert score_and_evict([old(path, 31)], TODAY) == []
    assert score_and_evict([old(path, 92)], TODAY) == []
    [move] = score_and_evict([old(path, 93)], TODAY)
    assert (move.to, move.category) == ("archive/reference/glazes.md", "evict")


def test_each_reference_keeps_a_note_longer() -> None:
    path = "knowledge/people/alfons.md"
    assert score_and_evict([old(path, 105, references=1)], TODAY) == []
    assert score_and_evict([old(path, 106, references=1)], TODAY) != []
    assert score_and_evict([old(path, 200, references=500)], TODAY) == []


@pytest.mark.parametrize(
    "path",
    [
        "knowledge/identity/SOUL.md",
        "knowledge/memory/MEMORY.md",
        "knowledge/memory/old.md",
        "knowledge/journal/2020-01-01.md",
        "knowledge/projects/_active.md",
        "knowledge/people/_index.md",
        "topics/firing.md",
        "archive/reference/x.md",
        "raw/conversations/2026/01/01/0900-a-b.md",
        "memory-config.yaml",
        "knowledge/reference/picture.png",
    ],
)
def test_protected_files_never_move_however_old(path: str) -> None:
    assert score_and_evict([old(path, 10_000)], TODAY) == []


def test_pinned_and_linked_notes_stay() -> None:
    path = "knowledge/reference/glazes.md"
    assert score_and_evict([old(path, is_pinned=True), old(path, is_linked=True)], TODAY) == []


@given(st.integers(0, 5_000), st.integers(0, 1_000))
def test_nothing_younger_than_a_month_moves_and_more_references_never_hurt(
    days: int, references: int
) -> None:
    assert score(days, references) < score(days, references + 1)
    if days <= 30:
        assert score_and_evict([old("knowledge/reference/x.md", days, references=references)], TODAY) == []


def test_years_later_the_sample_home_still_has_its_identity_and_memory() -> None:
    uses = [old(path, 3_000) for path in sampled.notes()]
    gone = {move.path for move in score_and_evict(uses, TODAY, sampled.notes())}
    assert "knowledge/reference/glazes.md" in gone
    assert all(path.split("/")[1] in ("projects", "people", "procedures", "reference") for path in gone)
    assert not any(path.rpartition("/")[2].startswith("_") for path in gone)
