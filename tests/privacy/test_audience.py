"""Who may see a note, as it says itself: no typing mistake makes it wider."""

from __future__ import annotations

from datetime import date

import pytest

from tacit.markdown import notes
from tacit.privacy.audience import NO_AGENT, has_audience, read_agents
from tacit.search.documents import read_document
from tacit.search.model import Document


def read(path: str, text: str) -> Document:
    return read_document(path, text, date(2026, 7, 8))


@pytest.mark.parametrize(
    "head",
    [
        "---\nAudience: owner\n---\n",
        "---\nAUDIENCE: [owner]\n---\n",
        "---\naudiences: owner\n---\n",
        "---\naudiance: owner\n---\n",
        "---\n\uff41udience: owner\n---\n",
        "---\nAudience: owner\naudience: anyone\n---\n",
        "---\naudience: anyone\nAudience: owner\n---\n",
        "---\naudience: owner\naudience: anyone\n---\n",
        "---\naudience: anyone\n'audience': owner\n---\n",
        "---\naudience:\n  - owner\naudience: anyone\n---\n",
        "---\naudience: owner\ntitle: x\naudience: group\n---\n",
        "---\n{audience: owner, audience: anyone}\n---\n",
        "\n---\naudience: owner\n---\n",
        " ---\naudience: owner\n---\n",
        "\r\n \r\n---\r\naudience: owner\r\n---\r\n",
        "\r---\raudience: owner\r---\r",
        "\ufeff\n---\naudience: owner\n---\n",
        "\n---\naudience: anyone\n---\n",
        "\n---\naudience: owner\n",
        "<!-- mine -->\n---\naudience: owner\n---\n",
        "----\naudience: owner\n----\n",
        '+++\naudience = "owner"\n+++\n',
    ],
)
def test_a_typing_mistake_in_the_head_never_makes_a_note_wider(head: str) -> None:
    for path in ("topics/a.md", "knowledge/procedures/a.md", "knowledge/identity/SOUL.md"):
        found = read(path, f"{head}# Codes\n\ntext")
        assert found.audience == "owner"
    assert has_audience(notes.parse(f"{head}text"))


@pytest.mark.parametrize(
    ("head", "audience"),
    [
        ("audience: anyone\naudience: group", "group"),
        ("audience: group\nAudience: anyone", "group"),
        ("audience: anyone\ntags: a\ntags: b", "anyone"),
        ("author: owner\nagenda: owner\naudio: owner", "group"),
    ],
)
def test_of_what_is_said_twice_the_narrowest_holds(head: str, audience: str) -> None:
    assert read("topics/a.md", f"---\n{head}\n---\ntext").audience == audience


@pytest.mark.parametrize(
    "text",
    ["\n---\n\ntext about an audience\n", "---\n\n# Agents\n\ntext", "\n---\nx\n---\n", "audience: owner\n"],
)
def test_a_rule_that_stands_above_a_note_restricts_nothing(text: str) -> None:
    found = notes.parse(text)
    assert not has_audience(found)
    assert read_agents(found) == ()


@pytest.mark.parametrize(
    ("head", "agents"),
    [
        ("---\nagents: kiln\n---\n", ("kiln",)),
        ("---\nAgent: kiln\n---\n", ("kiln",)),
        ("---\nagnet: [kiln, main]\n---\n", ("kiln", "main")),
        ("---\nagent: [kiln, main]\nagents: kiln\n---\n", ("kiln",)),
        ("---\nagent: kiln\nAgent: main\n---\n", (NO_AGENT,)),
        ("---\nagent: kiln\nagent: main\n---\n", (NO_AGENT,)),
        ("---\nagent: kiln\nx: [\n---\n", (NO_AGENT,)),
        ("\n---\nagent: kiln\n---\n", ("kiln",)),
        ("\n---\nagent: [kiln\n---\n", (NO_AGENT,)),
    ],
)
def test_a_typing_mistake_never_gives_a_note_to_other_agents(head: str, agents: tuple[str, ...]) -> None:
    assert read_agents(notes.parse(f"{head}text")) == agents
    assert read("topics/a.md", f"{head}text").agents == agents


def test_many_comments_above_a_note_take_no_time() -> None:
    assert read_agents(notes.parse("<!---->" * 500 + "x")) == ()
