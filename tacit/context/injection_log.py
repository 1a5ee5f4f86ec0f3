"""What was injected into sessions before, from the receipt log.

The log is read once, and after that only new lines. Of each line only the session key near its beginning is
read; a line is parsed when its session is queried. So a new session costs nothing, however long the log is.
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

from tacit.context.receipts import is_since, json_needle, log_file_names, open_folder, open_log_file
from tacit.home.layout import Home

_MAX_SESSIONS = 256  # sessions whose parsed lines are cached
_KEY_PATTERN = re.compile(rb'\{"id":"[^"\\]*","at":"[^"\\]*","session_key":"((?:[^"\\]|\\.)*)"')


# A call for one of our own tools is no turn of the conversation.
_OWN_SKIPS = ("own-tool", "own-block")
# Turns that the host began by itself, or that had no result, say nothing about the conversation.
NEUTRAL_SKIPS = frozenset(
    {*_OWN_SKIPS, "heartbeat", "command", "empty", "disabled", "excluded", "lane", "deadline", "busy"}
)


UNNAMED_PREFIX = "turns_"  # prefix of generated ids, for sessions without an id from host or transcript


class LastTurn(NamedTuple):
    """The last turn of a session."""

    at: str
    session_id: str
    had_history: bool


class _LinePosition(NamedTuple):
    file: str
    inode: int
    offset: int
    length: int


class _LoggedTurn(NamedTuple):
    at: str
    session_id: str
    had_history: bool
    skipped: str
    digests: tuple[str, ...]
    labels: tuple[str, ...]
    loaded: tuple[str, ...] | None  # files that a bootstrap loaded whole; None: it is no bootstrap


class _SessionMark(NamedTuple):
    """A session ended (all of the key if the id is empty), or the turns of `joins` belong to it."""

    at: str
    session_id: str
    joins: str
    sealed: bool  # later turns are in another transcript


class InjectionLog:
    """Safe to use from several threads. A log that cannot be read counts as empty: a repeated chunk does less
    harm than a turn without any."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._mutex = threading.Lock()
        self._read_offsets: dict[tuple[str, int], int] = {}  # bytes read so far, by name and inode
        self._positions: dict[bytes, list[_LinePosition]] = {}  # by session key
        self._entries_by_key: OrderedDict[bytes, dict[_LinePosition, _LoggedTurn | _SessionMark | None]] = (
            OrderedDict()
        )

    def digests(
        self, session_key: str, session_id: str = "", since: datetime | None = None
    ) -> dict[str, int]:
        """Digests of the chunks that this session got, with how many turns ago; 1 is the previous turn. An
        empty session id matches all sessions of the key."""
        return _turns_ago(self._session_turns(session_key, session_id, since), lambda turn: turn.digests)

    def labels(self, session_key: str, session_id: str = "", since: datetime | None = None) -> dict[str, int]:
        """Labels of all other blocks that it got, such as topics, with how many turns ago."""
        return _turns_ago(self._session_turns(session_key, session_id, since), lambda turn: turn.labels)

    def count_searches(self, session_key: str, session_id: str = "", since: datetime | None = None) -> int:
        """The number of its turns with a search."""
        return sum(not turn.skipped for turn in self._session_turns(session_key, session_id, since))

    def last_turn(self, session_key: str, since: datetime | None = None) -> LastTurn | None:
        """The last turn that says something about the conversation."""
        turns = [turn for turn in self._session_turns(session_key, "", since) if turn.session_id]
        telling = [turn for turn in turns if turn.skipped not in NEUTRAL_SKIPS] or turns
        return LastTurn(*telling[-1][:3]) if telling else None

    def session_ids(
        self, session_key: str, session_id: str, since: datetime | None = None
    ) -> tuple[str, ...]:
        """Its id, and the earlier ids of the session."""
        marks = [entry for entry in self._entries(session_key, since) if isinstance(entry, _SessionMark)]
        joined = [mark.joins for mark in marks if mark.joins and mark.session_id == session_id]
        return (session_id, *dict.fromkeys(joined))

    def last_restart(self, session_key: str, session_id: str, since: datetime) -> datetime | None:
        """When this session last restarted in the same transcript, because its host cut the context. None:
        not since then."""
        marks = [entry for entry in self._entries(session_key, since) if isinstance(entry, _SessionMark)]
        ends = [mark.at for mark in marks if not mark.joins and not mark.sealed
                and mark.session_id in ("", session_id)]  # fmt: skip
        return max((datetime.fromisoformat(end) for end in ends if is_since(end, since)), default=None)

    def bootstrap_files(self, session_key: str, since: datetime | None = None) -> tuple[str, ...]:
        """Files that the session's last bootstrap loaded whole, by path on the host or in the home."""
        turns = [entry for entry in self._entries(session_key, since) if isinstance(entry, _LoggedTurn)]
        recent = (entry for entry in reversed(turns) if since is None or is_since(entry.at, since))
        return next((entry.loaded for entry in recent if entry.loaded is not None), ())

    def read_new(self, since: datetime | None = None) -> None:
        """Read new lines ahead of the first query."""
        with self._mutex, suppress(OSError), open_folder(self._home) as directory:
            self._refresh(directory, since)

    def _session_turns(self, session_key: str, session_id: str, since: datetime | None) -> list[_LoggedTurn]:
        return [
            turn
            for turn in _active_turns(self._entries(session_key, since))
            if turn.loaded is None
            and session_id in ("", turn.session_id)
            and (since is None or is_since(turn.at, since))
        ]

    def _entries(self, session_key: str, since: datetime | None) -> list[_LoggedTurn | _SessionMark]:
        key = json_needle(session_key)
        with self._mutex, suppress(OSError), open_folder(self._home) as directory:
            self._refresh(directory, since)
            return self._parse_session(directory, key)
        return []

    # ------------------------------------------------------------ the log

    def _refresh(self, directory: int, since: datetime | None) -> None:
        present = set()
        for name in log_file_names(directory):
            with suppress(FileNotFoundError):  # removed since it was listed
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
                present.add((name, info.st_ino))
        if removed := self._read_offsets.keys() - present:
            self._forget_files(removed)
        wanted = set(log_file_names(directory, since))
        for name, inode in sorted(present):
            if name in wanted:
                self._read_new_lines(directory, name, inode)

    def _read_new_lines(self, directory: int, name: str, inode: int) -> None:
        offset = self._read_offsets.get((name, inode), 0)
        with suppress(FileNotFoundError), open_log_file(directory, name) as fd:
            size = os.fstat(fd).st_size
            if size > offset:
                data = os.pread(fd, size - offset, offset)
                self._read_offsets[name, inode] = offset + self._add_lines(name, inode, offset, data)

    def _add_lines(self, name: str, inode: int, offset: int, data: bytes) -> int:
        """Index the whole lines of the data; return their total length."""
        end = data.rfind(b"\n") + 1
        for line in data[:end].splitlines(keepends=True):
            key = _session_key_of(line)
            if key is not None:
                position = _LinePosition(name, inode, offset, len(line))
                positions = self._positions.setdefault(key, [])
                if positions and position < positions[-1]:  # a query with an earlier `since` adds older lines
                    positions.append(position)
                    positions.sort()
                else:
                    positions.append(position)
                if key in self._entries_by_key:
                    self._entries_by_key[key][position] = _parse_entry(line, key)
            offset += len(line)
        return end

    def _forget_files(self, removed: set[tuple[str, int]]) -> None:
        """Forget files that were removed from the log."""
        for file in removed:
            del self._read_offsets[file]
        for key, positions in list(self._positions.items()):
            remaining = [position for position in positions if (position.file, position.inode) not in removed]
            if remaining:
                self._positions[key] = remaining
            else:
                del self._positions[key]

    def _parse_session(self, directory: int, key: bytes) -> list[_LoggedTurn | _SessionMark]:
        positions = self._positions.get(key)
        if not positions:
            return []
        entries = self._entries_by_key.setdefault(key, {})
        self._entries_by_key.move_to_end(key)
        while len(self._entries_by_key) > _MAX_SESSIONS:
            self._entries_by_key.popitem(last=False)
        for position in positions:
            if position not in entries:
                entries[position] = _parse_entry(_read_line_at(directory, position), key)
        return [entry for position in positions if (entry := entries[position]) is not None]


def _session_key_of(line: bytes) -> bytes | None:
    head = _KEY_PATTERN.match(line)
    if head is not None:
        return head[1]
    try:  # a line of another version
        return json_needle(str(json.loads(line)["session_key"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _read_line_at(directory: int, position: _LinePosition) -> bytes:
    with suppress(OSError), open_log_file(directory, position.file) as fd:
        return os.pread(fd, position.length, position.offset)
    return b""


def _active_turns(entries: Sequence[_LoggedTurn | _SessionMark]) -> list[_LoggedTurn]:
    """The turns of conversations that are not over, each with the current id of its session."""
    current_ids = {
        entry.joins: entry.session_id for entry in entries if isinstance(entry, _SessionMark) and entry.joins
    }
    turns: list[_LoggedTurn] = []
    for entry in entries:
        if isinstance(entry, _LoggedTurn):
            turns.append(
                entry._replace(session_id=current_ids[entry.session_id])
                if entry.session_id in current_ids
                else entry
            )
        elif not entry.joins:
            turns = [turn for turn in turns if not _is_over(turn, entry.session_id)]
    return turns


def _is_over(turn: _LoggedTurn, session_id: str) -> bool:
    """Turns without a given id may belong to any session, so they end too: a repeated chunk is better than a
    missing one."""
    return session_id in ("", turn.session_id) or turn.session_id.startswith(UNNAMED_PREFIX)


def _parse_entry(line: bytes, key: bytes) -> _LoggedTurn | _SessionMark | None:
    """Parse a turn or a session mark. The other fields of a receipt are ignored."""
    try:
        data = json.loads(line)
        if json_needle(data["session_key"]) != key or data.get("trial"):
            return None
        if data.get("ended") or data.get("joins"):
            joins, sealed = str(data.get("joins", "")), bool(data.get("sealed"))
            return _SessionMark(str(data["at"]), str(data["session_id"]), joins, sealed)
        parts = data["sections"]
        retrieved = [part for part in parts if part["slot"] == "knowledge"]
        return _LoggedTurn(
            str(data["at"]),
            str(data["session_id"]),
            bool(data.get("had_history")),
            str(data.get("skipped", "")),
            tuple(str(part["digest"]) for part in retrieved if part.get("digest")),
            tuple(str(part["label"]) for part in parts if part["slot"] != "knowledge"),
            _whole_files(parts) if data.get("lane") == "bootstrap" else None,
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _whole_files(parts: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(str(part["source"]) for part in parts if not part.get("shortened"))


def _turns_ago(
    turns: Sequence[_LoggedTurn], items_of: Callable[[_LoggedTurn], tuple[str, ...]]
) -> dict[str, int]:
    """The items of all turns, each with how many turns ago it was last there."""
    turns = [turn for turn in turns if turn.skipped not in _OWN_SKIPS]
    return {item: len(turns) - index for index, turn in enumerate(turns) for item in items_of(turn)}
