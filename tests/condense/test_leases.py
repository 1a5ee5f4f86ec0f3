"""Of several machines with one remote one does it, and nobody asks more than is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tacit.condense.periods import claim_periods
from tacit.git import process
from tacit.git.repository import Git
from tacit.home.layout import Home

DAYS = [f"day 2026-03-{day:02d}" for day in range(1, 20)]


@pytest.fixture
def remote(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote.git")], check=True)
    return str(tmp_path / "remote.git")


def machine(root: Path) -> tuple[Home, Git]:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return Home(root), Git(root)


def test_what_another_machine_has_is_not_ours_and_stays_so(tmp_path: Path, remote: str) -> None:
    ours, theirs = machine(tmp_path / "a"), machine(tmp_path / "b")
    assert claim_periods(*ours, remote, DAYS[:2]) == (DAYS[:2], "")
    assert claim_periods(*theirs, remote, DAYS[:3]) == ([DAYS[2]], "")
    assert claim_periods(*ours, remote, DAYS[:3]) == (DAYS[:2], "")  # also when it begins again after a kill


def test_days_that_others_have_cost_one_question_however_many_they_are(
    tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = machine(tmp_path / "a"), machine(tmp_path / "b")
    claim_periods(*ours, remote, DAYS)
    asked: list[str] = []
    real = process.call_remote

    def ask(root: Path, *arguments: str) -> tuple[str, str]:
        asked.append(arguments[0])
        return real(root, *arguments)

    monkeypatch.setattr(process, "call_remote", ask)
    assert claim_periods(*theirs, remote, DAYS) == ([], "")
    assert asked == ["ls-remote"]


def test_a_remote_that_is_gone_is_told(tmp_path: Path) -> None:
    mine, why = claim_periods(*machine(tmp_path / "a"), str(tmp_path / "gone.git"), DAYS)
    assert mine == []
    assert "could not be asked whether another machine does it" in why
