"""`tacit config` shows every key, its value, its origin and what it does; a mistake is one message."""

from __future__ import annotations

import json
from pathlib import Path

from tacit.config import Config
from tacit.config.schema import flatten
from tests.conftest import Tacit


def test_cli_config_lists_every_key_with_value_origin_and_meaning(home: Path, tacit: Tacit) -> None:
    rows = json.loads(tacit("config", "--json").stdout)
    assert [row["key"] for row in rows] == list(flatten(Config()))
    assert all(row["about"] and row["origin"] for row in rows)


def test_cli_config_says_where_a_value_comes_from(home: Path, tacit: Tacit) -> None:
    (home / "memory-config.yaml").write_text("lifecycle:\n  commit_interval_minutes: 5\n")
    told = tacit("config", "lifecycle.commit_interval_minutes").stdout
    assert "5  (memory-config.yaml:2)" in told
    assert "(default)" in tacit("config", "git.auto_push").stdout


def test_cli_config_shows_a_section(home: Path, tacit: Tacit) -> None:
    lines = tacit("config", "git").stdout.splitlines()
    assert sum(line.startswith("git.") for line in lines) == 8


def test_cli_config_an_unknown_key_is_a_usage_error(home: Path, tacit: Tacit) -> None:
    done = tacit("config", "git.nonsense")
    assert done.code == 2
    assert "There is no key 'git.nonsense'" in done.stderr


def test_cli_a_mistake_in_the_config_is_one_message_with_line_and_nearest_key(
    home: Path, tacit: Tacit
) -> None:
    (home / "memory-config.yaml").write_text("git:\n  auto_comit: true\n")
    done = tacit("capture", "start")
    assert done.code == 1
    assert done.stderr == (
        "tacit: memory-config.yaml:2: unknown key 'git.auto_comit'. Did you mean 'git.auto_commit'?\n"
    )


def test_cli_a_config_that_is_not_text_is_told_with_its_line(home: Path, tacit: Tacit) -> None:
    (home / "memory-config.yaml").write_bytes(b"timezone: local\n# \xff\n")
    done = tacit("config")
    assert done.code == 1
    assert "memory-config.yaml:2: is not UTF-8 text." in done.stderr


def test_cli_the_config_of_a_folder_one_stands_in_is_not_read(
    tmp_path: Path, home: Path, tacit: Tacit
) -> None:
    (tmp_path / "memory-config.yaml").write_text("git:\n  auto_push: true\n  remote: origin\n")
    done = tacit("config", "git.auto_push", cwd=tmp_path)
    assert "false" in done.stdout


def test_cli_a_foreign_home_can_reach_nothing(tmp_path: Path, home: Path, tacit: Tacit) -> None:
    (home / ".tacit" / "trusted").unlink()
    (home / "memory-config.yaml").write_text("git:\n  auto_push: true\n  remote: /tmp/somewhere\n")
    done = tacit("config", "git.auto_push")
    assert "false" in done.stdout
    assert "was not set up on this machine" in done.stderr
