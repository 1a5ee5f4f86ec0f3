"""What was stored before: events by the ids that hosts give them, and sessions that ended.

The newest are in memory, the others are found by the ids on disk (`EventIds`). Only a transcript proves that
an event was stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.home import files
from tacit.home.layout import Home
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.event_ids import EventIds, NotedEvent
from tacit.transcripts.model import Sealed

_MAX_REMEMBERED = 4096  # newest ids and newest ends that are kept in memory


class CaptureResult(NamedTuple):
    session_id: str  # empty: this agent's conversations are not captured
    number: int  # 0: there was nothing to store
    path: str | None
    again: bool = False  # it was stored before, under the same record id


class StoredEvents:
    """Safe to use from several threads."""

    def __init__(self, home: Home) -> None:
        self._home, self.ids = home, EventIds(home)
        self._mutex = threading.Lock()  # never held while reading or writing a file
        self._captures: OrderedDict[str, CaptureResult] = OrderedDict()  # by record id
        self._ends: OrderedDict[str, Sealed] = OrderedDict()  # by session id
        self._last_ids: OrderedDict[str, str] = OrderedDict()  # id of the session that ended last, by key

    def find_capture(self, record: str) -> CaptureResult | None:
        with self._mutex:
            result = self._captures.get(record)
        if result is None and (noted := self.ids.find(record)) is not None and noted.number > 0:
            path = next(
                (path for path in self._session_files(noted) if self._contains_event(path, noted)), None
            )
            result = CaptureResult(noted.session_id, noted.number, path) if path else None
        return result._replace(again=True) if result else None

    def remember_capture(self, record: str, result: CaptureResult) -> None:
        with self._mutex:
            self._captures[record] = result
            if len(self._captures) > _MAX_REMEMBERED:
                self._captures.popitem(last=False)

    def remember_end(self, session_key: str, sealed: Sealed) -> None:
        with self._mutex:
            self._ends[sealed.session_id] = sealed
            self._last_ids[session_key] = sealed.session_id
            for cache in (self._ends, self._last_ids):
                if len(cache) > _MAX_REMEMBERED:
                    cache.popitem(last=False)

    def forget_end(self, session_key: str, session_id: str) -> None:
        """The session goes on, or a new one of its key began."""
        with self._mutex:
            self._ends.pop(session_id, None)
            self._last_ids.pop(session_key, None)

    def find_last_id(self, session_key: str) -> str:
        """The id of the session of this key that ended last; empty: none."""
        with self._mutex:
            return self._last_ids.get(session_key, "")

    def find_end(self, session_id: str) -> Sealed | None:
        with self._mutex:
            return self._ends.get(session_id)

    def find_end_by_record(self, record: str) -> Sealed | None:
        noted = self.ids.find(record)
        if noted is None or noted.number or not noted.path:
            return None
        return self.read_seal(noted.session_id, noted.path)

    def read_seal(self, session_id: str, path: str) -> Sealed | None:
        file = self._home.root / path
        with suppress(OSError):
            if writer.is_sealed(file):
                return Sealed(session_id, path, files.digest(file.read_bytes()), None)
        return None

    def _session_files(self, noted: NotedEvent) -> Iterator[str]:
        """The transcript files of a session, newest first."""
        root = self._home.root
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(noted.session_id)}-*.md"
        yield from sorted((str(file.relative_to(root)) for file in root.glob(pattern)), reverse=True)

    def _contains_event(self, path: str, noted: NotedEvent) -> bool:
        """Whether the transcript contains the noted event, with the same number and time."""
        transcript = writer.attempt_load(self._home, path)
        if str(transcript.fields.get("session_id")) != noted.session_id:
            return False
        return any(
            turn.number == noted.number and _is_same_moment(turn.at, noted.at) for turn in transcript.turns
        )


def _is_same_moment(moment: datetime, noted: str) -> bool:
    try:
        other = datetime.fromisoformat(noted)
    except ValueError:
        return False
    if other.tzinfo is None:  # a time without a zone is local time
        return moment.replace(tzinfo=None) == other
    return moment.astimezone(UTC) == other.astimezone(UTC)
