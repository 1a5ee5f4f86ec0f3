"""Who has written in sessions that a host may fold several senders into: `.tacit/senders.json`.

What must stay true:
- a sender that was seen once is not forgotten, in this process or another, as long as the disk allows;
- a turn never fails because of it, and waits for the disk only when somebody writes for the first time;
- the file stays small: a session that has seen many is not the owner's, whoever comes next.

Without the file nobody has been seen. The folder is the owner's alone and git does not see it.
"""

from __future__ import annotations

import json
import os
import stat
from hashlib import sha256
from threading import Lock
from typing import Any, TypeAlias

from tacit.errors import TacitError
from tacit.store import files
from tacit.store.home import Home

MOST_SENDERS = 8  # of one session, by name
MOST_KEYS = 500
MORE = "\0more"  # stands for all others; nobody can be called so
_LONGEST = 200  # characters of a name or a key that is kept as it is
_LARGEST = 4 << 20
_PATIENCE = 0.2  # seconds for another process that writes; a turn waits

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
        self._stamp: tuple[int, ...] | None = None  # of the file as it was read last

    def seen(self, session_key: object, sender: object) -> frozenset[str]:
        """All senders of this session, with this one, who is remembered. An empty sender only asks."""
        if not isinstance(session_key, str) or not isinstance(sender, str):
            return frozenset()
        key, name = _short(session_key), _short(sender)
        with self._lock:
            self._refresh()
            if name and _adds(self._seen.get(key, ()), name):
                _add(self._seen, key, name)
                _add(self._unsaved, key, name)
                self._save()
            return frozenset(self._seen.get(key, ()))

    def _refresh(self) -> None:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            self._seen, self._stamp = _merged(self._read(), self._unsaved), stamp

    def _save(self) -> None:
        """What cannot be written now is remembered in this process, and tried again with the next sender."""
        try:
            if not self._root.is_dir():  # a home that is gone is not made again
                return
            with files.locked(self._lock_file, _PATIENCE):
                self._seen = _merged(self._read(), self._unsaved)
                data = json.dumps({"version": 1, "sessions": self._seen}, indent=1)
                files.replace(self._file, data.encode("ascii"))
                self._stamp, self._unsaved = self._stamp_now(), {}
        except (TacitError, OSError):
            pass

    def _stamp_now(self) -> tuple[int, ...] | None:
        try:
            info = os.stat(self._file, follow_symlinks=False)
        except OSError:
            return None
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _read(self) -> _Seen:
        """Nothing, where there is no file or none that could be ours: the next sender replaces it."""
        try:
            fd = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > _LARGEST:
                return {}
            with open(fd, "rb", closefd=False) as file:
                return _parsed(json.loads(file.read(_LARGEST)))
        except (OSError, ValueError, RecursionError):
            return {}
        finally:
            os.close(fd)


def _parsed(data: Any) -> _Seen:
    sessions = data.get("sessions") if isinstance(data, dict) else None
    seen: _Seen = {}
    for key, names in sessions.items() if isinstance(sessions, dict) else ():
        if isinstance(names, list):
            for name in names:
                if isinstance(name, str) and name:
                    _add(seen, key, name)
    return seen


def _merged(one: _Seen, other: _Seen) -> _Seen:
    merged = dict(one)
    for key, names in other.items():
        for name in names:
            _add(merged, key, name)
    return merged


def _adds(names: tuple[str, ...], name: str) -> bool:
    return name not in names and MORE not in names


def _add(seen: _Seen, key: str, name: str) -> None:
    names = seen.get(key, ())
    if not _adds(names, name):
        return
    if key not in seen and len(seen) >= MOST_KEYS:
        _make_room(seen)
    seen[key] = (*names, MORE if len(names) >= MOST_SENDERS else name)


def _make_room(seen: _Seen) -> None:
    """The oldest session of one sender goes: to forget that another has seen several would open it again."""
    del seen[next((key for key, names in seen.items() if len(names) == 1), next(iter(seen)))]


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
