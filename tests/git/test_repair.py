"""Broken repositories: looking changes nothing, mending loses nothing, and the next commit goes through."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import tacit
from tacit.git.commits import CommitPlan, FileChange, import_commits
from tacit.git.repair import GitWork, find_damage, repair
from tacit.git.repository import Blob, Git, blob_name
from tacit.home.layout import Home
from tests.git.committers import note_committer

NOTE = "knowledge/projects/kiln.md"


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()


def commit(home: Path) -> tuple[str, ...]:
    return note_committer(home, lambda: datetime.now().astimezone()).commit_notes().commits


def snapshot(home: Path) -> str:
    """Every name, every byte, every time and every right."""
    digest = hashlib.sha256()
    for file in sorted(home.rglob("*")):
        info = file.lstat()
        digest.update(f"{file}{info.st_mode}{info.st_mtime_ns}".encode())
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


def working_files(home: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(home)): file.read_bytes()
        for file in home.rglob("*")
        if file.is_file() and ".git" not in file.parts and ".tacit" not in file.parts
    }


def loose(home: Path, revision: str) -> Path:
    name = user(home, "rev-parse", revision).strip()
    return home / ".git/objects" / name[:2] / name[2:]


def empty(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(b"")


def _old_lock(name: str) -> Callable[[Path], None]:
    def make(home: Path) -> None:
        lock = home / ".git" / name
        lock.touch()
        os.utime(lock, (time.time() - 300,) * 2)

    return make


def _head_missing(home: Path) -> None:
    (home / ".git/HEAD").unlink()


def _head_garbage(home: Path) -> None:
    (home / ".git/HEAD").write_bytes(b"\0\0\xff\n")


def _head_empty(home: Path) -> None:
    (home / ".git/HEAD").write_bytes(b"")


def _index_empty(home: Path) -> None:
    (home / ".git/index").write_bytes(b"")


def _index_garbage(home: Path) -> None:
    (home / ".git/index").write_bytes(bytes(range(40)))


def _branch_empty(home: Path) -> None:
    (home / ".git/refs/heads/main").write_bytes(b"")


def _branch_garbage(home: Path) -> None:
    (home / ".git/refs/heads/main").write_bytes(b"\xff" * 41)


def _branch_gone(home: Path) -> None:
    (home / ".git/refs/heads/main").unlink()


def _blob_empty(home: Path) -> None:
    empty(loose(home, f"HEAD:{NOTE}"))


def _commit_empty(home: Path) -> None:
    empty(loose(home, "HEAD"))


def _tree_empty(home: Path) -> None:
    empty(loose(home, "HEAD^{tree}"))


def _everything_of_the_last_commit_empty(home: Path) -> None:
    for revision in (f"HEAD:{NOTE}", "HEAD:knowledge", "HEAD^{tree}", "HEAD"):
        empty(loose(home, revision))


BROKEN = [
    _old_lock("HEAD.lock"),
    _old_lock("refs/heads/main.lock"),
    _old_lock("packed-refs.lock"),
    _head_missing,
    _head_garbage,
    _head_empty,
    _index_empty,
    _index_garbage,
    _branch_empty,
    _branch_garbage,
    _branch_gone,
    _blob_empty,
    _commit_empty,
    _tree_empty,
    _everything_of_the_last_commit_empty,
]
NAMES = [
    "dead HEAD.lock", "dead branch lock", "dead packed-refs lock", "HEAD missing", "HEAD garbage",
    "HEAD empty", "index empty", "index garbage", "branch empty", "branch garbage", "branch gone",
    "blob empty", "commit empty", "tree empty", "all of the last commit empty",
]  # fmt: skip


@pytest.fixture
def lived_in(home: Path) -> Path:
    """A home with three more commits, all objects loose, and an edit that is not committed yet."""
    for number in range(3):
        (home / NOTE).write_text(f"# Kiln\n\nversion {number}\n")
        assert commit(home)
    return home


@pytest.mark.parametrize("breaking", BROKEN, ids=NAMES)
def test_a_broken_repository_is_found_without_touching_it_then_mended_and_committed_to(
    lived_in: Path, breaking: Callable[[Path], None]
) -> None:
    home = lived_in
    history = user(home, "log", "--format=%s").splitlines()
    breaking(home)
    (home / "knowledge/projects/new.md").write_text("written after the cut\n")
    files, before = working_files(home), snapshot(home)

    found = [str(finding.problem) for finding in find_damage(Home(home), Git(home))]
    assert found
    assert snapshot(home) == before

    # Later findings may only be there because of the first one.
    assert repair(Home(home), Git(home))[0] == found[0]
    assert list(find_damage(Home(home), Git(home))) == []
    assert commit(home)
    assert working_files(home) == files
    assert user(home, "status", "--porcelain") == ""
    kept = user(home, "log", "--format=%s").splitlines()
    assert kept[-len(history) + 1 :] == history[1:]
    assert user(home, "show", f"HEAD:{NOTE}") == "# Kiln\n\nversion 2\n"
    checked = subprocess.run(
        ["git", "fsck", "--full", "--no-reflogs", "--strict"], cwd=home, capture_output=True
    )
    assert (checked.returncode, b"error" in checked.stderr, b"bad" in checked.stderr) == (0, False, False)


@pytest.mark.parametrize("breaking", BROKEN, ids=NAMES)
def test_the_next_commit_mends_by_itself_or_init_does(
    lived_in: Path, breaking: Callable[[Path], None]
) -> None:
    breaking(lived_in)
    tacit.init(lived_in)
    (lived_in / "knowledge/projects/new.md").write_text("written after the cut\n")
    assert commit(lived_in)
    assert user(lived_in, "status", "--porcelain") == ""
    assert user(lived_in, "show", "HEAD:knowledge/projects/new.md") == "written after the cut\n"


def test_a_healthy_repository_has_no_findings_and_is_not_touched(lived_in: Path) -> None:
    before = snapshot(lived_in)
    assert list(find_damage(Home(lived_in), Git(lived_in))) == []
    assert repair(Home(lived_in), Git(lived_in)) == []
    assert snapshot(lived_in) == before


def test_a_repository_whose_refs_are_packed_is_healthy(lived_in: Path) -> None:
    user(lived_in, "gc", "-q")
    assert not (lived_in / ".git/refs/heads/main").exists()
    assert list(find_damage(Home(lived_in), Git(lived_in))) == []
    (lived_in / NOTE).write_text("after gc\n")
    assert commit(lived_in)
    assert user(lived_in, "log", "--format=%s").count("\n") == 5
    assert user(lived_in, "status", "--porcelain") == ""


def test_a_folder_without_repository_is_told_to_be_initialised(home: Path) -> None:
    (home / ".git").rename(home.parent / "gone")
    found = list(find_damage(Home(home), Git(home)))
    assert [(finding.problem.where, finding.mend) for finding in found] == [(".git", None)]
    assert "tacit init" in found[0].problem.todo


def test_a_branch_without_any_readable_commit_is_explained_and_left(home: Path) -> None:
    (home / ".git/logs/refs/heads/main").unlink()
    empty(loose(home, "HEAD"))
    ref = (home / ".git/refs/heads/main").read_bytes()
    found = [finding for finding in find_damage(Home(home), Git(home)) if "main" in finding.problem.where]
    assert [finding.mend for finding in found] == [None]
    assert "Restore .git from a backup" in found[0].problem.todo
    repair(Home(home), Git(home))
    assert (home / ".git/refs/heads/main").read_bytes() == ref


def test_a_broken_index_is_set_aside_and_staged_files_are_still_on_disk(lived_in: Path) -> None:
    (lived_in / "staged.txt").write_text("mine\n")
    user(lived_in, "add", "staged.txt")
    _index_garbage(lived_in)
    damaged = (lived_in / ".git/index").read_bytes()
    repair(Home(lived_in), Git(lived_in))
    assert (lived_in / ".git/index.broken").read_bytes() == damaged
    assert user(lived_in, "status", "--porcelain") == "?? staged.txt\n"


def test_head_that_is_lost_finds_the_only_branch_again(tmp_path: Path) -> None:
    root = tmp_path / "r"
    (root / ".tacit").mkdir(parents=True)
    git = Git(root)
    git.init("trunk")
    name = import_commits(git, [CommitPlan("x\n", [FileChange("a", b"1")], datetime.now().astimezone())])[0]
    _head_missing(root)
    repair(Home(root), git)
    assert (git.branch(), git.head()) == ("trunk", name)


def test_young_locks_and_locks_of_running_gits_are_not_findings(lived_in: Path) -> None:
    lock = lived_in / ".git/refs/heads/main.lock"
    lock.touch()
    assert list(find_damage(Home(lived_in), Git(lived_in))) == []
    os.utime(lock, (time.time() - 300,) * 2)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["git", "cat-file", "--batch-check"], cwd=lived_in, stdin=pipe, stdout=pipe
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"HEAD\n")
        running.stdin.flush()
        assert running.stdout.readline()
        assert list(find_damage(Home(lived_in), Git(lived_in))) == []
    assert len(list(find_damage(Home(lived_in), Git(lived_in)))) == 1


def test_an_old_index_lock_is_named_but_never_removed_for_the_user(lived_in: Path) -> None:
    _old_lock("index.lock")(lived_in)
    found = list(find_damage(Home(lived_in), Git(lived_in)))
    assert [(finding.problem.where, finding.mend) for finding in found] == [(".git/index.lock", None)]
    assert repair(Home(lived_in), Git(lived_in)) == []
    assert (lived_in / ".git/index.lock").exists()


def test_a_config_that_git_cannot_read_is_explained_and_costs_nobody_their_index(lived_in: Path) -> None:
    (lived_in / "staged.txt").write_text("mine\n")
    user(lived_in, "add", "staged.txt")
    config = (lived_in / ".git/config").read_text()
    before = (lived_in / ".git/index").read_bytes()
    (lived_in / ".git/config").write_text(config + "[broken\n")
    (found,) = find_damage(Home(lived_in), Git(lived_in))
    assert (found.problem.where, found.mend) == (".git/config", None)
    assert "bad config line" in found.problem.what
    assert repair(Home(lived_in), Git(lived_in)) == []
    assert (lived_in / ".git/index").read_bytes() == before
    (lived_in / ".git/config").write_text(config)
    assert user(lived_in, "diff", "--cached", "--name-only") == "staged.txt\n"


@pytest.mark.parametrize("line", ["[core]\n\tbare = perhaps\n", "[extensions]\n\tnosuch = 1\n"])
def test_a_value_that_git_cannot_use_is_explained_too(lived_in: Path, line: str) -> None:
    with (lived_in / ".git/config").open("a") as file:
        file.write("[core]\n\trepositoryformatversion = 1\n" + line)
    (found,) = find_damage(Home(lived_in), Git(lived_in))
    assert (found.problem.where, found.mend) == (".git/config", None)


def test_an_index_that_git_reads_under_other_rules_is_not_damaged(lived_in: Path) -> None:
    user(lived_in, "update-index", "--index-version", "4")
    user(lived_in, "update-index", "--split-index")
    assert list(find_damage(Home(lived_in), Git(lived_in))) == []


def test_a_cut_index_is_damaged_and_renewed(lived_in: Path) -> None:
    index = lived_in / ".git/index"
    index.write_bytes(index.read_bytes()[:200])
    (found,) = find_damage(Home(lived_in), Git(lived_in))
    assert found.problem.where == ".git/index"
    repair(Home(lived_in), Git(lived_in))
    assert user(lived_in, "status", "--porcelain") == ""


def test_what_a_running_git_is_writing_is_not_an_empty_object(lived_in: Path) -> None:
    folder = lived_in / ".git/objects/00"
    folder.mkdir(exist_ok=True)
    (folder / "tmp_obj_Ab12Cd").touch()
    assert list(find_damage(Home(lived_in), Git(lived_in))) == []
    assert repair(Home(lived_in), Git(lived_in)) == []
    assert (folder / "tmp_obj_Ab12Cd").exists()


@pytest.mark.parametrize("branch", ["main", "trunk"])
def test_a_lost_head_finds_its_branch_also_when_it_is_packed(lived_in: Path, branch: str) -> None:
    user(lived_in, "branch", "-m", branch)
    user(lived_in, "pack-refs", "--all")
    (lived_in / ".git/logs/HEAD").unlink()
    head = user(lived_in, "rev-parse", "HEAD")
    _head_garbage(lived_in)
    repair(Home(lived_in), Git(lived_in))
    assert (Git(lived_in).branch(), user(lived_in, "rev-parse", "HEAD")) == (branch, head)


def test_a_lost_head_goes_back_to_the_branch_that_was_switched_to_last(lived_in: Path) -> None:
    user(lived_in, "checkout", "-q", "-b", "explore/idea")
    _head_missing(lived_in)
    repair(Home(lived_in), Git(lived_in))
    assert Git(lived_in).branch() == "explore/idea"


def test_an_empty_object_of_a_repository_with_long_names_is_made_anew(tmp_path: Path) -> None:
    root = tmp_path / "r"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(root)], check=True)
    git = Git(root)
    (root / "a.md").write_bytes(b"1")
    import_commits(git, [CommitPlan("x\n", [FileChange("a.md", b"1")], datetime.now().astimezone())])
    empty(loose(root, "HEAD:a.md"))
    repair(Home(root), git)
    assert git.read("HEAD", "a.md") == b"1"


def test_a_linked_work_tree_is_healthy_and_is_mended_where_it_shares(lived_in: Path) -> None:
    side = lived_in.parent / "side"
    user(lived_in, "worktree", "add", "-q", "-b", "side", str(side))
    assert list(find_damage(Home(side), Git(side))) == []
    Git(side).directory.joinpath("HEAD").write_bytes(b"")
    lock = lived_in / ".git/refs/heads/side.lock"
    _old_lock("refs/heads/side.lock")(lived_in)
    repair(Home(side), Git(side))
    assert not lock.exists()
    assert Git(side).looks_sound()
    assert list(find_damage(Home(side), Git(side))) == []


# ---------------------------------------------------------------- an index that has not learned yet


def stale(home: Path) -> None:
    """Our commit is made, but somebody held the index meanwhile."""
    lock = home / ".git/index.lock"
    git = Git(home)
    (home / NOTE).write_text("ours\n")
    plan = CommitPlan("memory: x\n", [FileChange(NOTE, b"ours\n")], datetime.now().astimezone())
    with GitWork(Home(home), git).writing({NOTE: Blob("100644", blob_name(b"ours\n"))}):
        import_commits(git, [plan])
        lock.touch()
    lock.unlink()


def test_an_index_that_could_not_be_told_is_told_later(lived_in: Path) -> None:
    stale(lived_in)
    work = GitWork(Home(lived_in), Git(lived_in))
    assert work.list_outdated() == {NOTE}
    work.settle()
    assert not work.is_unfinished
    assert user(lived_in, "status", "--porcelain") == ""


def test_what_the_user_staged_since_is_theirs(lived_in: Path) -> None:
    stale(lived_in)
    (lived_in / NOTE).write_text("staged by hand\n")
    user(lived_in, "add", NOTE)
    work = GitWork(Home(lived_in), Git(lived_in))
    assert work.list_outdated() == set()
    work.settle()
    assert not work.is_unfinished
    assert user(lived_in, "show", f":{NOTE}") == "staged by hand\n"
    assert commit(lived_in) == ()
    assert user(lived_in, "show", f"HEAD:{NOTE}") == "ours\n"
