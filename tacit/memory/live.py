"""class Conversations: the open sessions of a process that lives on between messages, by session key.

What must stay true:
- a record is on disk when `message` or `tool` returns, and one that is sent again with its id is not kept
  again, also when the process died in between;
- what is said under one session key is never kept in a session of another, whatever id comes with it;
- messages of one session are kept in the order they came in, and those of different sessions do not wait
  for each other;
- nothing that is said is refused because its session was sealed, moved or let go of meanwhile.
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
from typing import TYPE_CHECKING, NamedTuple

from tacit.capture import Session
from tacit.errors import Busy, SessionError, TacitError
from tacit.model.turns import Sealed
from tacit.sessions.agents import agents_of, excluded_agent, is_own_work
from tacit.store import files, transcripts
from tacit.store.record_ids import Noted, RecordIds
from tacit.store.transcripts import Record
from tacit.text import transcript as form

if TYPE_CHECKING:
    from tacit.memory.memory import Memory, Worked

_OPEN = 64  # transcripts that are held open at the same time
_QUIET = 20.0  # seconds without a message after which one is let go of, so that others can write to it
_REMEMBERED = 4096  # newest ids, and newest ends, that need no look at the disk
_TRIES = 3  # a session may be sealed by somebody else while it is opened


class About(NamedTuple):
    """Which session a record belongs to, as the host says."""

    session_key: str = "agent:main:main"
    session_id: str = ""  # of those under this key; empty: the one that is open, else a new one
    agent: str | None = None
    channel: str | None = None
    model: str | None = None


class Kept(NamedTuple):
    session_id: str  # empty: this agent's conversations are not kept
    number: int  # 0: there was nothing to keep
    path: str | None
    again: bool = False  # it was kept before, under the same record id


_UNKEPT = Kept("", 0, None)


def steady() -> float:
    """Seconds on a clock that nobody can set, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _Line:
    """A lock that is given in the order in which it was asked for."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    def try_enter(self) -> bool:
        with self._mutex:
            is_free, self._taken = not self._taken, True
            return is_free

    def __enter__(self) -> None:
        with self._mutex:
            if not self._taken:
                self._taken = True
                return
            gate = threading.Lock()
            gate.acquire()
            self._waiting.append(gate)
        gate.acquire()  # until the one before us is done

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
                self._taken = False


class _Held:
    """One session that this process answers for. What is in it changes only in its line."""

    def __init__(self, session_id: str, about: About, used: float) -> None:
        self.session_id, self.about = session_id, about
        self.line = _Line()
        self.session: Session | None = None  # None: nobody has its file open
        self.number = 0  # of its last record, while it is open
        self.used = used
        self.stamp: tuple[int, int] | None = None  # of its file, when it was last looked at
        self.is_new = False  # there is nothing of it on disk
        self.is_over = False  # who waited in the line must ask again which session is meant


class Conversations:
    """Safe to use from several threads."""

    def __init__(
        self,
        memory: Memory,
        *,
        clock: Callable[[], float] = steady,
        most_open: int = _OPEN,
        quiet: float = _QUIET,
    ) -> None:
        self._memory, self._clock = memory, clock
        self._most_open, self._quiet = most_open, quiet
        self._mutex = threading.Lock()  # of what follows; nobody reads or writes a file while holding it
        self._by_id: dict[str, _Held] = {}
        self._by_key: dict[str, _Held] = {}
        self._open: OrderedDict[str, _Held] = OrderedDict()  # the one that was used last comes last
        self._recent: OrderedDict[str, Kept] = OrderedDict()
        self._ended: OrderedDict[str, Sealed] = OrderedDict()  # by id
        self._ended_under: OrderedDict[str, str] = OrderedDict()  # the id of the one that ended last, by key
        self._ids = RecordIds(memory.home)
        self._to_commit = True  # what another process ended, or this one before a crash
        memory.seals_idle = False

    def use(self, memory: Memory) -> None:
        """From now on with these settings."""
        memory.seals_idle = False
        self._memory = memory

    # ------------------------------------------------------------ what is said

    def message(
        self,
        about: About,
        role: str,
        text: str,
        *,
        at: datetime | None = None,
        speaker: str | None = None,
        record: str = "",
    ) -> Kept:
        return self._keep(about, record, at, lambda session, when: session.message(role, text, when, speaker))

    def tool(
        self,
        about: About,
        name: str,
        summary: str,
        result: str = "",
        *,
        at: datetime | None = None,
        record: str = "",
    ) -> Kept:
        return self._keep(about, record, at, lambda session, when: session.tool(name, summary, result, when))

    def _keep(
        self, about: About, record: str, at: datetime | None, put: Callable[[Session, datetime], int]
    ) -> Kept:
        record = _of_key(about, record)
        self._memory.home.require()  # an empty folder where a disk was is no place to keep anything
        if not self._is_kept(about):
            return _UNKEPT
        with self._in_line(about) as held:
            if record and (before := self._kept_before(record)):
                if held.is_new:
                    self._forget(held)
                return before
            kept = self._put(held, about, record, at or self._memory.moment(), put)
            if record and kept.number:
                self._remember(self._recent, record, kept)
        self._close_least_used()
        return kept

    def _is_kept(self, about: About) -> bool:
        capture = self._memory.config.capture
        agents = agents_of(about.session_key, about.agent)
        if is_own_work(about.session_key):
            return False
        return capture.enabled and not excluded_agent(agents, capture.exclude_agents)

    def _put(
        self,
        held: _Held,
        about: About,
        record: str,
        at: datetime,
        put: Callable[[Session, datetime], int],
    ) -> Kept:
        for left in reversed(range(_TRIES)):
            try:
                session = self._opened(held, about)
                if not session.session_id:
                    self._forget(held)
                    return _UNKEPT
                if record:
                    self._ids.note(record, Noted(held.session_id, held.number + 1, at.isoformat()))
                number = self._written(record, session, at, put)
            except (SessionError, Busy, PermissionError, FileNotFoundError):
                # Sealed by somebody else, perhaps between two steps of ours: it goes on in a new part.
                self._let_go(held)
                if not left or self._memory.knows(held.session_id):
                    raise
                continue
            except BaseException:
                self._discard_empty(held)
                raise
            return self._done(held, session, number)
        raise AssertionError("unreachable")

    def _written(
        self, record: str, session: Session, at: datetime, put: Callable[[Session, datetime], int]
    ) -> int:
        try:
            return put(session, at)
        except Exception:
            if record:
                self._ids.take_back(record)
            raise

    def _done(self, held: _Held, session: Session, number: int) -> Kept:
        if not number:
            self._discard_empty(held)
            return Kept(held.session_id, 0, session.path)
        held.number, held.used = number, self._clock()
        with suppress(OSError):
            held.stamp = self._stamp_of(session.path)
        return Kept(held.session_id, number, session.path)

    def _discard_empty(self, held: _Held) -> None:
        """A session that was begun for something that is not kept never began."""
        if held.session is not None and held.session.path is None:
            self._let_go(held)
            self._forget(held)
            with suppress(TacitError, OSError):
                self._memory.discard(held.session_id)

    # ------------------------------------------------------------ which session

    def _in_line(self, about: About) -> _Entered:
        return _Entered(lambda: self._meant(about))

    def _meant(self, about: About) -> _Held:
        while True:
            held = self._known(about) or self._found_or_new(self._own(about))
            with self._mutex:
                if not about.session_id:
                    held = self._by_key.get(about.session_key) or held
                held = self._by_id.setdefault(held.session_id, held)
                if held.about.session_key != about.session_key:
                    continue  # somebody else began one with this id just now
                self._by_key[about.session_key] = held
                self._ended.pop(held.session_id, None)
                self._ended_under.pop(about.session_key, None)
                return held

    def _own(self, about: About) -> About:
        """With the id that its session has here, as more than one key may come with the same."""
        if not about.session_id:
            return about
        return about._replace(
            session_id=transcripts.own_name(about.session_id, about.session_key, self._key_of)
        )

    def _key_of(self, session_id: str) -> str | None:
        with self._mutex:
            held = self._by_id.get(session_id)
        return held.about.session_key if held else self._memory.key_of(session_id)

    def _known(self, about: About) -> _Held | None:
        with self._mutex:
            if not about.session_id:
                return self._by_key.get(about.session_key)
            names = islice(transcripts.own_names(about.session_id, about.session_key), 2)
            found = (self._by_id.get(name) for name in names)
            return next((one for one in found if one and one.about.session_key == about.session_key), None)

    def _found_or_new(self, about: About) -> _Held:
        held = self._found(about)
        if held is None:
            held = _Held(about.session_id or f"ses_{secrets.token_hex(4)}", about, self._clock())
            held.is_new = True
        return held

    def _found(self, about: About) -> _Held | None:
        """The one that an earlier process left open: the daemon was started again, or a command began it."""
        if about.session_id:
            record = transcripts.find_record(self._memory.home, about.session_id)
            fits = record is not None and record.opening.session_id == about.session_id
            return self._held_of(record) if record is not None and fits and self._is_open(record) else None
        mine = [
            record
            for record in self._memory.open_sessions()
            if record.opening.session_key == about.session_key and record.detached and self._is_open(record)
        ]
        return self._held_of(max(mine, key=lambda one: one.opening.started)) if mine else None

    def _is_open(self, record: Record) -> bool:
        if record.path is None:
            return True
        file = self._memory.home.root / record.path
        with suppress(OSError):
            return not transcripts.is_sealed(file)
        return False

    def _held_of(self, record: Record) -> _Held:
        opening = record.opening
        with self._mutex:
            known = self._by_id.get(opening.session_id)
        if known is not None:
            return known
        about = About(opening.session_key, opening.session_id, opening.agent, opening.channel, opening.model)
        return _Held(opening.session_id, about, self._clock() - self._idle_by_the_wall(record))

    def _idle_by_the_wall(self, record: Record) -> float:
        try:
            written = (self._memory.home.root / str(record.path)).stat().st_mtime
        except OSError:
            return 0.0
        return max(0.0, self._memory.moment().timestamp() - written)

    def _forget(self, held: _Held) -> None:
        held.is_over = True
        with self._mutex:
            self._open.pop(held.session_id, None)
            if self._by_id.get(held.session_id) is held:
                del self._by_id[held.session_id]
            for key in [key for key, one in self._by_key.items() if one is held]:
                del self._by_key[key]

    # ------------------------------------------------------------ files that are open

    def _opened(self, held: _Held, about: About) -> Session:
        if held.session is None:
            held.session = self._memory.session(
                about.session_key,
                about.agent or held.about.agent,
                about.channel or held.about.channel,
                about.model or held.about.model,
                held.session_id,
                detached=True,
                commit=False,
            )
            turns = held.session.turns()
            held.number = turns[-1].number if turns else 0
            held.is_new = False
        with self._mutex:
            self._open[held.session_id] = held
            self._open.move_to_end(held.session_id)
        return held.session

    def _let_go(self, held: _Held) -> None:
        session, held.session = held.session, None
        with self._mutex:
            self._open.pop(held.session_id, None)
        if session is not None:
            session.detach()

    def _close_least_used(self) -> None:
        with self._mutex:
            surplus = list(self._open.values())[: max(0, len(self._open) - self._most_open)]
        self._let_go_of(surplus)

    def let_go_quiet(self) -> None:
        """Close what nobody wrote to for a while: another process may want to."""
        before = self._clock() - self._quiet
        with self._mutex:
            quiet = [held for held in self._open.values() if held.used < before]
        self._let_go_of(quiet)

    def _let_go_of(self, some: list[_Held]) -> None:
        for held in some:
            if held.line.try_enter():  # else it is being written to, which is reason enough to keep it
                try:
                    self._let_go(held)
                finally:
                    held.line.__exit__()

    # ------------------------------------------------------------ what was kept before

    def _kept_before(self, record: str) -> Kept | None:
        with self._mutex:
            kept = self._recent.get(record)
        if kept is None and (noted := self._ids.find(record)) is not None and noted.number > 0:
            path = next((path for path in self._parts(noted) if self._has(path, noted)), None)
            kept = Kept(noted.session_id, noted.number, path) if path else None
        return kept._replace(again=True) if kept else None

    def _parts(self, noted: Noted) -> Iterator[str]:
        """The transcripts of a session, the newest first."""
        root = self._memory.home.root
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(noted.session_id)}-*.md"
        yield from sorted((str(file.relative_to(root)) for file in root.glob(pattern)), reverse=True)

    def _has(self, path: str, noted: Noted) -> bool:
        """Whether the record that was noted is there: its number, and the moment it was said."""
        found = transcripts.attempt_load(self._memory.home, path)
        if str(found.fields.get("session_id")) != noted.session_id:
            return False
        return any(turn.number == noted.number and _same_moment(turn.at, noted.at) for turn in found.turns)

    def _remember(self, where: OrderedDict[str, Kept], name: str, value: Kept) -> None:
        with self._mutex:
            where[name] = value
            if len(where) > _REMEMBERED:
                where.popitem(last=False)

    # ------------------------------------------------------------ the end

    def end(
        self, about: About, *, at: datetime | None = None, tags: tuple[str, ...] = (), record: str = ""
    ) -> Sealed | None:
        """Seal now; the commit follows in `commit_ended`. None: nothing was said. Ending again gives the
        same answer. `record`: as of a message, so that an end that is sent again cannot end the session
        that began after it."""
        record = _of_key(about, record)
        self._memory.home.require()
        if record and (before := self._ended_by(record)):
            return before
        held = self._known(about)
        if held is None:
            about = self._own(about)
            held = self._found(about)
        if held is None:
            return self._ended_before(about)
        with self._mutex:
            held = self._by_id.setdefault(held.session_id, held)
        with held.line:
            if held.is_over or not self._is_still_open(held):  # somebody else was faster
                return self._ended_before(About(about.session_key, held.session_id))
            session = self._opened(held, held.about)
            if record and session.path:
                self._ids.note(record, Noted(held.session_id, 0, "", session.path))
            return self._sealed(held, session, at or self._memory.moment(), tags)

    def _is_still_open(self, held: _Held) -> bool:
        if held.session is None and not self._memory.knows(held.session_id):
            self._forget(held)
        return not held.is_over

    def _sealed(
        self, held: _Held, session: Session, at: datetime, tags: tuple[str, ...] = ()
    ) -> Sealed | None:
        try:
            sealed = session.end(at, tags=tags)
        except BaseException:
            self._let_go(held)
            raise
        held.session = None
        self._forget(held)
        if sealed is None:
            self._memory.discard(held.session_id)
            return None
        self._to_commit = True
        with self._mutex:
            self._ended[held.session_id] = sealed
            self._ended_under[held.about.session_key] = held.session_id
            for kept in (self._ended, self._ended_under):
                if len(kept) > _REMEMBERED:
                    kept.popitem(last=False)
        return sealed

    def _ended_before(self, about: About) -> Sealed | None:
        with self._mutex:
            name = about.session_id or self._ended_under.get(about.session_key, "")
            if name in self._ended:
                return self._ended[name]
        path = self._memory.last_part(name) if name else None
        return self._seal_of(name, path) if path else None

    def _ended_by(self, record: str) -> Sealed | None:
        noted = self._ids.find(record)
        if noted is None or noted.number or not noted.path:
            return None
        return self._seal_of(noted.session_id, noted.path)

    def _seal_of(self, session_id: str, path: str) -> Sealed | None:
        file = self._memory.home.root / path
        with suppress(OSError):
            if transcripts.is_sealed(file):
                return Sealed(session_id, path, files.digest(file.read_bytes()), None)
        return None

    def commit_ended(self) -> Worked | None:
        """Commit what was ended. None: nothing was."""
        if not self._to_commit:
            return None
        self._to_commit = False
        done = None
        try:
            done = self._memory.recover()
        finally:
            waits = done is None or done.waiting
            if waits and self._memory.config.git.auto_commit:
                self._to_commit = True
        return done

    # ------------------------------------------------------------ nobody speaks any more

    def seal_idle(self) -> list[str]:
        """Seal what nobody wrote to for capture.idle_seal_hours; returns their paths.

        The clock on the wall only counts for what happened before this process looked: it can be set."""
        seconds = self._memory.config.capture.idle_seal_hours * 3600
        sealed = []
        trouble: list[str] = []
        for record in self._memory.open_sessions():
            if record.detached and record.path and self._is_open(record):
                try:
                    if self._seal_if_idle(self._attended(record), seconds):
                        sealed.append(record.path)
                except FileNotFoundError:
                    continue  # taken away, and perhaps brought back later
                except (TacitError, OSError, ValueError) as error:
                    trouble.append(f"{record.path} could not be sealed: {error}")
        if trouble:
            raise SessionError(" ".join(trouble))
        return sealed

    def _attended(self, record: Record) -> _Held:
        """The session of a record, with when somebody last wrote to it."""
        stamp = self._stamp_of(record.path)
        fresh = self._held_of(record)
        with self._mutex:
            held = self._by_id.setdefault(record.opening.session_id, fresh)
        if held.stamp is not None and held.stamp != stamp:
            held.used = self._clock()
        held.stamp = stamp
        return held

    def _stamp_of(self, path: str | None) -> tuple[int, int]:
        info = os.stat(f"{self._memory.home.root}/{path}")
        return info.st_mtime_ns, info.st_size

    def _seal_if_idle(self, held: _Held, seconds: float) -> bool:
        if self._clock() - held.used <= seconds:
            return False
        with held.line:
            if self._clock() - held.used <= seconds or not self._is_still_open(held):
                return False
            try:
                session = self._opened(held, held.about)
            except Busy:
                held.used = self._clock()  # somebody writes to it: alive
                return False
            turns = session.turns()
            return self._sealed(held, session, turns[-1].at if turns else self._memory.moment()) is not None

    def close(self) -> None:
        """Let go of all sessions without sealing them: they go on after a restart."""
        with self._mutex:
            some = list(self._open.values())
        for held in some:
            with held.line, suppress(TacitError, OSError):
                self._let_go(held)
        self._ids.close()
        self._memory.seals_idle = True


class _Entered:
    """The line of the session that is meant, also when that one ended while we waited in it."""

    def __init__(self, meant: Callable[[], _Held]) -> None:
        self._meant = meant
        self._held: _Held | None = None

    def __enter__(self) -> _Held:
        while True:
            held = self._meant()
            held.line.__enter__()
            if not held.is_over:
                self._held = held
                return held
            held.line.__exit__()

    def __exit__(self, *error: object) -> None:
        assert self._held is not None
        self._held.line.__exit__()


def _of_key(about: About, record: str) -> str:
    """A host may count the messages of each chat from one: an id is one of its session key."""
    return f"{about.session_key}\0{record}" if record else ""


def _same_moment(one: datetime, noted: str) -> bool:
    try:
        other = datetime.fromisoformat(noted)
    except ValueError:
        return False
    if other.tzinfo is None:  # a host that leaves the zone out means the clock on the wall
        return one.replace(tzinfo=None) == other
    return one.astimezone(UTC) == other.astimezone(UTC)
