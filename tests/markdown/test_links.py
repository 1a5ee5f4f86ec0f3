"""Links between notes: what counts as one, and what a link may call a note."""

from __future__ import annotations

import pytest
from hypothesis import given

from tacit.markdown.links import find_links, link_target, list_link_names
from tests.hostile import hostile

HERE = "knowledge/projects/shop/context.md"


def targets(text: str) -> list[str]:
    return [pointer.target for pointer in find_links(HERE, text)]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("see [[Mara]]", "[[mara]]"),
        ("see [[Mara Lind|her page]]", "[[mara lind]]"),
        ("see [[Mara#Family]]", "[[mara]]"),
        ("see [[Mara#Family|her]]", "[[mara]]"),
        ("![[Mara]]", "[[mara]]"),
        ("[[people/mara]]", "[[people/mara]]"),
        ("[[mara.md]]", "[[mara]]"),
        ("[[ Zoë ]]", "[[zoe]]"),
        ("[her](../../people/mara.md)", "knowledge/people/mara.md"),
        ("[her](../../people/mara.md#family)", "knowledge/people/mara.md"),
        ("[it](a%20b.md)", "knowledge/projects/shop/a b.md"),
        ("[it](<a b.md>)", "knowledge/projects/shop/a b.md"),
        ("[it](<a.md#part>)", "knowledge/projects/shop/a.md"),
        ('[it](a.md "what it is")', "knowledge/projects/shop/a.md"),
        ("[it](notes.txt)", "knowledge/projects/shop/notes.txt"),
        ("[it](knowledge/people/mara.md)", "knowledge/people/mara.md"),
        ("see knowledge/people/mara.md.", "knowledge/people/mara.md"),
        ("see `knowledge/people/mara.md`", "knowledge/people/mara.md"),
        ("---\nrelated: '[[Mara]]'\n---\n", "[[mara]]"),
    ],
)
def test_a_link_leads_to_a_path_or_a_name(text: str, target: str) -> None:
    assert targets(text) == [target]


@pytest.mark.parametrize(
    "text",
    [
        "if [[ -n $x ]] in `[[code]]`".replace("[[ -n $x ]]", "it"),
        "```sh\nif [[ -n $x ]]; then\n```",
        "[[#Section]]",
        "[[]]",
        "[[ ]]",
        "[[Mara",
        "[[Mara\n]]",
        "[it](https://example.org/a.md)",
        "[it](/etc/a.md)",
        "[it](../../../../a.md)",
        "[it](picture.png)",
        "[me](context.md)",
    ],
)
def test_what_is_no_link_leads_nowhere(text: str) -> None:
    assert targets(text) == []


def test_a_target_counts_once_and_tells_where_it_first_stands() -> None:
    [one] = find_links(HERE, "# A\n\nsee [[Mara|her]]\nand [[mara]]\n")
    assert (one.target, one.written, one.line) == ("[[mara]]", "[[Mara|her]]", 3)


def test_a_note_is_called_by_its_path_its_title_and_its_names() -> None:
    fields: dict[str, object] = {"name": "Mara Lind", "aliases": ["Mimi", "Dr Lind"]}
    found = list_link_names("knowledge/people/mara.md", "Mara", fields)
    wanted = ["mara", "people/mara", "knowledge/people/mara", "mara lind", "mimi", "dr lind"]
    assert list(found) == [link_target(name) for name in wanted]


def test_a_project_is_called_by_its_folder() -> None:
    assert link_target("Shop") in list_link_names(HERE, "What it is about", {})
    assert link_target("Shop") not in list_link_names("knowledge/projects/shop/progress.md", "Progress", {})


@given(hostile)
def test_any_text_may_have_links(text: str) -> None:
    for pointer in find_links(HERE, text):
        assert pointer.target
        assert 1 <= pointer.line <= text.count("\n") + 1
    list_link_names(text, text, {"name": text, "aliases": [text]})


def test_very_long_lines_take_no_time() -> None:
    """Each of these would take minutes if anything were looked at again and again."""
    for part in ("`", "[[", "](", "[[a|", "`a", "knowledge/", "](a"):
        assert targets(part * 200_000 + " .md") == []
