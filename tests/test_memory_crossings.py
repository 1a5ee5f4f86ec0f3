"""What crosses other people's work: sync tools, stashes, carried files, sessions in parts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import tacit as product
from tacit.errors import SessionError, UnsafePath, UsageError
from tacit.memory import Memory
from tacit.transcripts import writer
from tests.conftest import Tacit


def git(home: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=u", "-c", "user.email=u@example.com"]
    done = subprocess.run(
        ["git", "-C", home, *identity, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def proved(memory: Memory) -> bool:
    return all(item.state == "proved" for item in memory.verify())


def test_messages_of_a_kept_agent_are_kept_though_the_main_agent_is_excluded(
    home: Path, tacit: Tacit
) -> None:
    (home / "memory-config.yaml").write_text("capture:\n  exclude_agents: [main]\n")
    session_id = tacit("capture", "start", "--agent", "helper").stdout.strip()
    assert tacit("capture", "message", session_id, "user", "kept").code == 0
    (found,) = home.glob("raw/conversations/*/*/*/*.md")
    assert "\nkept\n" in found.read_text()


def test_committing_an_earlier_part_leaves_the_record_of_the_open_one(home: Path, memory: Memory) -> None:
    git(home, "checkout", "-q", "--detach")
    with memory.session(session_id="parts") as session:
        session.message("user", "one")
    second = memory.session(session_id="parts", detached=True)
    second.message("user", "two")
    second.detach()
    git(home, "checkout", "-q", "main")
    memory.commit()
    assert memory.services.conversations.is_open("parts")
    third = memory.session(session_id="parts")
    third.message("user", "three")
    third.end()
    assert len(list(home.glob("raw/conversations/*/*/*/*parts*.md"))) == 2
    assert proved(memory)


def test_a_transcript_that_was_committed_while_open_is_committed_again_when_sealed(
    home: Path, memory: Memory
) -> None:
    session = memory.session(session_id="early", detached=True)
    session.message("user", "one")
    session.detach()
    git(home, "add", "-A")
    git(home, "commit", "-q", "-m", "mine", "--no-verify")
    git(home, "checkout", "-q", "--detach")
    goes_on = memory.session(session_id="early")
    goes_on.message("user", "two")
    goes_on.end()
    git(home, "checkout", "-q", "main")
    memory.commit()
    assert proved(memory)
    assert git(home, "status", "--porcelain") == ""


def test_a_session_goes_on_when_its_folder_is_taken_away(home: Path, memory: Memory) -> None:
    session = memory.session(session_id="stashed")
    session.message("user", "one")
    git(home, "stash", "-q", "-u")
    assert not list(home.glob("raw/conversations/*/*/*/*.md"))
    session.message("user", "two")
    sealed = session.end()
    assert sealed is not None
    assert [turn.text for turn in memory.transcript(sealed.path).messages] == ["one", "two"]
    assert proved(memory)


def test_a_message_never_goes_over_what_another_process_has_sealed(home: Path, memory: Memory) -> None:
    session = memory.session(session_id="copied")
    session.message("user", "one")
    file = home / str(session.path)
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)  # as a sync tool does: same name, another file, no lock
    product.open(home)
    assert writer.is_sealed(file)
    with pytest.raises(SessionError, match="session_id"):
        session.message("user", "two")
    assert proved(memory)
    with product.open(home).session(session_id="copied") as part:
        part.message("user", "two")
    assert proved(memory)


@pytest.mark.parametrize("path", ["../victim.md", "knowledge/victim.md", "/victim.md", "raw/../victim.md"])
def test_a_record_that_names_another_file_is_not_believed(home: Path, memory: Memory, path: str) -> None:
    victim = home.parent / "victim.md"
    note = home / "knowledge" / "victim.md"
    text = "---\nsession_id: x\nstarted: 2026-01-01T00:00:00Z\nmarks: crc32\n---\n\n# x\n"
    for file in (victim, note):
        file.write_text(text)
    opening = {"session_id": "x", "started": "2026-01-01T00:00:00+00:00"}
    record = {"opening": opening, "path": path, "name": "x", "detached": False, "sha256": None}
    (home / ".tacit" / "sessions" / "x.json").write_text(json.dumps(record))
    product.open(home).commit()
    assert victim.read_text() == note.read_text() == text


def test_transcripts_are_not_written_through_a_link(home: Path, memory: Memory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / "raw" / "conversations").rmdir()
    (home / "raw" / "conversations").symlink_to(outside)
    with pytest.raises(UnsafePath):
        memory.session().message("user", "one")
    assert list(outside.iterdir()) == []


def test_one_transcript_that_cannot_be_read_stops_no_other(
    home: Path, memory: Memory, tmp_path: Path
) -> None:
    with memory.session(session_id="good") as session:
        session.message("user", "one")
    bad = home / "raw" / "conversations" / "bad.md"
    (tmp_path / "elsewhere.md").write_text("---\nended: 2026-01-01\n---\n")
    os.link(tmp_path / "elsewhere.md", bad)
    (home / "knowledge" / "reference" / "n.md").write_text("n\n")
    done = product.open(home).commit()
    assert any("hard link" in str(problem) for problem in done.problems)
    assert "knowledge/reference/n.md" in git(home, "ls-tree", "-r", "--name-only", "HEAD")


def test_a_transcript_edited_before_its_commit_is_found_out(home: Path, memory: Memory) -> None:
    (home / "memory-config.yaml").write_text("git:\n  auto_commit: false\n")
    with product.open(home).session(session_id="s") as session:
        session.message("user", "what was said")
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    file.chmod(0o600)
    file.write_text(file.read_text().replace("what was said", "what was sold"))
    product.open(home).commit()
    assert [item.state for item in memory.verify()] == ["touched"]


def test_records_that_wait_are_not_written_again_and_again(home: Path, memory: Memory) -> None:
    git(home, "checkout", "-q", "--detach")
    with memory.session(session_id="w") as session:
        session.message("user", "one")
    file = writer.state_file(memory.home, "w")
    before = file.stat().st_ino
    product.open(home)
    product.open(home)
    assert file.stat().st_ino == before


def test_what_a_sparse_checkout_leaves_out_is_not_deleted(home: Path, memory: Memory) -> None:
    git(home, "update-index", "--refresh")
    git(home, "sparse-checkout", "set", "topics")
    assert not (home / "knowledge" / "identity" / "SOUL.md").exists()
    memory.commit()
    assert "knowledge/identity/SOUL.md" in git(home, "ls-tree", "-r", "--name-only", "HEAD")


@pytest.mark.parametrize("path", ["memory-config.yaml", ".envrc", ".gitattributes", "README.md"])
def test_only_notes_are_written_as_notes(memory: Memory, path: str) -> None:
    with pytest.raises(UsageError, match="is not a note"):
        memory.write(path, "x", replacing=None)


def test_memory_md_over_its_limit_is_named_and_not_committed(home: Path, memory: Memory) -> None:
    file = home / "knowledge" / "memory" / "MEMORY.md"
    file.write_text("x\n" * 221)
    assert any("221 lines" in str(problem) for problem in memory.commit().problems)
    assert git(home, "show", "HEAD:knowledge/memory/MEMORY.md").count("\n") == 14
    file.write_text("x\n" * 201)
    assert any("over its cap" in str(problem) for problem in memory.commit().problems)
    assert git(home, "show", "HEAD:knowledge/memory/MEMORY.md").count("\n") == 201


def test_an_open_transcript_without_a_record_is_sealed_by_the_next_work(home: Path, memory: Memory) -> None:
    session = memory.session(session_id="lost")
    session.message("user", "one")
    session._writer.close()  # type: ignore[union-attr]
    writer.state_file(memory.home, "lost").unlink()
    product.open(home).commit()
    assert proved(memory)
