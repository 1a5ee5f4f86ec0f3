"""The one module that runs git: exact bytes, exact names, and nobody else's index or settings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tacit.config import mask_secret
from tacit.errors import GitError
from tacit.git.commits import EXECUTABLE, CommitPlan, FileChange, import_commits
from tacit.git.index import find_entries, list_files, list_staged, list_untracked, update_entries
from tacit.git.objects import pack_loose_objects
from tacit.git.refs import push_branch, set_ref
from tacit.git.repository import Blob, Git, blob_name
from tacit.git.work_trees import add_work_tree, drop_incomplete_work_trees
from tacit.home import files

NOON = datetime(2026, 2, 16, 12, 0, tzinfo=timezone(timedelta(hours=1)))
ODD_NAMES = [
    "new\nline.md",
    'quote".md',
    "it's.md",
    "-leading.md",
    "--output=x.md",
    "two words.md",
    " blank around ",
    "tab\there.md",
    "back\\slash.md",
    "\\n.md",
    "caf\u00e9.md",
    "cafe\u0301.md",
    "日本語.md",
    ":(glob)*.md",
    "*.md",
    "[ab].md",
    "return\r.md",
    "esc\x1b[2J.md",
    "\u2028.md",
    "x" * 252 + ".md",
    os.fsdecode(b"\xff\xfe.md"),
]


def user(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """git as the person at the keyboard runs it."""
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    done = subprocess.run(
        command, cwd=root, capture_output=True, check=True, env={**os.environ, **(env or {})}
    )
    return os.fsdecode(done.stdout)


def commit(git: Git, *changes: FileChange, message: str = "memory: x\n") -> str:
    return import_commits(git, [CommitPlan(message, changes, NOON)])[0]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    root = tmp_path / "r"
    root.mkdir()
    made = Git(root)
    made.init("main")
    return made


def test_a_new_repository_has_the_branch_it_was_asked_for_and_no_foreign_template(git: Git) -> None:
    assert git.branch() == "main"
    assert git.head() is None
    assert not (git.directory / "hooks").exists()


def test_init_of_an_existing_repository_changes_nothing_in_it(git: Git) -> None:
    name = commit(git, FileChange("a", b"1"))
    config = (git.directory / "config").read_bytes()
    git.init("other")
    assert (git.head(), git.branch()) == (name, "main")
    assert (git.directory / "config").read_bytes() == config


def test_a_commit_holds_exactly_the_bytes_it_was_given(git: Git) -> None:
    data = bytes(range(256)) + b"\r\n\r\n\n no newline at the end"
    commit(git, FileChange("knowledge/a.bin", data))
    assert git.read("HEAD", "knowledge/a.bin") == data
    assert git.tree("HEAD") == {"knowledge/a.bin": Blob("100644", blob_name(data))}
    user(git.root, "fsck", "--strict")


def test_an_empty_file_is_committed_and_read_back(git: Git) -> None:
    commit(git, FileChange("empty.md", b""))
    assert git.read("HEAD", "empty.md") == b""


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_committed_listed_read_and_removed_exactly(git: Git, name: str) -> None:
    path = f"knowledge/{name}"
    commit(git, FileChange(path, b"one"), FileChange("other.md", b"stays"))
    assert set(git.tree("HEAD")) == {path, "other.md"}
    assert set(git.tree("HEAD", "knowledge")) == {path}
    assert set(git.tree("HEAD", path)) == {path}
    assert git.read("HEAD", path) == b"one"
    listed = user(git.root, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")[:-1]
    assert listed == [path, "other.md"]
    assert update_entries(git, [(path, Blob("100644", blob_name(b"one")))])
    assert path in user(git.root, "ls-files", "-z").split("\0")
    commit(git, FileChange(path, None))
    assert set(git.tree("HEAD")) == {"other.md"}


def test_several_commits_are_made_in_order_each_with_its_own_files(git: Git) -> None:
    plans = [CommitPlan(f"memory: {n}\n", [FileChange(f"{n}.md", b"%d" % n)], NOON) for n in range(3)]
    names = import_commits(git, plans)
    assert user(git.root, "log", "--reverse", "--format=%H %s").split("\n")[:-1] == [
        f"{name} memory: {n}" for n, name in enumerate(names)
    ]
    assert user(git.root, "show", "--format=", "--name-only", names[1]) == "1.md\n"


def test_the_same_change_at_the_same_moment_has_the_same_name_everywhere(tmp_path: Path) -> None:
    names = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        git = Git(tmp_path / folder)
        git.init("main")
        names.add(commit(git, FileChange("a.md", b"1")))
    assert len(names) == 1


def test_the_author_and_the_offset_are_ours_whatever_the_environment_says(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Mallory")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "mallory@example.com")
        monkeypatch.setenv(f"GIT_{who}_DATE", "1999-01-01T00:00:00Z")
    commit(git, FileChange("a.md", b"1"))
    shown = user(git.root, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%aI|%cI")
    who, when = "tacit <tacit@localhost>", "2026-02-16T12:00:00+01:00"
    assert shown == f"{who}|{who}|{when}|{when}\n"


def test_what_a_commit_is_about_may_be_older_than_the_commit(git: Git) -> None:
    import_commits(
        git, [CommitPlan("x\n", [FileChange("a", b"1")], NOON, about=datetime(2020, 1, 1, tzinfo=UTC))]
    )
    assert user(git.root, "log", "-1", "--format=%aI %cI") == (
        "2020-01-01T00:00:00+00:00 2026-02-16T12:00:00+01:00\n"
    )


@pytest.mark.parametrize(
    "message",
    [
        "memory: caf\u00e9 日本\n",
        "x\n\ndone\n",
        "data 5\nM 100644 inline evil.md\ndata 4\nevil\n",
        "memory: nul\0byte\n",
        "memory: lone \udce9 surrogate\n",
        "no newline at the end",
        "\n.\nfrom refs/heads/other\n",
    ],
)
def test_a_message_is_only_ever_a_message(git: Git, message: str) -> None:
    commit(git, FileChange("a.md", b"1"), message=message)
    assert set(git.tree("HEAD")) == {"a.md"}
    body = user(git.root, "cat-file", "commit", "HEAD").partition("\n\n")[2]
    assert body.startswith(message.encode("utf-8", "replace").decode().split("\0")[0])
    assert user(git.root, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"


def test_a_commit_touches_neither_index_nor_work_tree(git: Git) -> None:
    commit(git, FileChange("a.md", b"1\n"))
    (git.root / "mine.md").write_text("mine\n")
    user(git.root, "add", "mine.md")
    before = (git.directory / "index").read_bytes()
    commit(git, FileChange("a.md", b"2\n"), FileChange("b.md", b"3\n"))
    assert (git.directory / "index").read_bytes() == before
    assert {path.name for path in git.root.iterdir()} == {".git", "mine.md"}
    assert set(git.tree("HEAD")) == {"a.md", "b.md"}


def test_staged_names_what_differs_from_head_and_nothing_else(git: Git) -> None:
    commit(git, FileChange("a.md", b"1\n"), FileChange("b.md", b"2\n"))
    user(git.root, "reset", "--hard")
    assert list_staged(git) == set()
    (git.root / "a.md").write_text("edited but not staged\n")
    (git.root / "new file.md").write_text("x\n")
    user(git.root, "add", "new file.md")
    user(git.root, "rm", "-q", "b.md")
    assert list_staged(git) == {"new file.md", "b.md"}


def test_untracked_leaves_out_what_is_ignored_and_present_adds_what_the_index_has(git: Git) -> None:
    (git.root / "k").mkdir()
    for name in ("k/staged.md", "k/new.md", "k/no.tmp", "outside.md"):
        (git.root / name).write_text("x")
    (git.root / ".gitignore").write_text("*.tmp\n")
    user(git.root, "add", "k/staged.md")
    assert list_untracked(git, "k") == ["k/new.md"]
    assert sorted(list_files(git, "k")) == ["k/new.md", "k/staged.md"]


def test_many_blobs_are_read_in_one_go_and_missing_ones_are_left_out(git: Git) -> None:
    contents = [b"", b"\n", b"one\ntwo", b"missing\n", b"\0" * 10]
    commit(git, *(FileChange(f"{n}", data) for n, data in enumerate(contents)))
    names = [blob_name(data) for data in contents]
    found = git.blobs([*names, "0" * 40])
    assert found == dict(zip(names, contents, strict=True))
    assert git.blobs([]) == {}


def test_an_executable_file_stays_executable(git: Git) -> None:
    commit(git, FileChange("run.sh", b"#!/bin/sh\n", EXECUTABLE))
    assert git.tree("HEAD")["run.sh"].mode == "100755"


@pytest.mark.parametrize(
    "revision",
    [
        "--output=pwned",
        "--all",
        "-h",
        "HEAD --output=pwned",
        "\n",
        "",
        "@{upstream}",
        ":/x",
        "HEAD:a.md",
        "no/such",
    ],
)
def test_a_revision_that_names_no_commit_is_none_and_leaves_nothing_behind(git: Git, revision: str) -> None:
    commit(git, FileChange("a.md", b"1"))
    before = sorted(git.root.rglob("*"))
    assert git.resolve(revision) is None
    assert sorted(git.root.rglob("*")) == before


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_process_can_be_given_is_a_git_error(git: Git, text: str) -> None:
    with pytest.raises(GitError, match="NUL"):
        git.resolve(text)


def test_branch_is_none_when_head_is_detached_and_a_commit_then_says_what_to_do(git: Git) -> None:
    commit(git, FileChange("a.md", b"1"))
    user(git.root, "checkout", "-q", "--detach")
    assert git.branch() is None
    with pytest.raises(GitError, match="git switch main"):
        commit(git, FileChange("a.md", b"2"))


def test_a_failing_git_says_what_git_said(git: Git) -> None:
    with pytest.raises(GitError, match=r"git said: .*nosuch"):
        git.run("ls-tree", "nosuch")


def test_a_missing_git_says_so(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GitError, match="git is not installed"):
        git.head()


def test_git_that_hangs_is_stopped(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitError, match="took longer than"):
        git.run("status", timeout=0.2)


def test_a_ref_is_only_moved_from_where_it_was_thought_to_be(git: Git) -> None:
    first = commit(git, FileChange("a.md", b"1"))
    second = commit(git, FileChange("a.md", b"2"))
    set_ref(git, "refs/tags/t", first)
    with pytest.raises(GitError):
        set_ref(git, "refs/tags/t", second)
    with pytest.raises(GitError):
        set_ref(git, "refs/tags/t", first, old=second)
    set_ref(git, "refs/tags/t", second, old=first)
    with pytest.raises(GitError):
        set_ref(git, "refs/tags/t", None, old=first)
    set_ref(git, "refs/tags/t", None, old=second)
    assert git.resolve("refs/tags/t") is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
    ],
)
def test_what_the_user_is_in_the_middle_of_is_told(git: Git, name: str, what: str) -> None:
    assert git.in_progress() is None
    (git.directory / name).mkdir() if name.startswith("rebase") else (git.directory / name).touch()
    assert git.in_progress() == what


def test_a_held_index_is_left_alone(git: Git) -> None:
    commit(git, FileChange("a.md", b"1"))
    (git.directory / "index.lock").touch()
    assert not update_entries(git, [("a.md", Blob("100644", blob_name(b"1")))])
    assert (git.directory / "index.lock").exists()


def test_a_linked_work_tree_is_committed_to_like_any_other(git: Git, tmp_path: Path) -> None:
    commit(git, FileChange("a.md", b"1"))
    user(git.root, "worktree", "add", "-q", "-b", "explore/side", str(tmp_path / "side"))
    side = Git(tmp_path / "side")
    assert side.branch() == "explore/side"
    name = commit(side, FileChange("b.md", b"2"))
    assert git.resolve("refs/heads/explore/side") == name
    assert git.resolve("refs/heads/main") != name


def test_a_linked_work_tree_finds_what_it_shares(git: Git, tmp_path: Path) -> None:
    commit(git, FileChange("a.md", b"1"))
    user(git.root, "worktree", "add", "-q", "-b", "explore/side", str(tmp_path / "side"))
    side = Git(tmp_path / "side")
    assert side.common.resolve() == git.directory.resolve()
    assert side.directory != side.common
    assert git.common == git.directory
    assert side.looks_sound()
    side.init("main")
    assert (side.branch(), git.branch()) == ("explore/side", "main")
    commit(side, FileChange("b.md", b"2"))
    assert not pack_loose_objects(side)


@pytest.fixture
def long_names(tmp_path: Path) -> Git:
    """A repository that names its objects with SHA-256."""
    root = tmp_path / "sha256"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(root)], check=True)
    return Git(root)


def test_a_repository_with_long_names_is_committed_to_and_its_index_told(long_names: Git) -> None:
    git = long_names
    blob = Blob("100644", blob_name(b"1", git.algorithm))
    first = commit(git, FileChange("a.md", b"1"), FileChange("b.md", b"1"))
    assert update_entries(git, [("a.md", blob), ("b.md", blob)])
    commit(git, FileChange("b.md", None))
    assert update_entries(git, [("b.md", None)])
    assert find_entries(git, ["a.md", "b.md"]) == {"a.md": blob}
    assert list_staged(git) == set()
    set_ref(git, "refs/tags/t", first)
    set_ref(git, "refs/tags/t", None, old=first)


def test_the_index_is_asked_about_few_paths_and_about_many(git: Git) -> None:
    commit(git, *(FileChange(f"{n}.md", b"1") for n in range(300)))
    user(git.root, "read-tree", "HEAD")
    blob = Blob("100644", blob_name(b"1"))
    assert find_entries(git, ["7.md", "none.md"]) == {"7.md": blob}
    assert find_entries(git, [f"{n}.md" for n in range(299)]) == {f"{n}.md": blob for n in range(299)}
    assert find_entries(git, []) == {}


@pytest.mark.parametrize("count", [1, 150])
def test_every_folder_that_holds_a_new_object_or_name_is_synced(
    git: Git, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    user(git.root, "symbolic-ref", "HEAD", "refs/heads/explore/deep/idea")
    synced: set[Path] = set()
    monkeypatch.setattr(files, "fsync_directory", lambda path: synced.add(Path(path)))
    commit(git, *(FileChange(f"{n}/a.md", b"%d" % n) for n in range(count)))
    objects = {file.parent for file in (git.directory / "objects").rglob("*") if file.is_file()}
    names = {git.directory / "refs/heads" / name for name in (".", "explore", "explore/deep")}
    assert synced >= objects | names | {git.directory / "objects"}
    assert len(objects) == (4 if count == 1 else 1)


def test_folders_without_new_objects_are_not_synced(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(git, *(FileChange(f"{n}.md", b"%d" % n) for n in range(50)))
    old = [folder for folder in (git.directory / "objects").iterdir() if len(folder.name) == 2]
    for folder in old:
        os.utime(folder, (1, 1))
    synced: set[Path] = set()
    monkeypatch.setattr(files, "fsync_directory", lambda path: synced.add(Path(path)))
    commit(git, FileChange("new.md", b"new"))
    assert len(synced & set(old)) <= 3


# ---------------------------------------------------------------- push


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    place = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(place)], check=True)
    return place


def refs(place: Path) -> dict[str, str]:
    out = user(place, "for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ") for line in out.splitlines())


def test_push_sends_the_branch_and_the_memory_tags(git: Git, remote: Path) -> None:
    first = commit(git, FileChange("a.md", b"1"))
    for tag in ("memory/daily/2026-02-16", "memory/milestone/one", "private"):
        set_ref(git, f"refs/tags/{tag}", first)
    second = commit(git, FileChange("a.md", b"2"))
    assert push_branch(git, str(remote)) == ""
    assert refs(remote) == {
        "refs/heads/main": second,
        "refs/tags/memory/daily/2026-02-16": first,
        "refs/tags/memory/milestone/one": first,
    }


def test_a_day_that_is_not_over_can_be_pushed_again_and_again_without_force(git: Git, remote: Path) -> None:
    day, old = "refs/tags/memory/daily/2026-02-16", None
    for number in range(3):
        name = commit(git, FileChange("a.md", b"%d" % number))
        set_ref(git, day, name, old=old)
        old = name
        assert push_branch(git, str(remote)) == ""
        assert day not in refs(remote)
    commit(git, FileChange("a.md", b"the next day"))
    assert push_branch(git, str(remote)) == ""
    assert refs(remote)[day] == old


def test_push_never_forces(git: Git, remote: Path, tmp_path: Path) -> None:
    commit(git, FileChange("a.md", b"1"))
    assert push_branch(git, str(remote)) == ""
    user(tmp_path, "clone", "-q", str(remote), "other")
    user(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "theirs")
    user(tmp_path / "other", "push", "-q")
    theirs = refs(remote)
    commit(git, FileChange("a.md", b"2"))
    assert "rejected" in push_branch(git, str(remote))
    assert refs(remote) == theirs


def test_push_to_nowhere_is_told_and_not_raised(git: Git, tmp_path: Path) -> None:
    commit(git, FileChange("a.md", b"1"))
    assert "does not appear to be a git repository" in push_branch(git, str(tmp_path / "none.git"))


def test_push_never_shows_a_password(git: Git) -> None:
    commit(git, FileChange("a.md", b"1"))
    said = push_branch(git, "http://ada:hunter2@127.0.0.1:1/x.git")
    assert said
    assert "hunter2" not in said


def test_what_is_shown_of_an_address_leaves_out_who_and_the_password() -> None:
    assert mask_secret("to 'https://ada:p@ss@h.org/x.git': no") == "to 'https://***@h.org/x.git': no"
    assert mask_secret("git@h.org:x.git https://h.org/a@b") == "git@h.org:x.git https://h.org/a@b"


def test_push_is_not_led_to_another_repository_by_the_environment(
    git: Git, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = commit(git, FileChange("a.md", b"1"))
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", "-b", "main", str(other)], check=True)
    user(other, "commit", "-q", "--allow-empty", "-m", "secret")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    said = push_branch(git, str(remote))
    monkeypatch.undo()
    assert (said, refs(remote)) == ("", {"refs/heads/main": name})


def test_a_work_tree_of_ours_that_was_only_half_made_is_forgotten_and_no_other(
    home: Path, tmp_path: Path
) -> None:
    git = Git(home)
    for place in (tmp_path / "own", home / ".tacit/rebuilds/v2/home"):
        add_work_tree(git, place, f"extract/{place.name}", "HEAD")
    folders = {file.parent.name: file.parent for file in git.common.glob("worktrees/*/gitdir")}
    assert set(folders) == {"own", "home"}
    drop_incomplete_work_trees(git, "/.tacit/")
    assert all(folder.is_dir() for folder in folders.values())
    for folder in folders.values():
        (folder / "HEAD").write_text("0" * 40 + "\n")
    drop_incomplete_work_trees(git, "/.tacit/")
    assert folders["own"].is_dir()
    assert not folders["home"].exists()
