"""One list of memory-config.yaml is changed, and nothing else of what somebody wrote."""

from __future__ import annotations

import pytest

from tacit import config as configuration
from tacit.config.edit import with_items


def owners(text: str) -> tuple[str, ...]:
    return configuration.parse(text, where="c", environ={}, trusted=True).config.owners


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("owners: []\n", 'owners: ["telegram:1"]\n'),
        ("owners: [a]  # me\ngit:\n  auto_push: false\n",
         'owners: [a, "telegram:1"]  # me\ngit:\n  auto_push: false\n'),
        ("owners:\n  - a  # me\n  - b\ntimezone: local\n",
         'owners:\n  - a  # me\n  - b\n  - "telegram:1"\ntimezone: local\n'),
        ("# About\n#owners: []\ntimezone: local", '# About\nowners: ["telegram:1"]\ntimezone: local'),
        ("git:\n  auto_push: false", 'git:\n  auto_push: false\nowners: ["telegram:1"]\n'),
        ("", 'owners: ["telegram:1"]\n'),
        ("owners:\n", 'owners: ["telegram:1"]\n'),
    ],
)  # fmt: skip
def test_the_item_is_added_the_way_the_list_is_written(before: str, after: str) -> None:
    made = with_items(before, "owners", ["telegram:1"])
    assert made == after
    assert owners(made)[-1] == "telegram:1"


def test_in_the_starter_both_lists_become_live() -> None:
    text = with_items(configuration.starter(), "workspaces", ["/w/my agent"])
    text = with_items(text, "owners", ["telegram:1", "signal:+49"])
    loaded = configuration.parse(text, where="c", environ={}, trusted=True).config
    assert [one.path for one in loaded.workspaces] == ["/w/my agent"]
    assert loaded.owners == ("telegram:1", "signal:+49")


def test_nothing_to_add_changes_nothing() -> None:
    assert with_items("owners: [a]\n", "owners", []) == "owners: [a]\n"
