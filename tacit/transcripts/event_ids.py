"""Maps a host's event ids to records, so that an event that is sent twice is kept once.

The id is noted before the record is written: after a crash between the two, the transcript tells whether the
record is there. An entry says where to look, and only the transcript proves that the record was kept.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import TacitError
from tacit.home import files
from tacit.home.layout import Home

_MAX_FILE_BYTES = 1_000_000  # bytes of one file, about eight thousand ids; there are two


class NotedEvent(NamedTuple):
    session_id: str
    number: int  # of the record; 0: the end of the session; -1: it was noted and could not be kept
    at: str  # when it was said, as ISO
    path: str = ""  # of the transcript, where it was known


class EventIds:
    """The newest ids of a home. Safe to use from several threads and processes."""

    def __init__(self, home: Home, most: int = _MAX_FILE_BYTES) -> None:
        self._file = home.private / "records.jsonl"
        self._older = home.private / "records.older.jsonl"
        self._lock = home.private / "records.lock"
        self._max_bytes = most
        self._threads_lock = threading.Lock()
        self._entries: dict[str, NotedEvent] = {}
        self._fd, self._inode = -1, -1  # what is written to
        self._read_inodes, self._read_bytes = (
            (-1, -1),
            0,
        )  # which two files were read, and how far the first one

    def find(self, record: str) -> NotedEvent | None:
        with self._threads_lock:
            self._catch_up()
            return self._entries.get(_hash_id(record))

    def note(self, record: str, noted: NotedEvent) -> None:
        """On disk when it returns."""
        line = json.dumps([_hash_id(record), *noted]) + "\n"
        with self._threads_lock, files.explain_disk_errors("note this message"):
            fd = self._open_current()
            size = files.append_lines(fd, line.encode())
            own_fd = os.dup(fd)
        try:
            with files.explain_disk_errors("note this message"):
                os.fdatasync(own_fd)  # outside of the mutex: other sessions need not wait for this disk
        finally:
            os.close(own_fd)
        if size > self._max_bytes:
            self._rotate()

    def take_back(self, record: str) -> None:
        """The record could not be kept: another one may get its number, even at the same moment."""
        void = NotedEvent("", -1, "")
        with suppress(TacitError, OSError):
            self.note(record, void)
        with self._threads_lock:
            self._catch_up()
            self._entries[_hash_id(record)] = void  # also if it could not be written to disk

    def close(self) -> None:
        with self._threads_lock:
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._inode = -1, -1

    def _open_current(self) -> int:
        """The file that has the name now: another process may have rotated it."""
        if self._fd >= 0 and self._inode != _read_inode(self._file):
            self._close()
        if self._fd < 0:
            is_new = not self._file.exists()
            files.make_directories(self._file.parent)
            self._fd = os.open(self._file, files.LOG_FLAGS, 0o600)
            self._inode = os.fstat(self._fd).st_ino
            if is_new:
                files.fsync_directory(self._file.parent)
        return self._fd

    def _catch_up(self) -> None:
        """Read what this or another process noted since."""
        inodes = _read_inode(self._file), _read_inode(self._older)
        if inodes != self._read_inodes:
            self._entries = dict(_parse_lines(_read_from(self._older, 0)))
            self._read_inodes, self._read_bytes = inodes, 0
        data = _read_from(self._file, self._read_bytes)
        complete = data.rpartition(b"\n")[0]
        self._entries.update(_parse_lines(complete))
        self._read_bytes += len(complete) + bool(complete)

    def _rotate(self) -> None:
        with self._threads_lock, suppress(OSError), files.hold_lock(self._lock):
            if self._file.stat().st_size > self._max_bytes:  # else another process was faster
                os.replace(self._file, self._older)
                files.fsync_directory(self._file.parent)


def _hash_id(record: str) -> str:
    """Hosts choose ids as they like; ours have one length and reveal nothing."""
    return sha256(record.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _parse_lines(data: bytes) -> list[tuple[str, NotedEvent]]:
    entries = []
    for line in data.split(b"\n"):
        with suppress(ValueError, TypeError, RecursionError):
            record, session_id, number, at, path = json.loads(line)
            if isinstance(record, str) and isinstance(number, int):
                entries.append((record, NotedEvent(str(session_id), number, str(at), str(path))))
    return entries


def _read_from(file: os.PathLike[str], start: int) -> bytes:
    try:
        with open(file, "rb") as stream:
            stream.seek(start)
            return stream.read()
    except OSError:
        return b""


def _read_inode(file: os.PathLike[str]) -> int:
    try:
        return os.stat(file).st_ino
    except OSError:
        return -1
