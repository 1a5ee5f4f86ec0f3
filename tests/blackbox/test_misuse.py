"""Wrong use: the exit code, and one message on standard error. Its wording is free."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blackbox.outside import Commands

USAGE = [
    ["nonsense"],
    ["--nonsense"],
    ["search"],
    ["search", "x", "--nonsense"],
    ["search", "x", "--limit", "many"],
    ["search", "x", "--category", "nonsense"],
    ["search", "x", "--since", "someday"],
    ["compile", "x", "--budget", "much"],
    ["compile", "x", "--webhook", "a/b", "--cron", "c"],
    ["compile", "x", "--history", "not-there.json"],
    ["capture"],
    ["capture", "message", "ses_nowhere", "user", "x"],
    ["capture", "start", "--at", "someday"],
    ["config", "no.such.key"],
    ["eval", "not-there"],
    ["forget"],
    ["forget", "abc"],
    ["history", "nonsense"],
    ["history", "recall", "knowledge/none.md", "2026-03-05"],
    ["links", "no-such-note"],
    ["purge"],
    ["rebuild"],
    ["remember"],
    ["review", "show", "no-such-draft"],
    ["run", "nonsense"],
    ["topics", "show", "no-such-topic"],
    ["openclaw", "drafts"],
    ["wisdom", "sources"],
    ["hook", "nonsense"],
    ["demo", "--home", "."],
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_wrong_use_ends_with_2(prepared: Commands, arguments: list[str]) -> None:
    result = prepared(*arguments)
    assert result.code == 2
    assert result.stdout == ""
    assert result.stderr.strip()
    assert "Traceback" not in result.stderr


def test_a_home_that_is_missing_is_named(tmp_path: Path) -> None:
    for command in (["status"], ["search", "x"], ["doctor"], ["run", "all"], ["verify"], ["stop"]):
        result = Commands(tmp_path / "nowhere")(*command)
        assert (command, result.code, len(result.stderr.splitlines())) == (command, 1, 1)
        assert str(tmp_path / "nowhere") in result.stderr
        assert result.stdout == ""


def test_a_config_that_cannot_be_read_is_a_problem_and_names_its_place(tacit_command: Commands) -> None:
    config = tacit_command.home / "memory-config.yaml"
    for text in ("inject: {deadline_ms: soon}\n", "git: [\n", "injekt: {}\n"):
        config.write_text(text)
        result = tacit_command("search", "tomatoes")
        assert result.code in (1, 2)
        assert "memory-config.yaml" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_home_may_be_named_before_or_after_the_command(prepared: Commands, tmp_path: Path) -> None:
    home = str(prepared.home)
    elsewhere = Commands(tmp_path / "nowhere")
    before = elsewhere("--home", home, "status", "--json")
    after = elsewhere("status", "--home", home, "--json")
    assert before.code == after.code == 0
    assert before.json == after.json
