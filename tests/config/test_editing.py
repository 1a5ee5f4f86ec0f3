"""One setting of memory-config.yaml is changed, and nothing else of what somebody wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit import config as configuration
from tacit.config import Config, InjectSettings
from tacit.config.editing import add_items, set_word


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
    made = add_items(before, "owners", ["telegram:1"])
    assert made == after
    assert owners(made)[-1] == "telegram:1"


def test_in_the_starter_both_lists_become_live() -> None:
    text = add_items(configuration.render_starter(), "workspaces", ["/w/my agent"])
    text = add_items(text, "owners", ["telegram:1", "signal:+49"])
    loaded = configuration.parse(text, where="c", environ={}, trusted=True).config
    assert [one.path for one in loaded.workspaces] == ["/w/my agent"]
    assert loaded.owners == ("telegram:1", "signal:+49")


def test_nothing_to_add_changes_nothing() -> None:
    assert add_items("owners: [a]\n", "owners", []) == "owners: [a]\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "inject:\n  files: host\n"),
        ("timezone: local", "timezone: local\ninject:\n  files: host\n"),
        ("inject:\n  #files: rules\nserve:\n", "inject:\n  files: host\nserve:\n"),
        ("inject:\n  # Files.\n\n  files: rules  # mine\n", "inject:\n  # Files.\n\n  files: host  # mine\n"),
        ("inject:\n    mode: each\n", "inject:\n    files: host\n    mode: each\n"),
        ("inject: # here\n  mode: each\nserve:\n  files: 1\n",
         "inject: # here\n  files: host\n  mode: each\nserve:\n  files: 1\n"),
    ],
)  # fmt: skip
def test_a_word_is_set_in_its_section_and_nowhere_else(before: str, after: str) -> None:
    assert set_word(before, "inject", "files", "host") == after


def test_the_starter_with_a_word_says_that_and_nothing_else() -> None:
    text = set_word(configuration.render_starter(), "inject", "files", "without-memory")
    read = configuration.parse(text, where="test", environ={}, trusted=True).config
    assert read == replace(Config(), inject=replace(InjectSettings(), files="without-memory"))
    assert len(set(text.splitlines()) - set(configuration.render_starter().splitlines())) == 1
