"""Commit changed notes, one commit per kind of change, with the sessions that they came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from tacit.git import commit_message
from tacit.git.commits import CommitPlan
from tacit.git.committer import CommitOutcome, Committer
from tacit.git.note_changes import NoteChangeFinder, NoteChanges
from tacit.home import files
from tacit.home.layout import Home

_TOUCHED_FILE = "touched.json"


class NoteCommitter:
    """Arguments as for `NoteChangeFinder`."""

    def __init__(
        self,
        committer: Committer,
        limits: tuple[int, int, int],
        list_targets: Callable[[str], Sequence[str]],
    ) -> None:
        self._committer, self._home = committer, committer.home
        self._finder = NoteChangeFinder(committer, limits, list_targets)

    def note_changes(self) -> NoteChanges:
        """What `commit_notes` would commit now."""
        return self._finder.find_all()

    def commit_notes(self, compose: Callable[..., str] = commit_message.compose) -> CommitOutcome:
        """Commit every changed note. `compose` generates the message."""
        with files.hold_lock(self._home.lock):
            self._committer.finish_interrupted()
            if reason := self._committer.waits_for():
                return CommitOutcome(waiting=reason)
            return self._commit_by_kind(self._finder.find_all(), compose)

    def commit_theirs(self, paths: Sequence[str]) -> CommitOutcome:
        """Commit the user's changes to these notes separately, before ours, so that reverting ours keeps
        theirs. The caller holds the home's lock."""
        if not paths or self._committer.waits_for() or not self._finder.has_changes(paths):
            return CommitOutcome()
        self._committer.finish_interrupted()
        pending = self._finder.find_all()
        changes = {path: change for path, change in pending.changes.items() if path in paths}
        edits = tuple(edit for edit in pending.edits if edit.path in paths)
        return self._commit_by_kind(NoteChanges(edits, changes, ()), commit_message.compose)

    def commit_paths(
        self, message: str, paths: Sequence[str], about: datetime | None = None
    ) -> CommitOutcome:
        """Commit these notes as they are on disk, without files that the user has staged. The caller holds
        the home's lock. Makes no commit if nothing differs."""
        self._committer.finish_interrupted()
        if reason := self._committer.waits_for():
            return CommitOutcome(waiting=reason)
        pending = self._finder.find(paths)
        if not pending.changes:
            return CommitOutcome(left=pending.left)
        plan = CommitPlan(message, [*pending.changes.values()], self._committer.now(), about=about)
        return CommitOutcome((self._committer.commit(plan),), left=pending.left)

    def _commit_by_kind(self, pending: NoteChanges, compose: Callable[..., str]) -> CommitOutcome:
        self._finder.store_large(pending.changes)
        branch = self._committer.git.branch() or ""
        touched = _read_touched(self._home)
        plans = []
        for kind in ("identity", "memory", "maintenance", "explore", "extract"):
            edits = [edit for edit in pending.edits if commit_message.commit_kind(edit.path, branch) == kind]
            if edits:
                sessions = sorted({touched[edit.path] for edit in edits if edit.path in touched})
                changes = [pending.changes[edit.path] for edit in edits]
                plans.append(CommitPlan(compose(kind, edits, sessions), changes, self._committer.now()))
        commits = self._committer.commit_all(plans)
        if commits:
            _forget_touched(self._home, pending.changes)
        return CommitOutcome(tuple(commits), left=pending.left)


# ---------------------------------------------------------------- which session touched which note


def record_touched(home: Home, session: str, notes: Sequence[str]) -> None:
    """Record that this session changed these notes, for their commit message."""
    if notes:
        _write_touched(home, {**_read_touched(home), **dict.fromkeys(notes, session)})


def _forget_touched(home: Home, committed: Mapping[str, object]) -> None:
    touched = _read_touched(home)
    remaining = {note: session for note, session in touched.items() if note not in committed}
    if remaining != touched:
        _write_touched(home, remaining)


def _write_touched(home: Home, touched: Mapping[str, str]) -> None:
    files.replace(home.private / _TOUCHED_FILE, json.dumps(touched).encode())


def _read_touched(home: Home) -> dict[str, str]:
    try:
        value = json.loads((home.private / _TOUCHED_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else {}
