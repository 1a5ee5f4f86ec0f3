"""The open sessions of a long-running process, by session key.

What must stay true:
- an event is on disk when `message` or `tool` returns, and an event that is sent again with its id is not
  stored again, even if the process died in between;
- an event of one session key is never stored in a session of another key, whatever id comes with it;
- events of one session are stored in the order they arrive, and sessions do not wait for each other;
- no event is refused because its session was finalized, moved or closed meanwhile.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Protocol

from tacit.clock import Clock
from tacit.config import Config
from tacit.errors import Busy, SessionError, TacitError
from tacit.home import files
from tacit.home.layout import Home
from tacit.sessions.conversations import Conversations
from tacit.sessions.recovery import RecoveryResult, SessionRecovery
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.capture import Session
from tacit.transcripts.event_ids import EventIds, NotedEvent
from tacit.transcripts.model import Sealed
from tacit.transcripts.writer import SessionState

_MAX_OPEN_FILES = 64  # transcripts open at the same time
_QUIET_TIMEOUT_S = 20.0  # without a message; then the transcript is closed, so that others can write to it
_MAX_REMEMBERED = 4096  # newest ids and newest ends that are kept in memory
_MAX_ATTEMPTS = 3  # another process may finalize a session while it is opened


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


class Kept(NamedTuple):
    session_id: str  # empty: this agent's conversations are not captured
    number: int  # 0: there was nothing to store
    path: str | None
    again: bool = False  # it was stored before, under the same record id


_NOT_CAPTURED = Kept("", 0, None)


def boot_seconds() -> float:
    """Seconds on a clock that cannot be set and that keeps running while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _FairLock:
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


class _LiveSession:
    """One session that this process manages. Its attributes change only while its lock is held."""

    def __init__(self, session_id: str, about: SessionRef, used: float) -> None:
        self.session_id, self.about = session_id, about
        self.lock = _FairLock()
        self.session: Session | None = None  # None: this process does not have its file open
        self.number = 0  # of its last event, while it is open
        self.last_used = used
        self.file_stamp: tuple[int, int] | None = None  # when the file was last checked
        self.is_new = False  # nothing of it is on disk yet
        self.is_over = False  # a caller that waited for the lock must resolve the session again


class SessionRegistry:
    """Safe to use from several threads."""

    def __init__(
        self,
        services: SessionServices,
        *,
        clock: Callable[[], float] = boot_seconds,
        most_open: int = _MAX_OPEN_FILES,
        quiet: float = _QUIET_TIMEOUT_S,
    ) -> None:
        self._services, self._clock = services, clock
        self._max_open, self._quiet_seconds = most_open, quiet
        self._mutex = threading.Lock()  # guards what follows; never held while reading or writing a file
        self._by_id: dict[str, _LiveSession] = {}
        self._by_key: dict[str, _LiveSession] = {}
        self._open: OrderedDict[str, _LiveSession] = OrderedDict()  # most recently used last
        self._recent_captures: OrderedDict[str, Kept] = OrderedDict()
        self._ended: OrderedDict[str, Sealed] = OrderedDict()  # by id
        self._ended_ids: OrderedDict[str, str] = OrderedDict()  # id of the session that ended last, by key
        self._ids = EventIds(services.home)
        self._needs_commit = True  # sessions that another process ended, or this one before a crash
        services.recovery.seals_idle = False

    def use(self, services: SessionServices) -> None:
        """Use these services, and their settings, from now on."""
        services.recovery.seals_idle = False
        self._services = services

    # ------------------------------------------------------------ events

    def message(
        self,
        about: SessionRef,
        role: str,
        text: str,
        *,
        at: datetime | None = None,
        speaker: str | None = None,
        record: str = "",
    ) -> Kept:
        return self._capture(
            about, record, at, lambda session, when: session.message(role, text, when, speaker)
        )

    def tool(
        self,
        about: SessionRef,
        name: str,
        summary: str,
        result: str = "",
        *,
        at: datetime | None = None,
        record: str = "",
    ) -> Kept:
        return self._capture(
            about, record, at, lambda session, when: session.tool(name, summary, result, when)
        )

    def _capture(
        self,
        about: SessionRef,
        record: str,
        moment: datetime | None,
        write: Callable[[Session, datetime], int],
    ) -> Kept:
        record = _scope_record_id(about, record)
        self._services.home.require()  # never write to the empty mount point of a missing disk
        if not self._services.conversations.is_captured(about.session_key, about.agent):
            return _NOT_CAPTURED
        with self._enter_session(about) as live:
            if record and (earlier := self._find_earlier_capture(record)):
                if live.is_new:
                    self._forget(live)
                return earlier
            result = self._append(live, about, record, moment or self._services.clock.now(), write)
            if record and result.number:
                self._remember(self._recent_captures, record, result)
        self._close_least_used()
        return result

    def _append(
        self,
        live: _LiveSession,
        about: SessionRef,
        record: str,
        moment: datetime,
        write: Callable[[Session, datetime], int],
    ) -> Kept:
        for attempts_left in reversed(range(_MAX_ATTEMPTS)):
            try:
                session = self._open_session(live, about)
                if not session.session_id:
                    self._forget(live)
                    return _NOT_CAPTURED
                if record:
                    self._ids.note(record, NotedEvent(live.session_id, live.number + 1, moment.isoformat()))
                number = self._write_event(record, session, moment, write)
            except (SessionError, Busy, PermissionError, FileNotFoundError):
                # Another process finalized it, perhaps between two of our steps: continue in a new part.
                self._detach(live)
                if not attempts_left or self._services.conversations.is_open(live.session_id):
                    raise
                continue
            except BaseException:
                self._discard_empty(live)
                raise
            return self._finish_event(live, session, number)
        raise AssertionError("unreachable")

    def _write_event(
        self, record: str, session: Session, moment: datetime, write: Callable[[Session, datetime], int]
    ) -> int:
        try:
            return write(session, moment)
        except Exception:
            if record:
                self._ids.take_back(record)
            raise

    def _finish_event(self, live: _LiveSession, session: Session, number: int) -> Kept:
        if not number:
            self._discard_empty(live)
            return Kept(live.session_id, 0, session.path)
        live.number, live.last_used = number, self._clock()
        with suppress(OSError):
            live.file_stamp = self._file_stamp(session.path)
        return Kept(live.session_id, number, session.path)

    def _discard_empty(self, live: _LiveSession) -> None:
        """Discard a session that was begun for an event that was not stored."""
        if live.session is not None and live.session.path is None:
            self._detach(live)
            self._forget(live)
            with suppress(TacitError, OSError):
                self._services.conversations.discard(live.session_id)

    # ------------------------------------------------------------ which session

    def _enter_session(self, about: SessionRef) -> _SessionEntry:
        return _SessionEntry(lambda: self._resolve(about))

    def _resolve(self, about: SessionRef) -> _LiveSession:
        while True:
            live = self._find_live(about) or self._find_or_begin(self._with_own_id(about))
            with self._mutex:
                if not about.session_id:
                    live = self._by_key.get(about.session_key) or live
                live = self._by_id.setdefault(live.session_id, live)
                if live.about.session_key != about.session_key:
                    continue  # another thread just began a session with this id
                self._by_key[about.session_key] = live
                self._ended.pop(live.session_id, None)
                self._ended_ids.pop(about.session_key, None)
                return live

    def _with_own_id(self, about: SessionRef) -> SessionRef:
        """With the id that the session has here: hosts may use one id under several keys."""
        if not about.session_id:
            return about
        return about._replace(
            session_id=writer.resolve_session_id(about.session_id, about.session_key, self._find_key)
        )

    def _find_key(self, session_id: str) -> str | None:
        with self._mutex:
            live = self._by_id.get(session_id)
        return live.about.session_key if live else self._services.conversations.find_key(session_id)

    def _find_live(self, about: SessionRef) -> _LiveSession | None:
        with self._mutex:
            if not about.session_id:
                return self._by_key.get(about.session_key)
            names = islice(writer.candidate_session_ids(about.session_id, about.session_key), 2)
            candidates = (self._by_id.get(name) for name in names)
            return next(
                (
                    candidate
                    for candidate in candidates
                    if candidate and candidate.about.session_key == about.session_key
                ),
                None,
            )

    def _find_or_begin(self, about: SessionRef) -> _LiveSession:
        live = self._find_on_disk(about)
        if live is None:
            live = _LiveSession(about.session_id or f"ses_{secrets.token_hex(4)}", about, self._clock())
            live.is_new = True
        return live

    def _find_on_disk(self, about: SessionRef) -> _LiveSession | None:
        """A session that another process left open: the daemon was restarted, or a command began it."""
        if about.session_id:
            record = writer.find_state(self._services.home, about.session_id)
            fits = record is not None and record.opening.session_id == about.session_id
            return (
                self._attach_record(record) if record is not None and fits and self._is_open(record) else None
            )
        records = [
            record
            for record in self._services.conversations.list_open()
            if record.opening.session_key == about.session_key and record.detached and self._is_open(record)
        ]
        return (
            self._attach_record(max(records, key=lambda record: record.opening.started)) if records else None
        )

    def _is_open(self, record: SessionState) -> bool:
        if record.path is None:
            return True
        file = self._services.home.root / record.path
        with suppress(OSError):
            return not writer.is_sealed(file)
        return False

    def _attach_record(self, record: SessionState) -> _LiveSession:
        opening = record.opening
        with self._mutex:
            existing = self._by_id.get(opening.session_id)
        if existing is not None:
            return existing
        about = SessionRef(
            opening.session_key, opening.session_id, opening.agent, opening.channel, opening.model
        )
        return _LiveSession(opening.session_id, about, self._clock() - self._idle_seconds(record))

    def _idle_seconds(self, record: SessionState) -> float:
        try:
            written = (self._services.home.root / str(record.path)).stat().st_mtime
        except OSError:
            return 0.0
        return max(0.0, self._services.clock.now().timestamp() - written)

    def _forget(self, live: _LiveSession) -> None:
        live.is_over = True
        with self._mutex:
            self._open.pop(live.session_id, None)
            if self._by_id.get(live.session_id) is live:
                del self._by_id[live.session_id]
            for key in [key for key, other in self._by_key.items() if other is live]:
                del self._by_key[key]

    # ------------------------------------------------------------ files that are open

    def _open_session(self, live: _LiveSession, about: SessionRef) -> Session:
        if live.session is None:
            live.session = self._services.conversations.open(
                about.session_key,
                about.agent or live.about.agent,
                about.channel or live.about.channel,
                about.model or live.about.model,
                live.session_id,
                detached=True,
                commit=False,
            )
            turns = live.session.turns()
            live.number = turns[-1].number if turns else 0
            live.is_new = False
        with self._mutex:
            self._open[live.session_id] = live
            self._open.move_to_end(live.session_id)
        return live.session

    def _detach(self, live: _LiveSession) -> None:
        session, live.session = live.session, None
        with self._mutex:
            self._open.pop(live.session_id, None)
        if session is not None:
            session.detach()

    def _close_least_used(self) -> None:
        with self._mutex:
            surplus = list(self._open.values())[: max(0, len(self._open) - self._max_open)]
        self._detach_free(surplus)

    def let_go_quiet(self) -> None:
        """Close transcripts without recent events, so that another process can write to them."""
        since = self._clock() - self._quiet_seconds
        with self._mutex:
            quiet = [live for live in self._open.values() if live.last_used < since]
        self._detach_free(quiet)

    def _detach_free(self, sessions: list[_LiveSession]) -> None:
        for live in sessions:
            if live.lock.try_enter():  # else it is being written to, so it stays open
                try:
                    self._detach(live)
                finally:
                    live.lock.__exit__()

    # ------------------------------------------------------------ events stored before

    def _find_earlier_capture(self, record: str) -> Kept | None:
        with self._mutex:
            result = self._recent_captures.get(record)
        if result is None and (noted := self._ids.find(record)) is not None and noted.number > 0:
            path = next(
                (path for path in self._session_files(noted) if self._contains_event(path, noted)), None
            )
            result = Kept(noted.session_id, noted.number, path) if path else None
        return result._replace(again=True) if result else None

    def _session_files(self, noted: NotedEvent) -> Iterator[str]:
        """The transcript files of a session, newest first."""
        root = self._services.home.root
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(noted.session_id)}-*.md"
        yield from sorted((str(file.relative_to(root)) for file in root.glob(pattern)), reverse=True)

    def _contains_event(self, path: str, noted: NotedEvent) -> bool:
        """Whether the transcript contains the noted event, with the same number and time."""
        transcript = writer.attempt_load(self._services.home, path)
        if str(transcript.fields.get("session_id")) != noted.session_id:
            return False
        return any(
            turn.number == noted.number and _is_same_moment(turn.at, noted.at) for turn in transcript.turns
        )

    def _remember(self, cache: OrderedDict[str, Kept], name: str, value: Kept) -> None:
        with self._mutex:
            cache[name] = value
            if len(cache) > _MAX_REMEMBERED:
                cache.popitem(last=False)

    # ------------------------------------------------------------ the end

    def end(
        self, about: SessionRef, *, at: datetime | None = None, tags: tuple[str, ...] = (), record: str = ""
    ) -> Sealed | None:
        """Finalize now; the commit follows in `commit_ended`. None: there were no events. Ending again
        returns the same answer. `record`: an id as for messages, so that a repeated end cannot end the
        session that began after it."""
        record = _scope_record_id(about, record)
        self._services.home.require()
        if record and (earlier := self._find_ended_by_record(record)):
            return earlier
        live = self._find_live(about)
        if live is None:
            about = self._with_own_id(about)
            live = self._find_on_disk(about)
        if live is None:
            return self._find_ended(about)
        with self._mutex:
            live = self._by_id.setdefault(live.session_id, live)
        with live.lock:
            if live.is_over or not self._is_still_open(live):  # another process was faster
                return self._find_ended(SessionRef(about.session_key, live.session_id))
            session = self._open_session(live, live.about)
            if record and session.path:
                self._ids.note(record, NotedEvent(live.session_id, 0, "", session.path))
            return self._finalize(live, session, at or self._services.clock.now(), tags)

    def _is_still_open(self, live: _LiveSession) -> bool:
        if live.session is None and not self._services.conversations.is_open(live.session_id):
            self._forget(live)
        return not live.is_over

    def _finalize(
        self, live: _LiveSession, session: Session, moment: datetime, tags: tuple[str, ...] = ()
    ) -> Sealed | None:
        try:
            sealed = session.end(moment, tags=tags)
        except BaseException:
            self._detach(live)
            raise
        live.session = None
        self._forget(live)
        if sealed is None:
            self._services.conversations.discard(live.session_id)
            return None
        self._needs_commit = True
        with self._mutex:
            self._ended[live.session_id] = sealed
            self._ended_ids[live.about.session_key] = live.session_id
            for cache in (self._ended, self._ended_ids):
                if len(cache) > _MAX_REMEMBERED:
                    cache.popitem(last=False)
        return sealed

    def _find_ended(self, about: SessionRef) -> Sealed | None:
        with self._mutex:
            session_id = about.session_id or self._ended_ids.get(about.session_key, "")
            if session_id in self._ended:
                return self._ended[session_id]
        path = self._services.conversations.find_last_part(session_id) if session_id else None
        return self._read_seal(session_id, path) if path else None

    def _find_ended_by_record(self, record: str) -> Sealed | None:
        noted = self._ids.find(record)
        if noted is None or noted.number or not noted.path:
            return None
        return self._read_seal(noted.session_id, noted.path)

    def _read_seal(self, session_id: str, path: str) -> Sealed | None:
        file = self._services.home.root / path
        with suppress(OSError):
            if writer.is_sealed(file):
                return Sealed(session_id, path, files.digest(file.read_bytes()), None)
        return None

    def commit_ended(self) -> RecoveryResult | None:
        """Commit the ended sessions. None: there are none."""
        if not self._needs_commit:
            return None
        self._needs_commit = False
        outcome = None
        try:
            outcome = self._services.recovery.recover()
        finally:
            waits = outcome is None or outcome.waiting
            if waits and self._services.config.git.auto_commit:
                self._needs_commit = True
        return outcome

    # ------------------------------------------------------------ idle sessions

    def seal_idle(self) -> list[str]:
        """Finalize sessions without events for capture.idle_seal_hours; return their paths.

        The wall clock can be set, so it only counts for the time before this process saw the session."""
        seconds = self._services.config.capture.idle_seal_hours * 3600
        sealed = []
        problems: list[str] = []
        for record in self._services.conversations.list_open():
            if record.detached and record.path and self._is_open(record):
                try:
                    if self._finalize_if_idle(self._update_activity(record), seconds):
                        sealed.append(record.path)
                except FileNotFoundError:
                    continue  # removed, and perhaps restored later
                except (TacitError, OSError, ValueError) as error:
                    problems.append(f"{record.path} could not be sealed: {error}")
        if problems:
            raise SessionError(" ".join(problems))
        return sealed

    def _update_activity(self, record: SessionState) -> _LiveSession:
        """The live session of a record, with the time of its last write brought up to date."""
        stamp = self._file_stamp(record.path)
        fresh = self._attach_record(record)
        with self._mutex:
            live = self._by_id.setdefault(record.opening.session_id, fresh)
        if live.file_stamp is not None and live.file_stamp != stamp:
            live.last_used = self._clock()
        live.file_stamp = stamp
        return live

    def _file_stamp(self, path: str | None) -> tuple[int, int]:
        info = os.stat(f"{self._services.home.root}/{path}")
        return info.st_mtime_ns, info.st_size

    def _finalize_if_idle(self, live: _LiveSession, seconds: float) -> bool:
        if self._clock() - live.last_used <= seconds:
            return False
        with live.lock:
            if self._clock() - live.last_used <= seconds or not self._is_still_open(live):
                return False
            try:
                session = self._open_session(live, live.about)
            except Busy:
                live.last_used = self._clock()  # another process writes to it, so it is not idle
                return False
            turns = session.turns()
            return (
                self._finalize(live, session, turns[-1].at if turns else self._services.clock.now())
                is not None
            )

    def close(self) -> None:
        """Close all sessions without finalizing them: they continue after a restart."""
        with self._mutex:
            sessions = list(self._open.values())
        for live in sessions:
            with live.lock, suppress(TacitError, OSError):
                self._detach(live)
        self._ids.close()
        self._services.recovery.seals_idle = True


class _SessionEntry:
    """Holds the lock of the resolved session; resolves again if it ended while we waited for the lock."""

    def __init__(self, resolve: Callable[[], _LiveSession]) -> None:
        self._resolve = resolve
        self._live: _LiveSession | None = None

    def __enter__(self) -> _LiveSession:
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


def _scope_record_id(about: SessionRef, record: str) -> str:
    """Make a record id unique: hosts may count the messages of each session from one."""
    return f"{about.session_key}\0{record}" if record else ""


def _is_same_moment(moment: datetime, noted: str) -> bool:
    try:
        other = datetime.fromisoformat(noted)
    except ValueError:
        return False
    if other.tzinfo is None:  # a time without a zone is local time
        return moment.replace(tzinfo=None) == other
    return moment.astimezone(UTC) == other.astimezone(UTC)
