"""What the compiler remembers between the turns of a home: the injection log, recent answers, topic watchers.

Recent answers are in memory only, and bounded:

- search results, by agent, session type, scope, hash of the question and state of the index: the same
  question within `inject.cache_seconds` is not searched again;
- the last answer of each session: a host that repeats a turn (a retry, a hook that fires twice) gets the same
  text again, although a session does not get a chunk twice. Not if the index changed since: the session's
  permissions may have changed with it.

When a session ends, begins or is reset, the entries of its agent are dropped.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from math import inf
from typing import Generic, NamedTuple, TypeVar

from tacit.config import Config
from tacit.context import receipts
from tacit.context.history_window import turn_digest, turns_after
from tacit.context.home_view import HomeView
from tacit.context.injection_log import UNNAMED_PREFIX, InjectionLog, LastTurn
from tacit.context.model import Compiled, Quote, Receipt
from tacit.home.layout import Home
from tacit.search.model import Found, Scope
from tacit.sessions.policy import SessionProfile
from tacit.topics.activation import GatedActivator
from tacit.topics.decision_log import GateLog
from tacit.topics.model import TopicDecision
from tacit.topics.parser import TopicLoader
from tacit.topics.pipeline import WatcherPipeline
from tacit.transcripts.attribution import Utterance

_MAX_RESULTS = 256  # of searches
_MAX_SESSIONS = 1000  # per cache
_BEGINNING_TTL_S = 60.0  # how long a first turn without a receipt is remembered

_T = TypeVar("_T")


class SearchKey(NamedTuple):
    """Everything that determines the result of a search."""

    agent: str
    session_type: str
    scope: Scope
    words: str  # a hash
    limit: int
    day: str
    state: Hashable  # of the index and the topics


class CachedAnswer(NamedTuple):
    turn: str  # a hash of the request
    state: Hashable  # of the index and the topics at that time
    compiled: Compiled
    quotes: tuple[Quote, ...]  # for the files of the session; the host may get nothing


class ExpiringCache(Generic[_T]):
    """A bounded number of values, each with its age. Safe to use from several threads."""

    def __init__(self, max_values: int, now: Callable[[], float] = time.monotonic) -> None:
        self._max_values, self._now = max_values, now
        self._mutex = threading.RLock()
        self._values: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def put(self, key: Hashable, value: _T) -> None:
        with self._mutex:
            self._values[key] = (self._now(), value)
            self._values.move_to_end(key)
            while len(self._values) > self._max_values:
                self._values.popitem(last=False)

    def claim(self, key: Hashable, value: _T, seconds: float) -> bool:
        """Store the value unless there is one that is not older than that. Of concurrent callers one wins."""
        with self._mutex:
            if seconds and self.get(key, seconds) is not None:
                return False
            self.put(key, value)
            return True

    def get(self, key: Hashable, seconds: float) -> _T | None:
        """The value, if it is not older than that."""
        with self._mutex:
            stored_at, value = self._values.get(key, (0.0, None))
            return None if value is None or self._now() - stored_at > seconds else value

    def drop(self, is_stale: Callable[[Hashable], bool]) -> None:
        with self._mutex:
            for key in [key for key in self._values if is_stale(key)]:
                del self._values[key]

    def __len__(self) -> int:
        return len(self._values)


class TurnCache:
    """Recent answers. All but the search results are by session key."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.results: ExpiringCache[Found] = ExpiringCache(_MAX_RESULTS, now)
        self.answers: ExpiringCache[CachedAnswer] = ExpiringCache(_MAX_SESSIONS, now)
        self.searches: ExpiringCache[bool] = ExpiringCache(_MAX_SESSIONS, now)  # set when a search begins
        self.agents: ExpiringCache[str] = ExpiringCache(_MAX_SESSIONS, now)  # that they searched as

    def forget(self, session_key: str, agent: str) -> None:
        agents = {agent, self.agents.get(session_key, inf)}
        for cache in (self.answers, self.searches, self.agents):
            cache.drop(lambda key: key == session_key)
        self.results.drop(lambda key: isinstance(key, SearchKey) and key.agent in agents)


class CompilerState:
    """Safe to use from several threads."""

    def __init__(
        self,
        home: Home,
        config: Config,
        gate: Callable[[], GatedActivator],
        profile_of: Callable[..., SessionProfile],
    ) -> None:
        self.home, self.config, self.profile_of = home, config, profile_of
        self.injections = InjectionLog(home)
        self.decisions = GateLog(home)
        self.recent = TurnCache()
        self._make_gate = gate
        self._cached_pipeline: tuple[TopicLoader, int, WatcherPipeline] | None = None
        self._last_flushed: dict[str, str] = {}  # digest of a turn, by session id
        self._beginnings: ExpiringCache[LastTurn] = ExpiringCache(_MAX_SESSIONS)  # without a receipt yet
        self._naming_lock = threading.Lock()

    def pipeline(self, view: HomeView) -> WatcherPipeline:
        """The watchers of the current topics. Rebuilt when a topic changes."""
        loader, cached = view.shelf(), self._cached_pipeline
        if cached is None or cached[0] is not loader or cached[1] != loader.generation:
            threshold = self.config.watchers.similarity_threshold
            pipeline = WatcherPipeline(loader.topics, self._make_gate(), threshold)
            self._cached_pipeline = cached = (loader, loader.generation, pipeline)
        return cached[2]

    def end_session(self, session_key: str, agent: str) -> None:
        """Forget the session: the next conversation of this key does not contain what was injected before."""
        self.recent.forget(session_key, agent)
        self._beginnings.drop(lambda key: key == session_key)

    def session_of(
        self,
        session_key: str,
        since: datetime,
        now: datetime,
        continues: Callable[[LastTurn], bool],
        *,
        had_history: bool,
    ) -> tuple[str, bool]:
        """The id of a session without a given id, and whether it begins now. Concurrent first turns begin the
        same session."""
        with self._naming_lock:
            last = self._last_turn(session_key, since)
            if last is not None and continues(last):
                return last.session_id, False
            beginning = LastTurn(now.isoformat(), f"{UNNAMED_PREFIX}{secrets.token_hex(4)}", had_history)
            self._beginnings.put(session_key, beginning)
            return beginning.session_id, True

    def join(
        self,
        session_key: str,
        session_id: str,
        since: datetime,
        now: datetime,
        continues: Callable[[LastTurn], bool],
    ) -> None:
        """A transcript was begun for a running conversation: note that both are the same session."""
        with self._naming_lock:
            last = self._last_turn(session_key, since)
            if last is not None and last.session_id.startswith(UNNAMED_PREFIX) and continues(last):
                receipts.note_join(self.home, session_key, now, session_id, last.session_id)

    def _last_turn(self, session_key: str, since: datetime) -> LastTurn | None:
        """The previous turn of this conversation, in any process."""
        return self._beginnings.get(session_key, _BEGINNING_TTL_S) or self.injections.last_turn(
            session_key, since
        )

    def log_turn(self, receipt: Receipt, decisions: Sequence[TopicDecision]) -> None:
        """Write the logs. Errors are not reported here: doctor checks the disk."""
        receipts.append(self.home, receipt)
        self.decisions.append(decisions, receipt.message)
        if not receipt.trial:  # the session is in the log now
            self._beginnings.drop(lambda key: key == receipt.session_key)

    def turns_to_flush(self, session_id: str, left: Sequence[Utterance]) -> Sequence[Utterance]:
        """The turns that no longer fit but did the last time."""
        fresh = turns_after(left, self._last_flushed.get(session_id))
        if left:
            if len(self._last_flushed) > _MAX_SESSIONS:
                self._last_flushed.pop(next(iter(self._last_flushed)))
            self._last_flushed[session_id] = turn_digest(left[-1])
        return fresh
