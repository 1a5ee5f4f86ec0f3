"""What one turn of a home leaves for the next: what sessions were given, answers that may be given again, the
watchers over its topics."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from tacit.config import Config
from tacit.context.history import mark, newly
from tacit.memory.recent import Kept, Recent
from tacit.memory.views import View
from tacit.model.changes import Said
from tacit.model.context import Receipt
from tacit.model.topics import Decision
from tacit.sessions.rules import Profile
from tacit.store import receipts
from tacit.store.gatelog import GateLog
from tacit.store.given import UNNAMED, Before, Given
from tacit.store.home import Home
from tacit.watch.gate import GatedActivator
from tacit.watch.pipeline import WatcherPipeline
from tacit.watch.shelf import Shelf

_SESSIONS = 1000  # that are remembered
_BEGINNING = 60.0  # seconds after which a first turn that left no receipt is forgotten


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
        self._begun: Kept[Before] = Kept(_SESSIONS, time.monotonic)  # first turns without a receipt so far
        self._naming = threading.Lock()

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
        self._begun.drop(lambda key: key == session_key)

    def session_of(
        self,
        session_key: str,
        since: datetime,
        now: datetime,
        goes_on: Callable[[Before], bool],
        *,
        had_history: bool,
    ) -> tuple[str, bool]:
        """The id of a conversation that nobody named, and whether it begins. Turns that begin one at the same
        time begin the same one."""
        with self._naming:
            last = self._last(session_key, since)
            if last is not None and goes_on(last):
                return last.session_id, False
            begun = Before(now.isoformat(), f"{UNNAMED}{secrets.token_hex(4)}", had_history)
            self._begun.put(session_key, begun)
            return begun.session_id, True

    def join(
        self,
        session_key: str,
        session_id: str,
        since: datetime,
        now: datetime,
        goes_on: Callable[[Before], bool],
    ) -> None:
        """A transcript was begun for a conversation that went on without one: it stays the same."""
        with self._naming:
            last = self._last(session_key, since)
            if last is not None and last.session_id.startswith(UNNAMED) and goes_on(last):
                receipts.note_join(self.home, session_key, now, session_id, last.session_id)

    def _last(self, session_key: str, since: datetime) -> Before | None:
        """The turn before in this conversation, whichever process took it."""
        return self._begun.get(session_key, _BEGINNING) or self.given.last(session_key, since)

    def keep(self, receipt: Receipt, decisions: Sequence[Decision]) -> None:
        """Nobody can be told if a log cannot be written: doctor looks at the disk."""
        receipts.append(self.home, receipt)
        self.log.append(decisions, receipt.message)
        if not receipt.trial:
            self._begun.drop(lambda key: key == receipt.session_key)

    def newly_left(self, session_id: str, left: Sequence[Said]) -> Sequence[Said]:
        """Of the turns that no longer fit those that still did the last time."""
        fresh = newly(left, self._flushed.get(session_id))
        if left:
            if len(self._flushed) > _SESSIONS:
                self._flushed.pop(next(iter(self._flushed)))
            self._flushed[session_id] = mark(left[-1])
        return fresh
