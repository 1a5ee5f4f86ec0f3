"""The sessions that this process manages: which there are, which have their file open, and which one an event
belongs to."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Protocol

from tacit.clock import Clock
from tacit.config import Config
from tacit.home.layout import Home
from tacit.sessions.conversations import Conversations, SessionRecovery
from tacit.transcripts import writer
from tacit.transcripts.capture import Session
from tacit.transcripts.writer import SessionState


class SessionServices(Protocol):
    """What the registry uses of one home."""

    home: Home
    config: Config
    clock: Clock
    conversations: Conversations
    recovery: SessionRecovery


class SessionRef(NamedTuple):
    """Which session an event belongs to, as the host says."""

    session_key: str = "agent:main:main"
    session_id: str = ""  # a session of this key; empty: the open one, else a new one
    agent: str | None = None
    channel: str | None = None
    model: str | None = None


class FairLock:
    """A lock that is acquired in the order of the requests."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._is_taken = False
        self._waiting: deque[threading.Lock] = deque()

    def try_enter(self) -> bool:
        with self._mutex:
            is_free, self._is_taken = not self._is_taken, True
            return is_free

    def __enter__(self) -> None:
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        gate.acquire()  # wait for the one before us

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


class LiveSession:
    """One session that this process manages. Its attributes change only while its lock is held."""

    def __init__(self, session_id: str, about: SessionRef, used: float) -> None:
        self.session_id, self.about = session_id, about
        self.lock = FairLock()
        self.session: Session | None = None  # None: this process does not have its file open
        self.number = 0  # of its last event, while it is open
        self.last_used = used
        self.file_stamp: tuple[int, int] | None = None  # when the file was last checked
        self.is_new = False  # nothing of it is on disk yet
        self.is_over = False  # a caller that waited for the lock must resolve the session again


class SessionTable:
    """The live sessions by id and by key. Safe to use from several threads; its lock is never held while a
    file is read or written."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.by_id: dict[str, LiveSession] = {}
        self._by_key: dict[str, LiveSession] = {}
        self.with_file: OrderedDict[str, LiveSession] = OrderedDict()  # most recently used last

    def get(self, session_id: str) -> LiveSession | None:
        with self._mutex:
            return self.by_id.get(session_id)

    def find(self, about: SessionRef) -> LiveSession | None:
        with self._mutex:
            if not about.session_id:
                return self._by_key.get(about.session_key)
            names = islice(writer.candidate_session_ids(about.session_id, about.session_key), 2)
            candidates = [self.by_id[name] for name in names if name in self.by_id]
        return next((live for live in candidates if live.about.session_key == about.session_key), None)

    def add(self, live: LiveSession) -> LiveSession:
        """Add it, unless there is one with its id. Returns the one that is there."""
        with self._mutex:
            return self.by_id.setdefault(live.session_id, live)

    def register(self, live: LiveSession, about: SessionRef) -> LiveSession | None:
        """Make it the session of its key. None: there is one with its id and another key."""
        with self._mutex:
            if not about.session_id:
                live = self._by_key.get(about.session_key) or live
            live = self.by_id.setdefault(live.session_id, live)
            if live.about.session_key != about.session_key:
                return None
            self._by_key[about.session_key] = live
            return live

    def remove(self, live: LiveSession) -> None:
        live.is_over = True
        with self._mutex:
            self.with_file.pop(live.session_id, None)
            if self.by_id.get(live.session_id) is live:
                del self.by_id[live.session_id]
            for key in [key for key, other in self._by_key.items() if other is live]:
                del self._by_key[key]

    def note_file_open(self, live: LiveSession) -> None:
        with self._mutex:
            self.with_file[live.session_id] = live
            self.with_file.move_to_end(live.session_id)

    def note_file_closed(self, live: LiveSession) -> None:
        with self._mutex:
            self.with_file.pop(live.session_id, None)

    def list_with_file(self, *, beyond: int = 0, quiet_since: float | None = None) -> list[LiveSession]:
        """Sessions whose file is open, least recently used first. `beyond`: all but that many of the most
        recently used. `quiet_since`: those without an event since then."""
        with self._mutex:
            sessions = list(self.with_file.values())
        sessions = sessions[: max(0, len(sessions) - beyond)]
        return [live for live in sessions if quiet_since is None or live.last_used < quiet_since]


class SessionFinder:
    """Finds the session of an event: live, left open on disk by another process, or new."""

    def __init__(self, services: SessionServices, table: SessionTable, clock: Callable[[], float]) -> None:
        self.services, self._table, self._clock = services, table, clock

    def resolve(self, about: SessionRef) -> LiveSession:
        """The session that an event belongs to; a new one if there is none."""
        while True:
            live = self._table.find(about) or self._find_or_begin(self.with_own_id(about))
            registered = self._table.register(live, about)
            if registered is not None:  # else another thread just began a session with this id
                return registered

    def with_own_id(self, about: SessionRef) -> SessionRef:
        """With the id that the session has here: hosts may use one id under several keys."""
        if not about.session_id:
            return about
        return about._replace(
            session_id=writer.resolve_session_id(about.session_id, about.session_key, self._find_key)
        )

    def _find_key(self, session_id: str) -> str | None:
        live = self._table.get(session_id)
        return live.about.session_key if live else self.services.conversations.find_key(session_id)

    def _find_or_begin(self, about: SessionRef) -> LiveSession:
        live = self.find_on_disk(about)
        if live is None:
            live = LiveSession(about.session_id or f"ses_{secrets.token_hex(4)}", about, self._clock())
            live.is_new = True
        return live

    def find_on_disk(self, about: SessionRef) -> LiveSession | None:
        """A session that another process left open: the daemon was restarted, or a command began it."""
        if about.session_id:
            record = writer.find_state(self.services.home, about.session_id)
            fits = record is not None and record.opening.session_id == about.session_id
            return self.attach(record) if record is not None and fits and self.is_unsealed(record) else None
        records = [
            record
            for record in self.services.conversations.list_open()
            if record.opening.session_key == about.session_key
            and record.detached
            and self.is_unsealed(record)
        ]
        return self.attach(max(records, key=lambda record: record.opening.started)) if records else None

    def is_unsealed(self, record: SessionState) -> bool:
        if record.path is None:
            return True
        file = self.services.home.root / record.path
        with suppress(OSError):
            return not writer.is_sealed(file)
        return False

    def attach(self, record: SessionState) -> LiveSession:
        """The live session of a session that is on disk."""
        opening = record.opening
        existing = self._table.get(opening.session_id)
        if existing is not None:
            return existing
        about = SessionRef(
            opening.session_key, opening.session_id, opening.agent, opening.channel, opening.model
        )
        return LiveSession(opening.session_id, about, self._clock() - self._idle_seconds(record))

    def _idle_seconds(self, record: SessionState) -> float:
        try:
            written = (self.services.home.root / str(record.path)).stat().st_mtime
        except OSError:
            return 0.0
        return max(0.0, self.services.clock.now().timestamp() - written)


class SessionEntry:
    """Holds the lock of the resolved session; resolves again if it ended while we waited for the lock."""

    def __init__(self, resolve: Callable[[], LiveSession]) -> None:
        self._resolve = resolve
        self._live: LiveSession | None = None

    def __enter__(self) -> LiveSession:
        while True:
            live = self._resolve()
            live.lock.__enter__()
            if not live.is_over:
                self._live = live
                return live
            live.lock.__exit__()

    def __exit__(self, *error: object) -> None:
        assert self._live is not None
        self._live.lock.__exit__()
