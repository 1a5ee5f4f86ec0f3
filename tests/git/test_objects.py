"""Many commits do not leave many files: loose objects are packed, and nothing is lost by it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tacit.git import objects as git_objects
from tacit.git.objects import pack_loose_objects
from tacit.memory import Memory


def objects(home: Path) -> dict[str, int]:
    out = subprocess.run(
        ["git", "-C", home, "count-objects", "-v"], capture_output=True, text=True, check=True
    )
    return {key: int(value) for key, value in (line.split(": ") for line in out.stdout.splitlines())}


def test_few_loose_objects_are_left_alone(home: Path, memory: Memory) -> None:
    assert not pack_loose_objects(memory.git)
    assert objects(home)["packs"] == 0


def test_many_loose_objects_are_packed_and_every_transcript_is_still_proved(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_objects, "_MAX_LOOSE_OBJECTS", 256)
    number = 0
    while not any((home / ".git/objects/17").glob("*")):
        (home / "knowledge" / "reference" / "n.md").write_text(f"{number}\n")
        memory.commit() if number % 20 == 0 else memory.services.note_committer.commit_notes()
        number += 1
    with memory.session(session_id="kept") as session:
        session.message("user", "keep me")
    memory.commit()
    after = objects(home)
    assert after["packs"] == 1
    assert after["count"] < 40
    assert all(item.good for item in memory.verify())
    assert (
        subprocess.run(["git", "-C", home, "fsck", "--full", "--strict"], capture_output=True).returncode == 0
    )
    memory.commit()
    assert objects(home)["packs"] == 1
