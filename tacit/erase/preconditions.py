"""Check that forgetting is possible now: no other process works on the files that would change."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from tacit.erase.erasure import Erasure, is_transcript
from tacit.erase.targets import SessionErasure
from tacit.errors import Busy, GitError, HomeError
from tacit.git.repair import clear_dead_locks, is_dead_lock
from tacit.git.repository import Git
from tacit.git.work_marker import GitWork
from tacit.git.work_trees import list_work_trees
from tacit.home import files
from tacit.home.layout import Home
from tacit.transcripts import writer

_IN_PROGRESS_FILES = ("BISECT_LOG", "sequencer")


def require_rewritable(home: Home, git: Git) -> None:
    if not (home.root / ".git").is_dir():
        problem = "is a linked work tree" if (home.root / ".git").exists() else "has no git repository"
        raise HomeError(f"{home.root} {problem}. Forget in the home whose repository it is.")
    config = (git.common / "config").read_text(errors="replace").lower()
    if "reftable" in config or "partialclone" in config:
        raise GitError("This repository keeps its refs or objects in a way that tacit cannot rewrite yet.")


def make_ready(home: Home, git: Git) -> None:
    """Clear the leftovers of our git after a kill; raise Busy if another process works on files that would
    change. The caller holds the home's lock."""
    work = GitWork(home, git)
    if (since := work.died_since) is not None:
        for root in list_work_trees(git):
            clear_dead_locks(Home(root), Git(root), since=since)
    work.settle()
    for root in (git.root, *list_work_trees(git)):
        directory = Git(root).directory
        operation = Git(root).in_progress() or next(
            ("a bisect or a sequence" for name in _IN_PROGRESS_FILES if (directory / name).exists()), None
        )
        if operation:
            raise Busy(f"In {root} {operation} is in progress. Finish or abort it, then try again.")
        lock = directory / "index.lock"
        if lock.exists() and not is_dead_lock(lock, root):
            raise Busy(f"A git command is at work in {root}. Try again when it is done.")


@contextmanager
def hold_daemon_lock(home: Home) -> Iterator[None]:
    """Make sure that no daemon runs or starts in the meantime: it has forgotten content in memory."""
    files.make_directories(home.private)
    message = "`tacit serve` is running for this home. End it first with: tacit stop"
    with _hold_exclusively(str(home.private / "daemon.lock"), os.O_RDWR | os.O_CREAT, message):
        yield


@contextmanager
def hold_sessions(home: Home, what: Erasure, paths: Iterable[str]) -> Iterator[None]:
    """Lock the open transcripts among the paths, so that no message is added while they are replaced."""
    with ExitStack() as stack:
        stack.enter_context(files.hold_lock(home.private / "sessions.lock"))
        for path in sorted(set(filter(is_transcript, paths))):
            file = home.root / path
            if file.exists() and not writer.is_sealed(file):
                message = f"{path} is being written at this moment. End that session, then try again."
                stack.enter_context(_hold_exclusively(str(file), os.O_RDONLY, message))
        _refuse_detached(home, what)
        yield


@contextmanager
def _hold_exclusively(file: str, flags: int, message: str) -> Iterator[None]:
    fd = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(message) from None
        yield
    finally:
        os.close(fd)


def _refuse_detached(home: Home, erasure: Erasure) -> None:
    """Command-line sessions are open without a lock; they would continue in a new transcript."""
    if not isinstance(erasure, SessionErasure):
        return
    for record in writer.list_states(home):
        name, key = record.opening.session_id, record.opening.session_key
        is_open = record.path and not writer.is_sealed(home.root / record.path)
        if record.detached and is_open and erasure.is_meant(name, key):
            raise Busy(f"Session {name} is still open. End it first with: tacit capture end {name}")
