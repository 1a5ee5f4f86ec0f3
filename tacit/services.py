"""What one home is served by: each service is built when it is first used, from the parts that it uses.

This is the composition root. Only it and `app.py`, which reads the environment, pick concrete parts. Modules
that only some commands need are loaded when the first service of theirs is built: storing a message must not
load what learning needs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.clock import Clock
from tacit.config import Config
from tacit.context import receipts
from tacit.errors import ConfigError
from tacit.git import commit_message
from tacit.git.committer import Committer
from tacit.git.history import History
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home.layout import CONFIG, Home
from tacit.learn.runs import RunLog
from tacit.maintenance import Maintenance
from tacit.review.model import find_targets
from tacit.review.store import ReviewQueue
from tacit.search.index import IndexBackend, SearchParts
from tacit.sessions.conversations import Conversations, SessionRecovery
from tacit.sessions.policy import SessionProfiles
from tacit.transcripts.session_commits import SessionCommitter
from tacit.workspaces.folders import Workspaces
from tacit.workspaces.note_store import NoteStore


def load_later(module: str, name: str) -> Any:
    """A function or class of the package whose module is imported at the first call."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    return call


if TYPE_CHECKING:
    from tacit.condense.service import MemoryCondenser
    from tacit.context.delivery.bootstrap import BootstrapResult
    from tacit.context.delivery.bootstrap import bootstrap as choose_files
    from tacit.context.home_view import LiveHome
    from tacit.context.service import TurnService
    from tacit.erase.service import ErasureService
    from tacit.learn.attribution import SpeakerAttribution
    from tacit.learn.drafts import DraftMaker, RememberInbox
    from tacit.learn.remember import RememberService
    from tacit.learn.service import KnowledgeExtractor
    from tacit.llm.chat import Chat
    from tacit.llm.commit_subject import make_composer
    from tacit.llm.structured import Ask
    from tacit.provenance.purge import PurgeService
    from tacit.provenance.trace import LineTracer
    from tacit.rebuild.merge import RebuildMerger
    from tacit.rebuild.options import AskByTask
    from tacit.rebuild.service import Rebuilder
    from tacit.review.service import NoteEditor, ReviewService
    from tacit.search.file_reader import FileReader
    from tacit.search.searcher import Searcher
    from tacit.topics.activation import GatedActivator
else:
    MemoryCondenser = load_later("tacit.condense.service", "MemoryCondenser")
    choose_files = load_later("tacit.context.delivery.bootstrap", "bootstrap")
    TurnService = load_later("tacit.context.service", "TurnService")
    LiveHome = load_later("tacit.context.home_view", "LiveHome")
    SpeakerAttribution = load_later("tacit.learn.attribution", "SpeakerAttribution")
    DraftMaker = load_later("tacit.learn.drafts", "DraftMaker")
    RememberInbox = load_later("tacit.learn.drafts", "RememberInbox")
    RememberService = load_later("tacit.learn.remember", "RememberService")
    KnowledgeExtractor = load_later("tacit.learn.service", "KnowledgeExtractor")
    LineTracer = load_later("tacit.provenance.trace", "LineTracer")
    make_composer = load_later("tacit.llm.commit_subject", "make_composer")
    NoteEditor = load_later("tacit.review.service", "NoteEditor")
    ReviewService = load_later("tacit.review.service", "ReviewService")
    ErasureService = load_later("tacit.erase.service", "ErasureService")
    PurgeService = load_later("tacit.provenance.purge", "PurgeService")
    Rebuilder = load_later("tacit.rebuild.service", "Rebuilder")
    RebuildMerger = load_later("tacit.rebuild.merge", "RebuildMerger")
    FileReader = load_later("tacit.search.file_reader", "FileReader")
    Searcher = load_later("tacit.search.searcher", "Searcher")


def sqlite_backend() -> IndexBackend:
    """Where indexes are kept; only this function names it."""
    return import_module("tacit.search.sqlite.index").SQLITE  # type: ignore[no-any-return]


class Services:
    """The services of one home. `ask` returns the model that answers questions of a task (extract, condense,
    prune), or None; `chat` returns the chat model of a task."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        models: SearchParts | None = None,
        gate: Callable[[], GatedActivator] | None = None,
        ask: Callable[[str], Ask | None] = lambda task: None,
        chat: Callable[[str], Chat | None] | None = None,
    ) -> None:
        self.home, self.config, self.clock = home, config, clock
        self._ask, self._chat = ask, chat
        self._models, self._gate = models or SearchParts(sqlite_backend), gate
        self.git = Git(home.root)
        self.history = History(home, self.git, clock.now)
        lifecycle = config.lifecycle
        limits = (lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines)
        self.committer = Committer(home, self.git, clock.now)
        self.note_committer = NoteCommitter(self.committer, limits, find_targets)
        self.session_committer = SessionCommitter(self.committer)
        self.workspaces = Workspaces(home, config.workspaces)
        self.notes = NoteStore(home, self.workspaces)
        self.profiles = SessionProfiles(home, config)
        self.runs, self.reviews = RunLog(home, self.git), ReviewQueue(home)
        self.conversations = Conversations(home, config, clock, self.session_committer, self.note_session_end)
        self.recovery = SessionRecovery(home, config, clock, self.committer, self.conversations)

    # ------------------------------------------------------------ search and turns

    @cached_property
    def searcher(self) -> Searcher:
        if self.config.search.index != "sqlite":
            message = "search.index names a PostgreSQL server, which this version does not use yet."
            raise ConfigError(CONFIG, None, message, "Set it to sqlite.")
        return Searcher(self.home, self._models, self.workspaces)

    def close(self) -> None:
        """Close the index, if it was opened."""
        if "searcher" in self.__dict__:
            self.searcher.close()

    @cached_property
    def file_reader(self) -> FileReader:
        return FileReader(self.home, self.clock, self.workspaces)

    @cached_property
    def turns(self) -> TurnService:
        return TurnService(
            self.home,
            self.config,
            LiveHome(self.home, lambda: self.searcher, self.workspaces),
            history=self.history,
            models=self._models,
            profile_of=self.profiles.profile_of,
            now=self.clock.now,
            gate=self._gate,
        )

    def bootstrap(
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
        """The files that a host loads when a session begins, with the receipt and whether anything changed.
        A trial is not logged and belongs to no conversation. `message`: what the user wrote, if the host
        loads its files for each turn."""
        profile = self.profiles.profile_of(
            session_key, agent=agent, sender=sender, trigger=trigger, trial=trial
        )
        now = self.clock.now()
        if trial:
            return choose_files(self.home, self.config, profile, files, workspace, now, trial=True)
        key = profile.kind.key
        return choose_files(
            self.home, self.config, profile, files, workspace, now,
            read_conversation=lambda: self.turns.conversation(key, message),
        )  # fmt: skip

    def note_session_end(self, session_key: str, session_id: str = "", *, sealed: bool = False) -> None:
        """Note in the receipt log, and in the turns of this process, that a session is over."""
        receipts.note_end(self.home, session_key, self.clock.now(), session_id, sealed=sealed)
        if "turns" in self.__dict__:
            self.turns.end_session(session_key)

    # ------------------------------------------------------------ what is known, and where from

    @cached_property
    def attribution(self) -> SpeakerAttribution:
        return SpeakerAttribution(
            self.home,
            self.config,
            self.profiles,
            self.workspaces,
            partial(receipts.list_source_files, self.home),
        )

    @cached_property
    def remembering(self) -> RememberService:
        return RememberService(self.home, self.config, self.clock, self.notes, self.attribution)

    @cached_property
    def inbox(self) -> RememberInbox:
        return RememberInbox(self.home, self.config, self.drafts, self.reviews, self.note_committer)

    @cached_property
    def drafts(self) -> DraftMaker:
        return DraftMaker(self.home, self.config, self.git, self.clock)

    @cached_property
    def tracer(self) -> LineTracer:
        return LineTracer(
            self.home,
            self.history,
            self.workspaces,
            self.attribution,
            lambda text, limit: self.searcher.find(text, limit=limit, now=self.clock.now()).hits,
            trusted_tools=self.config.lifecycle.trusted_tools,
            min_score=self.config.inject.confidence_gate,
        )

    # ------------------------------------------------------------ changes of notes

    @cached_property
    def extractor(self) -> KnowledgeExtractor:
        return KnowledgeExtractor(
            self.home,
            self.config,
            self.clock,
            runs=self.runs,
            reviews=self.reviews,
            committer=self.note_committer,
            attribution=self.attribution,
            profiles=self.profiles,
            drafts=self.drafts,
            ask=self._ask,
        )

    @cached_property
    def note_editor(self) -> NoteEditor:
        return NoteEditor(self.home, self.config, self.clock, self.note_committer)

    @cached_property
    def review(self) -> ReviewService:
        return ReviewService(
            self.home,
            self.config,
            self.clock,
            git=self.git,
            reviews=self.reviews,
            committer=self.note_committer,
            editor=self.note_editor,
        )

    @cached_property
    def condenser(self) -> MemoryCondenser:
        return MemoryCondenser(
            self.home,
            self.config,
            self.clock,
            git=self.git,
            committer=self.note_committer,
            runs=self.runs,
            reviews=self.reviews,
            editor=self.note_editor,
            attribution=self.attribution,
            profiles=self.profiles,
            drafts=self.drafts,
            ask=self._ask,
        )

    @cached_property
    def rebuilder(self) -> Rebuilder:
        return Rebuilder(
            self.home,
            self.git,
            committer=self.note_committer,
            list_uncommitted_transcripts=self.maintenance.list_uncommitted_transcripts,
            open_replica=self._open_replica,
        )

    def _open_replica(
        self, home: Home, config: Config, now: Callable[[], datetime], ask: AskByTask
    ) -> Services:
        """The services of a copy of the home, for work on a branch."""
        return Services(home, config, Clock(now, self.clock.zone), ask=ask)

    @cached_property
    def rebuild_merger(self) -> RebuildMerger:
        return RebuildMerger(
            self.home,
            self.clock,
            self.git,
            committer=self.note_committer,
            runs=self.runs,
            editor=self.note_editor,
            rebuilder=self.rebuilder,
        )

    @cached_property
    def erasure(self) -> ErasureService:
        quarantine = self._models.backend().quarantine
        return ErasureService(self.home, self.config, self.clock, self.git, self.workspaces, quarantine)

    @cached_property
    def purge(self) -> PurgeService:
        return PurgeService(self.home, self.config, self.clock, self.git, self.committer, self.attribution)

    @cached_property
    def maintenance(self) -> Maintenance:
        return Maintenance(
            self.home,
            self.config,
            self.clock,
            git=self.git,
            history=self.history,
            committer=self.committer,
            note_committer=self.note_committer,
            session_committer=self.session_committer,
            recovery=self.recovery,
            composer=self._commit_composer,
            extractor=lambda: self.extractor,
            inbox=lambda: self.inbox,
            condenser=lambda: self.condenser,
        )

    def _commit_composer(self) -> Callable[..., str]:
        """The function that writes commit messages. A model is asked now, before the home is locked."""
        chat = self._chat
        if self.config.git.commit_message_model is None or chat is None or self.committer.waits_for():
            return commit_message.compose
        edits = self.note_committer.note_changes().edits
        return make_composer(lambda: chat("commit"), edits, self.git.branch() or "")
