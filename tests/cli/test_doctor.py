"""`tacit doctor` finds what is wrong, says what mends it, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.config import Config, mask_secret
from tacit.health.doctor import run_checks
from tacit.home.layout import Home
from tacit.memory import Memory
from tests.conftest import Tacit, plain_user


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
    session._writer.close()  # type: ignore[union-attr]
    assert "was left open by a crash" in tacit("doctor").stdout


def test_cli_doctor_says_that_nothing_leaves_the_machine(home: Path, tacit: Tacit) -> None:
    assert "nothing leaves this machine" in tacit("doctor").stdout


def test_cli_doctor_says_which_models_text_is_sent_to(home: Path, tacit: Tacit) -> None:
    (home / "memory-config.yaml").write_text(
        "lifecycle: {model: 'openai:gpt-5-mini'}\n"
        "search: {embedding_model: 'gemini:gemini-embedding-001', reranker: ms-marco-minilm}\n"
        "watchers: {gate_model: 'local:/models/big.gguf'}\n"
    )
    told = tacit("doctor").stdout
    assert "nothing leaves this machine" not in told
    assert "text is sent to openai:gpt-5-mini (lifecycle.model)" in told
    assert "gemini:gemini-embedding-001 (search.embedding_model)" in told
    assert "local:" not in told
    assert "ms-marco" not in told


def test_cli_status_changes_nothing_and_speaks_json(home: Path, tacit: Tacit) -> None:
    before = fingerprint(home)
    seen = json.loads(tacit("status", "--json").stdout)
    assert seen["branch"] == "main"
    assert seen["transcripts"] == 0
    assert fingerprint(home) == before


@pytest.mark.parametrize(
    "text",
    [
        "inject: {exclude_agents: [watchdog], lanes: [file]}\n",
        "inject:\n  exclude_agents: [watchdog]\n  lanes: [file]\n",
        "inject:\n  exclude_agents: [\n    'watchdog'\n  ]\n  lanes:\n  - file\n",
    ],
)
def test_cli_status_tells_who_is_left_out_however_the_config_is_written(
    home: Path, tacit: Tacit, text: str
) -> None:
    (home / "memory-config.yaml").write_text(text)
    assert "inject       lanes file; never for watchdog" in tacit("status").stdout
    (home / "memory-config.yaml").write_text("inject: {exclude_agents: 5}\n")
    assert "see: tacit config" in tacit("status").stdout


def test_cli_doctor_names_transcripts_that_are_not_as_they_were_sealed(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    paths = []
    for text in ("one", "two", "three"):
        with memory.session() as session:
            session.message("user", text)
        paths.append(str(session.path))
    assert "3 transcripts, none touched or missing" in tacit("doctor").stdout
    (home / paths[0]).unlink()
    (home / paths[1]).chmod(0o600)
    (home / paths[1]).write_text("---\nforged\n")
    before = fingerprint(home)
    done = tacit("doctor")
    assert done.code == 1
    assert f"{paths[0]}: is missing. It was committed; restore it with: git -C " in done.stdout
    assert f"{paths[1]}: is touched." in done.stdout
    assert paths[2] not in done.stdout
    assert fingerprint(home) == before


def test_cli_doctor_without_git_says_so_and_looks_at_the_rest(home: Path, tacit: Tacit) -> None:
    long_memory(home)
    done = tacit("doctor", env={"PATH": str(home / "none")})
    assert done.code == 1
    assert "error  repository  not looked at" in done.stdout
    assert "git is not installed, or not on PATH" in done.stdout
    assert "has 221 lines" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_cli_doctor_names_files_that_belong_to_somebody_else(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    with memory.session() as session:
        session.message("user", "kept by root")
    os.chown(home / str(session.path), 12345, 12345)
    (home / ".git/refs/tags").mkdir(exist_ok=True)
    os.chown(home / ".git/refs/tags", 12345, 12345)
    done = tacit("doctor")
    owner = "root, who owns the home. Give all of it back with: sudo chown -R root"
    assert f"{session.path}: does not belong to {owner} {home}" in done.stdout
    assert ".git/refs/tags: does not belong to" in done.stdout


@pytest.mark.parametrize(
    "path", ["knowledge/memory/MEMORY.md", "raw/conversations", ".git/objects", ".tacit"]
)
def test_cli_doctor_names_what_this_user_cannot_read(home: Path, path: str) -> None:
    (home / path).chmod(0)
    command = plain_user(sys.executable, "-m", "tacit", "--home", home, "doctor")
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    finally:
        (home / path).chmod(0o700)
    assert done.returncode == 1
    assert f"{path}: cannot be used by this user. Run: chmod -R u+rX {home}" in done.stdout


def test_rights_are_looked_at_for_the_user_who_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shut = [f"{home}/knowledge/memory/MEMORY.md", *(f"{home}/raw/{number}.md" for number in range(5))]
    for file in shut:
        Path(file).touch()
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in shut)
    looked = {check.name: check for check in run_checks(Home(home), Config(), lambda done, total: None)}
    found = [str(problem) for problem in looked["rights"].problems]
    assert found[0].startswith("knowledge/memory/MEMORY.md: cannot be used by this user. Run: chmod")
    assert len(found) == 4
    assert found[3] == f"{home}: 3 more like this."


@pytest.mark.parametrize(
    ("remote", "shown"),
    [
        ("https://me:secret@example.com/x.git", "https://***@example.com/x.git"),
        ("https://token@example.com/x.git", "https://***@example.com/x.git"),
        ("https://example.com/a@b.git", "https://example.com/a@b.git"),
        ("git@example.com:x.git", "git@example.com:x.git"),
        ("origin", "origin"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(remote: str, shown: str) -> None:
    assert mask_secret(remote) == shown


def test_cli_doctor_shows_no_password(home: Path, tacit: Tacit) -> None:
    text = "git: {auto_push: true, remote: 'https://me:secret@example.com/x.git'}\n"
    assert tacit("init", str(home)).code == 0  # a copied home may not push before this
    (home / "memory-config.yaml").write_text(text)
    said = tacit("doctor").stdout
    assert "commits are pushed to https://***@example.com/x.git" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("free", "shown"), [(2**30 * 3 // 2, "1.5 GB free"), (2**30 - 1, "1023 MB free"), (0, "0 MB free")]
)
def test_little_space_is_told_in_megabytes(
    home: Path, monkeypatch: pytest.MonkeyPatch, free: int, shown: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, free))
    looked = {check.name: check for check in run_checks(Home(home), Config(), lambda done, total: None)}
    assert looked["disk"].found == shown


def test_cli_doctor_says_when_the_users_own_setting_keeps_hooks_from_running(
    home: Path, tacit: Tacit
) -> None:
    settings = home.parent / "gitconfig"
    settings.write_text("[core]\n\thooksPath = /somewhere/hooks\n")
    done = tacit("doctor", env={"HOME": str(home.parent), "XDG_CONFIG_HOME": str(home.parent / "none")})
    assert "hooks       installed" in done.stdout
    settings.rename(home.parent / ".gitconfig")
    done = tacit("doctor", env={"HOME": str(home.parent), "XDG_CONFIG_HOME": str(home.parent / "none")})
    assert "are not run: your core.hooksPath is /somewhere/hooks." in done.stdout


def test_cli_doctor_counts_topics_and_names_what_is_wrong_with_them(home: Path, tacit: Tacit) -> None:
    assert "ok     topics      1 topic\n" in tacit("doctor").stdout
    good = (
        "---\ntype: topic\ntriggers: [kiln]\nsubscriptions: [knowledge/none.md]\n---\n# Kiln\nRing Hanna.\n"
    )
    (home / "topics" / "kiln.md").write_text(good)
    done = tacit("doctor")
    assert done.code == 0
    assert (
        "look   topics      2 topics\n       topics/kiln.md:4: It subscribes to knowledge/none.md"
        in done.stdout
    )
    (home / "topics" / "bad.md").write_text(good.replace("kiln", "'a(?!b)'"))
    (home / "topics" / "link.md").symlink_to(home / "topics" / "kiln.md")
    before = fingerprint(home)
    done = tacit("doctor", "--quiet")
    assert done.code == 1
    assert "error  topics      3 topics\n" in done.stdout
    assert "RE2 has no lookahead" in done.stdout
    assert "topics/link.md: is a link" in done.stdout
    assert fingerprint(home) == before


def test_cli_doctor_tells_of_a_topic_that_is_no_good_note_once(home: Path, tacit: Tacit) -> None:
    (home / "topics" / "broken.md").write_text("---\na: [\n---\n")
    done = tacit("doctor")
    assert done.code == 1
    assert done.stdout.count("topics/broken.md:3:") == 1


def test_cli_doctor_looks_at_topics_though_the_config_is_broken(home: Path, tacit: Tacit) -> None:
    broken_config(home)
    (home / "topics" / "empty.md").write_text("")
    assert "topics/empty.md: There is nothing in it" in tacit("doctor").stdout
