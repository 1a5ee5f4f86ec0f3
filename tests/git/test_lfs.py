"""Attachments are committed the way git-lfs keeps them, without running its filter."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tacit.git import note_committer
from tacit.git.attributes import is_lfs_path, make_lfs_pointer, store_lfs_object
from tacit.git.refs import push_branch
from tacit.git.repository import Git
from tacit.memory import Memory

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
NAME = "attachments/2026/10/kiln.png"


def committed(home: Path) -> bytes:
    return subprocess.run(["git", "-C", home, "cat-file", "blob", f"HEAD:{NAME}"], capture_output=True).stdout


def put(home: Path) -> None:
    (home / NAME).parent.mkdir(parents=True)
    (home / NAME).write_bytes(PICTURE)


def test_with_git_lfs_a_pointer_is_committed_and_the_bytes_are_where_git_lfs_looks(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: True)
    put(home)
    memory.commit()
    assert committed(home) == make_lfs_pointer(PICTURE)
    oid = make_lfs_pointer(PICTURE).split(b"sha256:")[1][:64].decode()
    assert (home / ".git/lfs/objects" / oid[:2] / oid[2:4] / oid).read_bytes() == PICTURE
    assert (home / NAME).read_bytes() == PICTURE


def test_a_pointer_stays_a_pointer_when_git_lfs_is_gone(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: True)
    put(home)
    memory.commit()
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: False)
    assert memory.services.note_committer.note_changes().edits == ()


def test_without_git_lfs_the_bytes_themselves_are_committed(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: False)
    put(home)
    memory.commit()
    assert committed(home) == PICTURE


def test_a_dry_run_stores_nothing(home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: True)
    put(home)
    assert [edit.path for edit in memory.services.note_committer.note_changes().edits] == [NAME]
    assert not (home / ".git/lfs").exists()


def test_a_file_that_is_only_a_pointer_is_committed_as_it_is(home: Path, memory: Memory) -> None:
    (home / NAME).parent.mkdir(parents=True)
    (home / NAME).write_bytes(make_lfs_pointer(PICTURE))
    memory.commit()
    assert committed(home) == make_lfs_pointer(PICTURE)


@pytest.mark.parametrize(
    ("path", "expected"),
    [(NAME, True), ("attachments/a.pdf", True), ("attachments/a.txt", False), ("knowledge/a.png", False)],
)
def test_the_rules_are_those_of_gitattributes(path: str, expected: bool) -> None:
    assert is_lfs_path(path) is expected


@pytest.mark.skipif(
    shutil.which("git-lfs") is None, reason="git-lfs is not installed; the format is tested above"
)
def test_the_real_git_lfs_accepts_what_was_committed(home: Path, memory: Memory) -> None:
    put(home)
    memory.commit()
    for arguments in (["lfs", "install", "--local", "--force"], ["lfs", "fsck"]):
        subprocess.run(["git", "-C", home, *arguments], check=True, capture_output=True)
    status = subprocess.run(["git", "-C", home, "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
@pytest.mark.parametrize("named", [False, True])
def test_push_sends_attachments_too_and_runs_no_hook(home: Path, memory: Memory, named: bool) -> None:
    remote = home.parent / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    subprocess.run(["git", "-C", home, "remote", "add", "backup", str(remote)], check=True)
    hook = home / ".git/hooks/pre-push"
    hook.write_text(f"#!/bin/sh\ntouch {home.parent}/SPRUNG\n")
    hook.chmod(0o755)
    before = {file: file.read_bytes() for file in (home / ".git/hooks").iterdir()}
    put(home)
    memory.commit()
    assert push_branch(memory.git, "backup" if named else str(remote)) == ""
    sent = [file.read_bytes() for file in (remote / "lfs/objects").rglob("*") if file.is_file()]
    assert sent == [PICTURE]
    assert not (home.parent / "SPRUNG").exists()
    assert {file: file.read_bytes() for file in (home / ".git/hooks").iterdir()} == before


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_attachments_that_cannot_be_sent_are_told_and_the_branch_goes_out_all_the_same(
    home: Path, memory: Memory
) -> None:
    remote = home.parent / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    put(home)
    memory.commit()
    shutil.rmtree(home / ".git/lfs/objects")
    (home / ".git/lfs/objects").mkdir()
    assert push_branch(memory.git, str(remote)).startswith("attachments were not sent: ")
    tip = subprocess.run(["git", "-C", remote, "rev-parse", "main"], capture_output=True, text=True)
    assert tip.stdout.strip() == memory.git.head()


def test_the_bytes_are_kept_where_all_work_trees_of_a_repository_share_them(home: Path) -> None:
    side = home.parent / "side"
    subprocess.run(["git", "-C", home, "worktree", "add", "-q", "-b", "side", str(side)], check=True)
    store_lfs_object(Git(side).directory, PICTURE)
    assert [file.read_bytes() for file in (home / ".git/lfs/objects").rglob("*") if file.is_file()] == [
        PICTURE
    ]
