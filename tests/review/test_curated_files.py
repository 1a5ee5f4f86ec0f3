"""Drafts: nothing reaches a curated file but what somebody approved who may, and everything can be undone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.errors import DraftRefused, UnsafePath
from tacit.home.files import digest
from tacit.review.curated_files import ApprovalRule, CuratedFiles
from tacit.review.model import CuratedFile

SOUL = CuratedFile("soul", "plans/SOUL_DRAFT.md", "SOUL.md")
NEW = CuratedFile("tools", "plans/TOOLS_DRAFT.md", "TOOLS_COMPACT.md")
HINTS = ("draft-it", "approve-it", "Name them in the config.")
OLD, TEXT = b"# Old\n", b"# New\n"


def clock() -> Iterator[datetime]:
    at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    while True:
        yield at
        at += timedelta(minutes=1)


@pytest.fixture
def drafts(tmp_path: Path) -> CuratedFiles:
    (tmp_path / "SOUL.md").write_bytes(OLD)
    (tmp_path / "SOUL.md").chmod(0o644)
    ticks = clock()
    return CuratedFiles(tmp_path, "plans", lambda: next(ticks))


def whole(old: bytes | None, draft: bytes) -> bytes:
    return draft


def propose(drafts: CuratedFiles, text: bytes = TEXT, file: CuratedFile = SOUL) -> None:
    target = drafts.target(file)
    drafts.propose(file, text, None if target is None else digest(target), {})


def approve(drafts: CuratedFiles, by: str = "Marit", file: CuratedFile = SOUL) -> None:
    drafts.approve(file, by, ApprovalRule(("marit",), *HINTS), {})


def promote(drafts: CuratedFiles, file: CuratedFile = SOUL, allowed: tuple[str, ...] = ("Marit",)) -> None:
    drafts.promote(file, "", ApprovalRule(allowed, *HINTS), whole)


def state(drafts: CuratedFiles, file: CuratedFile = SOUL) -> str:
    return drafts.status(file, ApprovalRule(("Marit",), *HINTS)).state


def happened(drafts: CuratedFiles) -> list[str]:
    return [event.what for event in drafts.decisions()]


def test_an_approved_draft_takes_the_place_of_its_target_and_is_recorded_by_hash(
    drafts: CuratedFiles,
) -> None:
    assert state(drafts) == "none"
    propose(drafts)
    assert state(drafts) == "waiting"
    approve(drafts)
    assert state(drafts) == "approved"
    promote(drafts)
    assert state(drafts) == "promoted"
    assert (drafts.root / "SOUL.md").read_bytes() == TEXT
    approved, promoted = drafts.decisions()[1], drafts.decisions()[-1]
    assert (approved.by, approved.sha256, approved.at) == ("Marit", digest(TEXT), "2026-11-20T09:01:00+00:00")
    assert (promoted.base, promoted.result) == (digest(OLD), digest(TEXT))
    assert (drafts.root / promoted.backup).read_bytes() == OLD


def test_the_target_keeps_its_mode(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    assert stat.S_IMODE(os.stat(drafts.root / "SOUL.md").st_mode) == 0o644


def test_an_unapproved_draft_is_refused_and_the_refusal_is_recorded(drafts: CuratedFiles) -> None:
    propose(drafts)
    with pytest.raises(DraftRefused, match=r"plans/SOUL_DRAFT\.md is not approved yet.*approve-it"):
        promote(drafts)
    assert (drafts.root / "SOUL.md").read_bytes() == OLD
    assert happened(drafts) == ["drafted", "refused"]


def test_a_draft_that_changed_since_it_was_approved_is_refused(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    (drafts.root / SOUL.draft).write_bytes(TEXT + b"and more\n")
    with pytest.raises(DraftRefused, match="changed since Marit approved it"):
        promote(drafts)
    approve(drafts)
    promote(drafts)
    assert (drafts.root / "SOUL.md").read_bytes() == TEXT + b"and more\n"


def test_a_target_that_changed_since_the_draft_was_made_is_never_overwritten(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    (drafts.root / "SOUL.md").write_bytes(b"# By hand\n")
    with pytest.raises(DraftRefused, match=r"SOUL\.md changed since the draft was made.*draft-it --as-is"):
        promote(drafts)
    with pytest.raises(DraftRefused, match=r"SOUL\.md changed since"):
        approve(drafts)
    assert (drafts.root / "SOUL.md").read_bytes() == b"# By hand\n"


def test_who_may_not_approve_is_refused_also_when_the_list_changes_later(drafts: CuratedFiles) -> None:
    propose(drafts)
    for nobody in ("Wren", "", "  "):
        with pytest.raises(DraftRefused, match=r"Name them in the config\."):
            approve(drafts, nobody)
    approve(drafts, "MARIT")  # however it is written
    with pytest.raises(DraftRefused, match="may not approve"):
        promote(drafts, allowed=("Pike",))
    assert (drafts.root / "SOUL.md").read_bytes() == OLD


def test_an_approval_is_for_one_draft_and_not_for_the_next(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    propose(drafts, b"# Another\n")
    with pytest.raises(DraftRefused, match="is not approved yet"):
        promote(drafts)


def test_undoing_brings_the_old_bytes_back_and_asks_for_a_new_approval(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    drafts.undo(SOUL, "Marit")
    assert (drafts.root / "SOUL.md").read_bytes() == OLD
    assert state(drafts) == "waiting"
    with pytest.raises(DraftRefused, match="none can be undone"):
        drafts.undo(SOUL, "Marit")


def test_undoing_what_made_a_new_file_removes_it(drafts: CuratedFiles) -> None:
    propose(drafts, file=NEW)
    approve(drafts, file=NEW)
    promote(drafts, NEW)
    assert (drafts.root / "TOOLS_COMPACT.md").read_bytes() == TEXT
    drafts.undo(NEW, "")
    assert not (drafts.root / "TOOLS_COMPACT.md").exists()


def test_undoing_never_overwrites_newer_hand_edits(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    (drafts.root / "SOUL.md").write_bytes(TEXT + b"by hand\n")
    with pytest.raises(DraftRefused, match=r"changed since the draft was promoted.*backups/SOUL\.md"):
        drafts.undo(SOUL, "")
    assert (drafts.root / "SOUL.md").read_bytes() == TEXT + b"by hand\n"


def test_a_backup_that_was_tampered_with_is_not_brought_back(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    (drafts.root / drafts.decisions()[-1].backup).write_bytes(b"# Something else\n")
    with pytest.raises(DraftRefused, match="is not what was there before"):
        drafts.undo(SOUL, "")
    assert (drafts.root / "SOUL.md").read_bytes() == TEXT


def test_a_draft_that_somebody_worked_on_is_kept_when_a_new_one_is_made(drafts: CuratedFiles) -> None:
    propose(drafts)
    (drafts.root / SOUL.draft).write_bytes(b"# My own words\n")
    _, kept = drafts.propose(SOUL, b"# Third\n", digest(OLD), {})
    assert (drafts.root / kept).read_bytes() == b"# My own words\n"
    _, kept = drafts.propose(SOUL, b"# Fourth\n", digest(OLD), {})
    assert kept == ""


def test_a_crash_between_writing_and_recording_is_told_by_the_target_itself(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    record = drafts.root / drafts.log.path
    lines = record.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["what"] == "promoted"
    record.write_bytes(b"".join(lines[:-1]))  # the power failed here
    assert state(drafts) == "promoted"
    drafts.undo(SOUL, "")
    assert (drafts.root / "SOUL.md").read_bytes() == OLD


def test_a_crash_before_writing_leaves_a_draft_that_can_be_promoted(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    promote(drafts)
    record = drafts.root / drafts.log.path
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:-1]))
    (drafts.root / "SOUL.md").write_bytes(OLD)  # as if the target had never been written
    assert state(drafts) == "approved"
    promote(drafts)
    assert (drafts.root / "SOUL.md").read_bytes() == TEXT


def test_what_a_full_disk_tore_takes_nothing_else_with_it(drafts: CuratedFiles) -> None:
    propose(drafts)
    record = drafts.root / drafts.log.path
    record.write_bytes(record.read_bytes() + b'{"at": "2026-11-20T09:00:00+00:00", "what": "appr')
    assert happened(drafts) == ["drafted"]
    approve(drafts)
    assert happened(drafts) == ["drafted", "approved"]


def test_who_makes_the_new_text_may_refuse_and_nothing_is_written(drafts: CuratedFiles) -> None:
    def refuse(old: bytes | None, draft: bytes) -> bytes:
        raise DraftRefused("It is too long.")

    propose(drafts)
    approve(drafts)
    with pytest.raises(DraftRefused, match="too long"):
        drafts.promote(SOUL, "", ApprovalRule(("Marit",), *HINTS), refuse)
    assert (drafts.root / "SOUL.md").read_bytes() == OLD
    assert happened(drafts)[-1] == "refused"


def test_a_target_that_leads_elsewhere_is_refused(drafts: CuratedFiles, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.md"
    outside.write_bytes(OLD)
    (drafts.root / "SOUL.md").unlink()
    (drafts.root / "SOUL.md").symlink_to(outside)
    with pytest.raises(UnsafePath):
        propose(drafts)
    assert outside.read_bytes() == OLD


def test_two_processes_that_promote_at_once_do_it_once(drafts: CuratedFiles) -> None:
    propose(drafts)
    approve(drafts)
    code = (
        "import sys; from datetime import UTC, datetime; from pathlib import Path\n"
        "from tacit.review.curated_files import ApprovalRule, CuratedFiles\n"
        "from tacit.review.model import CuratedFile\n"
        "drafts = CuratedFiles(Path(sys.argv[1]), 'plans', lambda: datetime.now(UTC))\n"
        "soul = CuratedFile('soul', 'plans/SOUL_DRAFT.md', 'SOUL.md')\n"
        "add = lambda old, draft: (old or b'') + draft\n"
        "drafts.promote(soul, '', ApprovalRule(('Marit',), 'a', 'b', 'c'), add)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(drafts.root)], stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert sorted(process.wait(60) for process in running) == [0, 1, 1]
    assert (drafts.root / "SOUL.md").read_bytes() == OLD + TEXT
