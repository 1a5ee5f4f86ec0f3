"""What one home is served by: each service is built when it is first used, from the parts that it uses.

This is the composition root. Only it and `app.py`, which reads the environment, pick concrete parts, and only
here may an import stand inside a function: storing a message needs few of the services, and must not load the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from tacit.clock import Clock
from tacit.config import Config
from tacit.errors import ConfigError
from tacit.git.committer import Committer
from tacit.git.history import History
from tacit.git.repository import Git
from tacit.home.layout import CONFIG, Home
from tacit.home.note_store import NoteStore
from tacit.home.workspaces import Workspaces
from tacit.learn.runs import RunLog
from tacit.review.store import ReviewQueue
from tacit.search.models import SearchModels
from tacit.sessions.profiles import SessionProfiles

if TYPE_CHECKING:
    from tacit.context.service import TurnService
    from tacit.learn.attribution import SpeakerAttribution
    from tacit.learn.drafts import DraftMaker
    from tacit.learn.inbox import RememberInbox
    from tacit.learn.remember import RememberService
    from tacit.learn.service import KnowledgeExtractor
    from tacit.learn.trace import LineTracer
    from tacit.llm.chat import Chat
    from tacit.llm.structured import Ask
    from tacit.search.searcher import Searcher
    from tacit.topics.model_gate import GatedActivator


class Services:
    """The services of one home. `ask` returns the model that answers questions of a task (extract, condense,
    prune), or None; `chat` returns the chat model of a task."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        models: SearchModels | None = None,
        gate: Callable[[], GatedActivator] | None = None,
        ask: Callable[[str], Ask | None] = lambda task: None,
        chat: Callable[[str], Chat | None] | None = None,
    ) -> None:
        self.home, self.config, self.clock = home, config, clock
        self.ask, self.chat = ask, chat
        self._models, self._gate = models or SearchModels(), gate
        self.git = Git(home.root)
        self.history = History(home, self.git, clock.now)
        lifecycle = config.lifecycle
        limits = (lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines)
        self.committer = Committer(home, self.git, clock.now, limits)
        self.workspaces = Workspaces(home, config.workspaces)
        self.notes = NoteStore(home, self.workspaces)
        self.profiles = SessionProfiles(home, config)
        self.runs, self.reviews = RunLog(home, self.git), ReviewQueue(home)

    # ------------------------------------------------------------ turns and search

    @cached_property
    def searcher(self) -> Searcher:
        from tacit.search.searcher import Searcher

        if self.config.search.index != "sqlite":
            message = "search.index names a PostgreSQL server, which this version does not use yet."
            raise ConfigError(CONFIG, None, message, "Set it to sqlite.")
        return Searcher(self.home, self._models, self.workspaces)

    @cached_property
    def turns(self) -> TurnService:
        from tacit.context.home_view import LiveHome
        from tacit.context.service import TurnService

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

    # ------------------------------------------------------------ what is known, and where from

    @cached_property
    def attribution(self) -> SpeakerAttribution:
        from tacit.learn.attribution import SpeakerAttribution

        return SpeakerAttribution(self.home, self.config, self.profiles, self.workspaces)

    @cached_property
    def remembering(self) -> RememberService:
        from tacit.learn.remember import RememberService

        return RememberService(self.home, self.config, self.clock, self.notes, self.attribution)

    @cached_property
    def inbox(self) -> RememberInbox:
        from tacit.learn.inbox import RememberInbox

        return RememberInbox(self.home, self.config, self.clock, self.reviews, self.committer)

    @cached_property
    def drafts(self) -> DraftMaker:
        from tacit.learn.drafts import DraftMaker

        return DraftMaker(self.home, self.config, self.git, self.clock)

    @cached_property
    def extractor(self) -> KnowledgeExtractor:
        from tacit.learn.service import KnowledgeExtractor

        return KnowledgeExtractor(
            self.home,
            self.config,
            self.clock,
            runs=self.runs,
            reviews=self.reviews,
            committer=self.committer,
            attribution=self.attribution,
            profiles=self.profiles,
            drafts=self.drafts,
            ask=self.ask,
        )

    @cached_property
    def tracer(self) -> LineTracer:
        from tacit.learn.trace import LineTracer

        return LineTracer(
            self.home,
            self.history,
            self.workspaces,
            self.attribution,
            lambda text, limit: self.searcher.find(text, limit=limit, now=self.clock.now()).hits,
            trusted_tools=self.config.lifecycle.trusted_tools,
            min_score=self.config.inject.confidence_gate,
        )
