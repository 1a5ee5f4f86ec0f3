"""`tacit openclaw`: proposals for shorter files, and the way of every draft."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tacit.text import tokens
from tests.cli.test_wisdom import configure
from tests.conftest import Ran, Tacit
from tests.workspaces import FOLDER, grown, text


@pytest.fixture
def claw(tacit: Tacit, home: Path, tmp_path: Path) -> Claw:
    configure(home, soul_approvers="[Marit]", tools_approvers="[Fenn]", wisdom_approvers="[Fenn]")
    return Claw(tacit, grown(tmp_path / "fenn"))


class Claw:
    def __init__(self, tacit: Tacit, root: Path) -> None:
        self._tacit, self.root = tacit, root

    def __call__(self, *arguments: str) -> Ran:
        return self._tacit("openclaw", *arguments, "--workspace", str(self.root))

    def wisdom(self, *arguments: str) -> Ran:
        return self._tacit("wisdom", *arguments, "--workspace", str(self.root))

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def states(self) -> dict[str, str]:
        return {name: one["state"] for name, one in json.loads(self("drafts", "--json").stdout).items()}


def test_tools_compact_is_proposed_approved_put_in_place_and_taken_away_again(claw: Claw) -> None:
    ran = claw("compact-tools")
    assert (ran.code, "- Till service: 8190" in ran.stdout) == (0, True)
    assert not (claw.root / "TOOLS_COMPACT.md").exists()
    assert claw.states()["tools"] == "waiting"
    assert claw("promote", "tools").code == 1
    assert claw("approve", "tools", "--by", "Fenn").code == 0
    assert claw("promote", "tools").code == 0
    compact = claw.read("TOOLS_COMPACT.md")
    assert tokens.count(compact) <= 300
    assert "<!--" not in compact
    assert claw.read("TOOLS.md") == text("TOOLS.md")
    assert claw("undo", "tools").code == 0
    assert not (claw.root / "TOOLS_COMPACT.md").exists()


def test_a_tools_file_that_is_newer_is_warned_about_unless_only_its_date_is(claw: Claw) -> None:
    claw("compact-tools")
    claw("approve", "tools", "--by", "Marit")
    claw("promote", "tools")
    tools = claw.root / "TOOLS.md"
    os.utime(tools, (2**31, 2**31))
    assert claw("compact-tools", "--check").code == 0
    tools.write_text(tools.read_text() + "\n- Scanner: port 9999\n")
    os.utime(tools, (2**31, 2**31))
    ran = claw("compact-tools", "--check")
    assert (ran.code, "TOOLS.md is newer" in ran.stderr) == (1, True)
    claw.wisdom("draft")
    assert "TOOLS.md is newer" in claw.wisdom("due").stderr


def test_a_soul_is_only_approved_by_an_owner_and_the_wisdom_in_it_is_the_approved_one(claw: Claw) -> None:
    claw.wisdom("draft")
    claw.wisdom("approve", "--by", "Fenn")
    soul = claw.read("SOUL.md")
    ran = claw("compress-soul")
    assert ran.code == 0
    assert "Sentences that are not in it:" in ran.stdout
    assert "Agent dynamics: suggested for AGENTS.md" in ran.stdout
    assert claw.read("SOUL.md") == soul
    ran = claw("approve", "soul", "--by", "Fenn")
    assert (ran.code, "Who may: Marit." in ran.stderr) == (1, True)
    assert claw("approve", "soul", "--by", "marit").code == 0
    assert claw("promote", "soul").code == 0
    new = claw.read("SOUL.md")
    assert tokens.count(new) <= 250
    assert claw.read(f"{FOLDER}/SOUL_WISDOM_DRAFT.md").splitlines()[5] in new  # the widest of its patterns
    assert claw.wisdom("check").code == 0
    assert claw("undo", "soul").code == 0
    assert claw.read("SOUL.md") == soul


def test_what_leaves_soul_is_a_draft_for_agents_and_a_promotion_without_it_is_warned_about(
    claw: Claw,
) -> None:
    ran = claw("compress-soul")
    assert "“Operating rhythm” would stand neither in SOUL.md nor in AGENTS.md" in ran.stderr
    assert claw.read("AGENTS.md") == text("AGENTS.md")
    claw("approve", "agents", "--by", "Marit")
    assert claw("promote", "agents").code == 0
    agents = claw.read("AGENTS.md")
    assert agents.startswith(text("AGENTS.md").split("- Tell Marit")[0])
    assert "On Fridays I count the drawers." in agents
    assert "TOOLS_COMPACT.md" in agents


def test_a_waiting_draft_for_agents_is_not_replaced_by_one_that_says_less(claw: Claw) -> None:
    claw("compress-soul")
    before = claw.read(f"{FOLDER}/AGENTS_DRAFT.md")
    claw("compact-tools")
    assert claw.read(f"{FOLDER}/AGENTS_DRAFT.md") == before


def test_a_local_model_is_refused_for_soul_and_nothing_is_drafted(claw: Claw, home: Path) -> None:
    configure(home, soul_model="http://127.0.0.1:11434/v1#qwen3.5:35b")
    ran = claw("compress-soul")
    assert (ran.code, "name a hosted one" in ran.stderr) == (1, True)
    assert claw.states()["soul"] == "none"


def test_a_memory_summary_is_proposed_and_memory_stays_as_it_is(claw: Claw) -> None:
    ran = claw("memory-summary")
    assert (ran.code, "Entries of MEMORY.md: 5." in ran.stdout) == (0, True)
    claw("approve", "summary", "--by", "Marit")
    assert claw("promote", "summary").code == 0
    assert "- Ritter sells rims" in claw.read("MEMORY_SUMMARY.md")
    assert claw.read("MEMORY.md") == text("MEMORY.md")


def test_the_log_tells_everything_that_happened_to_drafts(claw: Claw) -> None:
    claw("compact-tools")
    claw("promote", "tools")
    claw("approve", "tools", "--by", "Marit")
    events = json.loads(claw("drafts", "--log", "--json").stdout)
    assert [(one["what"], one["by"]) for one in events if one["artefact"] == "tools"] == [
        ("drafted", ""),
        ("refused", ""),
        ("approved", "Marit"),
    ]
    assert "is not approved yet" in claw("drafts", "--log").stdout


def test_a_missing_file_and_an_unknown_draft_are_usage_errors(claw: Claw) -> None:
    (claw.root / "TOOLS.md").unlink()
    ran = claw("compact-tools")
    assert (ran.code, "There is no TOOLS.md" in ran.stderr) == (2, True)
    assert claw("approve", "everything", "--by", "Marit").code == 2
    assert claw("approve", "tools", "--by", "Marit").code == 2
    assert claw("approve", "tools").code == 2


def test_a_soul_that_is_a_link_is_refused_and_what_it_leads_to_is_untouched(
    claw: Claw, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text(claw.read("SOUL.md"))
    (claw.root / "SOUL.md").unlink()
    (claw.root / "SOUL.md").symlink_to(elsewhere)
    ran = claw("compress-soul")
    assert (ran.code, "link" in ran.stderr) == (1, True)
    assert elsewhere.read_text() == text("SOUL.md")
