"""Files that git knows and this disk does not have: in sparse, partial and empty clones."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tacit
from tacit import maintenance
from tacit.app import init_home
from tacit.errors import HomeError, NotCheckedOut, StoreError
from tacit.git.index import find_entries, list_not_checked_out, update_entries
from tacit.git.objects import store_unreferenced_blob
from tacit.health.doctor import run_checks
from tacit.home.layout import PURGED
from tacit.memory import Memory
from tacit.transcripts.purged import record_purge

SOUL = "knowledge/identity/SOUL.md"
MEMORY = "knowledge/memory/MEMORY.md"
MINE = "# Soul\n\nI speak in short sentences.\n"


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=u", "-c", "user.email=u@example.com", "-c", "protocol.file.allow=always"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A home with an identity, a memory and a conversation of its own, all of it committed."""
    memory = tacit.init(tmp_path / "old")
    root = memory.home.root
    (root / SOUL).write_text(MINE)
    (root / MEMORY).write_text("# Memory\n\n- Ada lives in Graz.\n")
    (root / "knowledge/journal/2026-01-02.md").write_text("# 2026-01-02\n\nA day.\n")
    with memory.session() as session:
        session.message("user", "hello kiln")
    memory.commit()
    return root


def _cone(old: Path, new: Path) -> None:
    git(old.parent, "clone", "-q", str(old), str(new))
    git(new, "sparse-checkout", "set", "topics")


def _patterns(old: Path, new: Path) -> None:
    git(old.parent, "clone", "-q", str(old), str(new))
    git(new, "sparse-checkout", "set", "--no-cone", "/*", "!/knowledge/", "!/raw/")


def _flags(old: Path, new: Path) -> None:
    git(old.parent, "clone", "-q", str(old), str(new))
    known = git(new, "ls-files", "knowledge", "raw").splitlines()
    git(new, "update-index", "--skip-worktree", *known)
    for path in known:
        (new / path).unlink()


def _assumed(old: Path, new: Path) -> None:
    """As people did it before there were sparse checkouts."""
    git(old.parent, "clone", "-q", str(old), str(new))
    known = git(new, "ls-files", "knowledge", "raw").splitlines()
    git(new, "update-index", "--assume-unchanged", *known)
    for path in known:
        (new / path).unlink()


def _sparse_index(old: Path, new: Path) -> None:
    git(old.parent, "clone", "-q", str(old), str(new))
    git(new, "sparse-checkout", "set", "--cone", "--sparse-index", "topics")


def _partial(old: Path, new: Path) -> None:
    git(old, "config", "uploadpack.allowFilter", "true")
    url = old.as_uri()
    git(old.parent, "clone", "-q", "--filter=blob:none", "--sparse", url, str(new))
    shutil.move(old, old.with_name("gone"))


def _no_files(old: Path, new: Path) -> None:
    git(old.parent, "clone", "-q", "--no-checkout", str(old), str(new))
    git(new, "show", "HEAD:memory-config.yaml")
    (new / "memory-config.yaml").write_text(git(new, "show", "HEAD:memory-config.yaml"))


def _work_tree(old: Path, new: Path) -> None:
    git(old, "worktree", "add", "-q", "--no-checkout", "-b", "side", str(new))
    git(new, "sparse-checkout", "set", "topics")
    git(new, "checkout", "-q", "side")


CLONES: dict[str, Callable[[Path, Path], None]] = {
    "cone": _cone,
    "patterns": _patterns,
    "flags": _flags,
    "flags of files that are not looked at": _assumed,
    "sparse index": _sparse_index,
    "partial, and its remote is gone": _partial,
    "without files": _no_files,
    "linked work tree": _work_tree,
}


@pytest.fixture(params=list(CLONES))
def clone(request: pytest.FixtureRequest, old: Path, tmp_path: Path) -> Path:
    new = tmp_path / "new"
    CLONES[request.param](old, new)
    assert not (new / SOUL).exists()
    return new


def tree_of(root: Path) -> dict[str, str]:
    lines = git(root, "ls-tree", "-r", "HEAD").splitlines()
    return {path: meta.split()[2] for meta, _, path in (line.partition("\t") for line in lines)}


def test_init_writes_no_starter_file_over_one_that_git_knows(clone: Path) -> None:
    before = tree_of(clone)
    _, report = init_home(clone, adopt=True)
    assert not (clone / SOUL).exists()
    assert not (clone / MEMORY).exists()
    after = tree_of(clone)
    assert {path: after.get(path) for path in before} == before
    assert any(SOUL in str(problem) and "not checked out" in str(problem) for problem in report.warnings)


def test_nothing_that_is_not_checked_out_is_committed_as_gone(clone: Path) -> None:
    before = tree_of(clone)
    memory = init_home(clone, adopt=True)[0]
    for number in range(2):
        (clone / "topics/new.md").write_text(f"# New\n\n{number}\n")
        with memory.session() as session:
            session.message("user", f"hello {number}")
        memory.commit()
    after = tree_of(clone)
    assert {path: after.get(path) for path in before if not path.startswith("topics/")} == {
        path: name for path, name in before.items() if not path.startswith("topics/")
    }


def test_verify_tells_what_is_not_checked_out_from_what_is_missing(clone: Path) -> None:
    memory = init_home(clone, adopt=True)[0]
    (checked,) = memory.verify()
    assert (checked.state, checked.good) == ("not checked out", True)


@pytest.mark.parametrize("path", [MEMORY, "knowledge/journal/2026-01-02.md"])
def test_no_note_is_begun_anew_where_git_has_one(clone: Path, path: str) -> None:
    memory = init_home(clone, adopt=True)[0]
    with pytest.raises(StoreError, match="not checked out"):
        memory.remember("Bob lives in Wien.", path, session_key=None)
    assert not (clone / path).exists()
    memory.remember("Bob lives in Wien.", "knowledge/new.md", session_key=None)


def talk(memory: Memory, text: str) -> Memory:
    with memory.session(session_key="agent:main:main") as session:
        session.message("user", text)
    return memory


def test_what_is_learned_waits_where_its_note_is_not_checked_out(old: Path, tmp_path: Path) -> None:
    talk(tacit.open(old), "We decided to fire the big plates at 1,215 degrees.").work()
    _cone(old, tmp_path / "new")
    before = tree_of(tmp_path / "new")
    memory = init_home(tmp_path / "new")[0]
    learnt = talk(memory, "We decided to close on Mondays from April on.").work().learnt
    after = tree_of(tmp_path / "new")
    assert {path: after.get(path) for path in before} == before
    assert learnt is not None
    assert learnt.drafts


def test_what_was_deleted_by_hand_is_missing(old: Path) -> None:
    memory = tacit.open(old)
    (file,) = old.glob("raw/conversations/*/*/*/*.md")
    file.unlink()
    (checked,) = memory.verify()
    assert (checked.state, checked.good) == ("missing", False)


def test_a_transcript_that_was_changed_in_git_is_touched_though_not_checked_out(
    old: Path, tmp_path: Path
) -> None:
    (file,) = old.glob("raw/conversations/*/*/*/*.md")
    file.chmod(0o600)
    file.write_text(file.read_text().replace("hello kiln", "farewell"))
    git(old, "commit", "-q", "--no-verify", "-a", "-m", "forged")
    _cone(old, tmp_path / "new")
    (checked,) = init_home(tmp_path / "new")[0].verify()
    assert (checked.state, checked.good) == ("touched", False)


def test_a_transcript_that_git_has_no_more_is_missing_though_others_are_not_checked_out(
    old: Path, tmp_path: Path
) -> None:
    git(old, "rm", "-q", "-r", "raw/conversations")
    git(old, "commit", "-q", "--no-verify", "-m", "gone")
    _cone(old, tmp_path / "new")
    (checked,) = init_home(tmp_path / "new")[0].verify()
    assert checked.state == "missing"


def test_doctor_has_no_error_for_what_is_not_checked_out(old: Path, tmp_path: Path) -> None:
    _cone(old, tmp_path / "new")
    memory = init_home(tmp_path / "new")[0]
    looked = run_checks(memory.home, memory.config, lambda done, total: None)
    problems = [problem for check in looked for problem in check.problems]
    assert not [str(problem) for problem in problems if problem.level == "error"]
    assert not [str(problem) for problem in problems if "is gone" in problem.what]


def test_a_config_that_is_not_checked_out_is_asked_for(old: Path, tmp_path: Path) -> None:
    git(old.parent, "clone", "-q", str(old), str(tmp_path / "new"))
    git(tmp_path / "new", "sparse-checkout", "set", "--no-cone", "topics/")
    assert not (tmp_path / "new/memory-config.yaml").exists()
    with pytest.raises(HomeError, match=r"memory-config\.yaml is in git but not checked out"):
        init_home(tmp_path / "new", adopt=True)


@pytest.mark.parametrize("path", [SOUL, MEMORY, "memory-config.yaml"])
def test_a_starter_file_that_was_deleted_comes_back_as_git_has_it(old: Path, path: str) -> None:
    before, head = (old / path).read_bytes(), tree_of(old)
    (old / path).unlink()
    init_home(old)
    assert (old / path).read_bytes() == before
    assert tree_of(old) == head
    assert git(old, "status", "--porcelain") == ""


def test_a_starter_file_that_the_user_staged_as_gone_stays_so(old: Path) -> None:
    git(old, "rm", "-q", SOUL)
    init_home(old)
    assert not (old / SOUL).exists()


def test_a_starter_file_that_git_has_as_gone_is_made_again(old: Path) -> None:
    (old / SOUL).unlink()
    git(old, "commit", "-q", "--no-verify", "-a", "-m", "gone")
    init_home(old)
    assert (old / SOUL).exists()


def test_a_commit_of_a_file_that_is_not_checked_out_leaves_it_so(old: Path, tmp_path: Path) -> None:
    """As a purge makes one. Else the next commit of notes would take the file for deleted."""
    _cone(old, tmp_path / "new")
    memory = init_home(tmp_path / "new")[0]
    name = store_unreferenced_blob(memory.git, b"other\n", MEMORY)
    assert name is not None
    entry = find_entries(memory.git, [MEMORY])[MEMORY]
    assert update_entries(memory.git, [(MEMORY, entry)])
    assert MEMORY in list_not_checked_out(memory.git)


def test_what_was_decided_and_purged_before_is_not_begun_anew(old: Path, tmp_path: Path) -> None:
    (old / PURGED).write_text('{"at": "2026-01-02T09:00:00+01:00", "origin": "web", "sources": []}\n')
    tacit.open(old).commit()
    _cone(old, tmp_path / "new")
    home = init_home(tmp_path / "new")[0].home
    with pytest.raises(StoreError, match="not checked out"):
        record_purge(home, at="2026-02-02T09:00:00+01:00", origin="x", sources=[], by="me")
    assert not (home.root / PURGED).exists()


def test_a_clone_without_files_can_still_be_checked_out_afterwards(old: Path, tmp_path: Path) -> None:
    _no_files(old, tmp_path / "new")
    memory = init_home(tmp_path / "new", adopt=True)[0]
    with memory.session() as session:
        session.message("user", "hello")
    memory.commit()
    git(tmp_path / "new", "checkout", "-q", "-f", "main")
    assert (tmp_path / "new" / SOUL).read_text() == MINE


def test_a_branch_whose_trees_were_never_fetched_is_not_moved_back(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    git(old, "config", "uploadpack.allowFilter", "true")
    git(old.parent, "clone", "-q", "--filter=tree:0", old.as_uri(), str(new))
    (old / "topics/more.md").write_text("# More\n")
    tacit.open(old).commit()
    tip = git(old, "rev-parse", "HEAD").strip()
    git(new, "fetch", "-q", "origin")
    git(new, "update-ref", "refs/heads/main", tip)
    shutil.move(old, old.with_name("gone"))
    with pytest.raises(Exception, match="partial clone"):
        init_home(new)
    assert git(new, "rev-parse", "HEAD").strip() == tip


def test_a_note_that_is_not_checked_out_stops_its_step_of_the_work_and_no_other() -> None:
    """In the evening the summary of the day is due, and its page may be one of those."""

    def summarize() -> str:
        raise NotCheckedOut("knowledge/journal/2026-11-18.md")

    result, (problem,) = maintenance._run_step(summarize, "nothing")
    assert result == "nothing"
    assert problem.where == "knowledge/journal/2026-11-18.md"
    assert "git checkout HEAD -- knowledge/journal/2026-11-18.md" in str(problem)
