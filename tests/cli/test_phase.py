"""`tacit openclaw phase` where no host runs; with the real one: tests/e2e/test_whole_migration.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.app import open_home
from tacit.hosts.openclaw import phase_steps, phases
from tacit.hosts.openclaw.drafts import compact_tools, draft_wisdom, shorten_soul
from tacit.hosts.openclaw.phases import Migration
from tacit.hosts.openclaw.workspace import CURATED_FILES, approve_draft, open_workspace, promote_draft
from tests.conftest import Ran, Tacit
from tests.e2e import grown

Phase = Callable[..., Ran]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    grown.grow(folder)
    return folder


@pytest.fixture
def phase(tacit: Tacit, workspace: Path, tmp_path: Path) -> Phase:
    tacit("init", str(tacit.home), "--workspace", str(workspace))
    config = tacit.home / "memory-config.yaml"
    config.write_text(config.read_text().replace("#soul_approvers: []", "soul_approvers: [Ines]"))

    def run(*arguments: str) -> Ran:
        return tacit("openclaw", "phase", *arguments, env={"HOME": str(tmp_path)})

    return run


@pytest.fixture
def prepared(phase: Phase, tacit: Tacit, workspace: Path) -> Migration:
    """In phase 0a, with everything approved."""
    place = open_workspace(tacit.home, str(workspace))
    migration = Migration(place, open_home(tacit.home, recover=False), None, {})
    phases.take_backups(place)
    draft_wisdom(place)
    approve_draft(place, CURATED_FILES["wisdom"], "Ines")
    compact_tools(place)
    shorten_soul(place)
    for name in ("soul", "tools", "agents"):
        approve_draft(place, CURATED_FILES[name], "Ines")
    migration.note("entered", "0a")
    return migration


def test_before_it_is_begun_it_says_so_and_without_a_host_it_cannot_begin(
    phase: Phase, workspace: Path
) -> None:
    before = {file: file.read_bytes() for file in workspace.rglob("*") if file.is_file()}
    assert "none: not begun" in phase("status").stdout
    assert json.loads(phase("status", "--json").stdout)["next"] == "0a"
    assert [
        phase(*step).code for step in (("rollback",), ("rollback", "--all"), ("note", "failed", "it"))
    ] == [2] * 3
    ran = phase("next")
    assert (ran.code, "There is no OpenClaw on this machine" in ran.stderr) == (1, True)
    assert {file: file.read_bytes() for file in before} == before
    found = json.loads(phase("check", "--json").stdout)
    assert {one["verdict"] for one in found} <= {"PASS", "BLOCKED", "FAIL"}
    assert len(found) == 10


def test_what_is_missing_is_listed_with_what_helps(phase: Phase, prepared: Migration) -> None:
    ran = phase("next")
    assert ran.code == 1
    assert "no   the baseline is the host's own report" in ran.stdout
    assert "tacit openclaw baseline --turn" in ran.stdout
    assert "yes  the backups are whole" in phase("status").stdout
    assert phase("next", "--waive", "AC-1b").code == 2  # without a reason


def test_drafts_whose_promotion_was_cut_short_are_promoted_by_the_next_try(
    phase: Phase, prepared: Migration, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = promote_draft, 0

    def cut(*given: object) -> object:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(phase_steps, "promote_draft", cut)
        with pytest.raises(KeyboardInterrupt):
            phase_steps.enter(phase_steps.PhaseEntry(prepared, "Ines", lambda _: None), "0b")
    assert "0b, and cut short" in phase("status").stdout
    ran = phase("next", "--by", "Ines")
    assert ran.code == 0, ran.stderr
    assert "AGENTS.md" not in ran.stdout  # which was promoted before
    assert json.loads(phase("status", "--json").stdout)["phase"] == "0b"
    assert phase("rollback", "--phase", "0", "--by", "Ines").code == 0
    for name, text in (("SOUL.md", grown.SOUL), ("USER.md", grown.USER)):
        assert (workspace / name).read_text() == text
    assert (workspace / "initiatives/adaptive-context-injection/phases.jsonl").exists()


def test_a_dry_run_changes_nothing_and_what_it_refuses_is_told(
    phase: Phase, prepared: Migration, workspace: Path
) -> None:
    phase_steps.enter(phase_steps.PhaseEntry(prepared, "Ines", lambda _: None), "0b")
    soul = workspace / "SOUL.md"
    soul.write_text(soul.read_text() + "\nMine.\n")
    before = soul.read_bytes()
    ran = phase("rollback", "--all", "--dry-run")
    assert (ran.code, "refused: SOUL.md was edited since" in ran.stdout) == (1, True)
    ran = phase("rollback", "--all")
    assert (ran.code, "newer work would be lost" in ran.stderr) == (1, True)
    assert soul.read_bytes() == before
    found = json.loads(phase("rollback", "--all", "--force", "--by", "Ines", "--json").stdout)
    assert (found["to"], soul.read_text()) == ("none", grown.SOUL)
    assert any(before == (workspace / path).read_bytes() for path in found["kept"])


def test_what_somebody_saw_is_recorded(phase: Phase, prepared: Migration) -> None:
    assert "begins anew" in phase("note", "failed", "it forgot my name", "--by", "Ines").stdout
    last = prepared.lines[-1]
    assert (last.what, last.phase, last.by, last.why) == ("failed", "0a", "Ines", "it forgot my name")
