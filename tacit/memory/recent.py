"""What was answered a moment ago, in memory only: a restart knows nothing of it.

Two things are kept, both bounded:
- what a search found, by agent, session type, scope, hash of the question and state of the index: the same
  question within `inject.cache_seconds` need not be searched again;
- the last answer of each session: a host that asks for the same turn again (a retry, a hook that fires twice)
  gets the same text again, although no passage is given twice in a session.

A session that ends, is new or is reset takes what was kept for its agent with it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from tacit.model.context import Compiled
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


class Recent:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.found: Kept[Found] = Kept(_FOUND, now)
        self.answers: Kept[tuple[str, Compiled]] = Kept(_SESSIONS, now)
        self.searched: Kept[bool] = Kept(_SESSIONS, now)  # by session: when something was last looked for

    def forget(self, session_key: str, agent: str) -> None:
        self.answers.drop(lambda key: key == session_key)
        self.searched.drop(lambda key: key == session_key)
        self.found.drop(lambda key: isinstance(key, Question) and key.agent == agent)

    def clear(self) -> None:
        self.answers.drop(lambda _: True)
        self.searched.drop(lambda _: True)
        self.found.drop(lambda _: True)


class Kept(Generic[_T]):
    """A bounded number of values, each with its age. Safe to use from several threads."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most, self._now = most, now
        self._mutex = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def put(self, key: Hashable, value: _T) -> None:
        with self._mutex:
            self._values[key] = (self._now(), value)
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def get(self, key: Hashable, seconds: float) -> _T | None:
        """If it is not older than that."""
        with self._mutex:
            at, value = self._values.get(key, (0.0, None))
            if value is None:
                return None
            if self._now() - at > seconds:
                return None
            return value

    def drop(self, goes: Callable[[Hashable], bool]) -> None:
        with self._mutex:
            for key in [key for key in self._values if goes(key)]:
                del self._values[key]

    def __len__(self) -> int:
        return len(self._values)
