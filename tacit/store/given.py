"""What sessions were given before, from the receipt log.

The log is read once, and after that only what is new in it. Of each line only the session key is looked at,
which stands near its beginning; a line is read whole when somebody asks for its session. So a session that is
new costs nothing, however much others talk.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from tacit.store.home import Home
from tacit.store.receipts import is_since, names_of, needle, opened, plain_file

_SESSIONS = 256  # whose lines are kept as they were read
_KEY = re.compile(rb'\{"id":"[^"\\]*","at":"[^"\\]*","session_key":"((?:[^"\\]|\\.)*)"')


# A turn for one of our own tools is none of the conversation.
_OURS = ("own-tool", "own-block")
# What a host says by itself, or what was not made, tells nothing about the conversation.
UNDECIDED = frozenset(
    {*_OURS, "heartbeat", "command", "empty", "disabled", "excluded", "lane", "deadline", "busy"}
)


UNNAMED = "turns_"  # how the id of a session begins that has none by its host nor by its transcript


class Before(NamedTuple):
    """The last turn of a session."""

    at: str
    session_id: str
    had_history: bool


class _Place(NamedTuple):
    file: str
    inode: int
    offset: int
    length: int


class _Turn(NamedTuple):
    at: str
    session_id: str
    had_history: bool
    skipped: str
    digests: tuple[str, ...]
    labels: tuple[str, ...]
    loaded: tuple[str, ...] | None  # where the files are that it was given whole; None: it is no bootstrap


class _Mark(NamedTuple):
    """A session ended, all of its key where it names none; or the turns of `joins` belong to it."""

    at: str
    session_id: str
    joins: str
    sealed: bool  # what follows it stands in another transcript


class Given:
    """Safe to use from several threads. A log that cannot be read gave nothing: a passage that comes twice
    does less harm than a turn without any."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._mutex = threading.Lock()
        self._read: dict[tuple[str, int], int] = {}  # up to where, by name and inode
        self._lines: dict[bytes, list[_Place]] = {}  # by session key
        self._turns: OrderedDict[bytes, dict[_Place, _Turn | _Mark | None]] = OrderedDict()

    def seen(self, session_key: str, session_id: str = "", since: datetime | None = None) -> dict[str, int]:
        """Digests of what was retrieved for this session, and how many turns ago; 1 is the turn before. An
        empty session id stands for all sessions of the key."""
        return _ago(self._of(session_key, session_id, since), lambda turn: turn.digests)

    def labels(self, session_key: str, session_id: str = "", since: datetime | None = None) -> dict[str, int]:
        """Labels of everything else it was given, topics among them, and how many turns ago."""
        return _ago(self._of(session_key, session_id, since), lambda turn: turn.labels)

    def searches(self, session_key: str, session_id: str = "", since: datetime | None = None) -> int:
        """In how many of its turns something was looked for."""
        return sum(not turn.skipped for turn in self._of(session_key, session_id, since))

    def last(self, session_key: str, since: datetime | None = None) -> Before | None:
        """The turn by which a conversation goes on: the last one that tells something about it."""
        turns = [turn for turn in self._of(session_key, "", since) if turn.session_id]
        telling = [turn for turn in turns if turn.skipped not in UNDECIDED] or turns
        return Before(*telling[-1][:3]) if telling else None

    def names(self, session_key: str, session_id: str, since: datetime | None = None) -> tuple[str, ...]:
        """Its id, and those under which turns of this session were taken before it had that one."""
        marks = [one for one in self._entries(session_key, since) if isinstance(one, _Mark)]
        joined = [mark.joins for mark in marks if mark.joins and mark.session_id == session_id]
        return (session_id, *dict.fromkeys(joined))

    def renewed(self, session_key: str, session_id: str, since: datetime) -> datetime | None:
        """When this session last began anew without another transcript: its host cut what was said before.
        None: not since then."""
        marks = [one for one in self._entries(session_key, since) if isinstance(one, _Mark)]
        ends = [mark.at for mark in marks if not mark.joins and not mark.sealed
                and mark.session_id in ("", session_id)]  # fmt: skip
        return max((datetime.fromisoformat(at) for at in ends if is_since(at, since)), default=None)

    def loaded(self, session_key: str, since: datetime | None = None) -> tuple[str, ...]:
        """Files that the host loaded whole when the session began last, as it names them or the home does."""
        turns = [one for one in self._entries(session_key, since) if isinstance(one, _Turn)]
        recent = (one for one in reversed(turns) if since is None or is_since(one.at, since))
        return next((one.loaded for one in recent if one.loaded is not None), ())

    def look(self, since: datetime | None = None) -> None:
        """Read what is new, before anybody asks."""
        with self._mutex, suppress(OSError), opened(self._home) as directory:
            self._look(directory, since)

    def _of(self, session_key: str, session_id: str, since: datetime | None) -> list[_Turn]:
        return [
            turn
            for turn in _standing(self._entries(session_key, since))
            if turn.loaded is None
            and session_id in ("", turn.session_id)
            and (since is None or is_since(turn.at, since))
        ]

    def _entries(self, session_key: str, since: datetime | None) -> list[_Turn | _Mark]:
        key = needle(session_key)
        with self._mutex, suppress(OSError), opened(self._home) as directory:
            self._look(directory, since)
            return self._parsed(directory, key)
        return []

    # ------------------------------------------------------------ the log

    def _look(self, directory: int, since: datetime | None) -> None:
        present = set()
        for name in names_of(directory):
            with suppress(FileNotFoundError):  # too old since it was listed
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                present.add((name, info.st_ino))
        if gone := self._read.keys() - present:
            self._forget(gone)
        wanted = set(names_of(directory, since))
        for name, inode in sorted(present):
            if name in wanted:
                self._look_into(directory, name, inode)

    def _look_into(self, directory: int, name: str, inode: int) -> None:
        done = self._read.get((name, inode), 0)
        with suppress(FileNotFoundError), plain_file(directory, name) as fd:
            size = os.fstat(fd).st_size
            if size > done:
                data = os.pread(fd, size - done, done)
                self._read[name, inode] = done + self._take(name, inode, done, data)

    def _take(self, name: str, inode: int, offset: int, data: bytes) -> int:
        """How much of it are whole lines."""
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines(keepends=True):
            key = _key_of(line)
            if key is not None:
                place = _Place(name, inode, offset, len(line))
                known = self._lines.setdefault(key, [])
                if known and place < known[-1]:  # an earlier `since` adds older ones
                    known.append(place)
                    known.sort()
                else:
                    known.append(place)
                if key in self._turns:
                    self._turns[key][place] = _entry(line, key)
            offset += len(line)
        return whole

    def _forget(self, gone: set[tuple[str, int]]) -> None:
        """Files that were too old, or the whole log that somebody deleted."""
        for file in gone:
            del self._read[file]
        for key, places in list(self._lines.items()):
            left = [place for place in places if (place.file, place.inode) not in gone]
            if left:
                self._lines[key] = left
            else:
                del self._lines[key]

    def _parsed(self, directory: int, key: bytes) -> list[_Turn | _Mark]:
        places = self._lines.get(key)
        if not places:
            return []
        known = self._turns.setdefault(key, {})
        self._turns.move_to_end(key)
        while len(self._turns) > _SESSIONS:
            self._turns.popitem(last=False)
        for place in places:
            if place not in known:
                known[place] = _entry(_line_at(directory, place), key)
        return [entry for place in places if (entry := known[place]) is not None]


def _key_of(line: bytes) -> bytes | None:
    head = _KEY.match(line)
    if head is not None:
        return head[1]
    try:  # of some other version
        return needle(str(json.loads(line)["session_key"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _line_at(directory: int, place: _Place) -> bytes:
    with suppress(OSError), plain_file(directory, place.file) as fd:
        return os.pread(fd, place.length, place.offset)
    return b""


def _standing(entries: Sequence[_Turn | _Mark]) -> list[_Turn]:
    """The turns of conversations that are not over, each under the id that its session has by now."""
    now = {one.joins: one.session_id for one in entries if isinstance(one, _Mark) and one.joins}
    turns: list[_Turn] = []
    for one in entries:
        if isinstance(one, _Turn):
            turns.append(one._replace(session_id=now[one.session_id]) if one.session_id in now else one)
        elif not one.joins:
            turns = [turn for turn in turns if not _is_over(turn, one.session_id)]
    return turns


def _is_over(turn: _Turn, ended: str) -> bool:
    """Turns that nobody named may have been of any session: better a passage comes twice than not at all."""
    return ended in ("", turn.session_id) or turn.session_id.startswith(UNNAMED)


def _entry(line: bytes, key: bytes) -> _Turn | _Mark | None:
    """If it was a turn of a session, or tells about one. The rest of a receipt is not looked at."""
    try:
        data = json.loads(line)
        if needle(data["session_key"]) != key or data.get("trial"):
            return None
        if data.get("ended") or data.get("joins"):
            joins, sealed = str(data.get("joins", "")), bool(data.get("sealed"))
            return _Mark(str(data["at"]), str(data["session_id"]), joins, sealed)
        parts = data["sections"]
        retrieved = [part for part in parts if part["slot"] == "knowledge"]
        return _Turn(
            str(data["at"]),
            str(data["session_id"]),
            bool(data.get("had_history")),
            str(data.get("skipped", "")),
            tuple(str(part["digest"]) for part in retrieved if part.get("digest")),
            tuple(str(part["label"]) for part in parts if part["slot"] != "knowledge"),
            _loaded(parts) if data.get("lane") == "bootstrap" else None,
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _loaded(parts: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(str(part["source"]) for part in parts if not part.get("shortened"))


def _ago(turns: Sequence[_Turn], of: Callable[[_Turn], tuple[str, ...]]) -> dict[str, int]:
    """What each turn had, and how many turns ago it was there last."""
    turns = [turn for turn in turns if turn.skipped not in _OURS]
    return {item: len(turns) - at for at, turn in enumerate(turns) for item in of(turn)}
