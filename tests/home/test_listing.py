"""What search looks through: plain text files of the home, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tacit.home.listing import INDEXED, stat_listed, walk, walk_indexed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in INDEXED:
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def put(root: Path, path: str, text: str = "x\n") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def found(root: Path) -> set[str]:
    return {path for path, _ in walk_indexed(str(root))}


def test_notes_topics_the_archive_and_conversations_are_listed(root: Path) -> None:
    inside = {
        "knowledge/memory/MEMORY.md",
        "knowledge/a/b/c/d/deep.md",
        "knowledge/top.md",
        "topics/t.md",
        "archive/projects/x/old.md",
        "raw/conversations/2026/05/01/0900-ses_1-a.md",
    }
    for path in inside:
        put(root, path)
    assert found(root) == inside


@pytest.mark.parametrize(
    "path",
    [
        "drafts/d.md",
        "attachments/a.md",
        "raw/other/a.md",
        "README.md",
        ".tacit/a.md",
        ".git/a.md",
        "knowledge/image.png",
        "knowledge/data.json",
        "knowledge/none",
        "knowledge/note.md.tmp.0123456789ab",
        "knowledge/.git/refs/heads/a.md",
        "knowledge/theirs/.GIT/a.md",
    ],
)
def test_what_is_no_text_of_the_home_is_not_listed(root: Path, path: str) -> None:
    put(root, path)
    assert found(root) == set()


@pytest.mark.parametrize(
    "name", ["a.md", "a.markdown", "a.txt", ".hidden.md", "-e.md", "a\nb.md", "é.md", "e\u0301.md"]
)
def test_names_are_given_as_they_are(root: Path, name: str) -> None:
    put(root, f"knowledge/{name}")
    assert found(root) == {f"knowledge/{name}"}


def test_a_name_that_is_not_utf_8_comes_with_its_bytes(root: Path) -> None:
    (root / os.fsdecode(b"knowledge/\xff.md")).write_text("x\n")
    assert [os.fsencode(path) for path in found(root)] == [b"knowledge/\xff.md"]


def test_each_file_comes_with_what_the_disk_knows_of_it(root: Path) -> None:
    file = put(root, "knowledge/a.md", "four")
    [(_, info)] = walk_indexed(str(root))
    assert (info.st_size, info.st_ino, info.st_mtime_ns) == (
        4,
        file.stat().st_ino,
        file.stat().st_mtime_ns,
    )


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "secret.md")
    put(root, "knowledge/a.md")
    (root / "knowledge/file.md").symlink_to(outside / "secret.md")
    (root / "knowledge/inside.md").symlink_to(root / "knowledge/a.md")
    (root / "knowledge/folder").symlink_to(outside)
    (root / "knowledge/loop").symlink_to(root / "knowledge")
    (root / "knowledge/dangling.md").symlink_to("nowhere")
    assert found(root) == {"knowledge/a.md"}


def test_what_is_no_plain_file_is_passed_over(root: Path) -> None:
    os.mkfifo(root / "knowledge/fifo.md")
    (root / "knowledge/folder.md").mkdir()
    assert found(root) == set()


def test_a_home_without_folders_has_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "nowhere") == set()


def test_a_file_that_goes_while_it_is_listed_is_passed_over(root: Path) -> None:
    for number in range(20):
        put(root, f"knowledge/{number}.md")
    listing = walk(str(root), "knowledge")
    next(listing)
    for number in range(20):
        (root / f"knowledge/{number}.md").unlink()
    assert len(list(listing)) < 20


def test_folders_deeper_than_a_path_can_be_are_passed_over(root: Path) -> None:
    put(root, "knowledge/a.md")
    here = os.open(root / "knowledge", os.O_RDONLY)
    for _ in range(20):  # 20 names of 250 letters: no path reaches the last
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert found(root) == {"knowledge/a.md"}


def test_some_files_are_seen_as_a_look_at_all_sees_them(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("x")
    home = tmp_path / "home"
    names = (
        "knowledge/a.md",
        "knowledge/deep/b.txt",
        "knowledge/c.png",
        "knowledge/.git/d.md",
        "drafts/e.md",
        "topics/f.md",
        "g.md",
    )
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text")
    (home / "knowledge/linked.md").symlink_to(outside / "x.md")
    (home / "knowledge/link").symlink_to(outside)
    asked = [*names, "knowledge/linked.md", "knowledge/link/x.md", "knowledge/gone.md"]
    found = stat_listed(str(home), [*asked, "../outside/x.md"])
    assert found is not None
    everything = dict(walk_indexed(str(home)))
    assert {path: info for path, info in found.items() if info} == everything
    assert {path for path, info in found.items() if info is None} >= {
        "knowledge/gone.md",
        "knowledge/linked.md",
    }
    assert stat_listed(str(home), ["knowledge/deep"]) is None
    assert stat_listed(str(home), ["knowledge/gone"]) is None
    assert stat_listed(str(home), ["knowledge/c.png", "\0.md"]) == {"\0.md": None}
