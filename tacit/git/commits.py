"""Make commits with `git fast-import`.

A commit never touches the user's index or work tree: fast-import gets the bytes, writes the objects and moves
the branch in one process, and refuses by itself if the branch has moved in the meantime.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tacit.errors import Filtered, GitError
from tacit.git.attributes import find_blocking_filters
from tacit.git.repository import Git

IDENTITY = "tacit <tacit@localhost>"
PLAIN, EXECUTABLE, SYMLINK = "100644", "100755", "120000"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a commit: its new bytes, or None if it is removed."""

    path: str
    data: bytes | None
    mode: str = PLAIN


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """One commit to make."""

    message: str
    changes: Sequence[FileChange]
    when: datetime  # commit date: history is searched by it, so it only moves forward
    about: datetime | None = None  # date of the content, if older


def import_commits(git: Git, planned: Sequence[CommitPlan]) -> list[str]:
    """Make these commits, in order, on the current branch; returns their names."""
    branch = git.branch()
    if branch is None:
        raise GitError("HEAD is detached. Go back to a branch with: git switch main")
    refuse_filtered(git, planned)
    ref = f"refs/heads/{branch}"
    has_parent = (git.common / ref).exists() or git.resolve(ref) is not None
    stream = b"".join(_import_stream(ref, planned, has_parent))
    started = time.time()
    result = git.attempt("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, timeout=600)
    if result.returncode:
        raise GitError(f"The commit on {branch} was not made.", result.stderr.decode("utf-8", "replace"))
    git.sync(ref, since=started)
    return result.stdout.decode().split()


def refuse_filtered(git: Git, planned: Sequence[CommitPlan]) -> None:
    """Raise Filtered if bytes of a path with a filter would be written."""
    changes = (change for plan in planned for change in plan.changes)
    if filters := find_blocking_filters(
        git, dict.fromkeys(change.path for change in changes if change.data is not None)
    ):
        raise Filtered(filters)


def _import_stream(ref: str, planned: Sequence[CommitPlan], has_parent: bool) -> Iterator[bytes]:
    for number, plan in enumerate(planned, 1):
        message = plan.message.encode("utf-8", "replace")
        yield f"commit {ref}\nmark :{number}\nauthor {_format_author(plan.about or plan.when)}\n".encode()
        yield f"committer {_format_author(plan.when)}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 1 and has_parent:
            yield f"from {ref}^0\n".encode()
        for change in plan.changes:
            yield from _import_change(change)
        yield b"\nget-mark :%d\n" % number
    yield b"done\n"


def _format_author(when: datetime) -> str:
    return f"{IDENTITY} {max(0, int(when.timestamp()))} {when.strftime('%z')[:5] or '+0000'}"


def _import_change(change: FileChange) -> Iterator[bytes]:
    if change.data is None:
        yield b"D %s\n" % _quote_path(change.path)
    else:
        yield b"M %s inline %s\n" % (change.mode.encode(), _quote_path(change.path))
        yield b"data %d\n" % len(change.data)
        yield change.data
        yield b"\n"


def _quote_path(path: str) -> bytes:
    plain = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + plain + b'"'
