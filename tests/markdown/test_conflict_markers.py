"""Merge conflict markers: told from headings, quotations and people who talk about them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tacit.markdown.conflict_markers import find_marker_line, may_have_markers
from tacit.markdown.records import find_conflict_line
from tacit.transcripts import format as form
from tacit.transcripts.model import Opening

MERGE = "<<<<<<< HEAD\n- ours\n=======\n- theirs\n>>>>>>> branch\n"
DIFF3 = "<<<<<<< ours\n- a\n||||||| 1a2b3c4\n- base\n=======\n- b\n>>>>>>> theirs\n"

IN_CONFLICT = {
    "the whole file": MERGE,
    "below text": f"# Note\n\n{MERGE}\nmore\n",
    "diff3": f"# Note\n{DIFF3}",
    "no labels": MERGE.replace(" HEAD", "").replace(" branch", ""),
    "a label of several words": MERGE.replace("branch", "1a2b3c4 (add a line: to MEMORY)"),
    "CRLF": f"# Note\n{MERGE}".replace("\n", "\r\n"),
    "a BOM first": f"\ufeff{MERGE}",
    "no newline at the end": MERGE.rstrip("\n"),
    "longer markers": MERGE.replace("<" * 7, "<" * 32).replace("=" * 7, "=" * 32).replace(">" * 7, ">" * 32),
    "in the frontmatter": f"---\n{MERGE.replace('- ', 'title: ')}---\n\nbody\n",
    "around the frontmatter": "<<<<<<< HEAD\n---\na: 1\n---\n=======\n---\na: 2\n---\n>>>>>>> b\n",
    "an empty side": "<<<<<<< HEAD\n=======\n- theirs\n>>>>>>> b\n",
    "one inside the other": (
        "<<<<<<<<< HEAD\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n=========\n3\n>>>>>>>>> c\n"
    ),
    "only the first marker is left": "# Note\n\n<<<<<<< HEAD\n- ours\n",
    "only the last marker is left": "# Note\n\n- theirs\n>>>>>>> branch\n",
    "around a block of code": "<<<<<<< HEAD\n```\na\n```\n=======\n```\nb\n```\n>>>>>>> x\n",
    "from a block of code into text": "```\n<<<<<<< HEAD\na\n```\ntext\n=======\nb\n```\nmore\n>>>>>>> x\n",
    "from one block of code into another": (
        "```\n<<<<<<< HEAD\na\n```\ntext\n```\n=======\nb\n>>>>>>> x\n```\n"
    ),
    "behind a fence that is never closed": f"```\ncode\n\n{MERGE}",
    "after a quotation": f"```\n{MERGE}```\n\n{MERGE}",
    "a quoted line is the last of theirs": MERGE.replace("- theirs", "> theirs"),
}

NO_CONFLICT = {
    "nothing": "",
    "headings with an underline": "Title\n=======\n\nText\n\nOther\n=======\n",
    "a quotation in a block of code": f"# How conflicts look\n\n```\n{MERGE}```\n\nRemove them.\n",
    "a quotation between tildes": f"~~~text\n{DIFF3}~~~\n",
    "one line quoted in a block of code": "```\n<<<<<<< HEAD\n```\n\nand\n\n```\n>>>>>>> x\n```\n",
    "indented": "".join(f"    {line}\n" for line in MERGE.splitlines()),
    "quoted": "".join(f"> {line}\n" for line in MERGE.splitlines()),
    "words in a line": "Git writes <<<<<<< HEAD and >>>>>>> branch.\n",
    "in ticks": "`<<<<<<< HEAD` begins one.\n",
    "an empty row of a table": "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|||||||\n",
    "mail that was quoted often": ">>>>>> Hi\n>>>>>>> Hello\n>>>>>> Bye\n",
    "an ornament": "<<<<<<<<<<<< back\n",
    "less than seven": MERGE.replace("<" * 7, "<" * 6).replace(">" * 7, ">" * 6),
    "no blank behind the signs": "<<<<<<<HEAD\n>>>>>>>x\n",
}


@pytest.mark.parametrize("text", IN_CONFLICT.values(), ids=IN_CONFLICT.keys())
def test_a_conflict_is_seen(text: str) -> None:
    assert may_have_markers(text.encode())
    assert find_marker_line(text) > 0


@pytest.mark.parametrize("text", NO_CONFLICT.values(), ids=NO_CONFLICT.keys())
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert find_marker_line(text) == 0


def test_the_line_is_that_of_the_first_marker() -> None:
    assert find_marker_line(f"# Note\n\ntext\n{MERGE}") == 4


def _transcript(*said: str) -> str:
    opening = Opening("s1", datetime(2026, 3, 2, 9, tzinfo=UTC), "agent:main:main", "main")
    text = form.render_opening(opening, said[0])
    place = form.RecordPosition(0, None, opening.started.date())
    for one in said:
        written = form.render_message(place, opening.started, "user", one)
        text, place = text + written.text, written.place
    return text


def test_people_may_talk_about_conflicts() -> None:
    assert find_conflict_line(_transcript(f"What is this?\n{MERGE}", "Hm.\n<<<<<<< HEAD", ">>>>>>> x")) == 0
    by_hand = f"---\nstarted: 2026-03-02T09:00:00Z\n---\n\n## 09:00 — user\nWhat is this?\n{MERGE}"
    assert find_conflict_line(by_hand) == 0


def test_a_transcript_that_was_merged_is_damaged() -> None:
    text = _transcript("Hello.", f"Look:\n{MERGE}", "Bye.")
    head, mark, rest = text.partition("\n## 09:00")
    both = f"{head}\n<<<<<<< HEAD{mark}{rest}=======\n>>>>>>> theirs\n"
    assert find_conflict_line(both) == head.count("\n") + 2
    in_head = text.replace("session_id: s1\n", "<<<<<<< HEAD\nsession_id: s1\n=======\n>>>>>>> b\n")
    assert in_head != text
    assert find_conflict_line(in_head) == 2
    changed = text.replace("Bye.", f"Bye.\n{MERGE}")
    assert find_conflict_line(changed) > text.count("\n") - 4
    by_hand = (
        "---\nstarted: 2026-03-02T09:00:00Z\n---\n\n## 09:00 — user\nHi\n<<<<<<< HEAD\n## 09:01 — agent\nA\n"
        "=======\n## 09:01 — agent\nB\n>>>>>>> b\n"
    )
    assert find_conflict_line(by_hand) == 7
