"""State between the turns of a home: the injection log, cached answers, and the topic watchers."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from tacit.config import Config
from tacit.context import receipts
from tacit.context.cache import Kept, TurnCache
from tacit.context.history_window import turn_digest, turns_after
from tacit.context.home_view import HomeView
from tacit.context.injection_log import UNNAMED_PREFIX, InjectionLog, LastTurn
from tacit.context.model import Receipt
from tacit.home.layout import Home
from tacit.learn.model import Said
from tacit.sessions.policy import SessionProfile
from tacit.topics.decision_log import GateLog
from tacit.topics.loader import TopicLoader
from tacit.topics.model import TopicDecision
from tacit.topics.model_gate import GatedActivator
from tacit.topics.pipeline import WatcherPipeline

_MAX_SESSIONS = 1000  # with a remembered flush
_BEGINNING_TTL_S = 60.0  # how long a first turn without a receipt is remembered


class CompilerState:
    """Safe to use from several threads."""

    def __init__(
        self,
        home: Home,
        config: Config,
        gate: Callable[[], GatedActivator],
        profile_of: Callable[..., SessionProfile],
    ) -> None:
        self.home, self.config = home, config
        self._make_gate = gate
        self.given = InjectionLog(home)
        self.log = GateLog(home)
        self._cached_pipeline: tuple[TopicLoader, int, WatcherPipeline] | None = None
        self.profile_of = profile_of
        self.recent = TurnCache()
        self._flushed: dict[str, str] = {}
        self._begun: Kept[LastTurn] = Kept(
            _MAX_SESSIONS, time.monotonic
        )  # first turns that have no receipt yet
        self._naming_lock = threading.Lock()

    def pipeline(self, view: HomeView) -> WatcherPipeline:
        """The watchers of the current topics. Rebuilt when a topic changes."""
        shelf = view.shelf()
        if (
            self._cached_pipeline is None
            or self._cached_pipeline[0] is not shelf
            or self._cached_pipeline[1] != shelf.generation
        ):
            threshold = self.config.watchers.similarity_threshold
            self._cached_pipeline = (
                shelf,
                shelf.generation,
                WatcherPipeline(shelf.topics, self._make_gate(), threshold),
            )
        return self._cached_pipeline[2]

    def ended(self, session_key: str, agent: str) -> None:
        """Forget the session: the next conversation of this key does not contain what was injected before."""
        self.recent.forget(session_key, agent)
        self._begun.drop(lambda key: key == session_key)

    def session_of(
        self,
        session_key: str,
        since: datetime,
        now: datetime,
        goes_on: Callable[[LastTurn], bool],
        *,
        had_history: bool,
    ) -> tuple[str, bool]:
        """The id of a session without a given id, and whether it begins now. Concurrent first turns begin the
        same session."""
        with self._naming_lock:
            last = self._last_turn(session_key, since)
            if last is not None and goes_on(last):
                return last.session_id, False
            begun = LastTurn(now.isoformat(), f"{UNNAMED_PREFIX}{secrets.token_hex(4)}", had_history)
            self._begun.put(session_key, begun)
            return begun.session_id, True

    def join(
        self,
        session_key: str,
        session_id: str,
        since: datetime,
        now: datetime,
        goes_on: Callable[[LastTurn], bool],
    ) -> None:
        """A transcript was begun for a running conversation: note that both are the same session."""
        with self._naming_lock:
            last = self._last_turn(session_key, since)
            if last is not None and last.session_id.startswith(UNNAMED_PREFIX) and goes_on(last):
                receipts.note_join(self.home, session_key, now, session_id, last.session_id)

    def _last_turn(self, session_key: str, since: datetime) -> LastTurn | None:
        """The previous turn of this conversation, in any process."""
        return self._begun.get(session_key, _BEGINNING_TTL_S) or self.given.last(session_key, since)

    def keep(self, receipt: Receipt, decisions: Sequence[TopicDecision]) -> None:
        """Write the logs. Errors are not reported here: doctor checks the disk."""
        receipts.append(self.home, receipt)
        self.log.append(decisions, receipt.message)
        if not receipt.trial:
            self._begun.drop(lambda key: key == receipt.session_key)

    def newly_left(self, session_id: str, left: Sequence[Said]) -> Sequence[Said]:
        """The turns that no longer fit but did the last time."""
        fresh = turns_after(left, self._flushed.get(session_id))
        if left:
            if len(self._flushed) > _MAX_SESSIONS:
                self._flushed.pop(next(iter(self._flushed)))
            self._flushed[session_id] = turn_digest(left[-1])
        return fresh
