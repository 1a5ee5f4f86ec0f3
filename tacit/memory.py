"""The façade of one home. Each method hands its work to a service, which `tacit/services.py` builds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from tacit.clock import Clock
from tacit.config import Config
from tacit.home.categories import Category
from tacit.home.layout import Home
from tacit.markdown.notes import Note, Remembered
from tacit.search.index import SearchParts
from tacit.search.model import EVERYTHING, Found, Hit, NoteLinks, Scope
from tacit.services import Services
from tacit.sessions.keys import MAIN_SESSION_KEY
from tacit.transcripts import verify as proof
from tacit.transcripts import writer
from tacit.transcripts.capture import Session
from tacit.transcripts.model import Transcript

if TYPE_CHECKING:
    from tacit.context.model import Compiled
    from tacit.llm.chat import Chat
    from tacit.llm.structured import Ask
    from tacit.maintenance import WorkResult
    from tacit.provenance.trace import Trace
    from tacit.topics.activation import GatedActivator
    from tacit.topics.model import Event


class Memory:
    """One home. Its parts are handed in; `tacit.open` picks them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        *,
        zone: tzinfo | None,
        now: Callable[[], datetime],
        parts: SearchParts | None = None,
        gate: Callable[[], GatedActivator] | None = None,
        ask: Callable[[str], Ask | None] = lambda task: None,
        chat: Callable[[str], Chat | None] | None = None,
    ) -> None:
        """`ask` returns the model that answers questions of a task (extract, condense, prune), or None."""
        self.services = Services(home, config, Clock(now, zone), models=parts, gate=gate, ask=ask, chat=chat)
        self.home, self.config = home, config
        self.git, self.history = self.services.git, self.services.history
        self.reviews, self.workspaces = self.services.reviews, self.services.workspaces

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
        return self.services.conversations.open(
            session_key, agent, channel, model, session_id, started, detached=detached, commit=commit
        )

    def transcript(self, path: str) -> Transcript:
        return writer.load(self.home, path)

    def session_ended(self, session_key: str, session_id: str = "", *, sealed: bool = False) -> None:
        """Note that a session ended, began or was reset, so that its next turn starts fresh in any process.
        Without an id, this holds for any session with the key. `sealed`: its transcript is sealed."""
        self.services.note_session_end(session_key, session_id, sealed=sealed)

    def verify(
        self, tick: Callable[[int, int], None] = lambda done, total: None
    ) -> list[proof.CheckedTranscript]:
        """Check that no sealed transcript was changed. `tick` is told how many of how many are checked."""
        return proof.verify(self.home, self.git, tick)

    # ------------------------------------------------------------ maintenance

    def recover(self, *, asked: bool = False) -> WorkResult:
        """Finalize transcripts that a crash left open and commit those that could not be committed. Live
        sessions are left alone. `asked`: commit even if git.auto_commit is off."""
        return self.services.maintenance.recover(is_requested=asked)

    def work(self, *, if_due: bool = False) -> WorkResult:
        """Do everything that is due: commit, learn from conversations, condense, prune, archive, commit.
        `if_due`: commit notes only if the interval has passed."""
        return self.services.maintenance.run(if_due=if_due)

    def commit(self) -> WorkResult:
        """Recover, commit changed notes, tag the day, prune explored branches, and push if configured."""
        return self.services.maintenance.commit()

    # ------------------------------------------------------------ notes

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
        profile = self.services.profiles.profile_of(session_key or MAIN_SESSION_KEY, trial=True)
        return self.services.remembering.remember(
            text, to, profile, by_owner=session_key is None, shared=shared
        )

    # ------------------------------------------------------------ search

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: Category | None = None,
        session_key: str | None = None,
    ) -> list[Hit]:
        """The best matching chunks that this session may see. No session key: the owner asks."""
        scope = EVERYTHING if session_key is None else self.services.profiles.scope_of(session_key)
        if category is not None:
            scope = replace(scope, categories=(category,))
        return list(self.find(query, scope, limit).hits)

    def find(self, query: str, scope: Scope = EVERYTHING, limit: int = 10) -> Found:
        """Like `search`, with all filters, and with details on how the hits were found."""
        return self.services.searcher.find(query, scope, limit, now=self.services.clock.now())

    def links(self, path: str, *, session_key: str | None = None) -> NoteLinks:
        """The links from and to a note that this session may see. No session key: the owner asks."""
        scope = EVERYTHING if session_key is None else self.services.profiles.scope_of(session_key)
        return self.services.searcher.links(path, scope)

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
        return self.services.turns.take(
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
        return self.services.turns.take(message, **{**asked, "lane": "runtime"})

    def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        """The files that a host loads when a session begins, as a new list by the rule of the session. None
        if `files` is not a list."""
        return self.services.bootstrap(session_key, files, workspace, **asked).files
