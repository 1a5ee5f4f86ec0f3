"""Conversations of a home: opened, found by id, finalized and committed, also after a crash."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from tacit.clock import Clock
from tacit.config import Config
from tacit.diagnostics import Problem
from tacit.errors import Busy, TacitError
from tacit.git.committer import CommitOutcome, Committer
from tacit.git.note_committer import record_touched
from tacit.home import files
from tacit.home.layout import Home
from tacit.privacy.redaction import clean
from tacit.sessions.keys import MAIN_SESSION_KEY, find_excluded_agent, is_own_work, named_agents, resolve_key
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.capture import Session, count_tokens, fix_offset, require_valid_time
from tacit.transcripts.model import Closing, KnowledgeChange, Opening, Sealed, Turn
from tacit.transcripts.session_commits import SessionCommitter
from tacit.transcripts.writer import SessionState, TranscriptWriter

LOCK_TIMEOUT_S = 1.0  # how long opening a home waits for a commit of another process
REQUEST_LOCK_TIMEOUT_S = 30.0  # how long a commit that a caller asked for waits


class Conversations:
    """`on_end` is called with the session key and the id when a session ends."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        committer: SessionCommitter,
        on_end: Callable[[str, str], None],
    ) -> None:
        self._home, self._config, self._clock, self._committer = home, config, clock, committer
        self._on_end = on_end

    # ------------------------------------------------------------ opening

    def open(
        self,
        session_key: str | None = None,
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        started: datetime | None = None,
        *,
        detached: bool = False,
        commit: bool = True,
    ) -> Session:
        """Begin a conversation, or continue one: see `Memory.session`."""
        name, key = self._resolve(session_id, session_key)
        state = self._find_open(name) if session_id else None
        if state is not None:
            key, agent = state.opening.session_key, state.opening.agent
        key = resolve_key(key, agent)
        if not self.is_captured(key, agent):
            return self.open_without_capture()
        is_start_given = started is not None or state is not None
        if state is None:
            start = fix_offset(self._clock.in_zone(require_valid_time(started or self._clock.now())))
            previous = self.find_last_part(name) if session_id else None
            opening = Opening(
                name,
                start,
                key,
                named_agents(key, agent)[-1],
                clean(channel).text if channel else channel,
                clean(model).text if model else model,
                continues=previous,
            )
            state = SessionState(opening, detached=detached)
            if detached:
                writer.save_state(self._home, state)
        opening = state.opening
        return Session(
            TranscriptWriter(self._home, state),
            now=self._clock.now,
            in_zone=self._clock.in_zone,
            finish=self._finalize_and_commit if commit else self._finalize,
            started_given=is_start_given,
            ended=lambda: self._on_end(opening.session_key, opening.session_id),
        )

    def open_without_capture(self) -> Session:
        """A session that accepts messages and writes nothing, for agents whose conversations are not kept."""
        return Session(None, now=self._clock.now, in_zone=self._clock.in_zone, finish=self._finalize)

    def is_captured(self, session_key: str, agent: str | None) -> bool:
        """Whether the conversations of this key and agent are kept."""
        capture = self._config.capture
        agents = named_agents(session_key, agent)
        is_excluded = is_own_work(session_key) or find_excluded_agent(agents, capture.exclude_agents)
        return capture.enabled and not is_excluded

    def _resolve(self, session_id: str | None, session_key: str | None) -> tuple[str, str]:
        """The id and the key of the session that the arguments identify."""
        if not session_id:
            return f"ses_{secrets.token_hex(4)}", MAIN_SESSION_KEY if session_key is None else session_key
        if session_key is None:
            known_key = self.find_key(session_id)
            return session_id, MAIN_SESSION_KEY if known_key is None else known_key
        return writer.resolve_session_id(session_id, session_key, self.find_key), session_key

    # ------------------------------------------------------------ finding

    def list_open(self) -> list[SessionState]:
        return writer.list_states(self._home)

    def is_open(self, session_id: str) -> bool:
        return self._find_open(session_id) is not None

    def find_key(self, session_id: str) -> str | None:
        """The key of the session with this id, open or finalized. None: there is no such session, or a person
        wrote its transcript without a key."""
        state = writer.find_state(self._home, session_id)
        if state is not None and state.opening.session_id == session_id:
            return state.opening.session_key
        part = self.find_last_part(session_id)
        key = writer.attempt_load(self._home, part).fields.get("session_key") if part else None
        return None if key is None else str(key)

    def find_last_part(self, session_id: str) -> str | None:
        """The newest transcript of this session, which no other part continues."""
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(session_id)}-*.md"
        paths = sorted(str(file.relative_to(self._home.root)) for file in self._home.root.glob(pattern))
        heads = {path: writer.attempt_load(self._home, path).fields for path in paths}
        parts = {path: head for path, head in heads.items() if head.get("session_id") == session_id}
        continued = {head.get("continues") for head in parts.values()}
        return max((path for path in parts if path not in continued), default=None)

    def _find_open(self, session_id: str) -> SessionState | None:
        state = writer.find_state(self._home, session_id)
        if state is None or state.opening.session_id != session_id:
            return None
        if state.path is None:
            return state
        file = self._home.root / state.path
        return state if file.exists() and not writer.is_sealed(file) else None

    # ------------------------------------------------------------ ending

    def discard(self, session_id: str) -> None:
        """Delete a session without messages."""
        state = writer.find_state(self._home, session_id)
        if state is not None and state.path is None:
            writer.drop_state(self._home, state)

    def _finalize_and_commit(
        self, transcript: TranscriptWriter, closing: Closing, turns: Sequence[Turn]
    ) -> Sealed:
        sealed = self._seal(transcript, closing, turns)
        outcome = self.commit([(transcript.record, sealed.sha256)], fresh=True)
        commit = outcome.commits[0] if outcome.commits else None
        return replace(sealed, commit=commit, waiting=outcome.waiting)

    def _finalize(self, transcript: TranscriptWriter, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        """Finalize, and leave the commit to the next recovery."""
        sealed = self._seal(transcript, closing, turns)
        self._committer.remember_hashes([(transcript.record, sealed.sha256)])
        return replace(sealed, waiting="it is committed soon")

    def _seal(self, transcript: TranscriptWriter, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
        sha = transcript.seal(closing, changes)
        state = transcript.record
        assert state.path is not None
        with suppress(TacitError, OSError):  # it only improves a later commit message
            record_touched(self._home, state.path, [change.path for change in changes])
        return Sealed(state.opening.session_id, state.path, sha, None)

    def commit(
        self, sealed: list[tuple[SessionState, str]], *, fresh: bool = False, is_requested: bool = False
    ) -> CommitOutcome:
        """Commit finalized transcripts, given with their hashes. `fresh`: finalized just now."""
        try:
            if is_requested or self._config.git.auto_commit:
                wait = REQUEST_LOCK_TIMEOUT_S if is_requested or fresh else LOCK_TIMEOUT_S
                return self._committer.commit_sessions(sealed, fresh=fresh, wait=wait)
            self._committer.remember_hashes(sealed)
        except (TacitError, OSError) as error:
            return CommitOutcome(waiting=str(error))
        return CommitOutcome(waiting="git.auto_commit is off; commit it with: tacit run commit")


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    sealed: tuple[str, ...] = ()  # transcripts that were left open
    commits: tuple[str, ...] = ()
    waiting: str = ""  # why there was no commit
    problems: tuple[Problem, ...] = ()


class SessionRecovery:
    """After a crash: finalizes the transcripts that no process holds any longer, and commits them."""

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
