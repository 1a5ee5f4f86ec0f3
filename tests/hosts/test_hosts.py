"""What every host offers."""

from __future__ import annotations

import pytest

from tacit.hosts import HOSTS

FILES = [{"name": "AGENTS.md", "path": "AGENTS.md", "content": "Be kind."}]


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_can_be_told_which_files_to_load(name: str) -> None:
    assert HOSTS[name].bootstrap_entries("agent:main:main", FILES) == FILES


@pytest.mark.parametrize("name", HOSTS)
def test_the_body_of_a_turn_does_not_name_the_host_any_more(name: str) -> None:
    assert "host" not in HOSTS[name].turn({"host": name, "message": "Hello"})
