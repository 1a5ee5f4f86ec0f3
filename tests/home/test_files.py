"""Files that nobody can lead outside, lose half of, or overwrite unseen."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tacit.errors import Busy, ChangedOnDisk, DiskError, UnsafePath
from tacit.home import files
from tacit.home.files import Tree, digest
from tests.conftest import plain_user

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "root"
    (root / "knowledge").mkdir(parents=True)
    (root / "knowledge" / "note.md").write_bytes(b"inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"outside")
    return Tree(root)


def _everything_outside(tree: Tree) -> list[str]:
    return sorted(str(path.relative_to(tree.root.parent)) for path in tree.root.parent.rglob("outside/**/*"))


# ---------------------------------------------------------------- staying inside


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "knowledge/../../outside/secret",
        "knowledge/..",
        "/etc/passwd",
        "//etc/passwd",
        "~/x",
        "~root/x",
        "",
        ".",
        "./",
        "knowledge/\0.md",
        ".git/config",
        "./.git/config",
        ".GIT/config",
        "knowledge/.git/config",
        ".tacit/lock",
        ".Tacit/lock",
        "knowledge/\ud800.md",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_with_the_reason(tree: Tree, path: str) -> None:
    for use in (
        lambda: tree.read(path),
        lambda: tree.write(path, b"x", None),
        lambda: tree.remove(path, digest(b"outside")),
        lambda: tree.exists(path),
    ):
        with pytest.raises(UnsafePath, match=r"is refused: .+\. Use a plain file inside the home\."):
            use()
    assert _everything_outside(tree) == ["outside/secret"]


def _symlink(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


def _hard_link(place: Path) -> None:
    os.link(place.parent.parent.parent / "outside" / "secret", place)


def _device(place: Path) -> None:
    try:
        os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero: reading it would never end
    except PermissionError:
        pytest.skip("only root can make a device")


def _socket(place: Path) -> None:
    os.mknod(place, 0o600 | stat.S_IFSOCK)


@pytest.mark.parametrize(
    "put",
    [
        _symlink("../../outside/secret"),
        _symlink("note.md"),
        _symlink("odd"),
        _symlink("nowhere"),
        _hard_link,
        os.mkfifo,
        _device,
        _socket,
        lambda place: place.mkdir(),
    ],
    ids=["link out", "link in", "loop", "dangling", "hard link", "fifo", "device", "socket", "folder"],
)
def test_only_a_plain_file_with_one_name_is_read_or_replaced(tree: Tree, put: Callable[[Path], None]) -> None:
    place = tree.root / "knowledge" / "odd"
    put(place)
    before = os.lstat(place)
    for use in (
        lambda: tree.read("knowledge/odd"),
        lambda: tree.write("knowledge/odd", b"x", None),
        lambda: tree.write("knowledge/odd", b"x", digest(b"outside")),
        lambda: tree.remove("knowledge/odd", digest(b"outside")),
    ):
        with pytest.raises(UnsafePath):
            use()
    assert os.lstat(place).st_ino == before.st_ino
    assert (tree.root.parent / "outside" / "secret").read_bytes() == b"outside"


@pytest.mark.parametrize("path", ["link/secret", "link/new.md", "link/deeper/new.md", "knowledge/up/secret"])
def test_no_folder_on_the_way_is_a_link_not_even_to_make_folders(tree: Tree, path: str) -> None:
    (tree.root / "link").symlink_to("../outside")
    (tree.root / "knowledge" / "up").symlink_to("../../outside")
    for use in (lambda: tree.read(path), lambda: tree.write(path, b"x", None)):
        with pytest.raises(UnsafePath, match="is a link or not a folder"):
            use()
    assert _everything_outside(tree) == ["outside/secret"]


def test_a_file_on_the_way_is_no_folder(tree: Tree) -> None:
    with pytest.raises(UnsafePath):
        tree.write("knowledge/note.md/more.md", b"x", None)
    assert tree.read("knowledge/note.md") == b"inside"


def test_listing_does_not_follow_links_either(tree: Tree) -> None:
    (tree.root / "link").symlink_to("../outside")
    (tree.root / "knowledge" / "out").symlink_to("../../outside")
    (tree.root / "knowledge" / "loop").symlink_to(".")
    assert list(tree.files("link", "knowledge", "nowhere")) == ["knowledge/note.md"]


def test_listing_leaves_other_repositories_and_our_temporary_files_out(tree: Tree) -> None:
    (tree.root / "knowledge" / "theirs" / ".git").mkdir(parents=True)
    (tree.root / "knowledge" / "theirs" / "a.md").touch()
    (tree.root / "knowledge" / files.temporary_name("a.md")).touch()
    (tree.root / "knowledge" / "a.tmp.notes.md").touch()
    assert list(tree.files("knowledge")) == ["knowledge/a.tmp.notes.md", "knowledge/note.md"]


def test_no_file_stays_open(tree: Tree) -> None:
    (tree.root / "knowledge" / "folder").mkdir()
    (tree.root / "knowledge" / "link").symlink_to("note.md")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("knowledge/folder", "knowledge/link", "knowledge/none", "knowledge/note.md", "none/a"):
        with suppress(UnsafePath, FileNotFoundError):
            tree.read(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_swapping_a_folder_for_a_link_while_reading_and_writing_never_leads_out(tree: Tree) -> None:
    outside = tree.root.parent / "outside"
    (outside / "note.md").write_bytes(b"outside")
    (tree.root / "a").mkdir()
    (tree.root / "a" / "note.md").write_bytes(b"inside")
    (tree.root / "b").symlink_to("../outside")
    stop = threading.Event()

    def swap() -> None:
        one, two, spare = (str(tree.root / name) for name in ("a", "b", "c"))
        while not stop.is_set():
            os.rename(one, spare)
            while os.path.lexists(two):
                with suppress(OSError):
                    os.rename(two, one)
                    break
                shutil.rmtree(one, ignore_errors=True)  # a writer has made the folder anew
            os.rename(spare, two)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen, refused = set(), 0
    deadline = time.monotonic() + 1.5
    try:
        while time.monotonic() < deadline:
            try:
                seen.add(tree.read("a/note.md"))
                tree.write("a/note.md", b"inside", digest(b"inside"))
                tree.write("a/below/new.md", b"inside", None)
                tree.remove("a/below/new.md", digest(b"inside"))
            except (UnsafePath, FileNotFoundError, ChangedOnDisk):
                refused += 1
    finally:
        stop.set()
        swapper.join()
    assert seen == {b"inside"}
    assert refused
    assert (outside / "note.md").read_bytes() == b"outside"
    assert sorted(path.name for path in outside.iterdir()) == ["note.md", "secret"]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name",
    [
        "x" * 252 + ".md",
        "ü" * 127,
        "line\nbreak.md",
        "-rf",
        "--help.md",
        "quo\"te's $(id).md",
        os.fsdecode(b"not-\xff-utf8.md"),
        "caf\u00e9.md",
        "cafe\u0301.md",
        " .md",
        "...",
        "a\\b",
        "\x1b[2J",
        ".gitkeep",
    ],
)
def test_any_name_that_the_disk_takes_is_written_listed_read_and_removed(tree: Tree, name: str) -> None:
    path = f"knowledge/deep/{name}"
    first = tree.write(path, b"one", None)
    assert tree.write(path, b"two", first) == digest(b"two")
    assert tree.read(path) == b"two"
    assert list(tree.files("knowledge/deep")) == [path]
    tree.remove(path, digest(b"two"))
    assert not tree.exists(path)
    assert os.listdir(tree.root / "knowledge" / "deep") == []


def test_a_tree_500_folders_deep_is_listed(tree: Tree) -> None:
    path = "/".join(["knowledge", *["d"] * 500, "a.md"])
    tree.write(path, b"deep", None)
    assert path in list(tree.files("knowledge"))
    assert tree.read(path) == b"deep"


def test_new_folders_are_for_their_owner_alone(tree: Tree) -> None:
    tree.write("people/a/b.md", b"x", None)
    for place, mode in (("people", 0o700), ("people/a", 0o700), ("people/a/b.md", 0o600)):
        assert stat.S_IMODE(os.stat(tree.root / place).st_mode) == mode


# ---------------------------------------------------------------- nobody overwrites unseen


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(tree: Tree) -> None:
    seen = digest(tree.read("knowledge/note.md"))
    (tree.root / "knowledge" / "note.md").write_bytes(b"theirs")
    with pytest.raises(ChangedOnDisk, match="Read it again"):
        tree.write("knowledge/note.md", b"mine", seen)
    assert tree.read("knowledge/note.md") == b"theirs"


def test_a_file_that_appeared_is_not_overwritten(tree: Tree) -> None:
    with pytest.raises(ChangedOnDisk):
        tree.write("knowledge/note.md", b"mine", None)


def test_a_file_that_went_is_not_made_again(tree: Tree) -> None:
    seen = digest(tree.read("knowledge/note.md"))
    (tree.root / "knowledge" / "note.md").unlink()
    with pytest.raises(ChangedOnDisk):
        tree.write("knowledge/note.md", b"mine", seen)
    with pytest.raises(ChangedOnDisk):
        tree.remove("knowledge/note.md", seen)
    assert not tree.exists("knowledge/note.md")


def test_a_file_that_changed_is_not_removed(tree: Tree) -> None:
    with pytest.raises(ChangedOnDisk):
        tree.remove("knowledge/note.md", digest(b"something else"))
    assert tree.exists("knowledge/note.md")


# ---------------------------------------------------------------- the disk says no


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "disk is full.*Free some space"),
        (errno.EDQUOT, "quota.*Free some space"),
        (errno.EROFS, "read-only.*reading still works.*Make it writable"),
        (errno.EACCES, "may not write there.*Check who owns"),
        (errno.EPERM, "may not write there.*Check who owns"),
        (errno.EIO, "disk reported an error.*Check the disk"),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "open"])
def test_a_disk_error_is_told_in_words_and_leaves_the_old_file(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, code: int, words: str, call: str
) -> None:
    real = getattr(os, call)

    def fails(*arguments: object, **named: object) -> object:
        if call == "open" and not int(str(arguments[1])) & os.O_CREAT:
            return real(*arguments, **named)
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(DiskError, match=rf"(?s)Could not write knowledge/note\.md: .*{words}"):
            tree.write("knowledge/note.md", b"new", digest(b"inside"))
    assert tree.read("knowledge/note.md") == b"inside"
    assert os.listdir(tree.root / "knowledge") == ["note.md"]
    tree.write("knowledge/note.md", b"new", digest(b"inside"))


def test_other_errors_are_left_as_they_are() -> None:
    with pytest.raises(FileNotFoundError), files.explain_disk_errors("read"):
        raise FileNotFoundError(errno.ENOENT, "no such file")


def test_a_write_in_many_pieces_is_still_whole(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    tree.write("knowledge/a.md", b"more than three bytes", None)
    assert tree.read("knowledge/a.md") == b"more than three bytes"


def test_a_folder_that_may_not_be_written_is_explained(tree: Tree) -> None:
    (tree.root / "knowledge").chmod(0o500)
    code = "import sys; from pathlib import Path; from tacit.home.files import Tree\n"
    code += "Tree(Path(sys.argv[1])).write('knowledge/new.md', b'x', None)"
    done = subprocess.run(plain_user(sys.executable, "-c", code, tree.root), capture_output=True, text=True)
    assert "DiskError: Could not write knowledge/new.md: this user may not write there." in done.stderr


# ---------------------------------------------------------------- locks


def _hold(path: str, seconds: float) -> None:
    with files.hold_lock(Path(path)):
        Path(path + ".held").touch()
        time.sleep(seconds)


def test_a_lock_is_waited_for_told_about_and_freed_by_death(tmp_path: Path) -> None:
    lock = tmp_path / "private" / "lock"  # the folder is made, too
    holder = SPAWN.Process(target=_hold, args=(str(lock), 60.0))
    holder.start()
    while not Path(f"{lock}.held").exists():
        time.sleep(0.01)
    with pytest.raises(Busy, match="has held lock"), files.hold_lock(lock, wait=0.05):
        pass
    holder.kill()
    holder.join()
    with files.hold_lock(lock, wait=5):
        assert lock.exists()
    assert lock.exists()


def test_the_lock_file_itself_cannot_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("victim")
    with pytest.raises(OSError, match="symbolic links"), files.hold_lock(tmp_path / "lock"):
        pass
    assert not (tmp_path / "victim").exists()


def test_the_lock_is_not_passed_on_to_programs(tmp_path: Path) -> None:
    with files.hold_lock(tmp_path / "lock"):
        held = [int(fd) for fd in os.listdir("/proc/self/fd") if _points_at(fd, tmp_path / "lock")]
        assert len(held) == 1
        assert not os.get_inheritable(held[0])


def _points_at(fd: str, path: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == str(path)
    except OSError:
        return False
