"""A path with a git filter, such as git-crypt's, is never written to the repository as plain text."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit.errors import GitError, StoreError, UsageError
from tacit.git import note_committer
from tacit.git.attributes import make_lfs_pointer
from tacit.git.commits import CommitPlan, FileChange, import_commits
from tacit.git.objects import store_unreferenced_blob
from tacit.git.repository import Git
from tacit.health.doctor import run_checks
from tacit.memory import Memory
from tests.conftest import Tacit

SECRET = "the vault opens with marigold"
NOTE = "knowledge/vault.md"
RULE = "filter=crypt diff=crypt"


def user(root: Path, *arguments: str) -> str:
    """The user's own git, which runs the filters."""
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def set_filter(home: Path, *, required: bool = True, kind: str = "clean") -> Path:
    """A filter that encrypts in a simple way, and the file in which it notes that it ran."""
    script, ran = home.parent / "crypt", home.parent / "RAN"
    script.write_text(f"#!/bin/sh\necho \"$@\" >> '{ran}'\nprintf '\\0GITCRYPT\\0'\ntr a-z n-za-m\n")
    script.chmod(0o755)
    if kind:
        user(home, "config", f"filter.crypt.{kind}", str(script))
    if required:
        user(home, "config", "filter.crypt.required", "true")
    return ran


def in_repository(home: Path) -> bytes:
    """Every byte that any object has, reachable or not, and what git-lfs keeps."""
    command = ["git", "-C", str(home), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    return objects + b"".join(path.read_bytes() for path in (home / ".git/lfs").rglob("*") if path.is_file())


def is_leaked(home: Path) -> bool:
    return SECRET.encode() in in_repository(home)


def problems(memory: Memory) -> list[str]:
    looked = run_checks(memory.home, memory.config, lambda done, total: None)
    return [str(problem) for check in looked for problem in check.problems]


def _in_root(home: Path) -> None:
    with (home / ".gitattributes").open("a") as file:
        file.write(f"knowledge/** {RULE}\nraw/** {RULE}\n")


def _in_folders(home: Path) -> None:
    for folder in ("knowledge", "raw/conversations"):
        (home / folder / ".gitattributes").write_text(f"*.md {RULE}\n")


def _in_info(home: Path) -> None:
    (home / ".git/info").mkdir(exist_ok=True)
    (home / ".git/info/attributes").write_text(f"* {RULE}\n")


def _by_macro(home: Path) -> None:
    with (home / ".gitattributes").open("a") as file:
        file.write(f"[attr]secret {RULE}\n*.md secret\n")


def _in_attributes_of_the_user(home: Path) -> None:
    folder = home.parent / "ada"
    folder.mkdir()
    (folder / "rules").write_text(f"*.md {RULE}\n")
    (folder / "config").write_text(f"[core]\n\tattributesFile = {folder}/rules\n")
    os.environ["GIT_CONFIG_GLOBAL"] = str(folder / "config")


def _in_attributes_of_the_user_by_default(home: Path) -> None:
    (home.parent / "ada/git").mkdir(parents=True)
    (home.parent / "ada/git/attributes").write_text(f"*.md {RULE}\n")
    os.environ["XDG_CONFIG_HOME"] = str(home.parent / "ada")


PLACES = {
    "the root": _in_root,
    "folders": _in_folders,
    "info/attributes": _in_info,
    "a macro": _by_macro,
    "core.attributesFile": _in_attributes_of_the_user,
    "the user's attributes": _in_attributes_of_the_user_by_default,
}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a test sets are gone after it."""
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, os.environ[name])


@pytest.mark.parametrize("place", PLACES)
def test_wherever_the_rule_stands_nothing_is_committed_as_plain_text(
    home: Path, memory: Memory, place: str
) -> None:
    ran = set_filter(home)
    PLACES[place](home)
    (home / NOTE).write_text(f"# Vault\n\n{SECRET}\n")
    with memory.session() as session:
        session.message("user", SECRET)
    worked = memory.commit()
    assert not is_leaked(home)
    assert not ran.exists()
    assert any(NOTE in str(one) and "filter crypt" in str(one) for one in worked.problems)
    assert "filter crypt" in worked.waiting
    assert "raw/conversations/" in worked.waiting


@pytest.mark.parametrize(
    ("required", "kind"),
    [(True, "clean"), (True, "process"), (False, "clean"), (True, ""), (False, ""), (True, "smudge")],
)
def test_it_does_not_matter_how_the_filter_is_set_up(
    home: Path, memory: Memory, required: bool, kind: str
) -> None:
    """Without a command it is a clone that was not unlocked yet."""
    ran = set_filter(home, required=required, kind=kind)
    _in_root(home)
    (home / NOTE).write_text(SECRET)
    worked = memory.commit()
    assert not is_leaked(home)
    assert not ran.exists()
    assert any(NOTE in str(one) and "filter crypt" in str(one) for one in worked.problems)


@pytest.mark.parametrize("name", ["git-crypt", "a=b", "ключ", "x.y", "set"])
def test_a_filter_may_have_any_name(home: Path, memory: Memory, name: str) -> None:
    (home / "knowledge/.gitattributes").write_text(f"*.md filter={name}\n")
    (home / NOTE).write_text(SECRET)
    memory.commit()
    assert not is_leaked(home)
    assert any(f"filter {name}" in one for one in problems(memory))


@pytest.mark.parametrize("rule", ["filter", "-filter", "!filter", "diff=crypt"])
def test_a_rule_that_names_no_filter_keeps_nothing_back(home: Path, memory: Memory, rule: str) -> None:
    (home / "knowledge/.gitattributes").write_text(f"vault.md {rule}\n")
    (home / NOTE).write_text(SECRET)
    memory.commit()
    assert is_leaked(home) or rule == "filter"


def test_what_has_no_filter_is_committed_beside_it(home: Path, memory: Memory) -> None:
    set_filter(home)
    (home / "knowledge/.gitattributes").write_text(f"vault.md {RULE}\n")
    (home / NOTE).write_text(SECRET)
    (home / "knowledge/kiln.md").write_text("fire at 1220\n")
    with memory.session() as session:
        session.message("user", "hello")
    assert memory.commit().waiting == ""
    tree = memory.git.tree("HEAD")
    assert "knowledge/kiln.md" in tree
    assert NOTE not in tree
    assert any(path.startswith("raw/conversations/") for path in tree)


def test_of_two_conversations_the_one_without_a_filter_is_committed(home: Path, memory: Memory) -> None:
    user(home, "checkout", "-q", "--detach")  # so that both wait
    for name in ("first", "second"):
        with memory.session(session_id=name) as session:
            session.message("user", SECRET if name == "first" else "hello")
    user(home, "checkout", "-q", "main")
    (home / "raw/.gitattributes").write_text(f"*first* {RULE}\n")
    worked = memory.commit()
    assert "filter crypt" in worked.waiting
    assert not is_leaked(home)
    kept = [path for path in memory.git.tree("HEAD") if path.startswith("raw/conversations/")]
    assert len(kept) == 1
    assert "second" in kept[0]


def test_what_the_user_commits_through_the_filter_waits_no_longer(home: Path, memory: Memory) -> None:
    ran = set_filter(home)
    _in_root(home)
    (home / NOTE).write_text(SECRET)
    with memory.session() as session:
        session.message("user", SECRET)
    memory.commit()
    for path in home.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # git trusts no time of the second in which it works
    user(home, "add", "-A")
    user(home, "commit", "-q", "-m", "through the filter")
    ran.unlink()
    head = memory.git.head()
    worked = memory.commit()
    assert (worked.waiting, [str(one) for one in worked.problems]) == ("", [])
    assert memory.git.head() == head
    assert not ran.exists()
    assert not is_leaked(home)
    assert [one.state for one in memory.verify()] == ["not proved"]
    (home / NOTE).write_text(SECRET + " and clover")
    assert any(NOTE in str(one) for one in memory.commit().problems)


def test_the_hook_lets_the_user_encrypt_what_was_committed_before(home: Path, memory: Memory) -> None:
    with memory.session() as session:
        session.message("user", "hello")
    set_filter(home)
    _in_root(home)
    user(home, "add", "--renormalize", "-A")
    user(home, "commit", "-q", "-m", "encrypted from now on")
    (path,) = [path for path in memory.git.tree("HEAD") if path.startswith("raw/conversations/")]
    assert (memory.git.read("HEAD", path) or b"").startswith(b"\0GITCRYPT")
    assert [one.state for one in memory.verify()] == ["proved"]


def test_a_note_that_goes_is_still_committed_as_gone(home: Path, memory: Memory) -> None:
    set_filter(home)
    _in_root(home)
    (home / NOTE).write_text(SECRET)
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "x")
    (home / NOTE).unlink()
    memory.commit()
    assert NOTE not in memory.git.tree("HEAD")


def test_the_last_step_refuses_too(home: Path, memory: Memory) -> None:
    """Whoever comes to it, and by which way."""
    _in_root(home)
    (home / NOTE).write_text(SECRET)
    with pytest.raises(GitError, match="filter crypt"):
        import_commits(memory.git, [_planned(memory)])
    assert not is_leaked(home)


def _planned(memory: Memory) -> CommitPlan:
    return CommitPlan("memory: x\n", [FileChange(NOTE, SECRET.encode())], memory.services.clock.now())


def test_an_undo_of_a_filtered_note_is_refused_and_changes_nothing(home: Path, memory: Memory) -> None:
    (home / NOTE).write_text(f"{SECRET}\n")
    (home / "knowledge/.gitattributes").write_text(f"vault.md {RULE}\n")
    set_filter(home)
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "one")
    (home / NOTE).write_text(f"{SECRET}\nmore\n")
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "two")
    with pytest.raises(UsageError, match="filter crypt"):
        memory.history.undo(memory.git.head() or "")
    assert (home / NOTE).read_text() == f"{SECRET}\nmore\n"
    assert not is_leaked(home)


def test_attachments_of_another_filter_do_not_go_to_git_lfs(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: True)
    with (home / ".gitattributes").open("a") as file:
        file.write(f"attachments/** {RULE}\n")
    (home / "attachments/a").mkdir()
    (home / "attachments/a/plan.png").write_bytes(SECRET.encode())
    memory.commit()
    assert not is_leaked(home)


def test_what_git_lfs_tracks_by_a_rule_of_the_user_is_committed_as_a_pointer(
    home: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(note_committer, "is_lfs_installed", lambda: True)
    with (home / ".gitattributes").open("a") as file:
        file.write("*.zip filter=lfs\n")
    (home / "attachments/a.zip").write_bytes(b"PK" * 50)
    memory.commit()
    assert memory.git.read("HEAD", "attachments/a.zip") == make_lfs_pointer(b"PK" * 50)
    assert b"PK" * 50 in in_repository(home)


def test_init_adds_no_rule_that_takes_a_filter_of_the_user_away(tmp_path: Path) -> None:
    root = tmp_path / "own"
    root.mkdir()
    user(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text("* filter=crypt\n")
    tacit.init(root, adopt=True)
    told = user(root, "check-attr", "filter", "--", "attachments/a/b.png", "knowledge/a.md")
    assert told.count("filter: crypt") == 2
    assert "text: unset" in user(root, "check-attr", "text", "--", "knowledge/a.md")


def test_init_adds_no_rule_that_takes_a_filter_of_all_repositories_away(tmp_path: Path) -> None:
    _in_attributes_of_the_user(tmp_path / "own")
    (tmp_path / "ada/rules").write_text("* filter=crypt\n")
    tacit.init(tmp_path / "own")
    told = user(tmp_path / "own", "check-attr", "filter", "--", "attachments/a/b.png")
    assert "filter: crypt" in told


@pytest.mark.parametrize("starter", [b"", f"{SECRET}\n".encode()])
def test_init_commits_nothing_as_plain_text(tmp_path: Path, starter: bytes) -> None:
    root = tmp_path / "own"
    root.mkdir()
    user(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text("*.md filter=crypt\n")
    if starter:
        (root / "knowledge/identity").mkdir(parents=True)
        (root / "knowledge/identity/SOUL.md").write_bytes(starter)
    memory = tacit.init(root, adopt=True)
    assert not any(path.endswith(".md") for path in memory.git.tree("HEAD"))
    assert "memory-config.yaml" in memory.git.tree("HEAD")
    assert not is_leaked(root)


def test_a_home_whose_every_file_has_a_filter_can_be_made(tmp_path: Path, tacit: Tacit) -> None:
    root = tmp_path / "own"
    root.mkdir()
    user(root, "init", "-q", "-b", "main")
    (root / ".gitattributes").write_text("* filter=crypt\n")
    made = tacit("init", "--adopt", str(root))
    assert made.code == 0
    assert "filter crypt" in made.stderr


def test_doctor_names_the_paths(home: Path, tacit: Tacit) -> None:
    _in_root(home)
    (home / NOTE).write_text(SECRET)
    checks = json.loads(tacit("doctor", "--json").stdout)
    (found,) = [check for check in checks if check["name"] == "filters"]
    assert [one["where"] for one in found["problems"] if one["where"] == NOTE]
    assert all("filter crypt" in one["what"] or "more" in one["what"] for one in found["problems"])


def test_doctor_says_what_is_in_git_as_plain_text_already(home: Path, memory: Memory) -> None:
    (home / NOTE).write_text(SECRET)
    memory.commit()
    (home / "knowledge/.gitattributes").write_text(f"vault.md {RULE}\n")
    assert any(NOTE in one and "plain text" in one for one in problems(memory))


def test_a_home_without_filters_is_not_troubled(home: Path, memory: Memory) -> None:
    assert not any("filter" in one for one in problems(memory))


def test_a_rebuild_is_refused_before_it_learns_anything(home: Path, memory: Memory, tacit: Tacit) -> None:
    with memory.session() as session:
        session.message("user", "My name is Ada and I live in Graz.")
    _in_root(home)
    memory.commit()
    done = tacit("rebuild", "--name", "v2")
    assert done.code != 0
    assert "filter crypt" in done.stderr
    assert "extract/v2" not in user(home, "branch", "-a")


def test_what_a_draft_was_made_for_is_not_kept_as_plain_text(home: Path, memory: Memory) -> None:
    _in_root(home)
    assert store_unreferenced_blob(memory.git, SECRET.encode(), NOTE) is None
    assert not is_leaked(home)
    assert store_unreferenced_blob(memory.git, b"fine", "drafts/x.md")


def test_a_setting_of_the_user_that_git_cannot_read_stops_commits_in_words(
    home: Path, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could name rules for filters, so nobody can tell what would be plain text."""
    (tmp_path / "broken").write_text("[core\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "broken"))
    (home / NOTE).write_text(SECRET)
    with pytest.raises(GitError, match="filters"):
        memory.commit()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert not is_leaked(home)


# ---------------------------------------------------------------- rules that stand where nobody looks


def _without_files(old: Path, new: Path) -> None:
    user(old, "clone", "-q", "--no-checkout", str(old), str(new))
    (new / "memory-config.yaml").write_text(user(new, "show", "HEAD:memory-config.yaml"))


def _without_files_but_some_rules(old: Path, new: Path) -> None:
    _without_files(old, new)
    (new / ".gitattributes").write_text("*.txt text\n")


def _sparse(*how: str) -> Callable[[Path, Path], None]:
    def clone(old: Path, new: Path) -> None:
        user(old, "clone", "-q", str(old), str(new))
        user(new, "sparse-checkout", "set", *how)

    return clone


CLONES = {
    "cone": _sparse("topics"),
    "sparse index": _sparse("--cone", "--sparse-index", "topics"),
    "patterns": _sparse("--no-cone", "/*", "!/knowledge/", "!/raw/"),
    "without files": _without_files,
    "without files but some rules": _without_files_but_some_rules,
}


@pytest.mark.parametrize("kind", CLONES)
def test_rules_that_are_not_checked_out_count(home: Path, memory: Memory, kind: str, tmp_path: Path) -> None:
    _in_folders(home)
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "rules")
    CLONES[kind](home, tmp_path / "new")
    clone = tacit.init(tmp_path / "new", adopt=True)
    (clone.home.root / NOTE).write_text(SECRET)
    with clone.session() as session:
        session.message("user", SECRET)
    worked = clone.commit()
    assert not is_leaked(clone.home.root)
    assert any(NOTE in str(one) and "filter crypt" in str(one) for one in worked.problems)


@pytest.mark.parametrize("how", ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"])
def test_a_setting_that_stands_in_the_environment_counts(
    home: Path, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "rules").write_text(f"*.md {RULE}\n")
    if how == "GIT_CONFIG_COUNT":
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.attributesFile")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path / "rules"))
    else:  # as `git -c` sets it for its hooks
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.attributesFile'='{tmp_path}/rules'")
    (home / NOTE).write_text(SECRET)
    memory.commit()
    assert not is_leaked(home)


# ---------------------------------------------------------------- copies, and rules that went


def _encrypt_knowledge(home: Path) -> None:
    (home / "knowledge/.gitattributes").write_text(f"*.md {RULE}\n")
    set_filter(home)
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "encrypted")


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_draft_for_a_note_with_a_filter_is_not_committed(
    home: Path, memory: Memory, tacit: Tacit, is_broken: bool
) -> None:
    entries = "".join(f"- 2026-01-{1 + day % 28:02}: {SECRET} {day}\n" for day in range(230))
    (home / "knowledge/memory/MEMORY.md").write_text(f"# Memory\n\n## Active Context\n\n{entries}")
    _encrypt_knowledge(home)
    tacit("run", "prune")
    (draft,) = (home / "drafts").glob("memory-*.md")
    if is_broken:
        draft.write_text(draft.read_text().replace("draft: text", "draft: tent"))
    worked = memory.commit()
    assert any("MEMORY.md" in one.what for one in worked.problems if one.where.startswith("drafts/"))
    assert not is_leaked(home)


def test_a_draft_of_lines_for_a_note_with_a_filter_is_not_committed(home: Path, memory: Memory) -> None:
    _encrypt_knowledge(home)
    head = "draft: lines\ncategory: facts\npolicy: review\ntrust: other\nmade: 2026-01-02T09:00:00+01:00\n"
    text = f"---\n{head}---\n\n## topics/a.md\n\n- fine\n\n## {NOTE} — Facts\n\n- {SECRET}\n"
    (home / "drafts/facts-12345678.md").write_text(text)
    memory.commit()
    assert not is_leaked(home)


def test_a_draft_for_a_note_without_a_filter_is_committed_beside_it(home: Path, memory: Memory) -> None:
    _encrypt_knowledge(home)
    head = "draft: lines\ncategory: facts\npolicy: review\ntrust: other\nmade: 2026-01-02T09:00:00+01:00\n"
    (home / "drafts/facts-12345678.md").write_text(f"---\n{head}---\n\n## topics/a.md\n\n- fine\n")
    memory.commit()
    assert "drafts/facts-12345678.md" in memory.git.tree("HEAD")


def test_nothing_moves_to_an_archive_that_lacks_the_filter(home: Path, memory: Memory, tacit: Tacit) -> None:
    page = "knowledge/journal/2020-01-02.md"
    (home / page).write_text(f"# 2020-01-02\n\n{SECRET}\n")
    _encrypt_knowledge(home)
    tacit("run", "archive")
    assert (home / page).exists()
    assert page in memory.git.tree("HEAD")
    assert not is_leaked(home)


@pytest.mark.parametrize("path", ["archive/vault.md", "archive/memory/2026-01.md"])
def test_a_copy_in_the_archive_is_not_committed_without_the_filter(
    home: Path, memory: Memory, path: str
) -> None:
    _encrypt_knowledge(home)
    (home / path).parent.mkdir(exist_ok=True)
    (home / path).write_text(SECRET)
    worked = memory.commit()
    assert any(one.where == path and "knowledge/" in one.what for one in worked.problems)
    assert not is_leaked(home)
    assert any(path in one for one in problems(memory))


def test_what_is_encrypted_in_git_is_not_replaced_by_plain_text_when_its_rule_went(
    home: Path, memory: Memory
) -> None:
    (home / NOTE).write_text("# Vault\n")
    _encrypt_knowledge(home)
    (home / "knowledge/.gitattributes").unlink()
    memory.commit()
    (home / NOTE).write_text(SECRET)
    for left in (memory.commit().problems, memory.services.note_committer.commit_paths("x\n", [NOTE]).left):
        assert any(one.where == NOTE and "encrypted in git" in one.what for one in left)
    assert not is_leaked(home)


@pytest.mark.parametrize("script", ["tr a-z n-za-m", "printf '\\0GITCRYPT\\0'; cat"])
def test_forget_does_not_claim_what_it_cannot_see(home: Path, tacit: Tacit, script: str) -> None:
    set_filter(home)
    (home.parent / "crypt").write_text(f"#!/bin/sh\n{script}\n")
    _in_root(home)
    (home / NOTE).write_text(f"{SECRET}\n")
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "encrypted")
    said = tacit("forget", SECRET, "--yes").stdout
    assert "Nothing is left" not in said
    assert "encrypted" in said


# ---------------------------------------------------------------- files that are locked


LOCKED = {
    "git-crypt": b"\0GITCRYPT\0" + bytes(range(200)),
    "openssl": b"Salted__" + bytes(range(200)),
    "transcrypt": b"U2FsdGVkX1+3dGhlIHZhdWx0IG9wZW5zIHdpdGg=\n",
    "age": b"age-encryption.org/v1\n-> X25519 abc\n",
}


@pytest.mark.parametrize("kind", LOCKED)
def test_a_locked_note_is_neither_read_nor_written(home: Path, memory: Memory, kind: str) -> None:
    (home / NOTE).write_bytes(LOCKED[kind])
    with pytest.raises(StoreError, match="locked"):
        memory.read(NOTE)
    with pytest.raises(StoreError, match="locked"):
        memory.remember("hello", NOTE, session_key=None)
    assert (home / NOTE).read_bytes() == LOCKED[kind]
    assert not [hit for hit in memory.search("GITCRYPT vault X25519") if hit.path == NOTE]
    assert any(NOTE in one and "locked" in one for one in problems(memory))


def test_a_locked_person_or_identity_does_not_stop_the_work(home: Path, memory: Memory) -> None:
    for path in ("knowledge/people/ada.md", "knowledge/identity/USER.md", "knowledge/projects/x.md"):
        (home / path).write_bytes(LOCKED["git-crypt"])
    with memory.session() as session:
        session.message("user", "I live in Graz, please remember that.")
    memory.work()
    assert memory.turn("Where do I live?") is not None


def test_a_locked_note_that_is_what_git_has_is_nothing_to_report(home: Path, memory: Memory) -> None:
    (home / "knowledge/.gitattributes").write_text(f"vault.md {RULE}\n")
    (home / NOTE).write_bytes(LOCKED["git-crypt"])
    user(home, "add", "-A")
    user(home, "commit", "-q", "--no-verify", "-m", "as a clone has it")
    worked = memory.commit()
    assert [str(one) for one in worked.problems] == []
    assert Git(home).read("HEAD", NOTE) == LOCKED["git-crypt"]


def test_a_locked_transcript_is_called_locked(home: Path, memory: Memory) -> None:
    with memory.session() as session:
        session.message("user", "hello")
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    file.chmod(0o600)
    file.write_bytes(LOCKED["git-crypt"])
    (checked,) = memory.verify()
    assert checked.state == "locked"
    assert "git-crypt unlock" in checked.detail
