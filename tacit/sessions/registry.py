"""The open sessions of a long-running process, by session key.

What must stay true:
- an event is on disk when `message` or `tool` returns, and an event that is sent again with its id is not
  stored again, even if the process died in between;
- an event of one session key is never stored in a session of another key, even if the ids are equal;
- events of one session are stored in the order they arrive, and sessions do not wait for each other;
- no event is refused because its session was finalized, moved or closed meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from tacit.errors import Busy, SessionError, TacitError
from tacit.sessions.conversations import RecoveryResult
from tacit.sessions.live_sessions import (
    LiveSession,
    SessionEntry,
    SessionFinder,
    SessionRef,
    SessionServices,
    SessionTable,
)
from tacit.sessions.stored_events import CaptureResult, StoredEvents
from tacit.transcripts.capture import Session
from tacit.transcripts.event_ids import NotedEvent
from tacit.transcripts.model import Sealed
from tacit.transcripts.writer import SessionState

_MAX_OPEN_FILES = 64  # transcripts open at the same time
_QUIET_TIMEOUT_S = 20.0  # without a message; then the transcript is closed, so that others can write to it
_MAX_ATTEMPTS = 3  # another process may finalize a session while it is opened


_NOT_CAPTURED = CaptureResult("", 0, None)


def boot_seconds() -> float:
    """Seconds on a clock that cannot be set and that keeps running while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


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
        self._table, self._events = SessionTable(), StoredEvents(services.home)
        self._finder = SessionFinder(services, self._table, clock)
        self._needs_commit = True  # sessions that another process ended, or this one before a crash
        services.recovery.seals_idle = False

    def use(self, services: SessionServices) -> None:
        """Use these services, and their settings, from now on."""
        services.recovery.seals_idle = False
        self._services = self._finder.services = services

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
    ) -> CaptureResult:
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
    ) -> CaptureResult:
        return self._capture(
            about, record, at, lambda session, when: session.tool(name, summary, result, when)
        )

    def _capture(
        self,
        about: SessionRef,
        record: str,
        moment: datetime | None,
        write: Callable[[Session, datetime], int],
    ) -> CaptureResult:
        record = _scope_record_id(about, record)
        self._services.home.require()  # never write to the empty mount point of a missing disk
        if not self._services.conversations.is_captured(about.session_key, about.agent):
            return _NOT_CAPTURED
        with SessionEntry(lambda: self._resolve(about)) as live:
            if record and (earlier := self._events.find_capture(record)):
                if live.is_new:
                    self._table.remove(live)
                return earlier
            result = self._append(live, about, record, moment or self._services.clock.now(), write)
            if record and result.number:
                self._events.remember_capture(record, result)
        self._close_least_used()
        return result

    def _append(
        self,
        live: LiveSession,
        about: SessionRef,
        record: str,
        moment: datetime,
        write: Callable[[Session, datetime], int],
    ) -> CaptureResult:
        for attempts_left in reversed(range(_MAX_ATTEMPTS)):
            try:
                session = self._open_session(live, about)
                if not session.session_id:
                    self._table.remove(live)
                    return _NOT_CAPTURED
                if record:
                    self._events.ids.note(
                        record, NotedEvent(live.session_id, live.number + 1, moment.isoformat())
                    )
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
                self._events.ids.take_back(record)
            raise

    def _finish_event(self, live: LiveSession, session: Session, number: int) -> CaptureResult:
        if not number:
            self._discard_empty(live)
            return CaptureResult(live.session_id, 0, session.path)
        live.number, live.last_used = number, self._clock()
        with suppress(OSError):
            live.file_stamp = self._stamp(session.path)
        return CaptureResult(live.session_id, number, session.path)

    def _discard_empty(self, live: LiveSession) -> None:
        """Discard a session that was begun for an event that was not stored."""
        if live.session is not None and live.session.path is None:
            self._detach(live)
            self._table.remove(live)
            with suppress(TacitError, OSError):
                self._services.conversations.discard(live.session_id)

    def _resolve(self, about: SessionRef) -> LiveSession:
        live = self._finder.resolve(about)
        self._events.forget_end(about.session_key, live.session_id)
        return live

    def _stamp(self, path: str | None) -> tuple[int, int]:
        info = os.stat(f"{self._services.home.root}/{path}")
        return info.st_mtime_ns, info.st_size

    # ------------------------------------------------------------ files that are open

    def _open_session(self, live: LiveSession, about: SessionRef) -> Session:
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
        self._table.note_file_open(live)
        return live.session

    def _detach(self, live: LiveSession) -> None:
        session, live.session = live.session, None
        self._table.note_file_closed(live)
        if session is not None:
            session.detach()

    def _close_least_used(self) -> None:
        self._detach_free(self._table.list_with_file(beyond=self._max_open))

    def let_go_quiet(self) -> None:
        """Close transcripts without recent events, so that another process can write to them."""
        since = self._clock() - self._quiet_seconds
        self._detach_free(self._table.list_with_file(quiet_since=since))

    def _detach_free(self, sessions: list[LiveSession]) -> None:
        for live in sessions:
            if live.lock.try_enter():  # else it is being written to, so it stays open
                try:
                    self._detach(live)
                finally:
                    live.lock.__exit__()

    # ------------------------------------------------------------ the end

    def end(
        self, about: SessionRef, *, at: datetime | None = None, tags: tuple[str, ...] = (), record: str = ""
    ) -> Sealed | None:
        """Finalize now; the commit follows in `commit_ended_sessions`. None: there were no events. Ending
        again returns the same answer. `record`: an id as for messages, so that a repeated end cannot end the
        session that began after it."""
        record = _scope_record_id(about, record)
        self._services.home.require()
        if record and (earlier := self._events.find_end_by_record(record)):
            return earlier
        live = self._table.find(about)
        if live is None:
            about = self._finder.with_own_id(about)
            live = self._finder.find_on_disk(about)
        if live is None:
            return self._find_end(about)
        live = self._table.add(live)
        with live.lock:
            if live.is_over or not self._is_still_open(live):  # another process was faster
                return self._find_end(SessionRef(about.session_key, live.session_id))
            session = self._open_session(live, live.about)
            if record and session.path:
                self._events.ids.note(record, NotedEvent(live.session_id, 0, "", session.path))
            return self._finalize(live, session, at or self._services.clock.now(), tags)

    def _is_still_open(self, live: LiveSession) -> bool:
        if live.session is None and not self._services.conversations.is_open(live.session_id):
            self._table.remove(live)
        return not live.is_over

    def _finalize(
        self, live: LiveSession, session: Session, moment: datetime, tags: tuple[str, ...] = ()
    ) -> Sealed | None:
        try:
            sealed = session.end(moment, tags=tags)
        except BaseException:
            self._detach(live)
            raise
        live.session = None
        self._table.remove(live)
        if sealed is None:
            self._services.conversations.discard(live.session_id)
            return None
        self._needs_commit = True
        self._events.remember_end(live.about.session_key, sealed)
        return sealed

    def _find_end(self, about: SessionRef) -> Sealed | None:
        session_id = about.session_id or self._events.find_last_id(about.session_key)
        if ended := self._events.find_end(session_id):
            return ended
        path = self._services.conversations.find_last_part(session_id) if session_id else None
        return self._events.read_seal(session_id, path) if path else None

    def commit_ended_sessions(self) -> RecoveryResult | None:
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
            if record.detached and record.path and self._finder.is_unsealed(record):
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

    def _update_activity(self, record: SessionState) -> LiveSession:
        """The live session of a record, with the time of its last write brought up to date."""
        stamp = self._stamp(record.path)
        live = self._table.add(self._finder.attach(record))
        if live.file_stamp is not None and live.file_stamp != stamp:
            live.last_used = self._clock()
        live.file_stamp = stamp
        return live

    def _finalize_if_idle(self, live: LiveSession, seconds: float) -> bool:
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
        for live in self._table.list_with_file():
            with live.lock, suppress(TacitError, OSError):
                self._detach(live)
        self._events.ids.close()
        self._services.recovery.seals_idle = True


def _scope_record_id(about: SessionRef, record: str) -> str:
    """Make a record id unique: hosts may count the messages of each session from one."""
    return f"{about.session_key}\0{record}" if record else ""
