"""The façade of one home: its operations, and the order of their steps."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from tacit.clock import Clock
from tacit.config import Config, mask_secret
from tacit.context import receipts
from tacit.diagnostics import Problem
from tacit.errors import Busy, TacitError
from tacit.git import commit_message
from tacit.git.committer import CommitOutcome, NoteChanges, find_loose_transcripts
from tacit.git.objects import pack_loose_objects
from tacit.git.refs import prune_explore_branches, tag_periods
from tacit.git.remotes import push_branch
from tacit.home import files
from tacit.home.categories import Category
from tacit.home.layout import Home
from tacit.home.sweep import sweep
from tacit.markdown.model import Note, Remembered
from tacit.privacy.redaction import clean
from tacit.search.model import EVERYTHING, Found, Hit, NoteLinks, Scope
from tacit.search.models import SearchModels
from tacit.services import Services
from tacit.sessions.agents import find_excluded_agent, is_own_work, named_agents, resolve_key
from tacit.sessions.keys import MAIN_SESSION_KEY
from tacit.sessions.policy import SessionProfile
from tacit.transcripts import format as form
from tacit.transcripts import verify as proof
from tacit.transcripts import writer
from tacit.transcripts.capture import Session, count_tokens, fix_offset, require_valid_time
from tacit.transcripts.model import Closing, KnowledgeChange, Opening, Sealed, Transcript, Turn
from tacit.transcripts.writer import SessionState, TranscriptWriter

if TYPE_CHECKING:
    from tacit.condense.service import CondenseResult
    from tacit.context.delivery.bootstrap import BootstrapResult
    from tacit.context.model import Compiled
    from tacit.context.service import TurnService
    from tacit.learn.service import LearnResult
    from tacit.llm.chat import Chat
    from tacit.llm.structured import Ask
    from tacit.provenance.model import Trace
    from tacit.search.searcher import Searcher
    from tacit.topics.model import Event
    from tacit.topics.model_gate import GatedActivator

_LOCK_TIMEOUT_S = 1.0  # how long opening a home waits for a commit of another process


@dataclass(frozen=True, slots=True)
class Worked:
    """The result of one maintenance run."""

    sealed: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    waiting: str = ""
    problems: tuple[Problem, ...] = ()
    learnt: LearnResult | None = None  # None: not requested
    summed: CondenseResult | None = None

    @property
    def changed(self) -> bool:
        return bool(self.sealed or self.commits or self.tags or self.branches)


class Memory:
    """One home. Its parts are handed in; `tacit.open` picks them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        *,
        zone: tzinfo | None,
        now: Callable[[], datetime],
        parts: SearchModels | None = None,
        gate: Callable[[], GatedActivator] | None = None,
        ask: Callable[[str], Ask | None] = lambda task: None,
        chat: Callable[[str], Chat | None] | None = None,
    ) -> None:
        """`ask` returns the model that answers questions of a task (extract, condense, prune), or None."""
        clock = Clock(now, zone)
        self.services = Services(home, config, clock, models=parts, gate=gate, ask=ask, chat=chat)
        self.home, self.config, self.ask, self.zone = home, config, ask, zone
        self._clock, self._chat_for = clock, chat
        self.git, self.history = self.services.git, self.services.history
        self.workspaces = self.services.workspaces
        self._committer = self.services.committer
        self.commit_paths, self.commit_theirs = self._committer.commit_paths, self._committer.commit_theirs
        self.runs, self.reviews = self.services.runs, self.services.reviews
        self.seals_idle = True  # False: the session registry in this process does, by a monotonic clock

    # ------------------------------------------------------------ conversations

    def session(
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
        """Begin a conversation, or continue one. A sealed one is never reopened: it continues in a new part.
        Without a session key the id alone identifies it, and a new one is the owner's; an id that belongs to
        another key gets a suffix. `detached`: no process stays alive between its messages to hold it open.
        Without `commit` its end seals it, and the next `recover` commits it."""
        name, key = self._resolve_session(session_id, session_key)
        record = self._find_open_record(name) if session_id else None
        if record is not None:
            key, agent = record.opening.session_key, record.opening.agent
        key, agents = resolve_key(key, agent), named_agents(key, agent)
        capture = self.config.capture
        if not capture.enabled or is_own_work(key) or find_excluded_agent(agents, capture.exclude_agents):
            return self.unkept_session()
        is_start_given = started is not None or record is not None
        if record is None:
            moment = fix_offset(self._clock.in_zone(require_valid_time(started or self._clock.now())))
            previous = self.last_part(name) if session_id else None
            clean_channel, clean_model = (clean(value).text if value else value for value in (channel, model))
            opening = Opening(name, moment, key, agents[-1], clean_channel, clean_model, continues=previous)
            record = SessionState(opening, detached=detached)
            if detached:
                writer.save_state(self.home, record)
        live = TranscriptWriter(self.home, record)
        finish = self._seal_and_commit if commit else self._seal_for_later
        key, name = record.opening.session_key, record.opening.session_id
        return Session(
            live,
            now=self._clock.now,
            in_zone=self._clock.in_zone,
            finish=finish,
            started_given=is_start_given,
            ended=lambda: self.session_ended(key, name),
        )

    def _resolve_session(self, session_id: str | None, session_key: str | None) -> tuple[str, str]:
        """The id and the key of the session that the arguments identify."""
        if not session_id:
            return f"ses_{secrets.token_hex(4)}", MAIN_SESSION_KEY if session_key is None else session_key
        if session_key is None:
            known_key = self.key_of(session_id)
            return session_id, MAIN_SESSION_KEY if known_key is None else known_key
        return writer.resolve_session_id(session_id, session_key, self.key_of), session_key

    def unkept_session(self) -> Session:
        """A session that accepts messages and writes nothing, for agents whose conversations are not kept."""
        return Session(None, now=self._clock.now, in_zone=self._clock.in_zone, finish=self._seal_and_commit)

    def knows(self, session_id: str) -> bool:
        """Whether a session with this id is open."""
        return self._find_open_record(session_id) is not None

    def key_of(self, session_id: str) -> str | None:
        """The key of the session with this id, open or sealed. None: there is no such session, or a person
        wrote it without a key."""
        record = writer.find_state(self.home, session_id)
        if record is not None and record.opening.session_id == session_id:
            return record.opening.session_key
        part = self.last_part(session_id)
        key = writer.attempt_load(self.home, part).fields.get("session_key") if part else None
        return None if key is None else str(key)

    def discard(self, session_id: str) -> None:
        """Delete a session without messages."""
        record = writer.find_state(self.home, session_id)
        if record is not None and record.path is None:
            writer.drop_state(self.home, record)

    def transcript(self, path: str) -> Transcript:
        return writer.load(self.home, path)

    def open_sessions(self) -> list[SessionState]:
        return writer.list_states(self.home)

    def _find_open_record(self, session_id: str) -> SessionState | None:
        record = writer.find_state(self.home, session_id)
        if record is None or record.opening.session_id != session_id:
            return None
        if record.path is None:
            return record
        file = self.home.root / record.path
        return record if file.exists() and not writer.is_sealed(file) else None

    def last_part(self, session_id: str) -> str | None:
        """The newest transcript of this session, which no other part continues."""
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(session_id)}-*.md"
        paths = [str(file.relative_to(self.home.root)) for file in self.home.root.glob(pattern)]
        heads = {path: writer.attempt_load(self.home, path).fields for path in sorted(paths)}
        parts = {path: head for path, head in heads.items() if head.get("session_id") == session_id}
        continued = {head.get("continues") for head in parts.values()}
        return max((path for path in parts if path not in continued), default=None)

    def _seal_and_commit(self, live: TranscriptWriter, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        sealed = self._seal_session(live, closing, turns)
        outcome = self._commit_sessions([(live.record, sealed.sha256)], fresh=True)
        commit = outcome.commits[0] if outcome.commits else None
        return replace(sealed, commit=commit, waiting=outcome.waiting)

    def _seal_for_later(self, live: TranscriptWriter, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        sealed = self._seal_session(live, closing, turns)
        self._committer.remember_hashes([(live.record, sealed.sha256)])
        return replace(sealed, waiting="it is committed soon")

    def _seal_session(self, live: TranscriptWriter, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
        sha = live.seal(closing, changes)
        record = live.record
        assert record.path is not None
        with suppress(TacitError, OSError):  # it only improves a later commit message
            self._committer.touch(record.path, [change.path for change in changes])
        return Sealed(record.opening.session_id, record.path, sha, None)

    def _commit_sessions(
        self, sealed: list[tuple[SessionState, str]], *, fresh: bool = False, is_requested: bool = False
    ) -> CommitOutcome:
        try:
            if is_requested or self.config.git.auto_commit:
                wait = 30.0 if is_requested or fresh else _LOCK_TIMEOUT_S
                return self._committer.commit_sessions(sealed, fresh=fresh, wait=wait)
            self._committer.remember_hashes(sealed)
        except (TacitError, OSError) as error:
            return CommitOutcome(waiting=str(error))
        return CommitOutcome(waiting="git.auto_commit is off; commit it with: tacit run commit")

    # ------------------------------------------------------------ pending work

    def recover(self, *, asked: bool = False) -> Worked:
        """Finalize transcripts that a crash left open and commit those that could not be committed. Live
        sessions are left alone. `asked`: commit even if git.auto_commit is off."""
        self._committer.settle(wait=30.0 if asked else _LOCK_TIMEOUT_S)
        sealed, problems = self._seal_orphans()
        pending = self._list_uncommitted()
        if not pending:
            return Worked(tuple(sealed), problems=tuple(problems))
        outcome = self._commit_sessions(pending, is_requested=asked)
        troubles = (*problems, *outcome.left)
        return Worked(tuple(sealed), outcome.commits, waiting=outcome.waiting, problems=troubles)

    def work(self, *, if_due: bool = False) -> Worked:
        """Do everything that is due: commit, learn from conversations, condense, prune, archive, commit.
        `if_due`: commit notes only if the interval has passed."""
        from tacit.maintenance import (
            run_all,
        )  # loads much of the package, and keeping a message needs none of it

        return run_all(self, if_due=if_due)

    def commit(self) -> Worked:
        """Recover, commit changed notes, tag the day, prune explored branches, and push if configured."""
        with files.explain_disk_errors("do the work that is due"):
            return self._commit_all()

    def _commit_all(self) -> Worked:
        self._restore_records(again=True)
        recovered = self.recover(asked=True)
        loose = self._commit_loose()
        note_outcome = self._committer.commit_notes(self._message_composer())
        if note_outcome.waiting:
            return replace(recovered, waiting=note_outcome.waiting)
        tags, branches, problems = self._tidy_refs()
        sweep(self.home, self.git)
        return Worked(
            sealed=recovered.sealed,
            commits=(*recovered.commits, *loose.commits, *note_outcome.commits),
            tags=tuple(tags),
            branches=tuple(branches),
            waiting=recovered.waiting,
            problems=(*recovered.problems, *loose.left, *note_outcome.left, *problems, *self._push()),
        )

    def _message_composer(self) -> Callable[..., str]:
        """The function that writes commit messages. A model is asked now, before the home is locked."""
        chat = self._chat_for
        if self.config.git.commit_message_model is None or chat is None or self._committer.waits_for():
            return commit_message.compose
        from tacit.llm.commit_subject import make_composer

        edits = self._committer.note_changes().edits
        return make_composer(lambda: chat("commit"), edits, self.git.branch() or "")

    def _tidy_refs(self) -> tuple[list[str], list[str], list[Problem]]:
        settings, now = self.config.git, self._clock.now()
        skipped: list[Problem] = []
        with self._committer.at_work():
            tags = tag_periods(
                self.git,
                now,
                daily=settings.auto_tag_daily,
                weekly=settings.auto_tag_weekly,
                skipped=skipped,
            )
            branches, problems = prune_explore_branches(self.git, settings.branch, settings.explore_days, now)
            pack_loose_objects(self.git)
        return tags, branches, [*skipped, *problems]

    def _commit_loose(self) -> CommitOutcome:
        if self._committer.waits_for():
            return CommitOutcome()
        loose = find_loose_transcripts(self.home, self.git)
        return replace(self._committer.commit_sessions(loose.ready), left=loose.problems)

    def _push(self) -> list[Problem]:
        settings = self.config.git
        if not settings.auto_push or settings.remote is None:
            return []
        error = mask_secret(push_branch(self.git, settings.remote))
        remote = mask_secret(settings.remote)
        return [Problem(remote, f"could not be pushed to: {error}", level="warning")] if error else []

    def commit_due(self) -> bool:
        """Whether the interval between two commits of notes has passed."""
        last_commit = self.history.last_commit_of("memory", "identity", "maintenance")
        minutes = self.config.lifecycle.commit_interval_minutes
        return last_commit is None or self._clock.now() - last_commit >= timedelta(minutes=minutes)

    def _seal_orphans(self) -> tuple[list[str], list[Problem]]:
        sealed: list[str] = []
        problems: list[Problem] = []
        self._restore_records()
        for record in writer.list_states(self.home):
            try:
                if self._is_abandoned(record):
                    writer.drop_state(self.home, record)
                elif self._is_orphaned(record) and self._seal_orphan(record):
                    sealed.append(record.path or "")
            except Busy:
                continue  # a process is writing it, so it is alive
            except (TacitError, OSError, ValueError) as error:
                problems.append(
                    Problem(record.path or record.opening.session_id, f"could not be sealed: {error}")
                )
        return sealed, problems

    def _restore_records(self, *, again: bool = False) -> None:
        """Give open transcripts without a record a new one: otherwise nothing would finalize them. Runs once
        in the life of .tacit, and with every full commit (`again`)."""
        marker = self.home.private / "strays-found"
        if again or not marker.exists():
            for record in writer.find_orphaned(self.home):
                writer.save_state(self.home, record)
        if not marker.exists():
            files.make_directories(self.home.private)
            files.replace(self.home.private / ".gitignore", b"*\n")
            files.replace(marker, b"")

    def _is_abandoned(self, record: SessionState) -> bool:
        """Whether a session has no messages and will get none, because its start was cut short."""
        if record.path is not None and (self.home.root / record.path).exists():
            return False
        hours = self.config.capture.idle_seal_hours if record.detached else 1
        written = writer.state_file(self.home, record.opening.session_id).stat().st_mtime
        return self._clock.now().timestamp() - written > hours * 3600

    def _is_orphaned(self, record: SessionState) -> bool:
        if record.path is None or not (self.home.root / record.path).exists():
            return False
        file = self.home.root / record.path
        if writer.is_sealed(file):
            return False
        idle = self._clock.now().timestamp() - file.stat().st_mtime
        is_idle = self.seals_idle and idle > self.config.capture.idle_seal_hours * 3600
        return is_idle or not record.detached

    def _seal_orphan(self, record: SessionState) -> bool:
        """Finalize a transcript with the messages it has; it ends at the time of the last one."""
        live = TranscriptWriter(self.home, record, wait=0.0)
        try:
            turns = live.turns()
            ended = turns[-1].at if turns else record.opening.started
            changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
            sha = live.seal(Closing(ended, (), *count_tokens(turns)), changes)
            writer.save_state(self.home, replace(record, sha256=sha))
        finally:
            live.close()
        return True

    def _list_uncommitted(self) -> list[tuple[SessionState, str]]:
        pending = []
        for record in writer.list_states(self.home):
            file = self.home.root / (record.path or "")
            if record.path and file.is_file() and writer.is_sealed(file):
                pending.append((record, record.sha256 or files.digest(file.read_bytes())))
        return pending

    # ------------------------------------------------------------ notes

    def note_changes(self) -> NoteChanges:
        """The note changes that a commit would take, and those it would leave out."""
        return self._committer.note_changes()

    def transcripts_to_commit(self) -> list[str]:
        """The sealed transcripts that the next `work` commits."""
        loose = find_loose_transcripts(self.home, self.git).ready
        return [record.path for record, _ in [*self._list_uncommitted(), *loose] if record.path]

    def read(self, path: str) -> Note:
        return self.services.notes.read(path)

    def write(self, path: str, text: str, *, replacing: Note | None) -> Note:
        """Write a note if it is still what the writer read (`replacing`; None: there was none)."""
        return self.services.notes.write(path, text, replacing=replacing)

    def remember(
        self,
        text: str,
        to: str = "journal",
        *,
        session_key: str | None = "agent:main:main",
        shared: bool = False,
    ) -> Remembered:
        """Add one line to the journal of the day, to `memory`, or to the note at a path. In a session that is
        not the owner's, or after an agent read text of others, the line waits for the owner's review. Without
        a session key the owner asks, not an agent. If others can read the note, the line goes into the
        owner's note beside it, unless the owner says `shared`."""
        profile = self.profile_of(session_key or MAIN_SESSION_KEY, trial=True)
        return self.services.remembering.remember(
            text, to, profile, by_owner=session_key is None, shared=shared
        )

    # ------------------------------------------------------------ search

    @property
    def searcher(self) -> Searcher:
        return self.services.searcher

    def links(self, path: str, *, session_key: str | None = None) -> NoteLinks:
        """The links from and to a note that this session may see. No session key: the owner asks."""
        scope = EVERYTHING if session_key is None else self.scope_of(session_key)
        return self.searcher.links(path, scope)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: Category | None = None,
        session_key: str | None = None,
    ) -> list[Hit]:
        """The best matching chunks that this session may see. No session key: the owner asks."""
        scope = EVERYTHING if session_key is None else self.scope_of(session_key)
        if category is not None:
            scope = replace(scope, categories=(category,))
        return list(self.find(query, scope, limit).hits)

    def scope_of(self, session_key: str) -> Scope:
        """What a session may see."""
        return self.services.profiles.scope_of(session_key)

    def find(self, query: str, scope: Scope = EVERYTHING, limit: int = 10) -> Found:
        """Like `search`, with all filters, and with details on how the hits were found."""
        return self.searcher.find(query, scope, limit, now=self._clock.now())

    def why_known(self, text: str) -> list[Trace]:
        """The places of a text and its origin: the commit, the speaker and the original words."""
        return self.services.tracer.why_known(text)

    # ------------------------------------------------------------ turns

    def turn(
        self,
        message: str,
        *,
        session_key: str = "agent:main:main",
        agent: str | None = None,
        history: Sequence[object] = (),
        budget: int | None = None,
        event: Event | None = None,
        paths: Sequence[str] = (),
        wake: Sequence[str] = (),
        sender: str = "",
        trigger: str = "",
        session_id: str = "",
        tool: str = "",
        keeps_text: bool = True,
        seconds: float | None = None,
    ) -> Compiled:
        """The prompt for the next turn of a session: never over the budget, never an exception.

        `history`: the conversation so far, as turns, dictionaries or pairs of role and text. `event`: a
        webhook or a schedule that began the turn. `paths`: files that tools touched. `wake`: topics requested
        by name. `sender`: who wrote the message, as the host spells it. `trigger`: what began the run
        (user, heartbeat, cron). `tool`: the tool that the host asks for, if any. `keeps_text`: False if the
        conversation does not keep injected text, which may then be injected again. `seconds`: the time
        limit, instead of inject.deadline_ms.
        """
        return self.turns.take(
            message,
            session_key=session_key,
            agent=agent,
            history=history,
            budget=budget,
            event=event,
            paths=tuple(paths),
            wake=tuple(wake),
            sender=sender,
            trigger=trigger,
            session_id=session_id,
            tool=tool,
            keeps_text=keeps_text,
            seconds=seconds,
        )

    def inject(self, message: str, **asked: Any) -> Compiled:
        """Like `turn`, but only what the host lacks: it has the message, the conversation and its own files.
        `.text` is for this turn, and empty if there is nothing to add; `.standing` stays the same from turn
        to turn."""
        return self.turns.take(message, **{**asked, "lane": "runtime"})

    def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        """The files that a host loads when a session begins, as a new list by the rule of the session. None
        if `files` is not a list."""
        return self.bootstrapped(session_key, files, workspace, **asked).files

    def bootstrapped(
        self,
        session_key: str,
        files: object,
        workspace: str | None = None,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        message: str = "",
        trial: bool = False,
    ) -> BootstrapResult:
        """Like `bootstrap`, with the receipt and whether anything changed. A trial is not logged and belongs
        to no conversation. `message`: what the user wrote, if the host loads its files for each turn."""
        from tacit.context.delivery.bootstrap import bootstrap

        profile = self.profile_of(session_key, agent=agent, sender=sender, trigger=trigger, trial=trial)
        now = self._clock.now()
        if trial:
            return bootstrap(self.home, self.config, profile, files, workspace, now, trial=True)
        key = profile.kind.key
        return bootstrap(
            self.home, self.config, profile, files, workspace, now,
            said=lambda: self.turns.conversation(key, message),
        )  # fmt: skip

    def session_ended(self, session_key: str, session_id: str = "", *, sealed: bool = False) -> None:
        """Note that a session ended, began or was reset, so that its next turn starts fresh in any process.
        Without an id, this holds for any session with the key. `sealed`: its transcript is sealed."""
        receipts.note_end(self.home, session_key, self._clock.now(), session_id, sealed=sealed)
        if "turns" in self.services.__dict__:
            self.turns.ended(session_key)

    def profile_of(
        self,
        session_key: str,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        trial: bool = False,
    ) -> SessionProfile:
        """What a session may see, and by which rule. In a session that may mix several senders the sender is
        remembered, unless it is a trial."""
        return self.services.profiles.profile_of(
            session_key, agent=agent, sender=sender, trigger=trigger, trial=trial
        )

    @property
    def turns(self) -> TurnService:
        return self.services.turns

    def moment(self) -> datetime:
        """Now, in the home's zone."""
        return self._clock.now()

    # ------------------------------------------------------------ verification

    def verify(
        self, tick: Callable[[int, int], None] = lambda done, total: None
    ) -> list[proof.CheckedTranscript]:
        return proof.verify(self.home, self.git, tick)
