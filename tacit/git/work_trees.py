"""Linked work trees, and the files of a commit written to a separate folder, as a home.

Bytes come from git's objects, so no filter of the repository is run. Files are not hard-linked to the home:
readers refuse a file that has two names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit.errors import StoreError
from tacit.git.commits import EXECUTABLE, PLAIN, FileChange
from tacit.git.repository import Blob, Git, blob_name
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS

_FILE_MODES = (PLAIN, EXECUTABLE)


def list_work_trees(git: Git) -> list[Path]:
    """The existing linked work trees, without the home itself. Read from files, without a process. Those
    listed in a copied repository still belong to the original."""
    paths = []
    for file in sorted(git.common.glob("worktrees/*/gitdir")):
        path = Path(os.path.join(file.parent, file.read_text().strip())).parent
        if (path / ".git").is_file() and Git(path).directory.resolve() == file.parent.resolve():
            paths.append(Path(os.path.normpath(path)))
    return paths


def add_work_tree(git: Git, place: Path, branch: str, commit: str) -> None:
    """A linked work tree without files, on a branch that is created at, or reset to, the commit."""
    git.run("worktree", "add", "--quiet", "--force", "--no-checkout", "-B", branch, str(place), commit)


def drop_incomplete_work_trees(git: Git, place: str) -> None:
    """Drop half-created work trees whose path contains `place`: as long as one has no HEAD, git treats
    the whole repository as damaged."""
    for file in git.common.glob("worktrees/*/gitdir"):
        head = file.with_name("HEAD")
        commit = head.read_bytes().strip(b"0\n") if head.exists() else b""
        if not commit and place in file.read_text():
            shutil.rmtree(file.parent)


def drop_work_tree(git: Git, ending: str) -> None:
    """Drop the records of work trees at a path with this ending, even if the work trees no longer exist
    or belong to the repository that this one was copied from."""
    for file in git.common.glob("worktrees/*/gitdir"):
        if file.read_text().strip().endswith(f"/{ending}/.git"):
            shutil.rmtree(file.parent)


def check_out(git: Git, commit: str, root: Path, without: tuple[str, ...] = ()) -> None:
    """Make the files below `root` equal to the commit: write those that differ, remove notes that it does not
    have. `without`: folders to leave out."""
    tree = {
        path: blob for path, blob in git.tree(commit).items() if not path.startswith(_to_prefixes(without))
    }
    outdated = {
        path: blob
        for path, blob in tree.items()
        if blob.mode in _FILE_MODES and _is_different(git, root, path, blob)
    }
    with git.objects() as objects:
        for (path, blob), git_object in zip(
            outdated.items(), objects.many(blob.name for blob in outdated.values()), strict=True
        ):
            _write_file(root, path, git_object.data, blob.mode)
    for path in _list_files(root):
        if path not in tree:
            (root / path).unlink()


def list_changes(git: Git, commit: str, root: Path) -> list[FileChange]:
    """The differences between the notes below `root` and those of the commit."""
    tree = git.tree(commit, *NOTE_FOLDERS)
    paths = dict.fromkeys(_list_files(root))
    changed = [
        FileChange(path, data, tree[path].mode if path in tree else PLAIN)
        for path in paths
        if (data := _read(root, path)) is not None
        and (path not in tree or blob_name(data, git.algorithm) != tree[path].name)
    ]
    removed = [
        FileChange(path, None)
        for path, blob in tree.items()
        if path not in paths and blob.mode in _FILE_MODES
    ]
    return sorted([*changed, *removed], key=lambda change: change.path)


def _to_prefixes(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/" for folder in folders)


def _list_files(root: Path) -> Iterator[str]:
    return files.Tree(root).files(*NOTE_FOLDERS)


def _is_different(git: Git, root: Path, path: str, blob: Blob) -> bool:
    data = _read(root, path)
    return data is None or blob_name(data, git.algorithm) != blob.name


def _read(root: Path, path: str) -> bytes | None:
    try:
        return files.Tree(root).read(path)
    except (FileNotFoundError, NotADirectoryError, StoreError):
        return None


def _write_file(root: Path, path: str, data: bytes, mode: str) -> None:
    """Does not sync: the commit has the data."""
    file = root.joinpath(*files.split_safe_path(path))
    files.make_directories(file.parent, synced=False)
    file.unlink(missing_ok=True)  # it may be a link, or read-only
    files.write_unsynced(file, data)
    file.chmod(0o700 if mode == EXECUTABLE else 0o400 if path.startswith(f"{CONVERSATIONS}/") else 0o600)
