"""The same change always gets the same words, and no text of people's becomes part of the form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.git.commit_message import TextEdit, commit_kind, compose, short_name
from tests.hostile import hostile

NOTE = "# Shop\n\n## Prices\nbowl 24\n\n## Open\n- glaze\n"


@pytest.mark.parametrize(
    ("path", "branch", "kind"),
    [
        ("knowledge/identity/SOUL.md", "main", "identity"),
        ("knowledge/people/ruth.md", "main", "memory"),
        ("topics/firing.md", "main", "memory"),
        ("attachments/kiln.png", "main", "memory"),
        ("memory-config.yaml", "main", "maintenance"),
        ("archive/a.md", "main", "maintenance"),
        ("knowledge/identity/SOUL.md", "explore/shorter", "explore"),
        ("knowledge/people/ruth.md", "extract/again", "extract"),
        ("knowledge/people/ruth.md", "explored", "memory"),
    ],
)
def test_the_kind_comes_from_the_path_and_the_branch(path: str, branch: str, kind: str) -> None:
    assert commit_kind(path, branch) == kind


def test_a_message_names_what_happened_file_by_file_and_the_sessions_it_came_from() -> None:
    edits = [
        TextEdit("knowledge/people/ruth.md", None, "# Ruth\nglazes\n"),
        TextEdit("knowledge/shop.md", NOTE, NOTE.replace("bowl 24", "bowl 26\ncup 14")),
        TextEdit("knowledge/old.md", "one\n", None),
    ]
    assert compose("memory", edits, ["raw/conversations/2026/02/16/1845-a-shop.md"]) == (
        "memory: add people/ruth; update shop; remove old\n"
        "\n"
        "- knowledge/people/ruth.md: added, 2 lines\n"
        "- knowledge/shop.md: +2 −1 in Prices\n"
        "- knowledge/old.md: removed, 1 line\n"
        "\n"
        "Session: raw/conversations/2026/02/16/1845-a-shop.md\n"
    )


def test_without_sessions_there_is_no_trailer() -> None:
    assert (
        compose("memory", [TextEdit("topics/a.md", None, "a\n")])
        == "memory: add topics/a\n\n- topics/a.md: added, 1 line\n"
    )


def test_many_files_are_counted_instead_of_named() -> None:
    edits = [TextEdit(f"knowledge/people/somebody-{n}.md", None, "a\n") for n in range(20)]
    edits.append(TextEdit("topics/a.md", "a\n", "b\n"))
    subject = compose("memory", edits).split("\n")[0]
    assert subject == "memory: add 20 files, update 1 file (people, topics)"


def test_lines_that_go_are_named_by_the_section_they_were_in() -> None:
    edit = TextEdit("knowledge/shop.md", NOTE, NOTE.replace("- glaze\n", ""))
    assert "+0 −1 in Open" in compose("memory", [edit])


def test_a_heading_in_code_is_not_a_section() -> None:
    before = "# A\n```\n# not this\nx\n```\n"
    assert "in A\n" in compose("memory", [TextEdit("knowledge/a.md", before, before.replace("x", "y"))])


def test_a_very_long_file_is_not_compared_line_by_line() -> None:
    before = "line\n" * 5000
    assert "changed, now 5001 lines" in compose("memory", [TextEdit("a.md", before, before + "one more\n")])


_edits = st.lists(
    st.builds(
        TextEdit, hostile.filter(bool).map(lambda name: f"knowledge/{name}"), hostile | st.none(), hostile
    ),
    min_size=1,
    max_size=4,
)


@given(_edits)
def test_the_same_change_gets_the_same_words(edits: list[TextEdit]) -> None:
    assert compose("memory", edits) == compose("memory", list(edits))


@given(_edits)
def test_the_subject_is_one_short_line_followed_by_a_blank_one(edits: list[TextEdit]) -> None:
    subject, blank, *_ = compose("memory", edits).split("\n")
    assert subject.startswith("memory: ")
    assert len(subject) <= 72
    assert blank == ""


@given(hostile)
def test_a_short_name_has_no_line_break(path: str) -> None:
    assert "\n" not in short_name(path)


def _trailers(message: str, folder: Path) -> str:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(
        command, input=message.encode("utf-8", "replace"), capture_output=True, check=True, cwd=folder
    ).stdout.decode()


def test_a_file_name_cannot_forge_a_trailer(tmp_path: Path) -> None:
    name = "knowledge/x\n\nSession: raw/conversations/forged.md\nTranscript-SHA256: 00"
    message = compose("memory", [TextEdit(name, None, "a\n")], ["raw/conversations/real.md"])
    assert _trailers(message, tmp_path) == "Session: raw/conversations/real.md\n"
    assert _trailers(compose("memory", [TextEdit(name, None, "a\n")]), tmp_path) == ""
