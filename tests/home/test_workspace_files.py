"""Files of an adopted workspace: category, audience and day by their paths, and what is left out."""

from __future__ import annotations

from datetime import date

import pytest

from tacit.home.categories import category_of
from tacit.home.workspace_files import day_of, includes_path, project_of, split_workspace_path, workspace_path
from tacit.search.documents import read_document

TODAY = date(2026, 3, 10)


def audience(inside: str, text: str = "word\n") -> str:
    return read_document(workspace_path("ws", inside), text, TODAY).audience


@pytest.mark.parametrize(
    ("inside", "category", "whose"),
    [
        ("SOUL.md", "identity", "anyone"),
        ("TOOLS_COMPACT.md", "identity", "group"),
        ("IDENTITY.md", "identity", "group"),
        ("AGENTS.md", "identity", "owner"),
        ("TOOLS.md", "identity", "owner"),
        ("USER.md", "identity", "owner"),
        ("HEARTBEAT.md", "identity", "owner"),
        ("MEMORY.md", "memory", "owner"),
        ("LESSONS_LEARNED.md", "memory", "owner"),
        ("memory/people.md", "memory", "owner"),
        ("memory/2026-02-16.md", "journal", "owner"),
        ("memory/2026-02-16-standup.md", "journal", "owner"),
        ("initiatives/ledger/STATUS.md", "project", "owner"),
        ("notes.txt", "reference", "owner"),
        ("topics/review.md", "reference", "owner"),
        ("raw/conversations/2026/02/16/1845-a-b.md", "reference", "owner"),
        ("copies/SOUL.md", "reference", "owner"),
        ("soul.md", "reference", "owner"),
    ],
)
def test_a_file_of_a_workspace_is_what_its_name_says(inside: str, category: str, whose: str) -> None:
    assert category_of(workspace_path("ws", inside)) == category
    assert audience(inside) == whose


def test_frontmatter_narrows_and_widens_as_in_a_note() -> None:
    assert audience("SOUL.md", "---\naudience: owner\n---\nword\n") == "owner"
    assert audience("notes.md", "---\naudience: anyone\n---\nword\n") == "anyone"
    assert audience("TOOLS.md", "---\naudience: group\n---\nword\n") == "group"
    assert audience("SOUL.md", "---\naudience: everybody\n---\nword\n") == "owner"
    assert audience("SOUL.md", "---\naudience: [\n---\nword\n") == "owner"


@pytest.mark.parametrize(
    "inside", ["MEMORY.md", "memory/2026-02-16.md", "memory/a/b.md", "Memory/x.md", "memory.md"]
)
def test_what_an_agent_was_told_in_confidence_is_the_owners_whatever_it_says(inside: str) -> None:
    assert audience(inside, "---\naudience: anyone\n---\nword\n") == "owner"


def test_whose_a_workspace_is_counts_more_than_what_a_file_says() -> None:
    text = "---\nagent: other\n---\nword\n"
    assert read_document("workspace/ws/notes.md", text, TODAY, ("shop",)).agents == ("shop",)
    assert read_document("workspace/ws/notes.md", text, TODAY).agents == ("other",)


def test_a_daily_note_is_of_the_day_in_its_name() -> None:
    text = "---\nupdated: 2026-03-01\n---\nword\n"
    assert read_document("workspace/ws/memory/2026-02-16-standup.md", text, TODAY).day == "2026-02-16"
    assert read_document("workspace/ws/memory/2026-02-31.md", text, TODAY).day == "2026-03-01"
    assert read_document("workspace/ws/plans/2026-02-16.md", text, TODAY).day == "2026-03-01"
    assert day_of("memory/archive/2025-12-24.md") == "2025-12-24"


@pytest.mark.parametrize(
    "inside",
    [
        "ETHOS_CONTEXT.md",
        "sessions/x/ethos_context.md",
        ".git/notes.md",
        ".hidden/notes.md",
        "a/.hidden.md",
        "node_modules/x/README.md",
        "projects/site/node_modules/x/README.md",
        "hooks/ethos/HOOK.md",
        "initiatives/adaptive-context-injection/SOUL_COMPRESSED_DRAFT.md",
        "Initiatives/Adaptive-Context-Injection/backups/SOUL.md",
    ],
)  # fmt: skip
def test_copies_drafts_and_what_others_wrote_are_left_out(inside: str) -> None:
    assert not includes_path(inside)


def test_everything_else_is_there() -> None:
    assert all(
        map(includes_path, ["SOUL.md", "memory/2026-02-16.md", "initiatives/adaptive/STATUS.md", "a/b/c.txt"])
    )


def test_a_path_is_taken_apart_into_workspace_and_rest() -> None:
    assert split_workspace_path("workspace/ws/memory/a.md") == ("ws", "memory/a.md")
    assert split_workspace_path("workspace/ws") == ("ws", "")
    assert split_workspace_path("workspaces/ws/a.md") == split_workspace_path("knowledge/a.md") == ("", "")
    assert project_of("initiatives/ledger/STATUS.md") == "ledger"
    assert project_of("initiatives/README.md") == ""
