"""The table of `tacit config` and the file that `tacit init` writes."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tacit.config import Config, ConfigRow, Value, describe, parse, render_starter, show
from tacit.config.schema import KEYS

SETTING = re.compile(r"^( *)#(?=\S)", re.MULTILINE)


def test_the_starter_file_means_exactly_the_defaults() -> None:
    loaded = parse(render_starter(), where="memory-config.yaml", environ={}, trusted=True)
    assert loaded.config == Config()
    assert loaded.problems == ()


def test_the_starter_file_is_harmless_in_a_foreign_home_too() -> None:
    assert parse(render_starter(), where="f", environ={}, trusted=False).problems == ()


def test_the_starter_file_with_every_setting_uncommented_means_the_defaults_too() -> None:
    loaded = parse(SETTING.sub(r"\1", render_starter()), where="f", environ={}, trusted=True)
    assert loaded.config == Config()
    assert "default" not in loaded.origins.values()


def test_the_starter_file_names_no_key_twice() -> None:
    """Uncommented, a key named twice would be refused; this looks at the text as people see it."""
    section, seen = "", Counter[str]()
    for line in SETTING.sub(r"\1", render_starter()).splitlines():
        if match := re.match(r"( *)([a-z_0-9]+):", line):
            section = match[2] if not match[1] else section
            seen[f"{section}.{match[2]}"] += 1
    assert set(seen.values()) == {1}


def test_the_starter_file_is_short_and_mostly_comments() -> None:
    lines = render_starter().splitlines()
    assert len(lines) < 280
    assert max(map(len, lines)) <= 112
    live = [line for line in lines if line.strip() and not line.strip().startswith("#")]
    assert [line for line in live if not line.endswith(":")] == [
        "timezone: local",
        "owners: []",
        "  auto_commit: true",
        "  auto_push: false",
    ]


def test_one_starter_setting_can_be_changed_by_removing_its_mark() -> None:
    text = render_starter().replace("  #token_budget: 8192", "  token_budget: 4096")
    assert parse(text, where="f", environ={}, trusted=True).config.context_compiler.token_budget == 4096


def test_the_starter_file_shows_how_a_rule_is_written() -> None:
    lines = render_starter().splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("  #   rules:"))
    example = "\n".join(line.removeprefix("  # ") for line in lines[at : at + 3])
    loaded = parse(f"sessions:\n{example}", where="f", environ={}, trusted=True)
    assert len(loaded.config.sessions.rules) == 2
    assert loaded.problems == ()


def test_describe_tells_a_rule_by_the_names_that_it_names() -> None:
    text = "sessions:\n  rules:\n  - {type: group_chat, peer: '-1', files: [SOUL.md], lanes: null}\n"
    loaded = parse(text, where="memory-config.yaml", environ={}, trusted=True)
    row = next(row for row in describe(loaded) if row.key == "sessions.rules")
    assert row.value == ({"type": "group_chat", "peer": "-1", "files": ("SOUL.md",), "lanes": None},)
    assert row.origin == "memory-config.yaml:2"
    assert show(row.value) == '[{type: group_chat, peer: "-1", files: [SOUL.md], lanes: null}]'
    assert show(loaded.config.sessions.rules) == show(row.value)


def test_describe_tells_a_workspace_as_it_was_written() -> None:
    text = "workspaces: [/srv/a, {path: /srv/b, agent: shop}]\n"
    loaded = parse(text, where="memory-config.yaml", environ={}, trusted=True)
    row = next(row for row in describe(loaded) if row.key == "workspaces")
    assert row.value == ("/srv/a", {"path": "/srv/b", "agent": "shop"})
    assert show(row.value) == show(loaded.config.workspaces) == text.removeprefix("workspaces: ").strip()


def test_describe_lists_every_key_once_in_a_stable_order() -> None:
    loaded = parse("git:\n  explore_days: 3\n", where="memory-config.yaml", environ={}, trusted=True)
    rows = describe(loaded)
    assert [row.key for row in rows] == list(KEYS)
    assert rows[list(KEYS).index("git.explore_days")] == ConfigRow(
        key="git.explore_days",
        value=3,
        default=7,
        origin="memory-config.yaml:2",
        about="Days after which an explore/ branch is deleted.",
        allowed="a whole number from 1 to 3650",
    )


def test_describe_does_not_show_a_password_inside_an_address() -> None:
    text = "git: {remote: 'https://ada:$TOKEN@example.org/m.git'}"
    loaded = parse(text, where="f", environ={"TOKEN": "hunter2"}, trusted=True)
    assert loaded.config.git.remote == "https://ada:hunter2@example.org/m.git"
    shown = {row.key: row.value for row in describe(loaded)}
    assert shown["git.remote"] == "https://***@example.org/m.git"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (8192, "8192"),
        (0.25, "0.25"),
        ("lean", "lean"),
        ("0 23 * * *", '"0 23 * * *"'),
        ("no", '"no"'),
        ("77", '"77"'),
        ('a"b\\c$', '"a\\"b\\\\c$$"'),
        ((), "[]"),
        (("a", "77"), '[a, "77"]'),
    ],
)
def test_show_writes_a_value_as_it_would_stand_in_the_file(value: Value, text: str) -> None:
    assert show(value) == text
