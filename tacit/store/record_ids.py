"""Which record a host's id stands for, so that a record that is sent again is not kept again.

The id is noted before the record is written: after a crash between the two, the transcript tells whether the
record is there. A note says where to look, and only the transcript says that it was kept.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import TacitError
from tacit.store import files
from tacit.store.home import Home

_MOST = 1_000_000  # bytes of one file, about eight thousand ids; there are two


class Noted(NamedTuple):
    session_id: str
    number: int  # of the record; 0: the end of the session; -1: it was noted and could not be kept
    at: str  # when it was said, as ISO
    path: str = ""  # of the transcript, where it was known


class RecordIds:
    """The newest ids of a home. Safe to use from several threads and processes."""

    def __init__(self, home: Home, most: int = _MOST) -> None:
        self._file = home.private / "records.jsonl"
        self._older = home.private / "records.older.jsonl"
        self._lock = home.private / "records.lock"
        self._most = most
        self._mutex = threading.Lock()
        self._known: dict[str, Noted] = {}
        self._fd, self._inode = -1, -1  # what is written to
        self._seen, self._read = (-1, -1), 0  # which two files were read, and how far the first one

    def find(self, record: str) -> Noted | None:
        with self._mutex:
            self._catch_up()
            return self._known.get(_short(record))

    def note(self, record: str, noted: Noted) -> None:
        """On disk when it returns."""
        line = json.dumps([_short(record), *noted]) + "\n"
        with self._mutex, files.explained("note this message"):
            fd = self._opened()
            size = files.append_lines(fd, line.encode())
            mine = os.dup(fd)
        try:
            with files.explained("note this message"):
                os.fdatasync(mine)  # outside of the mutex: other sessions need not wait for this disk
        finally:
            os.close(mine)
        if size > self._most:
            self._turn_over()

    def take_back(self, record: str) -> None:
        """It could not be kept: another record may get its number, even at the same moment."""
        void = Noted("", -1, "")
        with suppress(TacitError, OSError):
            self.note(record, void)
        with self._mutex:
            self._catch_up()
            self._known[_short(record)] = void  # also where the disk took no note of it

    def close(self) -> None:
        with self._mutex:
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._inode = -1, -1

    def _opened(self) -> int:
        """The file that has the name now: another process may have turned it over."""
        if self._fd >= 0 and self._inode != _inode_of(self._file):
            self._close()
        if self._fd < 0:
            is_new = not self._file.exists()
            files.make_directories(self._file.parent)
            self._fd = os.open(self._file, files.LOGGED, 0o600)
            self._inode = os.fstat(self._fd).st_ino
            if is_new:
                files.fsync_directory(self._file.parent)
        return self._fd

    def _catch_up(self) -> None:
        """Read what this or another process noted since."""
        found = _inode_of(self._file), _inode_of(self._older)
        if found != self._seen:
            self._known = dict(_notes_in(_bytes_of(self._older, 0)))
            self._seen, self._read = found, 0
        data = _bytes_of(self._file, self._read)
        whole = data.rpartition(b"\n")[0]
        self._known.update(_notes_in(whole))
        self._read += len(whole) + bool(whole)

    def _turn_over(self) -> None:
        with self._mutex, suppress(OSError), files.locked(self._lock):
            if self._file.stat().st_size > self._most:  # else another process was faster
                os.replace(self._file, self._older)
                files.fsync_directory(self._file.parent)


def _short(record: str) -> str:
    """Hosts choose ids as they like; ours are of one length and tell nothing."""
    return sha256(record.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _notes_in(data: bytes) -> list[tuple[str, Noted]]:
    found = []
    for line in data.split(b"\n"):
        with suppress(ValueError, TypeError, RecursionError):
            record, session_id, number, at, path = json.loads(line)
            if isinstance(record, str) and isinstance(number, int):
                found.append((record, Noted(str(session_id), number, str(at), str(path))))
    return found


def _bytes_of(file: os.PathLike[str], start: int) -> bytes:
    try:
        with open(file, "rb") as opened:
            opened.seek(start)
            return opened.read()
    except OSError:
        return b""


def _inode_of(file: os.PathLike[str]) -> int:
    try:
        return os.stat(file).st_ino
    except OSError:
        return -1
