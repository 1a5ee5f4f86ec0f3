"""Recovery after a crash: finalizes the transcripts that no process holds any longer, and commits them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tacit.clock import Clock
from tacit.config import Config
from tacit.diagnostics import Problem
from tacit.errors import Busy, TacitError
from tacit.git.committer import Committer
from tacit.home import files
from tacit.home.layout import Home
from tacit.sessions.conversations import LOCK_TIMEOUT_S, REQUEST_LOCK_TIMEOUT_S, Conversations
from tacit.transcripts import writer
from tacit.transcripts.capture import count_tokens
from tacit.transcripts.model import Closing, KnowledgeChange
from tacit.transcripts.writer import SessionState, TranscriptWriter


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    sealed: tuple[str, ...] = ()  # transcripts that were left open
    commits: tuple[str, ...] = ()
    waiting: str = ""  # why there was no commit
    problems: tuple[Problem, ...] = ()


class SessionRecovery:
    def __init__(
        self, home: Home, config: Config, clock: Clock, committer: Committer, conversations: Conversations
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._committer, self._conversations = committer, conversations
        # False: the session registry of this process finalizes idle sessions, by a monotonic clock.
        self.seals_idle = True

    def recover(self, *, is_requested: bool = False) -> RecoveryResult:
        """Finalize transcripts that a crash left open and commit those that could not be committed. Live
        sessions are left alone. `is_requested`: commit even if git.auto_commit is off."""
        self._committer.settle(wait=REQUEST_LOCK_TIMEOUT_S if is_requested else LOCK_TIMEOUT_S)
        sealed, problems = self._seal_orphans()
        pending = self.list_uncommitted()
        if not pending:
            return RecoveryResult(tuple(sealed), problems=tuple(problems))
        outcome = self._conversations.commit(pending, is_requested=is_requested)
        return RecoveryResult(tuple(sealed), outcome.commits, outcome.waiting, (*problems, *outcome.left))

    def list_uncommitted(self) -> list[tuple[SessionState, str]]:
        """Finalized transcripts that have a state still, with their hashes."""
        pending = []
        for state in writer.list_states(self._home):
            file = self._home.root / (state.path or "")
            if state.path and file.is_file() and writer.is_sealed(file):
                pending.append((state, state.sha256 or files.digest(file.read_bytes())))
        return pending

    def restore_states(self, *, again: bool = False) -> None:
        """Give open transcripts without a state a new one: otherwise nothing would finalize them. Runs once
        in the life of .tacit, and with every full commit (`again`)."""
        marker = self._home.private / "strays-found"
        if again or not marker.exists():
            for state in writer.find_orphaned(self._home):
                writer.save_state(self._home, state)
        if not marker.exists():
            files.make_directories(self._home.private)
            files.replace(self._home.private / ".gitignore", b"*\n")
            files.replace(marker, b"")

    def _seal_orphans(self) -> tuple[list[str], list[Problem]]:
        sealed: list[str] = []
        problems: list[Problem] = []
        self.restore_states()
        for state in writer.list_states(self._home):
            try:
                if self._is_abandoned(state):
                    writer.drop_state(self._home, state)
                elif self._is_orphaned(state):
                    self._seal_orphan(state)
                    sealed.append(state.path or "")
            except Busy:
                continue  # a process is writing it, so it is alive
            except (TacitError, OSError, ValueError) as error:
                where = state.path or state.opening.session_id
                problems.append(Problem(where, f"could not be sealed: {error}"))
        return sealed, problems

    def _is_abandoned(self, state: SessionState) -> bool:
        """Whether a session has no messages and will get none, because its start was cut short."""
        if state.path is not None and (self._home.root / state.path).exists():
            return False
        hours = self._config.capture.idle_seal_hours if state.detached else 1
        written = writer.state_file(self._home, state.opening.session_id).stat().st_mtime
        return self._clock.now().timestamp() - written > hours * 3600

    def _is_orphaned(self, state: SessionState) -> bool:
        if state.path is None or not (self._home.root / state.path).exists():
            return False
        file = self._home.root / state.path
        if writer.is_sealed(file):
            return False
        idle_seconds = self._clock.now().timestamp() - file.stat().st_mtime
        is_idle = self.seals_idle and idle_seconds > self._config.capture.idle_seal_hours * 3600
        return is_idle or not state.detached

    def _seal_orphan(self, state: SessionState) -> None:
        """Finalize a transcript with the messages it has; it ends at the time of the last one."""
        transcript = TranscriptWriter(self._home, state, wait=0.0)
        try:
            turns = transcript.turns()
            ended = turns[-1].at if turns else state.opening.started
            changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
            sha = transcript.seal(Closing(ended, (), *count_tokens(turns)), changes)
            writer.save_state(self._home, replace(state, sha256=sha))
        finally:
            transcript.close()
