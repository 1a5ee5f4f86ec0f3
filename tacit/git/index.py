"""The index, and which files of the work tree git knows, ignores or has not checked out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from tacit.errors import GitError, NotCheckedOut
from tacit.git.index_file import list_assumed_unchanged
from tacit.git.repository import Blob, Git, split_nul

MAX_PATH_ARGS = 200  # a command line has a limit


def list_staged(git: Git) -> set[str]:
    """Paths whose index entry differs from HEAD: the user's work in progress."""
    if git.head() is None:
        return {os.fsdecode(path) for path in split_nul(git.run("ls-files", "-z", "--cached"))}
    result = git.attempt("diff-index", "--cached", "--name-only", "-z", "HEAD", "--")
    if result.returncode:
        raise GitError(
            "The index of this repository cannot be read.", result.stderr.decode("utf-8", "replace")
        )
    return {os.fsdecode(path) for path in split_nul(result.stdout)}


def list_not_checked_out(git: Git) -> set[str]:
    """Paths that are absent from the disk but not deleted: a sparse checkout leaves them out, they are
    assumed unchanged, or nothing was ever checked out."""
    return {path for path in _list_unwritten(git) if not os.path.lexists(git.root / path)}


def _list_unwritten(git: Git) -> Collection[str]:
    if (git.directory / "index").exists():
        return _list_skip_worktree(git) | list_assumed_unchanged(str(git.root))
    return git.tree("HEAD") if git.directory.is_dir() and git.head() else ()


def _list_skip_worktree(git: Git) -> set[str]:
    """Paths with the skip-worktree flag. Starts no process if the index cannot contain it."""
    try:
        with (git.directory / "index").open("rb") as file:
            is_plain = file.read(8)[4:] == b"\0\0\0\2"
    except OSError:
        is_plain = True
    if is_plain and not (git.directory / "info" / "sparse-checkout").exists():
        return set()
    out = git.run("ls-files", "-z", "-t", "--cached")
    return {os.fsdecode(line[2:]) for line in split_nul(out) if line.startswith(b"S ")}


def list_tracked(git: Git, paths: Collection[str]) -> set[str]:
    """Which of these paths are in HEAD or the index."""
    committed = git.tree("HEAD", *paths) if paths and git.head() else {}
    return {*committed, *find_entries(git, paths)}


def find_entries(git: Git, paths: Collection[str]) -> dict[str, Blob]:
    """The index entries of these paths; empty if the index cannot be read."""
    if _index_has_none_of(git, paths):
        return {}
    pathspecs = (
        paths if len(paths) < MAX_PATH_ARGS else ()
    )  # else list everything: command lines have a limit
    out = git.attempt("ls-files", "-z", "--stage", "--", *pathspecs).stdout if paths else b""
    entries = {}
    for line in split_nul(out):
        meta, _, path = line.partition(b"\t")
        mode, name, _ = meta.decode().split(" ")
        entries[os.fsdecode(path)] = Blob(mode, name)
    return {path: entries[path] for path in paths if path in entries}


def _index_has_none_of(git: Git, paths: Collection[str]) -> bool:
    """Reads the file, without a process: up to version 3 it holds whole names. Usually we commit one new
    transcript, which the index does not have."""
    try:
        data = (git.directory / "index").read_bytes()
    except OSError:
        return not (git.directory / "index").exists()
    return data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and not any(os.fsencode(path) in data for path in paths)


def list_entries(git: Git) -> list[tuple[str, Blob]]:
    """Everything in the index. Raises in the middle of a merge."""
    entries = []
    for line in split_nul(git.run("ls-files", "-z", "--stage")):
        meta, _, path = line.partition(b"\t")
        mode, name, stage = meta.decode().split(" ")
        if stage != "0":
            raise GitError("There are conflicts in the index. Resolve them, commit, and try again.")
        entries.append((os.fsdecode(path), Blob(mode, name)))
    return entries


def list_untracked(git: Git, *folders: str) -> list[str]:
    """Files that git does not track and .gitignore does not exclude. A folder that ends in a slash is
    another repository inside ours."""
    out = git.run("ls-files", "-z", "--others", "--exclude-standard", "--", *folders)
    return [os.fsdecode(path) for path in split_nul(out)]


def list_files(git: Git, *folders: str) -> list[str]:
    """The files that `untracked` lists, and those in the index."""
    out = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders)
    return [os.fsdecode(path) for path in split_nul(out)]


def update_entries(git: Git, entries: Iterable[tuple[str, Blob | None]]) -> bool:
    """Update the user's index with paths we committed (None: removed), so that `git status` stays clean.
    Best effort: if another process holds the index, leaves it alone and returns False."""
    updates = dict(entries)
    absent = _list_skip_worktree(git) | {
        path for path in list_assumed_unchanged(str(git.root)) if not os.path.lexists(git.root / path)
    }
    skipped = [(path, blob) for path, blob in updates.items() if blob is not None and path in absent]
    present = [(path, blob) for path, blob in updates.items() if blob is None or path not in absent]
    removed = Blob("0", "0" * (64 if git.algorithm == "sha256" else 40))
    lines = (f"{(blob or removed).mode} {(blob or removed).name}\t{path}" for path, blob in present)
    stdin = b"".join(os.fsencode(line) + b"\0" for line in lines)
    is_updated = git.attempt("update-index", "-z", "--index-info", stdin=stdin).returncode == 0
    return is_updated and all(_update_skipped(git, path, blob) for path, blob in skipped)


def _update_skipped(git: Git, path: str, blob: Blob) -> bool:
    """Set the skip-worktree flag of a path that is not checked out, in the same process: without the flag
    it would count as deleted."""
    entry = f"{blob.mode},{blob.name},{path}"
    options = ("--add", "--cacheinfo", entry, "--skip-worktree", "--", path)
    return git.attempt("update-index", *options).returncode == 0


def set_skip_worktree(git: Git, paths: Iterable[str]) -> None:
    """Set skip-worktree for paths that a sparse checkout leaves out and the index already has."""
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    git.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=stdin)


def reset_index(git: Git, commit: str) -> None:
    """Set the index to the commit; files are not touched."""
    git.run("read-tree", commit, timeout=600)


def drop_resolve_undo(git: Git) -> None:
    """The index remembers both sides of resolved conflicts, and may be split in two files, one of them
    older: erased content would stay in them."""
    index = git.directory / "index"
    data = index.read_bytes() if index.exists() else b""
    if b"REUC" in data or b"link" in data:
        git.run("update-index", "--clear-resolve-undo", "--no-split-index")
        for file in git.directory.glob("sharedindex.*"):
            file.unlink()


def drop_cached_folders(git: Git) -> None:
    """The index keeps the names of empty folders until a tree is written from it."""
    git.attempt("write-tree", timeout=600)


def require_checked_out(root: Path, path: str) -> None:
    """Raise NotCheckedOut for a file that is in git but not on disk: creating it would replace it."""
    if (root / ".git").exists() and path in list_not_checked_out(Git(root)):
        raise NotCheckedOut(path)
