"""A home is laid out, completed when it is half made, and takes in what is there without harm."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tacit
from tacit.app import init_home, load_config
from tacit.errors import GitError, HomeError
from tacit.git import hooks
from tacit.git.repository import Git
from tacit.health import init
from tacit.health.access import is_trusted, trust
from tacit.home import files
from tacit.home.layout import FOLDERS, Home

if TYPE_CHECKING:
    from tests.conftest import GitLog

IGNORED = [
    "memory.db", "memory.db-wal", "memory.db-shm", "scratch/", "tmp/", "*.tmp", ".env", "secrets/", "*.key",
    "*.pem", ".DS_Store", "Thumbs.db",
]  # fmt: skip
LARGE = ["png", "jpg", "pdf", "mp4"]
MADE = [
    ".gitignore", ".gitattributes", "memory-config.yaml", "topics/weekly-review.md",
    "knowledge/identity/SOUL.md", "knowledge/identity/USER.md", "knowledge/memory/MEMORY.md",
    "knowledge/people/_index.md", "knowledge/projects/_active.md",
]  # fmt: skip


@pytest.fixture
def home(home: Path) -> Path:
    """A home of this very place: the one at hand is a copy, which nobody trusts yet."""
    trust(Home(home))
    return home


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its rights, but for the private folder."""
    return {
        str(file.relative_to(root)): (file.stat().st_mode, file.read_bytes())
        for file in root.rglob("*")
        if file.is_file() and ".tacit" not in file.relative_to(root).parts
    }


def assert_complete(home: Path) -> None:
    assert [folder for folder in FOLDERS if not (home / folder).is_dir()] == []
    assert [path for path in MADE if not (home / path).is_file()] == []
    assert hooks.check_installed(Git(home)) == {"pre-commit": True, "post-commit": True}
    assert is_trusted(Home(home))
    assert user(home, "status", "--porcelain") == ""
    assert user(home, "fsck", "--strict") == ""
    memory = tacit.open(home)
    with memory.session() as session:
        session.message("user", "It works.")
    assert {item.state for item in memory.verify()} == {"proved"}


# ---------------------------------------------------------------- a new one


def test_a_new_home_has_the_layout_and_one_commit(home: Path, git_log: GitLog) -> None:
    assert [commit.subject for commit in git_log()] == ["maintenance: lay out the home"]
    assert user(home, "branch", "--show-current") == "main\n"
    assert_complete(home)


def test_the_ignore_file_keeps_out_what_is_secret_large_or_made_anew(home: Path) -> None:
    lines = (home / ".gitignore").read_text().splitlines()
    assert [line for line in IGNORED if line not in lines] == []
    paths = [line.replace("/", "/x").replace("*", "x") for line in IGNORED] + [".tacit/lock", "a.md.tmp.012"]
    ignored = user(home, "check-ignore", *paths).splitlines()
    assert ignored == paths


def test_large_attachments_go_to_lfs(home: Path) -> None:
    lines = (home / ".gitattributes").read_text().splitlines()
    for kind in LARGE:
        assert f"attachments/**/*.{kind} filter=lfs diff=lfs merge=lfs -text" in lines
        shown = user(home, "check-attr", "filter", f"attachments/a/b.{kind}")
        assert shown == f"attachments/a/b.{kind}: filter: lfs\n"
    assert user(home, "check-attr", "text", "knowledge/a.md") == "knowledge/a.md: text: unset\n"


def test_only_the_owner_can_look_inside(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        init_home(tmp_path / "new/home")
    finally:
        os.umask(old)
    for path in (tmp_path / "new/home").rglob("*"):
        relative = path.relative_to(tmp_path / "new/home")
        if relative.parts[0] == ".git":
            continue
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), relative
    assert stat.S_IMODE((tmp_path / "new/home").stat().st_mode) == 0o700


def test_a_second_init_changes_no_byte_and_says_so(home: Path) -> None:
    before = content(home)
    _, report = init_home(home)
    assert (report.made, report.mended, report.commit) == ([], [], None)
    assert all("yours" not in problem.what for problem in report.warnings)
    assert content(home) == before


def test_what_the_user_changed_since_is_kept(home: Path) -> None:
    (home / "knowledge/identity/USER.md").write_text("# Ada\n")
    (home / "memory-config.yaml").write_text("timezone: UTC\n")
    before = content(home)
    init_home(home)
    assert content(home) == before


def test_an_empty_folder_and_a_folder_deep_down_become_homes(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("empty", "not/yet/there"):
        init_home(tmp_path / place)
        assert_complete(tmp_path / place)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("what", ["readme.txt", ".hidden", "folder/"])
def test_a_folder_that_holds_something_else_is_refused_untouched(tmp_path: Path, what: str) -> None:
    place = tmp_path / "theirs"
    place.mkdir()
    (place / what).mkdir() if what.endswith("/") else (place / what).write_text("x")
    with pytest.raises(HomeError, match=r"nothing was touched.*--adopt"):
        init_home(place)
    assert [path.name for path in place.iterdir()] == [what.rstrip("/")]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for adopt in (False, True):
        with pytest.raises(HomeError, match="is a file"):
            init_home(tmp_path / "file", adopt=adopt)
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("adopt", [False, True])
def test_the_users_home_and_the_root_are_refused_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopt: bool
) -> None:
    own = tmp_path / "ada"
    own.mkdir()
    monkeypatch.setenv("HOME", str(own))
    (tmp_path / "link").symlink_to(own)
    (tmp_path / "slash").symlink_to("/")
    for place in ("~", str(own), f"{own}/", f"{own}/x/..", str(tmp_path / "link"), "/", "//", "/tmp/..",
                  str(tmp_path / "slash")):  # fmt: skip
        with pytest.raises(HomeError, match="itself cannot be a home"):
            init_home(place, adopt=adopt)
    assert list(own.iterdir()) == []


def test_a_tilde_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    memory, _ = init_home("~/agent")
    assert memory.home.root == tmp_path / "agent"
    assert not (tmp_path / "~").exists()


# ---------------------------------------------------------------- adopted


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A repository with a life of its own: commits, staged, edited, untracked and ignored files, a hook."""
    root = tmp_path / "theirs"
    (root / "knowledge/identity").mkdir(parents=True)
    user(tmp_path, "init", "-q", "-b", "trunk", str(root))
    (root / "README.md").write_text("theirs\n")
    (root / ".gitignore").write_text("*.log\nscratch/")
    user(root, "add", ".")
    user(root, "commit", "-q", "-m", "theirs")
    (root / "README.md").write_text("edited\n")
    (root / "staged.txt").write_text("staged\n")
    user(root, "add", "staged.txt")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "knowledge/identity/USER.md").write_text("# Already Ada\n")
    (root / "x.log").write_text("ignored\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    return root


def test_adopting_keeps_everything_and_commits_only_its_own_files(theirs: Path) -> None:
    before = {path: kept for path, kept in content(theirs).items() if not path.startswith(".git/")}
    head = user(theirs, "rev-parse", "HEAD").strip()
    with pytest.raises(HomeError, match="--adopt"):
        init_home(theirs)
    _, report = init_home(theirs, adopt=True)
    after = content(theirs)
    before.pop(".gitignore")
    assert {path: after[path] for path in before} == before
    assert user(theirs, "rev-parse", "HEAD~1").strip() == head
    assert user(theirs, "branch", "--show-current") == "trunk\n"
    committed = set(user(theirs, "show", "--format=", "--name-only", "HEAD").split())
    assert committed == set(report.made) - {".git"}
    assert not committed & {"README.md", "staged.txt", "untracked.txt", "knowledge/identity/USER.md"}
    assert user(theirs, "diff", "--cached", "--name-only") == "staged.txt\n"
    assert user(theirs, "status", "--porcelain").splitlines() == [
        " M README.md",
        "A  staged.txt",
        "?? knowledge/identity/USER.md",
        "?? run.sh",
        "?? untracked.txt",
    ]
    assert [problem.where for problem in report.warnings if "yours" in problem.what] == [
        ".git/hooks/pre-commit"
    ]


def test_adopting_adds_the_missing_lines_below_those_that_are_there(theirs: Path) -> None:
    (theirs / ".gitattributes").write_text("*.bin binary\n")
    init_home(theirs, adopt=True)
    ignore = (theirs / ".gitignore").read_text()
    assert ignore.startswith("*.log\nscratch/\n\n# tacit\n.tacit/\n")
    assert ignore.count("scratch/") == 1
    assert [line for line in IGNORED if line not in ignore.splitlines()] == []
    assert (theirs / ".gitattributes").read_text().startswith("*.bin binary\n\n# tacit\n* -text\n")
    before = content(theirs)
    init_home(theirs)
    assert content(theirs) == before


def test_adopting_a_plain_folder_makes_it_a_repository_and_leaves_the_notes_to_the_next_commit(
    tmp_path: Path,
) -> None:
    place = tmp_path / "notes"
    (place / "knowledge").mkdir(parents=True)
    (place / "knowledge/old note.md").write_text("old\n")
    memory, _ = init_home(place, adopt=True)
    assert user(place, "status", "--porcelain") == '?? "knowledge/old note.md"\n'
    memory.commit()
    assert user(place, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["knowledge", "knowledge/identity", "raw", ".tacit"])
def test_a_folder_that_is_a_link_is_named_and_nothing_is_written_through_it(
    theirs: Path, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if (theirs / name).exists():
        shutil.rmtree(theirs / name)
    (theirs / name).symlink_to(elsewhere)
    before = content(theirs)
    with pytest.raises(HomeError, match=f"{name} is a link to {elsewhere}"):
        init_home(theirs, adopt=True)
    assert list(elsewhere.iterdir()) == []
    assert content(theirs) == before


def test_a_home_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    assert_complete(tacit.init(tmp_path / "link").home.root)


def test_without_git_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GitError, match="git is not installed"):
        init_home(tmp_path / "h")
    assert not (tmp_path / "h").exists()


def test_a_linked_work_tree_becomes_a_home_and_is_committed_to(theirs: Path, tmp_path: Path) -> None:
    side = tmp_path / "side"
    user(theirs, "worktree", "add", "-q", "-b", "side", str(side))
    memory, report = init_home(side, adopt=True)
    assert report.commit == user(theirs, "rev-parse", "side").strip()
    assert user(side, "status", "--porcelain") == ""
    assert is_trusted(Home(side))
    (side / "knowledge/a.md").write_text("x\n")
    assert memory.commit().commits
    assert user(side, "status", "--porcelain") == ""


def test_adopting_in_the_middle_of_a_merge_commits_later(theirs: Path) -> None:
    head = user(theirs, "rev-parse", "HEAD")
    (theirs / ".git/MERGE_HEAD").write_text(head)
    memory, report = init_home(theirs, adopt=True)
    assert report.commit is None
    assert user(theirs, "rev-parse", "HEAD") == head
    (theirs / ".git/MERGE_HEAD").unlink()
    memory.commit()
    assert "memory-config.yaml" in user(theirs, "ls-tree", "-r", "--name-only", "HEAD")


# ---------------------------------------------------------------- half made


@pytest.mark.parametrize("gone", [*FOLDERS, *MADE, ".git/hooks", ".git/HEAD", ".tacit", ".tacit/trusted"])
def test_whatever_is_missing_is_added_again(home: Path, gone: str) -> None:
    place = home / gone
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    init_home(home)
    assert_complete(home)


def test_a_home_that_lost_its_repository_gets_a_new_one_and_keeps_its_files(home: Path) -> None:
    (home / "knowledge/identity/USER.md").write_text("# Ada\n")
    shutil.rmtree(home / ".git")
    memory, report = init_home(home)
    assert ".git" in report.made
    memory.commit()
    assert (home / "knowledge/identity/USER.md").read_text() == "# Ada\n"
    assert_complete(home)


class Cut(Exception):
    pass


def steps_of_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int) -> int:
    """Init that is cut short after so many durable steps; how many it took."""
    taken = 0

    def counting(original: object) -> object:
        def step(*arguments: object, **named: object) -> object:
            nonlocal taken
            if taken == stop_after:
                raise Cut
            taken += 1
            assert callable(original)
            return original(*arguments, **named)

        return step

    with monkeypatch.context() as patch:
        for module, name in [(files, "replace"), (files, "make_directories"), (Git, "run"), (Git, "attempt")]:
            patch.setattr(module, name, counting(getattr(module, name)))
        try:
            init_home(tmp_path / "cut")
        except Cut:
            return taken
    return taken


def test_init_that_was_cut_short_anywhere_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = steps_of_init(tmp_path, monkeypatch, stop_after=10_000)
    assert total > 30
    for stop in range(0, total, 3):
        shutil.rmtree(tmp_path / "cut")
        assert steps_of_init(tmp_path, monkeypatch, stop) == stop
        init_home(tmp_path / "cut")
        assert user(tmp_path / "cut", "status", "--porcelain") == ""
        assert [path for path in MADE if not (tmp_path / "cut" / path).is_file()] == []
    assert_complete(tmp_path / "cut")


# ---------------------------------------------------------------- cloned


def test_the_config_of_a_clone_reaches_nothing_until_init_was_run_in_it(home: Path, tmp_path: Path) -> None:
    (home / "memory-config.yaml").write_text("git: {auto_push: true, remote: /tmp/evil.git}\n")
    tacit.open(home).commit()
    user(tmp_path, "clone", "-q", str(home), "clone")
    clone = tmp_path / "clone"
    loaded = load_config(Home(clone))
    assert (loaded.config.git.auto_push, loaded.config.git.remote) == (False, None)
    assert tacit.open(clone).config.git.auto_push is False
    init_home(clone)
    assert load_config(Home(clone)).config.git.auto_push is True
    assert [folder for folder in FOLDERS if not (clone / folder).is_dir()] == []
    assert user(clone, "status", "--porcelain") == ""


def test_the_starter_holds_what_a_home_is_made_of() -> None:
    place = Path(tacit.__file__).parent / "health" / "starter"
    starter = init.load_starter_files(place, "x: 1\n")
    assert set(MADE) <= set(starter)
    assert starter["memory-config.yaml"] == b"x: 1\n"
    assert all(not name.endswith(".py") and "__pycache__" not in name for name in starter)
