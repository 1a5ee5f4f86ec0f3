"""Git's index, read from its file as git itself would tell it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tacit.git.index_file import find_repository_root, list_assumed_unchanged, list_unmerged, read_entries


def git(root: Path, *arguments: str, stdin: str = "") -> str:
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **names},
    )
    return done.stdout


NAMES = ["a.md", "a/ü b.md", "a/" + "long" * 60 + ".md", "b/c.md", "z.md"]


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_every_form_of_the_index_is_read(tmp_path: Path, version: str, algorithm: str) -> None:
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={algorithm}")
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", ".")
    if version == "3":
        (tmp_path / "later.md").write_text("x")
        git(tmp_path, "add", "-N", "later.md")  # needs a flag that version 2 has no room for
    git(tmp_path, "update-index", "--index-version", version)
    data = (tmp_path / ".git/index").read_bytes()
    assert data[7] == int(version)
    found = {path: (changed, size) for path, changed, size, *_ in read_entries(data)}
    assert sorted(found) == git(tmp_path, "-c", "core.quotePath=false", "ls-files").splitlines()
    info = (tmp_path / "b/c.md").stat()
    assert found["b/c.md"] == (info.st_mtime_ns, info.st_size)
    assert list_unmerged(str(tmp_path)) == frozenset()
    git(tmp_path, "update-index", "--assume-unchanged", "a.md", "z.md")
    assert list_assumed_unchanged(str(tmp_path)) == {"a.md", "z.md"}
    blob = git(tmp_path, "hash-object", "-w", "z.md").strip()
    zero = "0" * len(blob)
    stages = f"0 {zero}\tb/c.md\n100644 {blob} 2\tb/c.md\n100644 {blob} 3\tb/c.md\n"
    git(tmp_path, "update-index", "--index-info", stdin=stages)
    assert list_unmerged(str(tmp_path)) == {"b/c.md"}


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("many", [1, 300])
def test_an_index_in_two_files_is_read_whole(tmp_path: Path, algorithm: str, many: int) -> None:
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={algorithm}")
    for name in [*NAMES, *(f"many/{number}.md" for number in range(many))]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", ".")
    blob = git(tmp_path, "hash-object", "-w", "z.md").strip()
    zero = "0" * len(blob)
    for name in ("b/c.md", "z.md"):
        stages = f"0 {zero}\t{name}\n100644 {blob} 2\t{name}\n100644 {blob} 3\t{name}\n"
        git(tmp_path, "update-index", "--index-info", stdin=stages)
    git(tmp_path, "update-index", "--split-index")
    assert list_unmerged(str(tmp_path)) == {"b/c.md", "z.md"}
    git(tmp_path, "add", "b/c.md")
    assert list_unmerged(str(tmp_path)) == {"z.md"}
    git(tmp_path, "rm", "-q", "--cached", "-r", "many", "a")
    assert list_unmerged(str(tmp_path)) == {"z.md"}
    git(tmp_path, "add", ".")
    assert list_unmerged(str(tmp_path)) == frozenset()


def test_what_is_no_index_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for data in (
        b"",
        b"DIRC",
        b"DIRC\0\0\0\4\0\0\xff\xff",
        b"nonsense" * 40,
        b"DIRC\0\0\0\2\0\0\0\5" + b"\1" * 99,
        b"DIRC\0\0\0\2\0\0\0\0link\0\0",
    ):
        (tmp_path / ".git/index").write_bytes(data)
        assert list_unmerged(str(tmp_path)) == frozenset()


def test_the_repository_may_begin_in_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "top/.git").mkdir(parents=True)
    (tmp_path / "top/a/b").mkdir(parents=True)
    assert find_repository_root(str(tmp_path / "top/a/b")) == os.path.realpath(tmp_path / "top")
