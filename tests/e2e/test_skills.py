"""The cards as the real host reads them."""

from __future__ import annotations

import shutil
from typing import Any

from tests.conftest import Tacit
from tests.e2e.conftest import Gateway

MOST_CHARACTERS = 900  # that two cards may add to the host's list of skills


def skills(gateway: Gateway, key: str) -> dict[str, Any]:
    found: dict[str, Any] = gateway.host.agent("Good day", key).report["skills"]
    return found


def test_the_host_lists_the_cards_of_agents_by_a_line_each_and_keeps_the_operators_out(
    gateway: Gateway,
) -> None:
    before = skills(gateway, "agent:main:cards-before")
    folder = gateway.host.state / "skills"
    assert Tacit(gateway.home)("skills", "--copy", str(folder)).code == 0
    try:
        after = skills(gateway, "agent:main:cards-after")
    finally:
        shutil.rmtree(folder)
    new = {one["name"] for one in after["entries"]} - {one["name"] for one in before["entries"]}
    assert new == {"tacit-recall", "tacit-remember"}
    assert 0 < after["promptChars"] - before["promptChars"] < MOST_CHARACTERS
