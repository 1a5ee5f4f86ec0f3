"""`tacit links` and Memory.links: what a note links to, what links to it, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit as product
from tacit.search.model import Link
from tests.conftest import Tacit

MARA, OSKAR = "knowledge/people/mara.md", "knowledge/people/oskar.md"
NOTES = {
    MARA: "# Mara Lind\n\n- Lives with [[Oskar]]\n- Has a [[boat]]\n",
    OSKAR: "---\naudience: group\n---\n# Oskar\n\n- see [her](mara.md) and [[people/mara#Family|Mara]]\n",
    "knowledge/projects/a/context.md": "# A\n\n- [[notes]]\n",
    "knowledge/projects/a/notes.md": "# Wood\n\n- Oak.\n",
    "knowledge/projects/b/notes.md": "# Stone\n\n- Slate. [[Oskar]]\n",
    "knowledge/reference/alone.md": "# Alone\n\n- No link.\n",
}


@pytest.fixture
def linked(home: Path) -> Path:
    for folder in ("knowledge", "topics", "archive"):
        for file in (home / folder).rglob("*.md"):
            file.unlink()
    for path, text in NOTES.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    return home


def test_cli_links_tells_both_directions_of_a_note(linked: Path, tacit: Tacit) -> None:
    told = json.loads(tacit("links", "Mara Lind", "--json").stdout)
    assert told["path"] == MARA
    assert [(one["written"], one["line"], one["targets"]) for one in told["to"]] == [
        ("[[Oskar]]", 3, [OSKAR]),
        ("[[boat]]", 4, []),
    ]
    assert {(one["source"], one["written"]) for one in told["by"]} == {
        (OSKAR, "mara.md"),
        (OSKAR, "[[people/mara#Family|Mara]]"),
    }
    assert tacit("links", MARA).stdout.splitlines() == [
        f"{MARA} links to",
        f"  {MARA}:3  [[Oskar]] → {OSKAR}",
        f"  {MARA}:4  [[boat]] → nothing",
        "and is linked from",
        f"  {OSKAR}:6  [[people/mara#Family|Mara]]",
        f"  {OSKAR}:6  mara.md",
    ]


def test_cli_links_tells_what_is_linked_most_what_is_wrong_and_what_stands_alone(
    linked: Path, tacit: Tacit
) -> None:
    told = json.loads(tacit("links", "--json").stdout)
    assert (told["notes"], told["links"]) == (6, 6)
    assert told["most"][0] == {"path": OSKAR, "count": 2}
    assert [one["written"] for one in told["broken"]] == ["[[boat]]"]
    assert [(one["written"], one["targets"]) for one in told["ambiguous"]] == [
        ("[[notes]]", ["knowledge/projects/a/notes.md", "knowledge/projects/b/notes.md"])
    ]
    assert told["orphans"] == ["knowledge/reference/alone.md"]
    shown = tacit("links").stdout
    assert shown.startswith("6 notes, 6 links.\nLinked most:\n     2  knowledge/people/oskar.md\n")
    assert "Without any link:\n  knowledge/reference/alone.md\n" in shown


def test_cli_links_broken_is_a_problem_only_where_there_is_one(linked: Path, tacit: Tacit) -> None:
    found = tacit("links", "--broken")
    assert (found.code, found.stdout) == (1, f"{MARA}:4  [[boat]] → nothing\n")
    assert tacit("links", OSKAR, "--broken").code == 0
    (linked / MARA).write_text("# Mara Lind\n\n- Lives with [[Oskar]]\n")
    found = tacit("links", "--broken")
    assert (found.code, found.stdout) == (0, "No link is broken.\n")


@pytest.mark.parametrize(("name", "said"), [("nobody", "No note is called"), ("notes", "may be any of")])
def test_cli_links_needs_one_note(linked: Path, tacit: Tacit, name: str, said: str) -> None:
    found = tacit("links", name)
    assert found.code == 2
    assert said in found.stderr


def test_links_are_told_to_a_session_as_far_as_it_may_see(linked: Path) -> None:
    memory = product.open(linked)
    stone = "knowledge/projects/b/notes.md"
    assert {link.source for link in memory.links(OSKAR).by} == {MARA, stone}
    assert memory.links(OSKAR, session_key="agent:main:telegram:group:-100").by == ()
    assert memory.links(MARA, session_key="agent:main:telegram:group:-100").to == ()
    (linked / stone).write_text("---\naudience: group\n---\n- [[Oskar]]\n")
    assert memory.links(OSKAR, session_key="agent:main:telegram:group:-100").by == (
        Link(stone, 4, "[[Oskar]]", (OSKAR,)),
    )


def test_links_lead_to_and_from_a_note_that_was_archived(linked: Path, tacit: Tacit) -> None:
    (linked / "knowledge/projects/a/notes.md").write_text(f"# Wood\n\n- Oak, says {MARA}.\n")
    (linked / "archive/people").mkdir(parents=True, exist_ok=True)
    for path in (MARA, OSKAR):
        (linked / path).rename(linked / path.replace("knowledge/", "archive/"))
    told = json.loads(tacit("links", "archive/people/mara.md", "--json").stdout)
    assert {(one["source"], one["written"]) for one in told["by"]} == {
        ("archive/people/oskar.md", "mara.md"),
        ("archive/people/oskar.md", "[[people/mara#Family|Mara]]"),
        ("knowledge/projects/a/notes.md", MARA),
    }
