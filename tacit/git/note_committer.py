"""Find what changed in the notes since HEAD, and commit it: one commit per kind of change, with the sessions
that it came from."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tacit.diagnostics import Problem
from tacit.errors import COMMIT_YOURSELF, Locked, UnsafePath
from tacit.git import commit_message
from tacit.git.attributes import (
    LFS_FILTER,
    find_blocking_filters,
    find_filters,
    find_unchanged,
    inherited_filter,
    is_lfs_installed,
    is_lfs_path,
    is_lfs_pointer,
    make_lfs_pointer,
    split_filter,
    store_lfs_object,
)
from tacit.git.commit_message import TextEdit
from tacit.git.commits import EXECUTABLE, PLAIN, SYMLINK, CommitPlan, FileChange
from tacit.git.committer import CommitOutcome, Committer, future_blob
from tacit.git.conflicts import find_markers
from tacit.git.hooks import MEMORY_PATH, check_memory_size
from tacit.git.index import list_files, list_not_checked_out
from tacit.git.repository import Blob, blob_name
from tacit.home import files
from tacit.home.layout import NOTE_FILES, NOTE_FOLDERS, Home

_TOUCHED_FILE = "touched.json"


@dataclass(frozen=True, slots=True)
class NoteChanges:
    """The differences between the notes on disk and HEAD, and the files that were skipped, with reasons."""

    edits: tuple[TextEdit, ...]
    changes: Mapping[str, FileChange]
    left: tuple[Problem, ...]


class NoteChangeFinder:
    """`limits`: lines of MEMORY.md (warn, cap, refuse). `list_targets`: the notes whose text a draft holds,
    from the text of the draft."""

    def __init__(
        self, committer: Committer, limits: tuple[int, int, int], list_targets: Callable[[str], Sequence[str]]
    ) -> None:
        self._committer, self._root, self._git = committer, committer.home.root, committer.git
        self._limits, self._list_targets = limits, list_targets
        self._tree = files.Tree(self._root)

    def find_all(self) -> NoteChanges:
        """What `tacit run commit` would commit now."""
        git = self._git
        has_head = git.head() is not None
        committed = git.tree("HEAD", *NOTE_FOLDERS, *NOTE_FILES) if has_head else {}
        paths = sorted({*committed, *list_files(git, *NOTE_FOLDERS, *NOTE_FILES)})
        staged = self._committer.list_staged()
        absent = list_not_checked_out(git)
        filters = self._find_filters(paths)
        unchanged = find_unchanged(git, {path: name for path, name in filters.items() if name != LFS_FILTER})
        changes: dict[str, FileChange] = {}
        skipped = []
        for path in paths:
            if path in absent or path in unchanged:
                continue
            try:
                change = self._find_change(path, committed.get(path), filters.get(path, ""))
            except (OSError, ValueError) as error:
                skipped.append(Problem(path, f"cannot be read: {error}", level="warning"))
                continue
            if isinstance(change, Problem):
                skipped.append(change)
            elif change is not None and path in staged:
                skipped.append(Problem(path, "is staged by you, so it is yours to commit.", level="warning"))
            elif change is not None:
                problems = self._check_size(change)
                skipped.extend(problems)
                if not any(problem.level == "error" for problem in problems):
                    changes[path] = change
        skipped += self._drop_encrypted(changes, committed)
        return NoteChanges(self._build_edits(changes, committed), changes, tuple(skipped))

    def find(self, paths: Sequence[str]) -> NoteChanges:
        """What changed in these notes, without those that the user has staged. Does not compare texts."""
        committed, changes = self._find_each(paths)
        staged = self._committer.list_staged()
        ready = {
            path: change
            for path, change in changes.items()
            if isinstance(change, FileChange) and path not in staged
        }
        skipped = [change for change in changes.values() if isinstance(change, Problem)]
        skipped += self._drop_encrypted(ready, committed)
        return NoteChanges((), ready, tuple(skipped))

    def has_changes(self, paths: Sequence[str]) -> bool:
        return any(change is not None for change in self._find_each(paths)[1].values())

    def _find_each(
        self, paths: Sequence[str]
    ) -> tuple[dict[str, Blob], dict[str, FileChange | Problem | None]]:
        """These notes in HEAD, and what changed in each; those that are not checked out are left out."""
        absent = list_not_checked_out(self._git)
        paths = [path for path in dict.fromkeys(paths) if path not in absent]
        committed = self._git.tree("HEAD", *paths) if self._git.head() else {}
        filters = self._find_filters(paths)
        changes = {
            path: self._find_change(path, committed.get(path), filters.get(path, "")) for path in paths
        }
        return committed, changes

    def _find_filters(self, paths: Sequence[str]) -> dict[str, str]:
        """The filters from git; a draft also gets the filter of its target note, whose text it contains."""
        filters = find_filters(self._git, paths)
        notes = {path: self._read_targets(path) for path in paths if _is_draft(path) and path not in filters}
        filtered = find_blocking_filters(self._git, {note for targets in notes.values() for note in targets})
        for path, targets in notes.items():
            if note := next((note for note in targets if note in filtered), ""):
                filters[path] = inherited_filter(filtered[note], note)
        return filters

    def _read_targets(self, path: str) -> Sequence[str]:
        try:
            return self._list_targets(self._tree.read(path).decode("utf-8", "replace"))
        except (OSError, UnsafePath):  # removed, or not a file that would be committed
            return []

    def _drop_encrypted(self, changes: dict[str, FileChange], committed: Mapping[str, Blob]) -> list[Problem]:
        """Drop files that are encrypted in git but no longer have a filter: they would be replaced by plain
        text, and the rule may have been removed by mistake."""
        names = {
            path: committed[path].name
            for path, change in changes.items()
            if change.data and path in committed
        }
        blobs = self._git.blobs(set(names.values())) if names else {}
        locked = [path for path, name in names.items() if files.is_encrypted(blobs.get(name, b""))]
        for path in locked:
            del changes[path]
        message = "is encrypted in git, and has no git filter now, so tacit does not commit its plain text."
        advice = "Bring the rule in .gitattributes back, or commit it yourself: git add it, and commit."
        return [Problem(path, message, advice, level="warning") for path in locked]

    def _find_change(
        self, path: str, committed: Blob | None, filter_name: str
    ) -> FileChange | Problem | None:
        if path.endswith("/"):
            message = "is a git repository of its own, so it is not committed here."
            return Problem(path, message, "Move it elsewhere, or ignore it.", level="warning")
        file = self._root / path
        try:
            mode = os.lstat(file).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return FileChange(path, None) if committed else None
        if not stat.S_ISREG(mode):
            if committed and committed.mode == SYMLINK:
                return None
            return Problem(path, "is not a plain file, so it is not committed.", level="warning")
        try:
            data = self._to_committed_bytes(path, self._tree.read(path), committed, filter_name)
        except Locked as error:
            if committed and committed.name == blob_name(file.read_bytes(), self._git.algorithm):
                return None
            return Problem(path, f"is not committed: {error.why}.", level="warning")
        except UnsafePath as error:
            return Problem(path, f"is not committed: {error.why}.", level="warning")
        change = FileChange(path, data, EXECUTABLE if mode & stat.S_IXUSR else PLAIN)
        if committed and future_blob(change, self._git.algorithm) == committed:
            return None
        if conflict := find_markers(path, data):
            return Problem(path, f"{conflict.why}, so it is not committed.", conflict.todo)
        return change if filter_name in ("", LFS_FILTER) else make_filter_problem(path, filter_name)

    def _check_size(self, change: FileChange) -> list[Problem]:
        if change.path != MEMORY_PATH or change.data is None:
            return []
        return check_memory_size(change.data, change.path, *self._limits)

    def _to_committed_bytes(self, path: str, data: bytes, committed: Blob | None, filter_name: str) -> bytes:
        """The bytes, or a pointer to them if git-lfs is in use."""
        is_large = filter_name == LFS_FILTER or (not filter_name and is_lfs_path(path))
        if not is_large or is_lfs_pointer(data):
            return data
        pointer = make_lfs_pointer(data)
        is_pointer_there = committed is not None and blob_name(pointer, self._git.algorithm) == committed.name
        return pointer if is_pointer_there or is_lfs_installed() else data

    def store_large(self, changes: Mapping[str, FileChange]) -> None:
        for path, change in changes.items():
            if change.data is not None and is_lfs_pointer(change.data):
                store_lfs_object(self._git.directory, self._tree.read(path))

    def _build_edits(
        self, changes: Mapping[str, FileChange], committed: Mapping[str, Blob]
    ) -> tuple[TextEdit, ...]:
        blobs = self._git.blobs(committed[path].name for path in changes if path in committed)
        return tuple(
            TextEdit(
                path,
                _decode(blobs.get(committed[path].name, b"")) if path in committed else None,
                _decode(change.data),
            )
            for path, change in changes.items()
        )


def make_filter_problem(path: str, filter_name: str) -> Problem:
    name, other = split_filter(filter_name)
    if other:
        message = f"has text of {other}, which has the git filter {name}, so tacit does not commit it."
        advice = "Name the filter for it too, in .gitattributes, and commit it yourself."
        return Problem(path, message, advice, level="warning")
    message = f"has the git filter {filter_name}, which tacit does not run, so tacit does not commit it."
    return Problem(path, message, COMMIT_YOURSELF, level="warning")


def _is_draft(path: str) -> bool:
    return path.startswith("drafts/") and path.endswith(".md")


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


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
