"""In-memory caches of recent answers; a restart clears them.

There are two, both bounded:
- search results, by agent, session type, scope, hash of the question and state of the index: the same
  question within `inject.cache_seconds` is not searched again;
- the last answer of each session: a host that repeats a turn (a retry, a hook that fires twice) gets the same
  text again, although a session does not get a chunk twice. Not if the index changed since: the session's
  permissions may have changed with it.

When a session ends, begins or is reset, the entries of its agent are dropped.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from typing import Generic, NamedTuple, TypeVar

from tacit.context.model import Compiled, Quote
from tacit.search.model import Found, Scope

_MAX_RESULTS = 256
_MAX_SESSIONS = 1000

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
    quotes: tuple[Quote, ...]  # for file lanes; the host may get nothing


class TurnCache:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.found: Kept[Found] = Kept(_MAX_RESULTS, now)
        self.answers: Kept[CachedAnswer] = Kept(_MAX_SESSIONS, now)  # these three are keyed by session
        self.searched: Kept[bool] = Kept(_MAX_SESSIONS, now)  # set when a search begins
        self.agents: Kept[str] = Kept(_MAX_SESSIONS, now)  # the agents that they searched as

    def forget(self, session_key: str, agent: str) -> None:
        agents = {agent, self.agents.get(session_key, inf)}
        for cache in (self.answers, self.searched, self.agents):
            cache.drop(lambda key: key == session_key)
        self.found.drop(lambda key: isinstance(key, SearchKey) and key.agent in agents)


class Kept(Generic[_T]):
    """A bounded number of values, each with its age. Safe to use from several threads."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._max_values, self._now = most, now
        self._mutex = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def put(self, key: Hashable, value: _T) -> None:
        with self._mutex:
            self._store(key, value)

    def _store(self, key: Hashable, value: _T) -> None:
        self._values[key] = (self._now(), value)
        self._values.move_to_end(key)
        while len(self._values) > self._max_values:
            self._values.popitem(last=False)

    def claim(self, key: Hashable, value: _T, seconds: float) -> bool:
        """Store the value unless there is one that is not older than that. Of concurrent callers one wins."""
        with self._mutex:
            if seconds and self._get_fresh(key, seconds) is not None:
                return False
            self._store(key, value)
            return True

    def get(self, key: Hashable, seconds: float) -> _T | None:
        """The value, if it is not older than that."""
        with self._mutex:
            return self._get_fresh(key, seconds)

    def _get_fresh(self, key: Hashable, seconds: float) -> _T | None:
        stored_at, value = self._values.get(key, (0.0, None))
        return None if value is None or self._now() - stored_at > seconds else value

    def drop(self, goes: Callable[[Hashable], bool]) -> None:
        with self._mutex:
            for key in [key for key in self._values if goes(key)]:
                del self._values[key]

    def __len__(self) -> int:
        return len(self._values)
