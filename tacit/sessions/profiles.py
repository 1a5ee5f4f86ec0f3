"""What the sessions of a home may see: the policy, with the senders seen in each session before.

A host may merge several senders into one session; `.tacit/senders.json` lists who was seen in each.

What must stay true:
- a sender that was seen once is not forgotten, in this process or another, as long as the disk allows;
- a turn never fails because of it, and waits for the disk only for a new sender;
- the file stays small: a session with many senders is not the owner's, so no more names are needed.

Without the file no sender has been seen. Only the owner can read the folder, and git ignores it.
"""

from __future__ import annotations

import json
import os
import stat
from hashlib import sha256
from threading import Lock
from typing import Any, TypeAlias

from tacit.config import Config
from tacit.errors import TacitError
from tacit.home import files
from tacit.home.layout import Home
from tacit.search.model import Scope
from tacit.sessions.keys import resolve_key
from tacit.sessions.policy import SessionProfile, resolve_profile, sender_name

MAX_SENDERS = 8  # names stored for one session
MAX_SESSIONS = 500
MORE_SENDERS = "\0more"  # stands for all other senders; no sender can have this name
_MAX_NAME_CHARS = 200  # longer names and keys are hashed
_MAX_FILE_BYTES = 4 << 20
_LOCK_TIMEOUT_S = 0.2  # a turn is waiting

_Seen: TypeAlias = dict[str, tuple[str, ...]]


class Senders:
    """Safe to use from several threads and in several processes."""

    def __init__(self, home: Home) -> None:
        self._root = home.root
        self._file = home.private / "senders.json"
        self._lock_file = home.private / "senders.lock"
        self._lock = Lock()
        self._seen: _Seen = {}
        self._unsaved: _Seen = {}
        self._stamp: tuple[int, ...] | None = None  # of the file when it was last read

    def seen(self, session_key: object, sender: object) -> frozenset[str]:
        """Add the sender and return all senders of the session. An empty sender is not added."""
        if not isinstance(session_key, str) or not isinstance(sender, str):
            return frozenset()
        key, name = _shorten_key(session_key), _shorten_key(sender)
        with self._lock:
            self._refresh()
            if name and _is_new_sender(self._seen.get(key, ()), name):
                _add_sender(self._seen, key, name)
                _add_sender(self._unsaved, key, name)
                self._save()
            return frozenset(self._seen.get(key, ()))

    def _refresh(self) -> None:
        stamp = self._read_stamp()
        if stamp != self._stamp:
            self._seen, self._stamp = _merge(self._read(), self._unsaved), stamp

    def _save(self) -> None:
        """If writing fails, the senders stay in memory, and the next sender tries again."""
        try:
            if not self._root.is_dir():  # never recreate a home that is gone
                return
            with files.hold_lock(self._lock_file, _LOCK_TIMEOUT_S):
                self._seen = _merge(self._read(), self._unsaved)
                data = json.dumps({"version": 1, "sessions": self._seen}, indent=1)
                files.replace(self._file, data.encode("ascii"))
                self._stamp, self._unsaved = self._read_stamp(), {}
        except (TacitError, OSError):
            pass

    def _read_stamp(self) -> tuple[int, ...] | None:
        try:
            info = os.stat(self._file, follow_symlinks=False)
        except OSError:
            return None
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _read(self) -> _Seen:
        """Read the file. A missing or foreign file counts as empty: the next sender replaces it."""
        try:
            fd = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > _MAX_FILE_BYTES:
                return {}
            with open(fd, "rb", closefd=False) as file:
                return _parse(json.loads(file.read(_MAX_FILE_BYTES)))
        except (OSError, ValueError, RecursionError):
            return {}
        finally:
            os.close(fd)


def _parse(data: Any) -> _Seen:
    sessions = data.get("sessions") if isinstance(data, dict) else None
    seen: _Seen = {}
    for key, names in sessions.items() if isinstance(sessions, dict) else ():
        if isinstance(names, list):
            for name in names:
                if isinstance(name, str) and name:
                    _add_sender(seen, key, name)
    return seen


def _merge(first: _Seen, other: _Seen) -> _Seen:
    merged = dict(first)
    for key, names in other.items():
        for name in names:
            _add_sender(merged, key, name)
    return merged


def _is_new_sender(names: tuple[str, ...], name: str) -> bool:
    return name not in names and MORE_SENDERS not in names


def _add_sender(seen: _Seen, key: str, name: str) -> None:
    names = seen.get(key, ())
    if not _is_new_sender(names, name):
        return
    if key not in seen and len(seen) >= MAX_SESSIONS:
        _drop_one_session(seen)
    seen[key] = (*names, MORE_SENDERS if len(names) >= MAX_SENDERS else name)


def _drop_one_session(seen: _Seen) -> None:
    """Drop the oldest session with one sender. Dropping one with several would make it the owner's again."""
    del seen[next((key for key, names in seen.items() if len(names) == 1), next(iter(seen)))]


def _shorten_key(text: str) -> str:
    if len(text) <= _MAX_NAME_CHARS:
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


class SessionProfiles:
    def __init__(self, home: Home, config: Config) -> None:
        self._config, self._senders = config, Senders(home)

    def profile_of(
        self,
        session_key: str,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        trial: bool = False,
    ) -> SessionProfile:
        """What a session may see, and by which rule. In a session that may mix several senders the sender is
        remembered, unless it is a trial."""
        key, sender_id = resolve_key(session_key, agent), sender_name(sender)
        senders: frozenset[str] = frozenset()
        if resolve_profile(key, self._config).kind.is_main:
            senders = self._senders.seen(key, "" if trial else sender_id)
        return resolve_profile(
            key, self._config, agent=agent, sender=sender_id, trigger=trigger, senders=senders
        )

    def scope_of(self, session_key: str) -> Scope:
        """What a session may search."""
        return self.profile_of(session_key).scope

    def senders_of(self, session_key: str) -> frozenset[str]:
        """The senders seen so far in a session that may mix several."""
        return self._senders.seen(session_key, "")
