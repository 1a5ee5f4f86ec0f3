"""Make commits on the current branch, one at a time, under the home's lock.

Nothing is lost if a commit fails: finalized transcripts keep their record in .tacit/sessions and notes stay
on disk, so the next attempt commits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from tacit.diagnostics import Problem
from tacit.errors import GitError
from tacit.git.commits import CommitPlan, FileChange, import_commits, refuse_filtered
from tacit.git.index import list_staged
from tacit.git.repair import GitWork, is_dead_lock, is_git_running, repair
from tacit.git.repository import Blob, Git, blob_name
from tacit.home import files
from tacit.home.layout import Home


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    commits: tuple[str, ...] = ()
    waiting: str = ""
    left: tuple[Problem, ...] = ()


class Committer:
    def __init__(self, home: Home, git: Git, now: Callable[[], datetime]) -> None:
        self.home, self.git, self.now = home, git, now
        self._work = GitWork(home, git)

    def settle(self, wait: float) -> None:
        """Finish work that a kill interrupted, if there is any."""
        if self._work.is_unfinished:
            with files.hold_lock(self.home.lock, wait):
                self._work.settle()

    def finish_interrupted(self) -> None:
        """Like `settle`, for a caller that holds the home's lock."""
        self._work.settle()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Use around writes to refs outside a commit."""
        with files.hold_lock(self.home.lock), self._work.writing({}):
            yield

    def waits_for(self) -> str:
        """Why no commit can be made now, as text; empty if one can."""
        git = self.git
        if not git.directory.is_dir():
            return f"there is no git repository here; run: tacit init {self.home.root}"
        if (operation := git.in_progress()) is not None:
            return f"{operation} is in progress; it will be committed when that is done"
        if git.branch() is None:
            return "HEAD is detached; it will be committed when you are on a branch again (git switch main)"
        lock = git.directory / "index.lock"
        if self._commit_is_being_written() or (lock.exists() and not is_dead_lock(lock, self.home.root)):
            return "you are in the middle of a git command; it will be committed after it"
        return ""

    def _commit_is_being_written(self) -> bool:
        """`git commit` without -a holds no lock while its editor is open, but fails if HEAD moves on."""
        message = self.git.directory / "COMMIT_EDITMSG"
        return message.exists() and is_git_running(self.home.root, b"commit") is True

    def commit(self, planned: CommitPlan) -> str:
        """Make one commit. The caller holds the home's lock and has checked `waits_for`."""
        return self.commit_all([planned])[0]

    def list_staged(self) -> set[str]:
        """Paths that the user has staged, without those of our last commit that the index still lacks."""
        git = self.git
        if not (git.directory / "index").exists() or not git.head():
            return set()
        return list_staged(git) - self._work.list_outdated()

    def commit_all(self, plans: Sequence[CommitPlan]) -> list[str]:
        if not plans:
            return []
        refuse_filtered(self.git, plans)  # before the marker for the index is written
        algorithm = self.git.algorithm
        entries = {
            change.path: None if change.data is None else future_blob(change, algorithm)
            for plan in plans
            for change in plan.changes
        }
        with self._work.writing(entries):
            try:
                return import_commits(self.git, plans)
            except GitError:
                if not repair(self.home, self.git):
                    raise
                return import_commits(self.git, plans)


def future_blob(change: FileChange, algorithm: str) -> Blob:
    """The blob that git will have once this change is committed."""
    return Blob(change.mode, blob_name(change.data or b"", algorithm))
