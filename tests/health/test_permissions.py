"""A home is readable by its owner only, whatever the umask, the folder around it and the settings of git."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.app import init_home
from tacit.memory import Memory
from tests.conftest import Tacit


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=u", "-c", "user.email=u@example.com"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def open_to_others(root: Path) -> list[str]:
    """Everything in the home that group or others may do anything with."""
    found = [root, *root.rglob("*")]
    return [
        str(path.relative_to(root.parent))
        for path in found
        if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]


@pytest.fixture(params=[0, 0o022, 0o002])
def _mask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that everybody may enter and write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def live(memory: Memory) -> None:
    """What a home does in its days: conversations, notes, commits, tags, searches, packs."""
    with memory.session() as session:
        session.message("user", "My sister is called Eva and lives in Graz.")
    memory.remember("The kiln is at 1220.", "memory", session_key=None)
    memory.remember("The kiln is at 1220.", session_key=None)
    memory.work()
    memory.search("kiln")
    memory.turn("Where is the kiln?")
    memory.git.run("repack", "-a", "-d", "-q")
    memory.git.run("pack-refs", "--all")
    memory.remember("The oven is at 900.", session_key=None)
    memory.commit()


@pytest.mark.usefixtures("_mask")
def test_a_new_home_is_closed_and_stays_so(shared: Path) -> None:
    memory = init_home(shared / "home")[0]
    assert open_to_others(shared / "home") == []
    live(memory)
    assert open_to_others(shared / "home") == []


@pytest.mark.usefixtures("_mask")
def test_a_folder_that_is_there_already_is_closed(shared: Path) -> None:
    (shared / "home").mkdir()
    (shared / "home").chmod(0o777)
    init_home(shared / "home")
    assert open_to_others(shared / "home") == []


@pytest.mark.usefixtures("_mask")
def test_a_folder_that_is_adopted_is_closed(shared: Path) -> None:
    root = shared / "own"
    (root / "knowledge/deep").mkdir(parents=True)
    (root / "knowledge/deep/note.md").write_text("# Note\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "mine")
    init_home(root, adopt=True)
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert [path for path in open_to_others(root) if path.startswith(("own/.git/", "own/.tacit"))] == []
    assert os.access(root / "run.sh", os.X_OK)
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.usefixtures("_mask")
def test_a_home_that_is_called_by_a_link_is_closed(shared: Path) -> None:
    (shared / "real").mkdir()
    (shared / "real").chmod(0o777)
    (shared / "home").symlink_to(shared / "real")
    live(init_home(shared / "home")[0])
    assert open_to_others(shared / "real") == []
    (shared / "real").chmod(0o755)
    told = Tacit(shared / "home")("doctor").stdout
    assert "closed now" in told
    assert open_to_others(shared / "real") == []


@pytest.mark.usefixtures("_mask")
@pytest.mark.parametrize("is_link", [True, False])
def test_a_repository_that_stands_elsewhere_is_closed(shared: Path, is_link: bool) -> None:
    (shared / "home").mkdir()
    if is_link:
        git(shared, "init", "-q", "-b", "main", "home")
        (shared / "home/.git").rename(shared / "repo")
        (shared / "home/.git").symlink_to(shared / "repo")
    else:
        git(shared, "init", "-q", "-b", "main", "--separate-git-dir", "repo", "home")
    live(init_home(shared / "home", adopt=True)[0])
    assert open_to_others(shared / "repo") == []


def test_the_repository_of_a_linked_work_tree_is_left_as_it_is(shared: Path) -> None:
    git(shared, "init", "-q", "-b", "main", "theirs")
    git(shared / "theirs", "commit", "-q", "--allow-empty", "-m", "one")
    git(shared / "theirs", "worktree", "add", "-q", "-b", "side", "../home")
    (shared / "theirs/.git").chmod(0o755)
    init_home(shared / "home", adopt=True)
    assert stat.S_IMODE((shared / "theirs/.git").stat().st_mode) == 0o755


@pytest.mark.usefixtures("_mask")
def test_the_list_of_conversations_in_conflict_is_closed(shared: Path) -> None:
    home = shared / "home"
    memory = init_home(home)[0]
    live(memory)
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    file.chmod(0o600)
    file.write_text(file.read_text() + "\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n")
    memory.search("kiln")
    Tacit(home)("run", "all")
    assert (home / ".tacit/conflicts").exists()
    assert open_to_others(home) == []


@pytest.mark.usefixtures("_mask")
@pytest.mark.parametrize("setting", ["world", "group", "0664", "true"])
def test_a_repository_that_is_set_to_be_shared_is_not(shared: Path, setting: str) -> None:
    memory = init_home(shared / "home")[0]
    git(shared / "home", "config", "core.sharedRepository", setting)
    live(memory)
    assert open_to_others(shared / "home") == []


@pytest.mark.usefixtures("_mask")
def test_a_rebuild_is_closed_too(shared: Path) -> None:
    home = shared / "home"
    memory = init_home(home)[0]
    live(memory)
    done = Tacit(home)("rebuild", "--name", "v2")
    assert done.code == 0, done.stderr
    assert (home / ".tacit/rebuilds/v2/home").is_dir()
    assert open_to_others(home) == []


@pytest.mark.usefixtures("_mask")
def test_what_forget_writes_is_closed_too(shared: Path) -> None:
    home = shared / "home"
    live(init_home(home)[0])
    done = Tacit(home)("forget", "The kiln is at 1220", "--yes")
    assert done.code == 0, done.stderr
    assert open_to_others(home) == []


@pytest.mark.usefixtures("_mask")
def test_doctor_closes_a_home_that_was_left_open(shared: Path, tacit: Tacit) -> None:
    home = shared / "home"
    live(init_home(home)[0])
    for path in [home, *home.rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o055 if path.is_dir() else 0o044))
    sealed = next(iter(home.glob("raw/conversations/*/*/*/*.md")))
    checks = json.loads(tacit("doctor", "--json", "--home", str(home)).stdout)
    (check,) = [check for check in checks if check["name"] == "privacy"]
    assert "closed now" in check["found"]
    assert open_to_others(home) == []
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o400
    again = json.loads(tacit("doctor", "--json", "--home", str(home)).stdout)
    (check,) = [check for check in again if check["name"] == "privacy"]
    assert check["found"] == "only the owner can read the home"


def test_a_repository_that_an_older_version_made_is_closed(home: Path, tacit: Tacit) -> None:
    for path in [home / ".git", *(home / ".git").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    tacit("doctor")
    assert open_to_others(home) == []


def test_a_note_as_an_editor_makes_it_is_left_as_it_is_in_a_home_that_is_closed(
    home: Path, tacit: Tacit
) -> None:
    (home / "knowledge/mine.md").write_text("# Mine\n")
    (home / "knowledge/mine.md").chmod(0o644)
    assert "only the owner can read the home" in tacit("doctor").stdout
    assert stat.S_IMODE((home / "knowledge/mine.md").stat().st_mode) == 0o644


def test_what_another_repository_shares_with_the_home_is_left_as_it_is(shared: Path, tacit: Tacit) -> None:
    """A clone on the same disk has the very files of the other one, under a second name."""
    one = init_home(shared / "one")[0]
    live(one)
    for path in (shared / "one/.git").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    git(shared, "clone", "-q", "--local", str(shared / "one"), str(shared / "two"))
    before = {path: path.stat().st_mode for path in (shared / "one/.git/objects").rglob("*")}
    init_home(shared / "two")
    assert {path: path.stat().st_mode for path in (shared / "one/.git/objects").rglob("*")} == before
    assert stat.S_IMODE((shared / "two").stat().st_mode) == 0o700
    assert tacit("doctor", "--quiet", "--home", str(shared / "two")).code == 0


def test_a_link_in_the_home_does_not_lead_the_repair_outside(shared: Path, tacit: Tacit) -> None:
    home = shared / "home"
    init_home(home)
    outside = shared / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    outside.chmod(0o755)
    (outside / "file").chmod(0o644)
    (home / "link").symlink_to(outside)
    (home / "knowledge/file.md").symlink_to(outside / "file")
    tacit("doctor", "--home", str(home))
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    assert stat.S_IMODE((outside / "file").stat().st_mode) == 0o644
