"""Objects of the repository: walk them, add them, pack them, drop those that nothing refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tacit.errors import GitError
from tacit.git.attributes import find_blocking_filters
from tacit.git.repository import Git, GitObject, read_object
from tacit.home import files

_MAX_LOOSE_OBJECTS = 6700  # git's own threshold


def read_all_objects(git: Git) -> Iterator[GitObject]:
    """All objects of the repository, including unreachable ones, one at a time."""
    arguments = ("cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer")
    with git.open_pipes(*arguments) as (stdin, stdout):
        stdin.close()
        while (git_object := read_object(stdout)) is not None:
            yield git_object


def list_existing(git: Git, names: Collection[str]) -> set[str]:
    """Which of these objects the repository has."""
    stdin = "".join(f"{name}\n" for name in names).encode()
    out = git.run("cat-file", "--batch-check", stdin=stdin, timeout=600) if names else b""
    rows = [line.split(" ") for line in out.decode().splitlines()]
    return {row[0] for row in rows if row[1] != "missing"}


def walk_commits(git: Git, names: Collection[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Name, tree and parents of these commits and all their ancestors, parents first."""
    if not names:
        return
    stdin = "".join(f"{name}\n" for name in names).encode()
    arguments = ("log", "--topo-order", "--reverse", "--stdin", "--format=%H %T %P")
    for line in git.run(*arguments, stdin=stdin, timeout=600).decode().splitlines():
        name, tree, *parents = line.split()
        yield name, tree, parents


def read_trailer(git: Git, commit: str, key: str) -> str:
    """The value of the trailer with this key; empty if the message has none."""
    form = f"--format=%(trailers:key={key},valueonly)"
    return git.run("log", "-1", form, commit).decode("utf-8", "replace").strip()


def write_blob(git: Git, data: bytes) -> str:
    return git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()


def store_unreferenced_blob(git: Git, data: bytes, path: str) -> str | None:
    """Store bytes that no commit refers to; git drops them after some weeks. None: the path has a filter,
    so nothing is stored."""
    return None if find_blocking_filters(git, [path]) else write_blob(git, data)


def add_pack(git: Git, pack: Path) -> None:
    """Add the objects of a pack file to the repository."""
    with pack.open("rb") as stream:
        result = git.attempt("index-pack", "--stdin", stdin=stream, timeout=None)
    if result.returncode:
        raise GitError("New objects could not be written.", result.stderr.decode("utf-8", "replace"))
    files.fsync_directory(git.common / "objects" / "pack")


def pack_loose_objects(git: Git) -> bool:
    """Pack loose objects when there are many, as git would by itself. The pack is on disk under its name
    before the first loose object is removed. Returns whether it packed."""
    sample = git.common / "objects" / "17"  # names are hashes, so one of 256 folders represents all
    if not sample.is_dir() or sum(1 for _ in sample.iterdir()) * 256 < _MAX_LOOSE_OBJECTS:
        return False
    git.run("repack", "-l", "-q", timeout=600)
    files.fsync_directory(git.common / "objects" / "pack")
    git.run("prune-packed", "--quiet", timeout=600)
    return True


def drop_unreachable_objects(git: Git) -> None:
    """Keep only objects reachable from refs, logs and indexes, in one pack. The new pack is on disk under
    its name before an old one is removed; a single repack would not guarantee that."""
    folder = git.common / "objects" / "pack"
    for options in (("-a", "-l", "-q"), ("-a", "-d", "-l", "-q")):
        git.run("repack", *options, timeout=3600)
        files.fsync_directory(folder)
    git.run("prune", "--expire=now", timeout=3600)
