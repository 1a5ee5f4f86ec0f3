"""What one turn of a home leaves for the next: what sessions were given, answers that may be given again, the
watchers over its topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from tacit.config import Config
from tacit.context.history import mark, newly
from tacit.memory.recent import Recent
from tacit.memory.views import View
from tacit.model.changes import Said
from tacit.model.context import Receipt
from tacit.model.topics import Decision
from tacit.sessions.rules import Profile
from tacit.store import receipts
from tacit.store.gatelog import GateLog
from tacit.store.given import Before, Given
from tacit.store.home import Home
from tacit.watch.gate import GatedActivator
from tacit.watch.pipeline import WatcherPipeline
from tacit.watch.shelf import Shelf

_SESSIONS = 1000  # that are remembered


class Carried:
    """Safe to use from several threads."""

    def __init__(
        self,
        home: Home,
        config: Config,
        gate: Callable[[], GatedActivator],
        profile_of: Callable[..., Profile],
    ) -> None:
        self.home, self.config = home, config
        self._gate = gate
        self.given = Given(home)
        self.log = GateLog(home)
        self._made: tuple[Shelf, int, WatcherPipeline] | None = None
        self.profile_of = profile_of
        self.recent = Recent()
        self._flushed: dict[str, str] = {}
        self._over: dict[str, None] = {}  # sessions that ended, and nothing was said under their key since

    def pipeline(self, view: View) -> WatcherPipeline:
        """The watchers over the topics as they are now. Made again when one of them changed."""
        shelf = view.shelf()
        if self._made is None or self._made[0] is not shelf or self._made[1] != shelf.generation:
            threshold = self.config.watchers.similarity_threshold
            self._made = (shelf, shelf.generation, WatcherPipeline(shelf.topics, self._gate(), threshold))
        return self._made[2]

    def ended(self, session_key: str, agent: str) -> None:
        """What was given so far is not in the next conversation of this key."""
        self.recent.forget(session_key, agent)
        while len(self._over) > _SESSIONS:
            self._over.pop(next(iter(self._over)), None)
        self._over[session_key] = None

    def last(self, session_key: str, since: datetime) -> Before | None:
        """The turn before in this conversation, whichever process took it."""
        return None if session_key in self._over else self.given.last(session_key, since)

    def keep(self, receipt: Receipt, decisions: Sequence[Decision]) -> None:
        """Nobody can be told if a log cannot be written: doctor looks at the disk."""
        receipts.append(self.home, receipt)
        self.log.append(decisions, receipt.message)
        if not receipt.trial:
            self._over.pop(receipt.session_key, None)

    def newly_left(self, session_id: str, left: Sequence[Said]) -> Sequence[Said]:
        """Of the turns that no longer fit those that still did the last time."""
        fresh = newly(left, self._flushed.get(session_id))
        if left:
            if len(self._flushed) > _SESSIONS:
                self._flushed.pop(next(iter(self._flushed)))
            self._flushed[session_id] = mark(left[-1])
        return fresh
