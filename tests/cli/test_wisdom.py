"""`tacit wisdom`: from lessons to SOUL.md and back, as a person types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.conftest import Ran, Tacit
from tests.embeddings import conftest as loopback
from tests.embeddings.conftest import Reply, Serve
from tests.workspaces import FOLDER, grown, text

serve = loopback.serve
ROOT = Path(__file__).parent.parent.parent
DRAFT = f"{FOLDER}/SOUL_WISDOM_DRAFT.md"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return grown(tmp_path / "fenn")


@pytest.fixture
def wisdom(tacit: Tacit, home: Path, workspace: Path) -> Wisdom:
    configure(home, soul_approvers="[Marit]", wisdom_approvers="[Fenn]", soul_max_tokens="600")
    return Wisdom(tacit, workspace)


def configure(home: Path, **settings: str) -> None:
    file = home / "memory-config.yaml"
    lines = file.read_text()
    for name, value in settings.items():
        lines, count = re.subn(rf"(?m)^  #?{name}:.*$", f"  {name}: {value}", lines)
        assert count == 1
    file.write_text(lines)


class Wisdom:
    def __init__(self, tacit: Tacit, workspace: Path) -> None:
        self._tacit, self.workspace = tacit, workspace

    def __call__(self, *arguments: str) -> Ran:
        return self._tacit("wisdom", *arguments, "--workspace", str(self.workspace))

    def read(self, name: str) -> str:
        return (self.workspace / name).read_text()


def test_sources_lists_what_is_there_warns_of_what_is_not_and_never_fails(wisdom: Wisdom) -> None:
    (wisdom.workspace / "LESSONS_LEARNED.md").unlink()
    (wisdom.workspace / "MEMORY.md").write_text("# Memory\n")
    ran = wisdom("sources")
    assert ran.code == 0
    assert "AGENTS.md" in ran.stdout
    assert "warning: LESSONS_LEARNED.md: it is not there; going on without it." in ran.stderr
    assert "warning: MEMORY.md: it has no section about lessons or decisions" in ran.stderr
    old = date.today() - timedelta(45)  # noqa: DTZ011
    assert str(old) not in ran.stdout
    found = json.loads(wisdom("sources", "--json").stdout)
    assert {one["path"]: one["problem"] for one in found}["LESSONS_LEARNED.md"] == "it is not there"


def test_lessons_that_another_agent_keeps_are_a_source_too(
    wisdom: Wisdom, home: Path, tmp_path: Path
) -> None:
    forge = tmp_path / "forge"
    forge.mkdir()
    (forge / "LESSONS_LEARNED.md").write_text("- Sharpen the chisel before every job.\n")
    config = home / "memory-config.yaml"
    both = f"workspaces: [{wisdom.workspace}, {forge}]"
    config.write_text(config.read_text().replace("#workspaces: []", both))
    found = {one["path"]: one["lessons"] for one in json.loads(wisdom("sources", "--json").stdout)}
    assert found[f"{forge}/LESSONS_LEARNED.md"] == 1
    assert sum(path.endswith("LESSONS_LEARNED.md") for path in found) == 2


def test_an_empty_folder_gives_warnings_and_a_section_with_the_mandatory_entry(
    tacit: Tacit, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = tacit("wisdom", "draft", "--workspace", str(empty))
    assert ran.code == 0
    assert ran.stderr.count("going on without it") == 4
    assert "**When context feels incomplete, check your memory.**" in (empty / DRAFT).read_text()
    assert not (empty / "SOUL.md").exists()


def test_a_draft_is_a_section_that_says_how_it_was_made_and_asks_for_a_review_once(wisdom: Wisdom) -> None:
    soul = wisdom.read("SOUL.md")
    for _ in range(2):
        ran = wisdom("draft")
        assert (ran.code, "then: tacit wisdom approve --by NAME" in ran.stdout) == (0, True)
    assert "Extractive: " in ran.stdout
    draft = wisdom.read(DRAFT)
    assert re.match(
        r"## Wisdom\n\n_Last compressed: \d{4}-\d\d-\d\d \| Source lessons: 23_\n\n\*\*When", draft
    )
    assert wisdom.read("DAILY_EXECUTION_QUEUE.md").count(f"REVIEW NEEDED: {DRAFT}") == 1
    assert wisdom.read("SOUL.md") == soul
    for name in ("AGENTS.md", "LESSONS_LEARNED.md", "MEMORY.md"):
        assert wisdom.read(name) == text(name)


def test_promoting_replaces_exactly_the_section_and_undoing_brings_it_back(wisdom: Wisdom) -> None:
    before = "# Fenn\n\nA heron.\n\n## Wisdom\n\n**Old.** Gone soon.\n\n## Vibe\n\nDry.\n"
    (wisdom.workspace / "SOUL.md").write_text(before)
    wisdom("draft")
    ran = wisdom("promote")
    assert (ran.code, "is not approved yet" in ran.stderr) == (1, True)
    assert wisdom("approve", "--by", "Wren").code == 1
    assert wisdom("approve", "--by", "Fenn").code == 0
    assert wisdom("promote").code == 0
    soul = wisdom.read("SOUL.md")
    section = wisdom.read(DRAFT).partition("\n\n<!--")[0]
    assert soul == before.replace("## Wisdom\n\n**Old.** Gone soon.", section)
    assert "- [x] REVIEW NEEDED" in wisdom.read("DAILY_EXECUTION_QUEUE.md")
    assert wisdom("check").code == 0
    assert wisdom("undo").code == 0
    assert wisdom.read("SOUL.md") == before
    assert not list(wisdom.workspace.glob("[Ww][Ii][Ss][Dd][Oo][Mm].md"))


def test_a_reviewer_may_change_the_draft_and_the_change_needs_an_approval(wisdom: Wisdom) -> None:
    wisdom("draft")
    assert wisdom("approve", "--by", "Marit").code == 0
    file = wisdom.workspace / DRAFT
    file.write_text(file.read_text().replace("Test a restore", "Rehearse a restore"))
    ran = wisdom("promote")
    assert (ran.code, "changed since Marit approved it" in ran.stderr) == (1, True)
    assert wisdom("approve", "--by", "Marit").code == 0
    assert wisdom("promote").code == 0
    assert "Rehearse a restore" in wisdom.read("SOUL.md")
    assert wisdom("check").code == 0


def test_a_soul_that_changed_meanwhile_is_left_alone_and_the_words_can_be_kept(wisdom: Wisdom) -> None:
    wisdom("draft")
    wisdom("approve", "--by", "Marit")
    edited = wisdom.read("SOUL.md") + "\nBy hand.\n"
    (wisdom.workspace / "SOUL.md").write_text(edited)
    ran = wisdom("promote")
    assert (ran.code, "tacit wisdom draft --as-is" in ran.stderr) == (1, True)
    assert wisdom.read("SOUL.md") == edited
    draft = wisdom.read(DRAFT)
    assert wisdom("draft", "--as-is").code == 0
    assert wisdom.read(DRAFT) == draft
    wisdom("approve", "--by", "Marit")
    assert wisdom("promote").code == 0
    assert wisdom.read("SOUL.md").startswith(edited)


def test_a_draft_with_errors_can_neither_be_approved_nor_passed_by_check(wisdom: Wisdom) -> None:
    wisdom("draft")
    file = wisdom.workspace / DRAFT
    file.write_text(file.read_text().replace("Test a restore", "On port 8190 test a restore"))
    ran = wisdom("approve", "--by", "Marit")
    assert (ran.code, "names a port: port 8190" in ran.stderr) == (1, True)
    assert wisdom("check").code == 1
    (wisdom.workspace / "WISDOM.md").write_text("no\n")
    found = json.loads(wisdom("check", "--json").stdout)
    assert [one["level"] for one in found if one["where"] == "WISDOM.md"] == ["error"]


def test_a_soul_that_would_be_too_long_is_not_made_so(wisdom: Wisdom, home: Path) -> None:
    configure(home, soul_max_tokens="250")
    soul = wisdom.read("SOUL.md")
    ran = wisdom("draft")
    assert "warning: SOUL.md with it: It would have" in ran.stderr
    assert wisdom("approve", "--by", "Marit").code == 0  # the section itself is fine
    ran = wisdom("promote")
    assert (ran.code, "tacit openclaw compress-soul" in ran.stderr) == (1, True)
    assert wisdom.read("SOUL.md") == soul


def test_it_is_time_after_a_month_or_ten_new_lessons(wisdom: Wisdom) -> None:
    assert wisdom("due").code == 1  # never yet
    wisdom("draft")
    assert wisdom("due").code == 0
    file = wisdom.workspace / "LESSONS_LEARNED.md"
    file.write_text(
        file.read_text() + "".join(f"- A wholly new lesson of the number {n}\n" for n in range(9))
    )
    assert wisdom("due").code == 0
    file.write_text(file.read_text() + "- And here is the tenth new lesson\n")
    ran = wisdom("due", "--json")
    assert (ran.code, json.loads(ran.stdout)["new"]) == (1, 10)
    wisdom("draft")
    assert wisdom("due").code == 0
    record = wisdom.workspace / FOLDER / "approvals.jsonl"
    past = (date.today() - timedelta(32)).isoformat()  # noqa: DTZ011
    record.write_text(re.sub(r'"at": "\d{4}-\d\d-\d\d', f'"at": "{past}', record.read_text()))
    ran = wisdom("due")
    assert (ran.code, "a month ago or longer" in ran.stdout) == (1, True)


def test_without_a_record_the_section_itself_tells_when_it_was_made(wisdom: Wisdom) -> None:
    today = date.today()  # noqa: DTZ011
    (wisdom.workspace / "SOUL.md").write_text(
        f"## Wisdom\n\n_Last compressed: {today} | Source lessons: 20_\n"
    )
    assert json.loads(wisdom("due", "--json").stdout)["new"] == 3
    assert wisdom("due").code == 0


def test_a_configured_model_words_it_and_a_broken_one_does_not_stop_it(
    wisdom: Wisdom, home: Path, serve: Serve
) -> None:
    content = "Rehearse | Trust only what you have tried. | 1, 2, 3"
    server = serve(lambda request: Reply({"choices": [{"message": {"content": content}}]}))
    configure(home, wisdom_model=f"{server.base}#qwen3.5:35b")
    ran = wisdom("draft", "--json")
    assert json.loads(ran.stdout)["covers"] == {"Rehearse.": 3}
    assert server.requests[0].json["model"] == "qwen3.5:35b"
    server.reply = lambda request: Reply(b"", status=503)
    assert json.loads(wisdom("draft", "--json").stdout)["how"] == "extractive"


def test_the_workspace_is_that_of_the_config_or_openclaws_own(
    tacit: Tacit, home: Path, tmp_path: Path
) -> None:
    nobody = tmp_path / "nobody"
    nobody.mkdir()
    environ = {"HOME": str(nobody)}
    ran = tacit("wisdom", "sources", env=environ)
    assert (ran.code, "Name one with --workspace DIR" in ran.stderr) == (2, True)
    grown(nobody / ".openclaw" / "workspace")
    assert "AGENTS.md" in tacit("wisdom", "sources", env=environ).stdout
    config = home / "memory-config.yaml"
    config.write_text(config.read_text().replace("#workspaces: []", f"workspaces: [{grown(tmp_path / 'a')}]"))
    assert tacit("wisdom", "sources").code == 0
    assert tacit("wisdom", "sources", "--workspace", str(tmp_path / "none")).code == 2


def test_the_script_makes_a_draft(home: Path, workspace: Path) -> None:
    tacit = Path(sys.executable).parent / "tacit"
    done = subprocess.run(
        [ROOT / "scripts" / "compress-wisdom.sh", "--workspace", workspace],
        capture_output=True,
        text=True,
        env={**os.environ, "TACIT_HOME": str(home), "TACIT": str(tacit)},
    )
    assert (done.returncode, done.stderr.count("bug")) == (0, 0)
    assert (workspace / DRAFT).exists()
