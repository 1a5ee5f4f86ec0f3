"""Attributes of paths: which filter applies, and the one filter whose work we do ourselves, git-lfs.

The bytes of a path with another filter are never written: they would be the plain text of encrypted content.
git-lfs keeps a pointer in the commit and the bytes in .git/lfs/objects. We write both, because filter
programs are never run; git-lfs does the rest (push, fetch, prune).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tacit.git import process
from tacit.git.index import MAX_PATH_ARGS, find_entries, reset_index
from tacit.git.repository import Git, common_directory, split_nul
from tacit.home import files
from tacit.home.layout import origin_of

LFS_FILTER = "lfs"
_ATTRIBUTES_FILE = ".gitattributes"
_FILTER_SEPARATOR = " of "  # filter names have no spaces
_LFS_SUFFIXES = (".png", ".jpg", ".pdf", ".mp4")


def find_filters(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """The filter that the user's own git would apply to each path; paths without one are left out.
    An archived file without a filter has that of its original path, as "NAME of PATH"."""
    origins = {path: origin_of(path) for path in paths}
    own_filters = _find_own_filters(git, dict.fromkeys((*origins, *origins.values())))
    inherited = {
        path: inherited_filter(own_filters[origin], origin) if own_filters[origin] != LFS_FILTER else ""
        for path, origin in origins.items()
        if origin in own_filters and path not in own_filters
    }
    return {path: name for path in origins if (name := own_filters.get(path) or inherited.get(path))}


def find_blocking_filters(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """The paths that we never commit, with their filters."""
    return {path: name for path, name in find_filters(git, paths).items() if name != LFS_FILTER}


def _find_own_filters(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """Uses the user's settings, because there are also rules outside the repository. Runs no filter."""
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    if not stdin:
        return {}
    with _provide_rules(git) as index:
        pieces = process.check_attribute(git.root, "filter", stdin, index).split(b"\0")[:-1]
    filters = {
        os.fsdecode(path): os.fsdecode(name) for path, name in zip(pieces[::3], pieces[2::3], strict=True)
    }
    return {path: name for path, name in filters.items() if name not in ("unspecified", "unset")}


@contextmanager
def _provide_rules(git: Git) -> Iterator[str | None]:
    """git needs an index to read rules that are not on disk. If nothing was checked out, no index has them,
    so a temporary one is made from HEAD."""
    if _can_read_rules(git) or git.head() is None:
        yield git.index
        return
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index")
        reset_index(Git(git.root, index), "HEAD")
        yield index


def _can_read_rules(git: Git) -> bool:
    """Whether git finds all rules on disk or in the index. A quick check without a process."""
    index = git.root / (git.index or git.directory / "index")
    try:
        with index.open("rb") as file:
            return (
                os.path.lexists(git.root / _ATTRIBUTES_FILE) or os.fsencode(_ATTRIBUTES_FILE) in file.read()
            )
    except OSError:
        return False


def find_unchanged(git: Git, filters: Mapping[str, str]) -> set[str]:
    """Which of these paths are the same as in HEAD, by the sizes and times in git's index. Filters are
    switched off, because git would run them for files whose times prove nothing."""
    # On the command line the name of a setting ends at the first equals sign.
    paths = [path for path, name in filters.items() if "=" not in name.partition(_FILTER_SEPARATOR)[0]]
    tracked = find_entries(git, paths)
    if not tracked or git.head() is None:
        return set()
    overrides = [
        part
        for name in sorted({*(name.partition(_FILTER_SEPARATOR)[0] for name in filters.values()), LFS_FILTER})
        for setting in ("clean=", "process=", "required=false")
        for part in ("-c", f"filter.{name}.{setting}")
    ]
    changed: set[str] = set()
    names = list(tracked)
    for batch in (names[start : start + MAX_PATH_ARGS] for start in range(0, len(names), MAX_PATH_ARGS)):
        out = git.run(*overrides, "diff-index", "--name-only", "-z", "--no-renames", "HEAD", "--", *batch)
        changed.update(map(os.fsdecode, split_nul(out)))
    return tracked.keys() - changed


def split_filter(filter_name: str) -> tuple[str, str]:
    """The name of a filter, and the file that it is inherited from (empty if it is the path's own)."""
    name, _, path = filter_name.partition(_FILTER_SEPARATOR)
    return name, path


def inherited_filter(filter_name: str, path: str) -> str:
    """The name of a filter that is inherited from another file."""
    return f"{split_filter(filter_name)[0]}{_FILTER_SEPARATOR}{path}"


def is_lfs_path(path: str) -> bool:
    """Whether the rules in our .gitattributes name this path."""
    return path.startswith("attachments/") and path.endswith(_LFS_SUFFIXES)


def is_lfs_installed() -> bool:
    return shutil.which("git-lfs") is not None


def is_lfs_pointer(data: bytes) -> bool:
    return data.startswith(b"version https://git-lfs.github.com/spec/")


def make_lfs_pointer(data: bytes) -> bytes:
    version = "https://git-lfs.github.com/spec/v1"
    return f"version {version}\noid sha256:{files.digest(data)}\nsize {len(data)}\n".encode()


def store_lfs_object(git_directory: Path, data: bytes) -> None:
    """Store the bytes where git-lfs looks for them."""
    if is_lfs_pointer(data):
        return
    name = files.digest(data)
    file = common_directory(git_directory) / "lfs" / "objects" / name[:2] / name[2:4] / name
    if not file.exists():
        files.make_directories(file.parent)
        files.replace(file, data, mode=0o400)
