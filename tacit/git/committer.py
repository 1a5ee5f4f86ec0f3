"""Commit changes on disk to git, one commit at a time, under the home's lock.

Nothing is lost if a commit fails: finalized transcripts keep their record in .tacit/sessions and notes stay
on disk, so the next attempt commits them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.errors import COMMIT_YOURSELF, Filtered, GitError, Locked, UnsafePath
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
from tacit.git.commits import (
    EXECUTABLE,
    PLAIN,
    SYMLINK,
    CommitPlan,
    FileChange,
    import_commits,
    refuse_filtered,
)
from tacit.git.conflicts import conflict_problem, find_markers
from tacit.git.hooks import MEMORY_PATH, check_memory_size
from tacit.git.index import list_files, list_not_checked_out, list_staged, list_untracked
from tacit.git.repair import is_dead_lock, is_git_running, repair
from tacit.git.repository import Blob, Git, blob_name
from tacit.git.work_marker import GitWork
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, NOTE_FILES, NOTE_FOLDERS, Home
from tacit.review.format import find_targets
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.writer import SessionState


@dataclass(frozen=True, slots=True)
class NoteChanges:
    """The differences between the notes on disk and HEAD, and the files that were skipped, with reasons."""

    edits: tuple[TextEdit, ...]
    changes: Mapping[str, FileChange]
    left: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    commits: tuple[str, ...] = ()
    waiting: str = ""
    left: tuple[Problem, ...] = ()


class Committer:
    def __init__(
        self,
        home: Home,
        git: Git,
        now: Callable[[], datetime],
        memory_limits: tuple[int, int, int] = (180, 200, 220),
    ) -> None:
        self._home, self._git, self._now = home, git, now
        self._memory_limits = memory_limits  # lines of MEMORY.md: warn, cap, refuse
        self._tree = files.Tree(home.root)
        self._work = GitWork(home, git)

    def settle(self, wait: float) -> None:
        """Finish work that a kill interrupted, if there is any."""
        if self._work.is_unfinished:
            with files.hold_lock(self._home.lock, wait):
                self._work.settle()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Use around writes to refs outside a commit."""
        with files.hold_lock(self._home.lock), self._work.writing({}):
            yield

    def waits_for(self) -> str:
        """Why no commit can be made now, as text; empty if one can."""
        git = self._git
        if not git.directory.is_dir():
            return f"there is no git repository here; run: tacit init {self._home.root}"
        if (operation := git.in_progress()) is not None:
            return f"{operation} is in progress; it will be committed when that is done"
        if git.branch() is None:
            return "HEAD is detached; it will be committed when you are on a branch again (git switch main)"
        lock = git.directory / "index.lock"
        if self._commit_is_being_written() or (lock.exists() and not is_dead_lock(lock, self._home.root)):
            return "you are in the middle of a git command; it will be committed after it"
        return ""

    def _commit_is_being_written(self) -> bool:
        """`git commit` without -a holds no lock while its editor is open, but fails if HEAD moves on."""
        message = self._git.directory / "COMMIT_EDITMSG"
        return message.exists() and is_git_running(self._home.root, b"commit") is True

    # ------------------------------------------------------------ conversations

    def commit_sessions(
        self, sealed: Sequence[tuple[SessionState, str]], *, fresh: bool = False, wait: float = 30.0
    ) -> CommitOutcome:
        """Commit finalized transcripts, one commit each. `fresh`: just finalized, so not in HEAD yet."""
        with files.hold_lock(self._home.lock, wait):
            self._work.settle()
            if reason := self.waits_for():
                self.remember_hashes(sealed)
                return CommitOutcome(waiting=reason)
            sealed, problems = self._split_conflicts(sealed)
            pending = (
                list(sealed) if fresh and self._have_records(sealed) else self._missing_from_head(sealed)
            )
            try:
                filtered = find_blocking_filters(self._git, (record.path or "" for record, _ in pending))
                ready = [item for item in pending if item[0].path not in filtered]
                commits = self._commit([self._plan_conversation(record, sha) for record, sha in ready])
            except GitError as error:
                self.remember_hashes(sealed)
                return CommitOutcome(waiting=str(error))
            self.remember_hashes([item for item in pending if item[0].path in filtered])
            for record, _ in sealed:
                if record.path not in filtered:
                    writer.drop_state(self._home, record)
            return CommitOutcome(
                tuple(commits), waiting=str(Filtered(filtered)) if filtered else "", left=problems
            )

    def _split_conflicts(
        self, sealed: Sequence[tuple[SessionState, str]]
    ) -> tuple[list[tuple[SessionState, str]], tuple[Problem, ...]]:
        """The transcripts that can be committed, and the problems of the others, which keep their record."""
        conflicts = {
            record.path or "": find_markers(record.path or "", self._read(record)) for record, _ in sealed
        }
        problems = tuple(
            Problem(path, f"{error.why}, so it is not committed.", error.todo)
            for path, error in conflicts.items()
            if error
        )
        return [(record, sha) for record, sha in sealed if not conflicts[record.path or ""]], problems

    def _read(self, record: SessionState) -> bytes:
        assert record.path is not None
        return (self._home.root / record.path).read_bytes()

    def _plan_conversation(self, record: SessionState, sha: str) -> CommitPlan:
        assert record.path is not None
        file = self._home.root / record.path
        message = f"conversation: {record.name}\n\nSession: {record.path}\nTranscript-SHA256: {sha}\n"
        ended = writer.read_end(file) or record.opening.started
        return CommitPlan(message, [FileChange(record.path, file.read_bytes())], self._now(), about=ended)

    def _have_records(self, sealed: Sequence[tuple[SessionState, str]]) -> bool:
        """Another process may have committed them before we got the lock."""
        return all(writer.state_file(self._home, record.opening.session_id).exists() for record, _ in sealed)

    def _missing_from_head(
        self, sealed: Sequence[tuple[SessionState, str]]
    ) -> list[tuple[SessionState, str]]:
        # After a crash between commit and clean-up, the commit must not be made twice. A transcript that the
        # user committed while it was open is in HEAD too, but with other bytes.
        if self._git.head() is None:
            return list(sealed)
        committed = self._git.tree("HEAD", *(record.path or "" for record, _ in sealed))
        pending = [(record, sha) for record, sha in sealed if not self._is_committed(committed, record)]
        committed_paths = [record.path for record, _ in pending if record.path in committed]
        filters = find_blocking_filters(self._git, committed_paths)
        unchanged = find_unchanged(self._git, filters)
        return [(record, sha) for record, sha in pending if record.path not in unchanged]

    def _is_committed(self, committed: Mapping[str, Blob], record: SessionState) -> bool:
        assert record.path is not None
        data = self._read(record)
        return record.path in committed and committed[record.path].name == blob_name(
            data, self._git.algorithm
        )

    def remember_hashes(self, sealed: Sequence[tuple[SessionState, str]]) -> None:
        """Until they are committed, the record proves that the files were not modified."""
        with suppress(OSError):
            for record, sha in sealed:
                if record.sha256 != sha:
                    writer.save_state(self._home, replace(record, sha256=sha))

    # ------------------------------------------------------------ notes

    def note_changes(self) -> NoteChanges:
        git = self._git
        has_head = git.head() is not None
        committed = git.tree("HEAD", *NOTE_FOLDERS, *NOTE_FILES) if has_head else {}
        paths = sorted({*committed, *list_files(git, *NOTE_FOLDERS, *NOTE_FILES)})
        staged = self.staged()
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

    def _find_filters(self, paths: Sequence[str]) -> dict[str, str]:
        """The filters from git; a draft also gets the filter of its target note, whose text it contains."""
        filters = find_filters(self._git, paths)
        notes = {path: self._read_targets(path) for path in paths if _is_draft(path) and path not in filters}
        filtered = find_blocking_filters(self._git, {note for targets in notes.values() for note in targets})
        for path, targets in notes.items():
            if note := next((note for note in targets if note in filtered), ""):
                filters[path] = inherited_filter(filtered[note], note)
        return filters

    def _read_targets(self, path: str) -> list[str]:
        try:
            return find_targets(self._tree.read(path).decode("utf-8", "replace"))
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
        file = self._home.root / path
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
        if committed and _future_blob(change, self._git.algorithm) == committed:
            return None
        if conflict := find_markers(path, data):
            return Problem(path, f"{conflict.why}, so it is not committed.", conflict.todo)
        return change if filter_name in ("", LFS_FILTER) else make_filter_problem(path, filter_name)

    def _check_size(self, change: FileChange) -> list[Problem]:
        if change.path != MEMORY_PATH or change.data is None:
            return []
        return check_memory_size(change.data, change.path, *self._memory_limits)

    def _to_committed_bytes(self, path: str, data: bytes, committed: Blob | None, filter_name: str) -> bytes:
        """The bytes, or a pointer to them if git-lfs is in use."""
        is_large = filter_name == LFS_FILTER or (not filter_name and is_lfs_path(path))
        if not is_large or is_lfs_pointer(data):
            return data
        pointer = make_lfs_pointer(data)
        is_pointer_there = committed is not None and blob_name(pointer, self._git.algorithm) == committed.name
        return pointer if is_pointer_there or is_lfs_installed() else data

    def _store_large(self, changes: Mapping[str, FileChange]) -> None:
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

    def commit_notes(self, compose: Callable[..., str] = commit_message.compose) -> CommitOutcome:
        """Commit every changed note, one commit per kind. `compose` generates the message."""
        with files.hold_lock(self._home.lock):
            self._work.settle()
            if reason := self.waits_for():
                return CommitOutcome(waiting=reason)
            return self._commit_by_kind(self.note_changes(), compose)

    def commit_theirs(self, paths: Sequence[str]) -> CommitOutcome:
        """Commit the user's changes to these notes separately, before ours, so that reverting ours keeps
        theirs. The caller holds the home's lock."""
        if not paths or self.waits_for() or not self._have_changes(paths):
            return CommitOutcome()
        self._work.settle()
        pending = self.note_changes()
        changes = {path: change for path, change in pending.changes.items() if path in paths}
        edits = tuple(edit for edit in pending.edits if edit.path in paths)
        return self._commit_by_kind(NoteChanges(edits, changes, ()), commit_message.compose)

    def _have_changes(self, paths: Sequence[str]) -> bool:
        paths = self._filter_checked_out(paths)
        committed = self._git.tree("HEAD", *paths) if self._git.head() else {}
        filters = self._find_filters(paths)
        return any(
            self._find_change(path, committed.get(path), filters.get(path, "")) is not None for path in paths
        )

    def _filter_checked_out(self, paths: Sequence[str]) -> list[str]:
        absent = list_not_checked_out(self._git)
        return [path for path in paths if path not in absent]

    def _commit_by_kind(self, pending: NoteChanges, compose: Callable[..., str]) -> CommitOutcome:
        self._store_large(pending.changes)
        branch = self._git.branch() or ""
        touched = self._read_touched()
        plans = []
        for kind in ("identity", "memory", "maintenance", "explore", "extract"):
            edits = [edit for edit in pending.edits if commit_message.commit_kind(edit.path, branch) == kind]
            if edits:
                sessions = sorted({touched[edit.path] for edit in edits if edit.path in touched})
                message = compose(kind, edits, sessions)
                plans.append(CommitPlan(message, [pending.changes[edit.path] for edit in edits], self._now()))
        commits = self._commit(plans)
        if commits:
            self._forget_touched(pending.changes)
        return CommitOutcome(tuple(commits), left=pending.left)

    def commit_paths(
        self, message: str, paths: Sequence[str], about: datetime | None = None
    ) -> CommitOutcome:
        """Commit these notes as they are on disk, without files that the user has staged. The caller holds
        the home's lock. Makes no commit if nothing differs."""
        self._work.settle()
        if reason := self.waits_for():
            return CommitOutcome(waiting=reason)
        paths = self._filter_checked_out(paths)
        committed = self._git.tree("HEAD", *paths) if self._git.head() else {}
        staged = self.staged()
        filters = self._find_filters(paths)
        results = [
            (path, self._find_change(path, committed.get(path), filters.get(path, "")))
            for path in dict.fromkeys(paths)
        ]
        changes = {
            path: change for path, change in results if isinstance(change, FileChange) and path not in staged
        }
        problems = [change for _, change in results if isinstance(change, Problem)]
        problems += self._drop_encrypted(changes, committed)
        if not changes:
            return CommitOutcome(left=tuple(problems))
        planned = CommitPlan(message, [*changes.values()], self._now(), about=about)
        return CommitOutcome((self.commit(planned),), left=tuple(problems))

    # ------------------------------------------------------------ which session touched which note

    def touch(self, path: str, notes: Sequence[str]) -> None:
        """Record that this session changed these notes, for their commit message."""
        if notes:
            touched = {**self._read_touched(), **dict.fromkeys(notes, path)}
            files.replace(self._touched_file, json.dumps(touched).encode())

    @property
    def _touched_file(self) -> Path:
        return self._home.private / "touched.json"

    def _read_touched(self) -> dict[str, str]:
        return _read_string_map(self._touched_file)

    def _forget_touched(self, committed: Mapping[str, object]) -> None:
        touched = self._read_touched()
        remaining = {note: session for note, session in touched.items() if note not in committed}
        if remaining != touched:
            files.replace(self._touched_file, json.dumps(remaining).encode())

    # ------------------------------------------------------------ the commit itself

    def commit(self, planned: CommitPlan) -> str:
        """Make one commit. The caller holds the home's lock and has checked `waits_for`."""
        return self._commit([planned])[0]

    def staged(self) -> set[str]:
        """Paths that the user has staged, without those of our last commit that the index still lacks."""
        git = self._git
        if not (git.directory / "index").exists() or not git.head():
            return set()
        return list_staged(git) - self._work.untold()

    def _commit(self, plans: Sequence[CommitPlan]) -> list[str]:
        if not plans:
            return []
        refuse_filtered(self._git, plans)  # before the marker for the index is written
        algorithm = self._git.algorithm
        entries = {
            change.path: None if change.data is None else _future_blob(change, algorithm)
            for plan in plans
            for change in plan.changes
        }
        with self._work.writing(entries):
            try:
                return import_commits(self._git, plans)
            except GitError:
                if not repair(self._home, self._git):
                    raise
                return import_commits(self._git, plans)


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


def _future_blob(change: FileChange, algorithm: str) -> Blob:
    """The blob that git will have once this change is committed."""
    return Blob(change.mode, blob_name(change.data or b"", algorithm))


def _read_string_map(file: Path) -> dict[str, str]:
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class LooseTranscripts:
    """Transcripts without a record and not in HEAD: written by hand, or copied here."""

    ready: tuple[tuple[SessionState, str], ...]
    problems: tuple[Problem, ...]  # why the others cannot be committed


def find_loose_transcripts(home: Home, git: Git) -> LooseTranscripts:
    ready, problems = [], []
    recorded_paths = {record.path for record in writer.list_states(home)}
    committed = git.tree("HEAD", CONVERSATIONS) if git.head() else {}
    for path in list_untracked(git, CONVERSATIONS):
        file = home.root / path
        if not path.endswith(".md") or path in recorded_paths or path in committed or not file.is_file():
            continue
        parsed = writer.attempt_load(home, path)
        conflict = conflict_problem(home.root, path)
        errors = [conflict] if conflict else writer.list_errors(parsed)
        problems.extend(errors)
        if parsed.sealed and not errors:
            record = SessionState(form.read_opening(parsed), path, writer.make_name(parsed))
            ready.append((record, files.digest(file.read_bytes())))
    return LooseTranscripts(tuple(ready), tuple(problems))
