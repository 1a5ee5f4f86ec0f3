"""Commit finalized transcripts, one commit each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tacit.diagnostics import Problem
from tacit.errors import Filtered, GitError
from tacit.git.attributes import find_blocking_filters, find_unchanged
from tacit.git.commits import CommitPlan, FileChange
from tacit.git.committer import CommitOutcome, Committer
from tacit.git.conflicts import conflict_problem, find_markers
from tacit.git.index import list_untracked
from tacit.git.repository import Blob, Git, blob_name
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, Home
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.writer import SessionState


@dataclass(frozen=True, slots=True)
class LooseTranscripts:
    """Transcripts without a record and not in HEAD: written by hand, or copied here."""

    ready: tuple[tuple[SessionState, str], ...]
    problems: tuple[Problem, ...]  # why the others cannot be committed


class SessionCommitter:
    def __init__(self, committer: Committer) -> None:
        self._committer, self._home, self._git = committer, committer.home, committer.git

    def commit_sessions(
        self, sealed: Sequence[tuple[SessionState, str]], *, fresh: bool = False, wait: float = 30.0
    ) -> CommitOutcome:
        """Commit finalized transcripts, one commit each. `fresh`: just finalized, so not in HEAD yet."""
        with files.hold_lock(self._home.lock, wait):
            self._committer.finish_interrupted()
            if reason := self._committer.waits_for():
                self.remember_hashes(sealed)
                return CommitOutcome(waiting=reason)
            sealed, problems = self._split_conflicts(sealed)
            pending = (
                list(sealed) if fresh and self._have_records(sealed) else self._missing_from_head(sealed)
            )
            try:
                filtered = find_blocking_filters(self._git, (record.path or "" for record, _ in pending))
                ready = [item for item in pending if item[0].path not in filtered]
                commits = self._committer.commit_all(
                    [self._plan_conversation(record, sha) for record, sha in ready]
                )
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

    def find_loose(self) -> LooseTranscripts:
        return find_loose_transcripts(self._home, self._git)

    def commit_loose(self) -> CommitOutcome:
        if self._committer.waits_for():
            return CommitOutcome()
        loose = self.find_loose()
        return replace(self.commit_sessions(loose.ready), left=loose.problems)

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
        return CommitPlan(
            message, [FileChange(record.path, file.read_bytes())], self._committer.now(), about=ended
        )

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
