"""Merge a rebuild into the home, in one commit, which one command reverts.

The home may change while the merge is prepared: new commits are learned in the same way first, and changes in
the last moment make the merge fail, to be retried. No edit of a person is overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tacit.clock import Clock
from tacit.errors import Busy, ChangedOnDisk, UsageError
from tacit.git.note_committer import NoteCommitter
from tacit.git.refs import create_snapshot
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn.runs import LearnRun, RunLog
from tacit.rebuild.options import LearningSetup, describe_settings
from tacit.rebuild.service import (
    Rebuilder,
    RebuildProgress,
    RebuildResult,
    replayable_transcripts,
)
from tacit.rebuild.store import Rebuild, open_rebuild
from tacit.rebuild.strip import REBUILD_SUBJECT
from tacit.review.service import NoteEdit, NoteEditor
from tacit.workspaces.note_store import read_note

_RETRY_HINT = "Then adopt it again: tacit adopt-branch "


class MergeResult(NamedTuple):
    commit: str  # empty: there was nothing to change
    tag: str
    paths: tuple[str, ...]
    rebuilt: RebuildResult


class RebuildMerger:
    def __init__(
        self,
        home: Home,
        clock: Clock,
        git: Git,
        *,
        committer: NoteCommitter,
        runs: RunLog,
        editor: NoteEditor,
        rebuilder: Rebuilder,
    ) -> None:
        self._home, self._clock, self._git = home, clock, git
        self._committer, self._runs = committer, runs
        self._editor, self._rebuilder = editor, rebuilder

    def merge(
        self, name: str, setup: LearningSetup, tick: RebuildProgress = lambda done, total: None
    ) -> MergeResult:
        """Merge a rebuild. Conversations since its base are learned in the same way first."""
        with files.hold_lock(self._home.private / "lifecycle.lock", 5.0):  # no process learns meanwhile
            branch = open_rebuild(self._home, self._git, name)
            result = self._rebuilder.rebuild(name, setup, tick, self._already_written(branch))
            with branch.lock():
                commit, paths = self._merge_branch(branch, result.base)
            self._record_runs(setup, result.base)
            tag = self._tag_snapshot(name) if commit else ""
            branch.drop()
        return MergeResult(commit, tag, paths, result)

    def _merge_branch(self, branch: Rebuild, base: str) -> tuple[str, tuple[str, ...]]:
        with files.hold_lock(self._home.lock):
            if self._git.head() != base:
                raise Busy(f"Something was committed just now. {_RETRY_HINT}{branch.name}")
            paths = tuple(self._git.changed_between(base, branch.tip or base))
            edits = list(self._edits(branch, base))
            try:
                self._editor.write(edits)
            except ChangedOnDisk as error:
                raise Busy(
                    f"{error.path} was changed just now. Run: tacit run commit. {_RETRY_HINT}{branch.name}"
                ) from None
            commits = (
                self._committer.commit_paths(_message(branch, len(paths)), paths).commits if paths else ()
            )
            return next(iter(commits), ""), paths

    def _already_written(self, branch: Rebuild) -> list[str]:
        """Notes that an interrupted merge has written already."""
        state, tip = branch.state(), branch.tip
        if state is None or tip is None or not state.done:
            return []
        paths = self._git.changed_between(state.base, tip)
        return [path for path in paths if read_note(self._home, path) == self._git.read(tip, path)]

    def _edits(self, branch: Rebuild, base: str) -> Iterator[NoteEdit]:
        tip = branch.tip
        assert tip is not None
        for path in self._git.changed_between(base, tip):
            old, new = self._git.read(base, path), self._git.read(tip, path)
            if read_note(self._home, path) != new:
                yield NoteEdit(path, old, new)

    def _record_runs(self, setup: LearningSetup, base: str) -> None:
        """Record runs for conversations that an extractor read for the first time in the rebuild."""
        known_runs = self._runs.list_learn_runs()
        labels = setup.settings.extractors
        for path in replayable_transcripts(self._home.root, self._git, base):
            labels_done = known_runs[path].extractors if path in known_runs else ()
            names_done = {label.partition("/")[0] for label in labels_done}
            if missing := tuple(label for label in labels if label.partition("/")[0] not in names_done):
                sha = files.digest((self._home.root / path).read_bytes())
                self._runs.finish(LearnRun(path, sha, missing), self._clock.now())

    def _tag_snapshot(self, name: str) -> str:
        """Tag the result; a name that is taken gets a number."""
        for number in range(1, 100):
            try:
                return create_snapshot(self._git, name if number == 1 else f"{name}-{number}", "extract")
            except UsageError:
                continue
        return ""


def _message(branch: Rebuild, count: int) -> str:
    state = branch.state()
    assert state is not None
    return (
        f"{REBUILD_SUBJECT}regenerated knowledge with {branch.name}\n\n"
        f"{count} notes, learned anew ({describe_settings(state.settings)}).\n\n"
        f"Adopted: {branch.branch} {branch.tip}\n"
    )
