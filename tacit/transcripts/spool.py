"""Events that could not be sent to the daemon: kept in files until it runs, then processed once.

A client that finds no daemon appends a line to a file in .tacit/spool; the daemon drains them. A hook helper
writes here while a host waits, so this module imports only small modules and, of ours, only the redaction.

What must stay true:
- `add` returns only after the event is on disk, and it is redacted before it gets there;
- no event is lost or truncated: one writer at a time (flock), one write, and a line that a crash or a full
  disk left unfinished is closed by the next writer with a line break;
- an event is processed once: a cursor beside each file is saved after each event. After a crash between the
  two the event comes again with the same id, by which the receiver recognizes it;
- file names are never reused, so that a cursor can only refer to its own file;
- an event that cannot be read or processed is quarantined with the reason, never dropped.
"""

import errno
import fcntl
import json
import os
import time

from tacit.errors import Busy, DiskError, HomeError, TacitError, UsageError

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

FOLDER = ".tacit/spool"
QUARANTINE = "set-aside"
_SUFFIX, _CURSOR_SUFFIX = ".jsonl", ".taken"
_MAX_FILE_BYTES = 8_000_000  # bytes after which the next record begins a new file
_ADD_TIMEOUT_S = 0.1  # seconds for another writer; then a file of one's own
_DRAIN_TIMEOUT_S = 5.0  # seconds for a writer, when draining
_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES = 1_000_000
_MAX_REASON_BYTES = 2_000  # bytes at the start of a line in which its reason stands
_MAX_REASONS = 3  # that are told
_MAX_REASON_CHARS = 300  # characters of a reason
_ADVICE = "Look at it, correct what the host sends, and delete the file."
# Fields that identify a session must stay as they are, or they would identify another one.
_UNCLEANED_FIELDS = frozenset(("session_key", "session_id", "agent"))


class SpooledEvent:
    """A waiting operation and its body, which has an `id` and the time `at` which it arrived. A plain class:
    importing dataclasses costs more than all the rest."""

    __slots__ = ("body", "operation")

    def __init__(self, operation: str, body: "dict[str, Any]") -> None:
        self.operation, self.body = operation, body

    @property
    def id(self) -> str:
        return str(self.body["id"])


class DrainResult:
    """The result of one pass: how many were processed, the reasons of those quarantined, what stopped it."""

    __slots__ = ("aside", "stopped", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self.aside: list[str] = []
        self.stopped: Exception | None = None


# ---------------------------------------------------------------- adding


def make_event_id() -> str:
    return os.urandom(8).hex()


def add(root: "str | os.PathLike[str]", operation: str, body: "Mapping[str, Any]") -> str:
    """Keep one operation of tacit.operations for the daemon; returns its id. OSError if the disk refuses."""
    folder = _make_folder(os.fspath(root))
    cleaned = _clean_body(body)
    event_id = cleaned["id"] = _clean_id(body.get("id"))
    cleaned["at"] = body.get("at") if _is_time(body.get("at")) else _now()
    event = {"operation": operation, "body": cleaned}
    data = json.dumps(event, separators=(",", ":")).encode("ascii") + b"\n"
    fd, new = _open_last(folder)
    try:
        _append(fd, data)
        fcntl.flock(fd, fcntl.LOCK_UN)  # the next writer need not wait for our sync
        os.fdatasync(fd)
    finally:
        os.close(fd)
    if new:
        _sync_folder(folder)
    return event_id


def _clean_id(value: object) -> str:
    """The id unchanged, or a stable hash of it if it holds a secret."""
    from tacit.privacy.redaction import clean

    event_id = str(value or "") or make_event_id()
    if clean(event_id).text == event_id:
        return event_id
    from hashlib import sha256  # rarely needed, and not free

    return sha256(event_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_time(value: object) -> bool:
    """The receiver would refuse anything else for ever, and it might be any text."""
    from datetime import datetime  # `tacit status` reads the spool without it

    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _now() -> str:
    """ISO 8601 with the offset of this machine, as the receiver reads it."""
    moment = time.time()
    offset = time.strftime("%z", time.localtime(moment)) or "+0000"
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))
    return f"{seconds}.{int(moment % 1 * 1000):03}{offset[:3]}:{offset[3:5]}"


def _clean_body(body: "Mapping[str, Any]") -> "dict[str, Any]":
    from tacit.privacy.redaction import clean  # regular expressions, needed only by writers

    def clean_value(value: "Any") -> "Any":
        if isinstance(value, str):
            return clean(value).text
        if isinstance(value, dict):
            return {clean_value(str(key)): clean_value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [clean_value(item) for item in value]
        return value

    return {str(key): item if key in _UNCLEANED_FIELDS else clean_value(item) for key, item in body.items()}


def _make_folder(root: str) -> str:
    folder = os.path.join(root, FOLDER)
    if os.path.islink(os.path.dirname(folder)) or os.path.islink(folder):
        # A home that came from another person may have a link here: messages would end up at its target.
        raise OSError(errno.ELOOP, "it is a link", folder)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        _sync_folder(os.path.dirname(folder))
        _sync_folder(root)
    return folder


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _open_last(folder: str) -> tuple[int, bool]:
    """The newest file, locked; a new one if there is none, it is full, or it stays locked too long."""
    deadline = time.monotonic() + _ADD_TIMEOUT_S
    while names := _file_names(folder):
        try:
            fd = os.open(os.path.join(folder, names[-1]), _OPEN_FLAGS & ~os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # drained just now
        if not _try_lock(fd, deadline):
            os.close(fd)
            break
        info = os.fstat(fd)
        if info.st_nlink and info.st_size < _MAX_FILE_BYTES:
            return fd, False
        os.close(fd)
        if info.st_nlink:
            break
    return _open_new(folder), True


def _open_new(folder: str) -> int:
    while True:
        # A growing number keeps the order even if the clock is set back; the rest makes the name unique.
        last = _file_names(folder)[-1:]
        number = int(last[0].split("-")[0]) + 1 if last else 1
        name = f"{number:010}-{os.urandom(6).hex()}{_SUFFIX}"
        fd = os.open(os.path.join(folder, name), _OPEN_FLAGS | os.O_EXCL, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)  # a drain found it empty and removed it before we had the lock


def _try_lock(fd: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)


def _append(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        data = b"\n" + data  # a truncated line stays a line of its own
    try:
        if os.write(fd, data) < len(data):
            raise OSError(28, "the disk is full")
    except OSError:
        os.ftruncate(fd, size)
        raise


def _file_names(folder: str) -> list[str]:
    """Oldest first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(_SUFFIX) and name.split("-")[0].isdecimal())


# ---------------------------------------------------------------- looking


def count_waiting(root: "str | os.PathLike[str]") -> int:
    """How many events wait for the daemon."""
    folder = os.path.join(os.fspath(root), FOLDER)
    return sum(_count_waiting(folder, name) for name in _file_names(folder))


def count_quarantined(root: "str | os.PathLike[str]") -> int:
    """How many events could not be processed and are quarantined in .tacit/spool/set-aside."""
    return _count_lines(os.path.join(os.fspath(root), FOLDER, QUARANTINE), 0)


def list_quarantine_reasons(root: "str | os.PathLike[str]") -> list[str]:
    """Why they were quarantined: each reason once with its count, the most frequent first."""
    counts: dict[str, int] = {}
    path = os.path.join(os.fspath(root), FOLDER, QUARANTINE)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            for line in file:
                reason = _read_reason(line[:_MAX_REASON_BYTES])
                counts[reason] = counts.get(reason, 0) + 1
    except OSError:
        return []
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    reasons = [
        f"{reason} ({count} times)" if count > 1 else reason for reason, count in ranked[:_MAX_REASONS]
    ]
    return (
        [*reasons, f"and {len(ranked) - _MAX_REASONS} more reasons"]
        if len(ranked) > _MAX_REASONS
        else reasons
    )


def report_quarantined(root: "str | os.PathLike[str]") -> str:
    """In words, for status and doctor; empty if there are none."""
    if not (count := count_quarantined(root)):
        return ""
    events = f"{count} events of hosts were" if count > 1 else "1 event of a host was"
    reasons = " ".join(
        reason if reason.endswith(".") else f"{reason}." for reason in list_quarantine_reasons(root)
    )
    return f"{events} kept in no transcript and set aside in {FOLDER}/{QUARANTINE}: {reasons} {_ADVICE}"


def _read_reason(data: bytes) -> str:
    """The reason at the start of a line; the event behind it may be long."""
    try:
        reason, _ = json.JSONDecoder().raw_decode(data.decode("utf-8", "replace").removeprefix('{"why":'))
    except ValueError:
        return "the reason cannot be read"
    return str(reason)[:_MAX_REASON_CHARS]


def _count_waiting(folder: str, name: str) -> int:
    return _count_lines(os.path.join(folder, name), _read_cursor(folder, name))


def _count_lines(path: str, start: int) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        count = 0
        while chunk := os.pread(fd, _CHUNK_BYTES, start):
            count += chunk.count(b"\n")
            start += len(chunk)
        return count
    finally:
        os.close(fd)


# ---------------------------------------------------------------- draining


def drain(root: "str | os.PathLike[str]", take: "Callable[[SpooledEvent], object]") -> DrainResult:
    """Pass every event to `take`, in the order they came.

    If `take` raises a TacitError the event is quarantined, since it would be refused for ever. A temporary
    failure (a full disk, a home that is gone for a while, a locked session) or a bug stops the pass, and
    that event is the first one next time.
    """
    result = DrainResult()
    folder = os.path.join(os.fspath(root), FOLDER)
    if not _file_names(folder):
        return result
    lock = os.open(os.path.join(folder, "drain.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in _file_names(folder):
            _drain_file(folder, name, take, result)
    except BlockingIOError:
        pass  # another process is draining
    except Exception as error:  # noqa: BLE001 - after any failure of `take` the rest waits for the next time
        result.stopped = error
    finally:
        os.close(lock)
    return result


def _drain_file(
    folder: str, name: str, take: "Callable[[SpooledEvent], object]", result: DrainResult
) -> None:
    fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    cursor_fd = os.open(
        os.path.join(folder, name + _CURSOR_SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        offset = _read_cursor(folder, name)
        for line, end in _read_lines(fd, offset):
            _take_line(folder, line, take, result)
            offset = end
            os.pwrite(cursor_fd, b"%020d" % offset, 0)
            os.fdatasync(cursor_fd)
        _remove_if_done(folder, name, fd, offset)
    finally:
        os.close(cursor_fd)
        os.close(fd)


def _read_lines(fd: int, offset: int) -> "Iterator[tuple[bytes, int]]":
    """Each line from `offset` on, with where it ends. Without a writer, an end without a line break is a line
    that a writer could not finish, and counts as one."""
    _lock(fd)
    size = os.fstat(fd).st_size
    fcntl.flock(fd, fcntl.LOCK_UN)
    rest = b""
    while offset + len(rest) < size:
        chunk = os.pread(fd, min(_CHUNK_BYTES, size - offset - len(rest)), offset + len(rest))
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            yield line, offset
    if rest:
        yield rest, offset + len(rest)


def _lock(fd: int) -> None:
    if not _try_lock(fd, time.monotonic() + _DRAIN_TIMEOUT_S):
        raise TimeoutError("a process that adds to the spool keeps it locked")


def _take_line(
    folder: str, line: bytes, take: "Callable[[SpooledEvent], object]", result: DrainResult
) -> None:
    if not line.strip():
        return
    try:
        take(_parse_event(line))
        result.taken += 1
    except (Busy, DiskError, HomeError):
        raise
    except TacitError as error:
        result.aside.append(str(error))
        _quarantine(folder, line, str(error))


def _parse_event(line: bytes) -> SpooledEvent:
    try:
        value = json.loads(line)
        operation, body = value["operation"], value["body"]
        if not all(isinstance(part, str) for part in (operation, body["id"], body["at"])):
            raise ValueError("its fields are not what they should be")
        return SpooledEvent(operation, body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"A line of the spool cannot be read: {error!r}. See {QUARANTINE} there.") from None


def _quarantine(folder: str, line: bytes, reason: str) -> None:
    from tacit.privacy.redaction import clean  # a truncated or foreign line was never redacted

    text = clean(line.decode("utf-8", "replace")).text
    record = {"why": clean(reason).text, "at": _now(), "line": text}
    data = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
    fd = os.open(os.path.join(folder, QUARANTINE), _OPEN_FLAGS, 0o600)
    try:
        _append(fd, data)
        os.fdatasync(fd)
    finally:
        os.close(fd)
    _sync_folder(folder)


def _remove_if_done(folder: str, name: str, fd: int, offset: int) -> None:
    _lock(fd)
    if os.fstat(fd).st_size > offset:
        return  # a writer added to it meanwhile: next time
    os.unlink(os.path.join(folder, name))
    _sync_folder(folder)  # before the cursor: a file that came back without one would be read again
    os.unlink(os.path.join(folder, name + _CURSOR_SUFFIX))


def _read_cursor(folder: str, name: str) -> int:
    """How many bytes of a file are processed. If a crash damaged the cursor, start over: the ids tell."""
    try:
        fd = os.open(os.path.join(folder, name + _CURSOR_SUFFIX), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.pread(fd, 20, 0)
    finally:
        os.close(fd)
    return int(text) if len(text) == 20 and text.isdigit() else 0
