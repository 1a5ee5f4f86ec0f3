"""Whether something may be forgotten now: nobody is at work on what would change."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from tacit.errors import Busy, GitError, HomeError
from tacit.store import files, locks, transcripts
from tacit.store.forgetting.sessions import Sessions
from tacit.store.forgetting.what import Forgetting, is_transcript
from tacit.store.git import Git
from tacit.store.gitwork import GitWork
from tacit.store.home import Home
from tacit.store.repair import clear_dead_locks

_UNDER_WAY = ("BISECT_LOG", "sequencer")


def refuse_repository(home: Home, git: Git) -> None:
    if not (home.root / ".git").is_dir():
        what = "is a linked work tree" if (home.root / ".git").exists() else "has no git repository"
        raise HomeError(f"{home.root} {what}. Forget in the home whose repository it is.")
    config = (git.common / "config").read_text(errors="replace").lower()
    if "reftable" in config or "partialclone" in config:
        raise GitError("This repository keeps its refs or objects in a way that tacit cannot rewrite yet.")


def make_ready(home: Home, git: Git) -> None:
    """Clear what a git of ours left when it was killed; Busy, when somebody else is at work on what would
    change. Expects the home's lock."""
    work = GitWork(home, git)
    if (since := work.died_since) is not None:
        for root in git.work_trees():
            clear_dead_locks(Home(root), Git(root), since=since)
    work.settle()
    for root in (git.root, *git.work_trees()):
        directory = Git(root).directory
        doing = Git(root).in_progress() or next(
            ("a bisect or a sequence" for name in _UNDER_WAY if (directory / name).exists()), None
        )
        if doing:
            raise Busy(f"In {root} {doing} is in progress. Finish or abort it, then try again.")
        lock = directory / "index.lock"
        if lock.exists() and not locks.is_dead(lock, root):
            raise Busy(f"A git command is at work in {root}. Try again when it is done.")


@contextmanager
def no_daemon(home: Home) -> Iterator[None]:
    """None runs, and none starts meanwhile: it holds in memory what is forgotten."""
    files.make_directories(home.private)
    why = "`tacit serve` is running for this home. End it first with: tacit stop"
    with _held_alone(str(home.private / "daemon.lock"), os.O_RDWR | os.O_CREAT, why):
        yield


@contextmanager
def no_live_session(home: Home, what: Forgetting, paths: Iterable[str]) -> Iterator[None]:
    """Open transcripts among these are ours alone: nobody adds a message while their files are replaced."""
    with ExitStack() as held:
        held.enter_context(files.locked(home.private / "sessions.lock"))
        for path in sorted(set(filter(is_transcript, paths))):
            file = home.root / path
            if file.exists() and not transcripts.is_sealed(file):
                why = f"{path} is being written at this moment. End that session, then try again."
                held.enter_context(_held_alone(str(file), os.O_RDONLY, why))
        _refuse_detached(home, what)
        yield


@contextmanager
def _held_alone(file: str, flags: int, why: str) -> Iterator[None]:
    fd = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(why) from None
        yield
    finally:
        os.close(fd)


def _refuse_detached(home: Home, what: Forgetting) -> None:
    """A session of the command line is open although nobody holds it; it would go on in a new transcript."""
    if not isinstance(what, Sessions):
        return
    for record in transcripts.records(home):
        name, key = record.opening.session_id, record.opening.session_key
        is_open = record.path and not transcripts.is_sealed(home.root / record.path)
        if record.detached and is_open and what.is_meant(name, key):
            raise Busy(f"Session {name} is still open. End it first with: tacit capture end {name}")
