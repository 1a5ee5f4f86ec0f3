"""What a rewrite did to entries, done to the note as it is now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tacit.home.layout import MEMORY
from tacit.review.entries import rebase_entries

AT = datetime(2026, 3, 15, 9, tzinfo=UTC)
BASE = """---
updated: 2026-03-01T00:00:00+00:00
line_count: 14
---

# Core Memory

## Key Decisions

- 2026-01-01: open at nine
- 2026-01-02: by van

## Lessons Learned

- 2026-01-03: never open it hot
"""
LEARNED = BASE.replace("by van\n", "by van\n- 2026-03-04: closed on Mondays\n").replace("03-01T", "03-04T")


def onto_learned(new: str) -> str | None:
    return rebase_entries(BASE, new, LEARNED, MEMORY, AT)


def test_entries_that_both_add_to_one_section_stand_beside_each_other() -> None:
    text = onto_learned(BASE.replace("by van\n", "by van\n- 2026-03-02: stay with Zahlfix\n"))
    assert text is not None
    assert "by van\n- 2026-03-04: closed on Mondays\n- 2026-03-02: stay with Zahlfix\n\n## Lessons" in text
    assert "updated: 2026-03-15" in text
    assert f"line_count: {text.count(chr(10))}" in text


def test_an_entry_that_leaves_leaves_and_one_that_changed_stays_in_its_place() -> None:
    new = BASE.replace("- 2026-01-01: open at nine\n", "").replace("by van", "by van (superseded 2026-03-02)")
    text = onto_learned(new)
    assert text is not None
    assert "## Key Decisions\n\n- 2026-01-02: by van (superseded 2026-03-02)\n- 2026-03-04: closed" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Core Memory\n", "# Memory\n"),  # no entry
        ("## Lessons Learned\n", ""),
        ("- 2026-01-02: by van\n", "- 2026-01-02: by van\n  with two stops\n"),  # of several lines
    ],
)
def test_a_rewrite_of_more_than_entries_is_not_for_this(old: str, new: str) -> None:
    assert onto_learned(BASE.replace(old, new)) is None


def test_an_entry_that_somebody_changed_meanwhile_is_not_taken_out() -> None:
    new = BASE.replace("- 2026-01-02: by van\n", "")
    assert rebase_entries(BASE, new, BASE.replace("by van", "by ship"), MEMORY, AT) is None


def test_what_the_note_says_by_now_is_not_added_again() -> None:
    new = BASE.replace("by van\n", "by van\n- 2026-03-04: closed on Mondays\n")
    text = onto_learned(new)
    assert text is not None
    assert text.count("closed on Mondays") == 1
