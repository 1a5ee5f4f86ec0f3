"""Merge a rebuild into the home, in one commit, which one command reverts.

The home may change while the merge is prepared: new commits are learned in the same way first, and changes in
the last moment make the merge fail, to be retried. Nobody's edits are overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tacit.errors import Busy, ChangedOnDisk, UsageError
from tacit.git.refs import create_snapshot
from tacit.home import files
from tacit.learn.runs import LearnRun
from tacit.memory import Memory
from tacit.rebuild.service import (
    LearningSetup,
    RebuildProgress,
    RebuildResult,
    describe_settings,
    rebuild,
    replayable_transcripts,
)
from tacit.rebuild.store import Rebuild, open_rebuild
from tacit.rebuild.strip import REBUILD_SUBJECT
from tacit.review.service import NoteEdit
from tacit.workspaces.note_store import read_note

_RETRY_HINT = "Then adopt it again: tacit adopt-branch "


class MergeResult(NamedTuple):
    commit: str  # empty: there was nothing to change
    tag: str
    paths: tuple[str, ...]
    rebuilt: RebuildResult


def merge_rebuild(
    memory: Memory, name: str, how: LearningSetup, tick: RebuildProgress = lambda result, total: None
) -> MergeResult:
    """Merge a rebuild. Conversations since its base are learned in the same way first."""
    with files.hold_lock(memory.home.private / "lifecycle.lock", 5.0):  # nobody learns meanwhile
        branch = open_rebuild(memory.home, memory.git, name)
        result = rebuild(memory, name, how, tick, _already_written(memory, branch))
        with branch.locked():
            commit, paths = _merge_branch(memory, branch, result.base)
        _record_runs(memory, how, result.base)
        tag = _tag_snapshot(memory, name) if commit else ""
        branch.drop()
    return MergeResult(commit, tag, paths, result)


def _merge_branch(memory: Memory, branch: Rebuild, base: str) -> tuple[str, tuple[str, ...]]:
    with files.hold_lock(memory.home.lock):
        if memory.git.head() != base:
            raise Busy(f"Something was committed just now. {_RETRY_HINT}{branch.name}")
        paths = tuple(memory.git.changed_between(base, branch.tip or base))
        edits = list(_edits(memory, branch, base))
        try:
            memory.services.note_editor.write(edits)
        except ChangedOnDisk as error:
            raise Busy(
                f"{error.path} was changed just now. Run: tacit run commit. {_RETRY_HINT}{branch.name}"
            ) from None
        commits = (
            memory.services.note_committer.commit_paths(_message(branch, len(paths)), paths).commits
            if paths
            else ()
        )
        return next(iter(commits), ""), paths


def _already_written(memory: Memory, branch: Rebuild) -> list[str]:
    """Notes that an interrupted merge has written already."""
    state, tip = branch.state(), branch.tip
    if state is None or tip is None or not state.done:
        return []
    paths = memory.git.changed_between(state.base, tip)
    return [path for path in paths if read_note(memory.home, path) == memory.git.read(tip, path)]


def _message(branch: Rebuild, count: int) -> str:
    state = branch.state()
    assert state is not None
    return (
        f"{REBUILD_SUBJECT}regenerated knowledge with {branch.name}\n\n"
        f"{count} notes, learned anew ({describe_settings(state.settings)}).\n\n"
        f"Adopted: {branch.branch} {branch.tip}\n"
    )


def _edits(memory: Memory, branch: Rebuild, base: str) -> Iterator[NoteEdit]:
    tip = branch.tip
    assert tip is not None
    for path in memory.git.changed_between(base, tip):
        old, new = memory.git.read(base, path), memory.git.read(tip, path)
        if read_note(memory.home, path) != new:
            yield NoteEdit(path, old, new)


def _record_runs(memory: Memory, how: LearningSetup, base: str) -> None:
    """Record runs for conversations that an extractor read for the first time in the rebuild."""
    known_runs = memory.services.runs.list_learn_runs()
    labels = how.settings.extractors
    for path in replayable_transcripts(memory, base):
        labels_done = known_runs[path].extractors if path in known_runs else ()
        names_done = {label.partition("/")[0] for label in labels_done}
        if missing := tuple(label for label in labels if label.partition("/")[0] not in names_done):
            sha = files.digest((memory.home.root / path).read_bytes())
            memory.services.runs.finish(LearnRun(path, sha, missing), memory.services.clock.now())


def _tag_snapshot(memory: Memory, name: str) -> str:
    """Tag the result; a name that is taken gets a number."""
    for number in range(1, 100):
        try:
            return create_snapshot(memory.git, name if number == 1 else f"{name}-{number}", "extract")
        except UsageError:
            continue
    return ""
