"""The files of a commit, laid out as a home in a folder of their own.

Bytes come from git's objects, so no filter that a repository names is run, and no file of the home is shared:
one that has two names is refused by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit.errors import StoreError
from tacit.store import files
from tacit.store.git import EXECUTABLE, PLAIN, Blob, Change, Git, blob_name
from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS

_FILES = (PLAIN, EXECUTABLE)


def lay_out(git: Git, commit: str, root: Path, without: tuple[str, ...] = ()) -> None:
    """Make the files below `root` those of the commit: what differs is written, notes that it does not have
    go. `without`: folders that are left out."""
    tree = {path: blob for path, blob in git.tree(commit).items() if not path.startswith(_below(without))}
    wanted = {
        path: blob for path, blob in tree.items() if blob.mode in _FILES and _differs(git, root, path, blob)
    }
    with git.objects() as objects:
        for (path, blob), found in zip(
            wanted.items(), objects.many(blob.name for blob in wanted.values()), strict=True
        ):
            _put(root, path, found.data, blob.mode)
    for path in _present(root):
        if path not in tree:
            (root / path).unlink()


def changes(git: Git, commit: str, root: Path) -> list[Change]:
    """How the notes below `root` differ from those of the commit."""
    tree = git.tree(commit, *NOTE_FOLDERS)
    present = dict.fromkeys(_present(root))
    changed = [
        Change(path, data, tree[path].mode if path in tree else PLAIN)
        for path in present
        if (data := _read(root, path)) is not None
        and (path not in tree or blob_name(data, git.algorithm) != tree[path].name)
    ]
    gone = [Change(path, None) for path, blob in tree.items() if path not in present and blob.mode in _FILES]
    return sorted([*changed, *gone], key=lambda change: change.path)


def _below(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/" for folder in folders)


def _present(root: Path) -> Iterator[str]:
    return files.Tree(root).files(*NOTE_FOLDERS)


def _differs(git: Git, root: Path, path: str, blob: Blob) -> bool:
    data = _read(root, path)
    return data is None or blob_name(data, git.algorithm) != blob.name


def _read(root: Path, path: str) -> bytes | None:
    try:
        return files.Tree(root).read(path)
    except (FileNotFoundError, NotADirectoryError, StoreError):
        return None


def _put(root: Path, path: str, data: bytes, mode: str) -> None:
    """Not synced: the commit has it."""
    file = root.joinpath(*files.parts_of(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # it may be a link, or read-only
    file.write_bytes(data)
    file.chmod(0o700 if mode == EXECUTABLE else 0o400 if path.startswith(f"{CONVERSATIONS}/") else 0o600)
