"""A turn is given what a link leads to, says so, and tells nobody of links that are not for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.context.request import Request
from tacit.memory import Memory
from tests.memory.homes import GROUP, NOW, OWNER, OWNERS, PATIENT, opened, settle, write
from tests.search.test_link_expansion import NOTES

ASKED = "What should I cook when Mara comes?"
MARA, OSKAR = "knowledge/people/mara.md", "knowledge/people/oskar.md"


@pytest.fixture
def linked(home: Path) -> Path:
    settle(home)
    for path, text in NOTES.items():
        write(home, path, text)
    return home


def look(memory: Memory, key: str = OWNER) -> Compiled:
    return memory.services.turns.look(Request(ASKED, key))


def test_a_turn_is_given_the_note_that_a_link_leads_to_and_says_so(linked: Path) -> None:
    compiled = look(opened(linked, NOW))
    reasons = {one.source.partition(":")[0]: one.reason for one in compiled.sections}
    assert "Cannot have nuts of any kind" in compiled.text
    assert f"linked from {MARA}" in reasons[OSKAR]


def test_a_link_alone_opens_no_gate(linked: Path) -> None:
    settle(linked, f"{OWNERS}inject: {{deadline_ms: 60000, confidence_gate: 0.97, strong: 0.98}}\n")
    compiled = look(opened(linked, NOW))
    assert "nuts" not in compiled.text


def test_a_group_is_not_led_to_what_is_not_for_it(linked: Path) -> None:
    """Mara's page is for the group, Oskar's is not; and the other way round."""
    settle(linked, PATIENT + OWNERS)
    write(linked, MARA, f"---\naudience: group\n---\n{NOTES[MARA]}")
    compiled = look(opened(linked, NOW), GROUP)
    assert "nuts" not in compiled.text
    assert OSKAR not in str(compiled.receipt)
    write(linked, MARA, NOTES[MARA])
    write(linked, OSKAR, f"---\naudience: group\n---\n{NOTES[OSKAR]}")
    assert MARA not in str(look(opened(linked, NOW), GROUP).receipt)
