"""Write the files of a commit to a separate folder, as a home.

Bytes come from git's objects, so no filter of the repository is run. Files are not hard-linked to the home:
readers refuse a file that has two names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit.errors import StoreError
from tacit.git.repository import EXECUTABLE, PLAIN, Blob, FileChange, Git, blob_name
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS

_FILE_MODES = (PLAIN, EXECUTABLE)


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
