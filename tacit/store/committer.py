"""What is on disk goes into git, one commit at a time, under the home's lock.

Nothing is lost when a commit cannot be made: sealed transcripts keep their record in .tacit/sessions and
notes stay where they are, so the next attempt takes them along.
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

from tacit.errors import GitError, UnsafePath
from tacit.model.problems import Problem
from tacit.store import files, lfs, locks, transcripts
from tacit.store.git import EXECUTABLE, PLAIN, SYMLINK, Blob, Change, Git, Planned, blob_name
from tacit.store.gitwork import GitWork
from tacit.store.home import CONVERSATIONS, NOTE_FILES, NOTE_FOLDERS, Home
from tacit.store.hooks import MEMORY, memory_size
from tacit.store.repair import repair
from tacit.store.transcripts import Record
from tacit.text import commit_message
from tacit.text import transcript as form
from tacit.text.commit_message import Edit


@dataclass(frozen=True, slots=True)
class NoteChanges:
    """What differs between the notes on disk and HEAD, and what was left alone and why."""

    edits: tuple[Edit, ...]
    changes: Mapping[str, Change]
    left: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
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
        """Finish what a kill cut short, if there is anything."""
        if self._work.is_unfinished:
            with files.locked(self._home.lock, wait):
                self._work.settle()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around refs that are written apart from commits."""
        with files.locked(self._home.lock), self._work.writing({}):
            yield

    def waits_for(self) -> str:
        """Why no commit can be made now, in words; empty when it can."""
        git = self._git
        if not git.directory.is_dir():
            return f"there is no git repository here; run: tacit init {self._home.root}"
        if (what := git.in_progress()) is not None:
            return f"{what} is in progress; it will be committed when that is done"
        if git.branch() is None:
            return "HEAD is detached; it will be committed when you are on a branch again (git switch main)"
        lock = git.directory / "index.lock"
        if self._commit_is_being_written() or (lock.exists() and not locks.is_dead(lock, self._home.root)):
            return "you are in the middle of a git command; it will be committed after it"
        return ""

    def _commit_is_being_written(self) -> bool:
        """`git commit` without -a holds no lock while its editor is open, but fails if HEAD moves on."""
        message = self._git.directory / "COMMIT_EDITMSG"
        return message.exists() and locks.git_runs_in(self._home.root, b"commit") is True

    # ------------------------------------------------------------ conversations

    def commit_sessions(
        self, sealed: Sequence[tuple[Record, str]], *, fresh: bool = False, wait: float = 30.0
    ) -> Outcome:
        """Commit sealed transcripts, one commit each. `fresh`: sealed just now, so HEAD cannot have them."""
        with files.locked(self._home.lock, wait):
            self._work.settle()
            if why := self.waits_for():
                self.remember_hashes(sealed)
                return Outcome(waiting=why)
            todo = list(sealed) if fresh and self._still_ours(sealed) else self._not_yet_in_head(sealed)
            try:
                commits = self._commit([self._conversation(record, sha) for record, sha in todo])
            except GitError as error:
                self.remember_hashes(sealed)
                return Outcome(waiting=str(error))
            for record, _ in sealed:
                transcripts.drop_record(self._home, record)
            return Outcome(tuple(commits))

    def _conversation(self, record: Record, sha: str) -> Planned:
        assert record.path is not None
        file = self._home.root / record.path
        message = f"conversation: {record.name}\n\nSession: {record.path}\nTranscript-SHA256: {sha}\n"
        about = transcripts.ended_of(file) or record.opening.started
        return Planned(message, [Change(record.path, file.read_bytes())], self._now(), about=about)

    def _still_ours(self, sealed: Sequence[tuple[Record, str]]) -> bool:
        """Another process may have found them sealed and committed them before we got the lock."""
        return all(transcripts.record_file(self._home, r.opening.session_id).exists() for r, _ in sealed)

    def _not_yet_in_head(self, sealed: Sequence[tuple[Record, str]]) -> list[tuple[Record, str]]:
        # The commit is the receipt: after a crash between commit and clean-up it must not be made twice.
        # A transcript that somebody committed while it was open is there too, but with other bytes.
        if self._git.head() is None:
            return list(sealed)
        kept = self._git.tree("HEAD", *(record.path or "" for record, _ in sealed))
        return [(record, sha) for record, sha in sealed if not self._is_in(kept, record)]

    def _is_in(self, kept: Mapping[str, Blob], record: Record) -> bool:
        assert record.path is not None
        data = (self._home.root / record.path).read_bytes()
        return record.path in kept and kept[record.path].name == blob_name(data, self._git.algorithm)

    def remember_hashes(self, sealed: Sequence[tuple[Record, str]]) -> None:
        """Until they are committed, the record is what proves that nobody touched them."""
        with suppress(OSError):
            for record, sha in sealed:
                if record.sha256 != sha:
                    transcripts.save_record(self._home, replace(record, sha256=sha))

    # ------------------------------------------------------------ notes

    def note_changes(self) -> NoteChanges:
        git = self._git
        born = git.head() is not None
        kept = git.tree("HEAD", *NOTE_FOLDERS, *NOTE_FILES) if born else {}
        found = sorted({*kept, *git.present(*NOTE_FOLDERS, *NOTE_FILES)})
        theirs = self.staged()
        away = git.not_checked_out()
        changes: dict[str, Change] = {}
        left = []
        for path in found:
            if path in away:
                continue
            try:
                change = self._change(path, kept.get(path))
            except (OSError, ValueError) as error:
                left.append(Problem(path, f"cannot be read: {error}", level="warning"))
                continue
            if isinstance(change, Problem):
                left.append(change)
            elif change is not None and path in theirs:
                left.append(Problem(path, "is staged by you, so it is yours to commit.", level="warning"))
            elif change is not None:
                sizes = self._size_problems(change)
                left.extend(sizes)
                if not any(problem.level == "error" for problem in sizes):
                    changes[path] = change
        return NoteChanges(self._edits(changes, kept), changes, tuple(left))

    def _change(self, path: str, kept: Blob | None) -> Change | Problem | None:
        if path.endswith("/"):
            what = "is a git repository of its own, so it is not committed here."
            return Problem(path, what, "Move it elsewhere, or ignore it.", level="warning")
        file = self._home.root / path
        try:
            mode = os.lstat(file).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Change(path, None) if kept else None
        if not stat.S_ISREG(mode):
            if kept and kept.mode == SYMLINK:
                return None
            return Problem(path, "is not a plain file, so it is not committed.", level="warning")
        try:
            data = self._as_committed(path, self._tree.read(path), kept)
        except UnsafePath as error:
            return Problem(path, f"is not committed: {error.why}.", level="warning")
        change = Change(path, data, EXECUTABLE if mode & stat.S_IXUSR else PLAIN)
        return None if kept and _blob(change, self._git.algorithm) == kept else change

    def _size_problems(self, change: Change) -> list[Problem]:
        if change.path != MEMORY or change.data is None:
            return []
        return memory_size(change.data, change.path, *self._memory_limits)

    def _as_committed(self, path: str, data: bytes, kept: Blob | None) -> bytes:
        """The bytes, or where git-lfs is at home the pointer to them."""
        if not lfs.is_tracked(path) or lfs.is_pointer(data):
            return data
        pointer = lfs.pointer(data)
        is_pointer_there = kept is not None and blob_name(pointer, self._git.algorithm) == kept.name
        return pointer if is_pointer_there or lfs.is_installed() else data

    def _store_large(self, changes: Mapping[str, Change]) -> None:
        for path, change in changes.items():
            if change.data is not None and lfs.is_tracked(path) and lfs.is_pointer(change.data):
                lfs.store(self._git.directory, self._tree.read(path))

    def _edits(self, changes: Mapping[str, Change], kept: Mapping[str, Blob]) -> tuple[Edit, ...]:
        before = self._git.blobs(kept[path].name for path in changes if path in kept)
        return tuple(
            Edit(path, _text(before.get(kept[path].name, b"")) if path in kept else None, _text(change.data))
            for path, change in changes.items()
        )

    def commit_notes(self, compose: Callable[..., str] = commit_message.compose) -> Outcome:
        """Commit every changed note, one commit per kind. `compose` writes the message."""
        with files.locked(self._home.lock):
            self._work.settle()
            if why := self.waits_for():
                return Outcome(waiting=why)
            return self._commit_changes(self.note_changes(), compose)

    def commit_theirs(self, paths: Sequence[str]) -> Outcome:
        """What somebody changed in these notes before we do, in a commit of its own: who takes back ours
        keeps theirs. Call it with the home's lock."""
        if not paths or self.waits_for() or not self._differ(paths):
            return Outcome()
        self._work.settle()
        found = self.note_changes()
        changes = {path: change for path, change in found.changes.items() if path in paths}
        edits = tuple(edit for edit in found.edits if edit.path in paths)
        return self._commit_changes(NoteChanges(edits, changes, ()), commit_message.compose)

    def _differ(self, paths: Sequence[str]) -> bool:
        kept = self._git.tree("HEAD", *paths) if self._git.head() else {}
        return any(self._change(path, kept.get(path)) is not None for path in paths)

    def _commit_changes(self, found: NoteChanges, compose: Callable[..., str]) -> Outcome:
        self._store_large(found.changes)
        branch = self._git.branch() or ""
        touched = self._touched()
        planned = []
        for kind in ("identity", "memory", "maintenance", "explore", "extract"):
            edits = [edit for edit in found.edits if commit_message.kind_of(edit.path, branch) == kind]
            if edits:
                sessions = sorted({touched[edit.path] for edit in edits if edit.path in touched})
                message = compose(kind, edits, sessions)
                planned.append(Planned(message, [found.changes[edit.path] for edit in edits], self._now()))
        commits = self._commit(planned)
        if commits:
            self._forget_touched(found.changes)
        return Outcome(tuple(commits), left=found.left)

    def commit_paths(self, message: str, paths: Sequence[str], about: datetime | None = None) -> Outcome:
        """One commit of these notes as they are on disk. What the user staged is left to the user. Call it
        with the home's lock; no commit is made where nothing differs."""
        self._work.settle()
        if why := self.waits_for():
            return Outcome(waiting=why)
        kept = self._git.tree("HEAD", *paths) if self._git.head() else {}
        theirs = self.staged()
        found = [(path, self._change(path, kept.get(path))) for path in dict.fromkeys(paths)]
        changes = [change for path, change in found if isinstance(change, Change) and path not in theirs]
        left = tuple(change for _, change in found if isinstance(change, Problem))
        if not changes:
            return Outcome(left=left)
        return Outcome((self.commit(Planned(message, changes, self._now(), about=about)),), left=left)

    # ------------------------------------------------------------ which session touched which note

    def touch(self, path: str, notes: Sequence[str]) -> None:
        """Remember that this session changed these notes, for the message of their commit."""
        if notes:
            touched = {**self._touched(), **dict.fromkeys(notes, path)}
            files.replace(self._touched_file, json.dumps(touched).encode())

    @property
    def _touched_file(self) -> Path:
        return self._home.private / "touched.json"

    def _touched(self) -> dict[str, str]:
        return _string_map(self._touched_file)

    def _forget_touched(self, committed: Mapping[str, object]) -> None:
        touched = self._touched()
        rest = {note: session for note, session in touched.items() if note not in committed}
        if rest != touched:
            files.replace(self._touched_file, json.dumps(rest).encode())

    # ------------------------------------------------------------ the commit itself

    def commit(self, planned: Planned) -> str:
        """One commit of somebody who holds the home's lock and has asked `waits_for`."""
        return self._commit([planned])[0]

    def staged(self) -> set[str]:
        """What the user has staged; what our own last commit could not tell the index is not among it."""
        git = self._git
        return (
            git.staged() - self._work.untold() if (git.directory / "index").exists() and git.head() else set()
        )

    def _commit(self, planned: Sequence[Planned]) -> list[str]:
        if not planned:
            return []
        algorithm = self._git.algorithm
        entries = {
            change.path: None if change.data is None else _blob(change, algorithm)
            for plan in planned
            for change in plan.changes
        }
        with self._work.writing(entries):
            try:
                return self._git.commit(planned)
            except GitError:
                if not repair(self._home, self._git):
                    raise
                return self._git.commit(planned)


def _blob(change: Change, algorithm: str) -> Blob:
    """What git has once this change is committed."""
    return Blob(change.mode, blob_name(change.data or b"", algorithm))


def _string_map(file: Path) -> dict[str, str]:
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): str(item) for key, item in value.items()} if isinstance(value, dict) else {}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Loose:
    """Transcripts in neither a record nor HEAD: written by hand, or copied here."""

    ready: tuple[tuple[Record, str], ...]
    problems: tuple[Problem, ...]  # of those that cannot be committed as they are


def loose_transcripts(home: Home, git: Git) -> Loose:
    ready, problems = [], []
    known = {record.path for record in transcripts.records(home)}
    kept = git.tree("HEAD", CONVERSATIONS) if git.head() else {}
    for path in git.untracked(CONVERSATIONS):
        file = home.root / path
        if not path.endswith(".md") or path in known or path in kept or not file.is_file():
            continue
        parsed = transcripts.attempt_load(home, path)
        wrong = transcripts.errors_of(parsed)
        problems.extend(wrong)
        if parsed.sealed and not wrong:
            record = Record(form.opening_of(parsed), path, transcripts.name_of(parsed))
            ready.append((record, files.digest(file.read_bytes())))
    return Loose(tuple(ready), tuple(problems))
