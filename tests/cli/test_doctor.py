"""`tacit doctor` finds what is wrong, says what mends it, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.memory import Memory
from tests.conftest import Tacit


def fingerprint(root: Path) -> str:
    """Every name, kind, mode and byte below a folder."""
    digest = hashlib.sha256()
    for here, folders, names in sorted(os.walk(root)):
        for name in sorted([*folders, *names]):
            path = Path(here, name)
            info = path.lstat()
            digest.update(f"{path} {info.st_mode} {info.st_size} {info.st_mtime_ns}\n".encode())
            if path.is_file() and not path.is_symlink():
                digest.update(path.read_bytes())
    return digest.hexdigest()


def test_cli_doctor_of_a_healthy_home_finds_nothing(home: Path, tacit: Tacit) -> None:
    done = tacit("doctor", "--json")
    assert done.code == 0
    assert [p for check in json.loads(done.stdout) for p in check["problems"] if p["level"] == "error"] == []


def broken_config(home: Path) -> None:
    (home / "memory-config.yaml").write_text("git:\n  auto_comit: true\n")


def missing_folder(home: Path) -> None:
    (home / "drafts").rmdir()


def bad_note(home: Path) -> None:
    (home / "knowledge" / "reference" / "bad.md").write_text("---\na: [\n---\nbody\n")


def long_memory(home: Path) -> None:
    (home / "knowledge" / "memory" / "MEMORY.md").write_text("x\n" * 221)


def lost_head(home: Path) -> None:
    (home / ".git" / "HEAD").unlink()


def garbage_index(home: Path) -> None:
    (home / ".git" / "index").write_bytes(b"garbage")


def no_hooks(home: Path) -> None:
    (home / ".git" / "hooks" / "pre-commit").unlink()


def open_to_all(home: Path) -> None:
    home.chmod(0o755)


def linked_note(home: Path) -> None:
    (home / "elsewhere").write_text("x")
    os.link(home / "elsewhere", home / "knowledge" / "hard.md")


@pytest.mark.parametrize(
    ("break_it", "said", "code"),
    [
        (broken_config, "Did you mean 'git.auto_commit'?", 1),
        (missing_folder, "folders are missing: drafts.", 0),
        (bad_note, "knowledge/reference/bad.md:", 1),
        (long_memory, "has 221 lines", 1),
        (lost_head, ".git/HEAD: is missing or damaged.", 1),
        (garbage_index, "the index is damaged", 1),
        (no_hooks, ".git/hooks/pre-commit: does not call tacit.", 0),
        (open_to_all, "Run: chmod 700", 0),
        (linked_note, "hard link", 0),
    ],
)
def test_cli_doctor_names_what_is_wrong_and_changes_nothing(
    home: Path, tacit: Tacit, break_it: Callable[[Path], None], said: str, code: int
) -> None:
    break_it(home)
    before = fingerprint(home)
    done = tacit("doctor")
    assert said in done.stdout
    assert done.code == code
    assert fingerprint(home) == before


def test_cli_doctor_tells_sessions_that_were_left_open_or_wait(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    session = memory.session(session_id="left")
    session.message("user", "still here")
    session._live.close()  # type: ignore[union-attr]
    assert "was left open by a crash" in tacit("doctor").stdout


def test_cli_doctor_says_that_nothing_leaves_the_machine(home: Path, tacit: Tacit) -> None:
    assert "nothing leaves this machine" in tacit("doctor").stdout


def test_cli_status_changes_nothing_and_speaks_json(home: Path, tacit: Tacit) -> None:
    before = fingerprint(home)
    seen = json.loads(tacit("status", "--json").stdout)
    assert seen["branch"] == "main"
    assert seen["transcripts"] == 0
    assert fingerprint(home) == before
