"""Attachments in the format of git-lfs: a pointer in the commit, the bytes in .git/lfs/objects.

We write both ourselves, because filter programs of the repository are never run. git-lfs does the rest
(push, fetch, prune).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tacit.git.repository import common_directory
from tacit.home import files

_TRACKED_SUFFIXES = (".png", ".jpg", ".pdf", ".mp4")


def is_tracked(path: str) -> bool:
    """Whether the rules in our .gitattributes name this path."""
    return path.startswith("attachments/") and path.endswith(_TRACKED_SUFFIXES)


def is_installed() -> bool:
    return shutil.which("git-lfs") is not None


def is_pointer(data: bytes) -> bool:
    return data.startswith(b"version https://git-lfs.github.com/spec/")


def make_pointer(data: bytes) -> bytes:
    version = "https://git-lfs.github.com/spec/v1"
    return f"version {version}\noid sha256:{files.digest(data)}\nsize {len(data)}\n".encode()


def store_object(git_directory: Path, data: bytes) -> None:
    """Store the bytes where git-lfs looks for them."""
    if is_pointer(data):
        return
    name = files.digest(data)
    file = common_directory(git_directory) / "lfs" / "objects" / name[:2] / name[2:4] / name
    if not file.exists():
        files.make_directories(file.parent)
        files.replace(file, data, mode=0o400)
