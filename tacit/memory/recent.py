"""What was answered a moment ago, in memory only: a restart knows nothing of it.

Two things are kept, both bounded:
- what a search found, by agent, session type, scope, hash of the question and state of the index: the same
  question within `inject.cache_seconds` need not be searched again;
- the last answer of each session: a host that asks for the same turn again (a retry, a hook that fires twice)
  gets the same text again, although no passage is given twice in a session. Not when the index changed since:
  what the session may see may have changed with it.

A session that ends, is new or is reset takes what was kept for its agent with it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from typing import Generic, NamedTuple, TypeVar

from tacit.model.context import Compiled, Quote
from tacit.model.search import Found, Scope

_FOUND = 256
_SESSIONS = 1000

_T = TypeVar("_T")


class Question(NamedTuple):
    """All that decides what a search finds."""

    agent: str
    session_type: str
    scope: Scope
    words: str  # a hash
    limit: int
    day: str
    state: Hashable  # of the index and the topics


class Answer(NamedTuple):
    turn: str  # a hash of what was asked
    state: Hashable  # of the index and the topics, when it was asked
    compiled: Compiled
    quotes: tuple[Quote, ...]  # what the lanes that are files had, also where the host itself got nothing


class Recent:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.found: Kept[Found] = Kept(_FOUND, now)
        self.answers: Kept[Answer] = Kept(_SESSIONS, now)  # these three by session
        self.searched: Kept[bool] = Kept(_SESSIONS, now)  # when a search last began
        self.agents: Kept[str] = Kept(_SESSIONS, now)  # as whom it asked: a host may name one

    def forget(self, session_key: str, agent: str) -> None:
        agents = {agent, self.agents.get(session_key, inf)}
        for kept in (self.answers, self.searched, self.agents):
            kept.drop(lambda key: key == session_key)
        self.found.drop(lambda key: isinstance(key, Question) and key.agent in agents)


class Kept(Generic[_T]):
    """A bounded number of values, each with its age. Safe to use from several threads."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most, self._now = most, now
        self._mutex = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def put(self, key: Hashable, value: _T) -> None:
        with self._mutex:
            self._put(key, value)

    def _put(self, key: Hashable, value: _T) -> None:
        self._values[key] = (self._now(), value)
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    def claim(self, key: Hashable, value: _T, seconds: float) -> bool:
        """Put it there unless there is one that is not older than that. Of several at once one wins."""
        with self._mutex:
            if seconds and self._young(key, seconds) is not None:
                return False
            self._put(key, value)
            return True

    def get(self, key: Hashable, seconds: float) -> _T | None:
        """If it is not older than that."""
        with self._mutex:
            return self._young(key, seconds)

    def _young(self, key: Hashable, seconds: float) -> _T | None:
        at, value = self._values.get(key, (0.0, None))
        return None if value is None or self._now() - at > seconds else value

    def drop(self, goes: Callable[[Hashable], bool]) -> None:
        with self._mutex:
            for key in [key for key in self._values if goes(key)]:
                del self._values[key]

    def __len__(self) -> int:
        return len(self._values)
