"""What could not be given to the daemon: kept in files until it is up, then taken once.

Whoever finds no daemon adds a line to a file in .tacit/spool; the daemon drains them. A hook helper writes
here while a host waits, so this module imports what is small and nothing else of ours but the cleaning.

What must stay true:
- `add` returns only after the record is on disk, and it is cleaned before it gets there;
- no record is lost, none is torn: one writer at a time (flock), one write, and what a crash or a full disk
  left unfinished is closed by the next writer with a line break;
- a record is taken once: a cursor beside each file is saved after each record. A crash between the two gives
  the record again, with the same id, by which the taker knows it;
- files have names that are never used twice, so that no cursor can speak of another file than its own;
- what cannot be read or taken is set aside with the reason, never dropped.
"""

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
ASIDE = "set-aside"
_ENDING, _CURSOR = ".jsonl", ".taken"
_FULL = 8_000_000  # bytes after which the next record begins a new file
_PATIENCE = 0.1  # seconds for another writer; then a file of one's own
_HELD = 5.0  # seconds for a writer, when draining
_ADD = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1_000_000
# What names a session must come through as it is, or it would name another one.
_AS_THEY_ARE = frozenset(("session_key", "session_id", "agent"))


class Record:
    """One operation that waits, and its body, which has an `id` and the time `at` which it came. A plain
    class: dataclasses cost more than all the rest."""

    __slots__ = ("body", "operation")

    def __init__(self, operation: str, body: "dict[str, Any]") -> None:
        self.operation, self.body = operation, body

    @property
    def id(self) -> str:
        return str(self.body["id"])


class Drained:
    """What one pass did: how many were taken, what was set aside and why, and what stopped it."""

    __slots__ = ("aside", "stopped", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self.aside: list[str] = []
        self.stopped: Exception | None = None


# ---------------------------------------------------------------- adding


def new_id() -> str:
    return os.urandom(8).hex()


def add(root: "str | os.PathLike[str]", operation: str, body: "Mapping[str, Any]") -> str:
    """Keep one operation of tacit.api for the daemon; gives its id. OSError where the disk refuses."""
    folder = _made(os.fspath(root))
    whole = _cleaned(body)
    name = whole["id"] = _id_of(body.get("id"))
    whole["at"] = body.get("at") if _is_time(body.get("at")) else _now()
    record = {"operation": operation, "body": whole}
    data = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
    fd, new = _open_last(folder)
    try:
        _append(fd, data)
        fcntl.flock(fd, fcntl.LOCK_UN)  # the next writer need not wait for our disk
        os.fdatasync(fd)
    finally:
        os.close(fd)
    if new:
        _sync(folder)
    return name


def _id_of(given: object) -> str:
    """As it was given. In the place of one that holds a secret stands one that is the same each time."""
    from tacit.text.redact import clean

    name = str(given or "") or new_id()
    if clean(name).text == name:
        return name
    from hashlib import sha256  # rarely needed, and not free

    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_time(given: object) -> bool:
    """Anything else would be refused by the taker, for ever, and might be any text."""
    from datetime import datetime  # `tacit status` looks at the spool, and needs none

    try:
        return isinstance(given, str) and bool(datetime.fromisoformat(given))
    except ValueError:
        return False


def _now() -> str:
    """ISO 8601 with the offset of this machine, which is how a taker reads it back."""
    moment = time.time()
    offset = time.strftime("%z", time.localtime(moment)) or "+0000"
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment))
    return f"{whole}.{int(moment % 1 * 1000):03}{offset[:3]}:{offset[3:5]}"


def _cleaned(body: "Mapping[str, Any]") -> "dict[str, Any]":
    from tacit.text.redact import clean  # regular expressions, for who writes

    def cleaned(value: "Any") -> "Any":
        if isinstance(value, str):
            return clean(value).text
        if isinstance(value, dict):
            return {cleaned(str(key)): cleaned(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [cleaned(item) for item in value]
        return value

    return {str(key): item if key in _AS_THEY_ARE else cleaned(item) for key, item in body.items()}


def _made(root: str) -> str:
    folder = os.path.join(root, FOLDER)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        _sync(os.path.dirname(folder))
        _sync(root)
    return folder


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _open_last(folder: str) -> tuple[int, bool]:
    """The newest file, locked; a new one where there is none, it is full, or somebody holds it too long."""
    until = time.monotonic() + _PATIENCE
    while names := _names(folder):
        try:
            fd = os.open(os.path.join(folder, names[-1]), _ADD & ~os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # drained just now
        if not _locked(fd, until):
            os.close(fd)
            break
        info = os.fstat(fd)
        if info.st_nlink and info.st_size < _FULL:
            return fd, False
        os.close(fd)
        if info.st_nlink:
            break
    return _open_new(folder), True


def _open_new(folder: str) -> int:
    # A number that grows keeps the order whatever the clock does; the rest makes the name one of its own.
    last = _names(folder)[-1:]
    number = int(last[0].split("-")[0]) + 1 if last else 1
    name = f"{number:010}-{os.urandom(6).hex()}{_ENDING}"
    fd = os.open(os.path.join(folder, name), _ADD | os.O_EXCL, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def _locked(fd: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)


def _append(fd: int, data: bytes) -> None:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        data = b"\n" + data  # what was torn stays a line of its own
    try:
        if os.write(fd, data) < len(data):
            raise OSError(28, "the disk is full")
    except OSError:
        os.ftruncate(fd, size)
        raise


def _names(folder: str) -> list[str]:
    """Oldest first."""
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in found if name.endswith(_ENDING) and name.split("-")[0].isdecimal())


# ---------------------------------------------------------------- looking


def waiting(root: "str | os.PathLike[str]") -> int:
    """How many records wait for the daemon."""
    folder = os.path.join(os.fspath(root), FOLDER)
    return sum(_lines_after(folder, name) for name in _names(folder))


def set_aside(root: "str | os.PathLike[str]") -> int:
    """How many could not be taken and lie in .tacit/spool/set-aside for somebody to look at."""
    return _count(os.path.join(os.fspath(root), FOLDER, ASIDE), 0)


def _lines_after(folder: str, name: str) -> int:
    return _count(os.path.join(folder, name), _cursor(folder, name))


def _count(path: str, start: int) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        count = 0
        while piece := os.pread(fd, _PIECE, start):
            count += piece.count(b"\n")
            start += len(piece)
        return count
    finally:
        os.close(fd)


# ---------------------------------------------------------------- draining


def drain(root: "str | os.PathLike[str]", take: "Callable[[Record], object]") -> Drained:
    """Give every record to `take`, in the order they came.

    One for which `take` raises a TacitError is set aside: it would be refused for ever. What may pass (a full
    disk, a home that is gone for a while, a session that somebody holds, a bug) stops the pass, and that
    record is the first one next time.
    """
    done = Drained()
    folder = os.path.join(os.fspath(root), FOLDER)
    if not _names(folder):
        return done
    lock = os.open(os.path.join(folder, "drain.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in _names(folder):
            _drain_file(folder, name, take, done)
    except BlockingIOError:
        pass  # somebody else is at it
    except Exception as error:  # noqa: BLE001 - whatever the taker met, the rest waits for the next time
        done.stopped = error
    finally:
        os.close(lock)
    return done


def _drain_file(folder: str, name: str, take: "Callable[[Record], object]", done: Drained) -> None:
    fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    cursor = os.open(os.path.join(folder, name + _CURSOR), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        at = _cursor(folder, name)
        for line, end in _whole_lines(fd, at):
            _take_line(folder, line, take, done)
            at = end
            os.pwrite(cursor, b"%020d" % at, 0)
            os.fdatasync(cursor)
        _remove_if_done(folder, name, fd, at)
    finally:
        os.close(cursor)
        os.close(fd)


def _whole_lines(fd: int, at: int) -> "Iterator[tuple[bytes, int]]":
    """Each line from `at` on, with where it ends. While nobody writes, an end without a line break is what a
    writer could not finish: a line too."""
    _lock(fd)
    size = os.fstat(fd).st_size
    fcntl.flock(fd, fcntl.LOCK_UN)
    rest = b""
    while at + len(rest) < size:
        piece = os.pread(fd, min(_PIECE, size - at - len(rest)), at + len(rest))
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            at += len(line) + 1
            yield line, at
    if rest:
        yield rest, at + len(rest)


def _lock(fd: int) -> None:
    if not _locked(fd, time.monotonic() + _HELD):
        raise TimeoutError("somebody who adds to the spool does not let go of it")


def _take_line(folder: str, line: bytes, take: "Callable[[Record], object]", done: Drained) -> None:
    if not line.strip():
        return
    try:
        take(_record(line))
        done.taken += 1
    except (Busy, DiskError, HomeError):
        raise
    except TacitError as error:
        done.aside.append(str(error))
        _put_aside(folder, line, str(error))


def _record(line: bytes) -> Record:
    try:
        value = json.loads(line)
        operation, body = value["operation"], value["body"]
        if not all(isinstance(part, str) for part in (operation, body["id"], body["at"])):
            raise ValueError("its fields are not what they should be")
        return Record(operation, body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"A line of the spool cannot be read: {error!r}. See {ASIDE} there.") from None


def _put_aside(folder: str, line: bytes, why: str) -> None:
    from tacit.text.redact import clean  # what was torn, or written by somebody else, nobody cleaned

    text = clean(line.decode("utf-8", "replace")).text
    record = {"why": clean(why).text, "at": _now(), "line": text}
    data = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
    fd = os.open(os.path.join(folder, ASIDE), _ADD, 0o600)
    try:
        _append(fd, data)
        os.fdatasync(fd)
    finally:
        os.close(fd)
    _sync(folder)


def _remove_if_done(folder: str, name: str, fd: int, at: int) -> None:
    _lock(fd)
    if os.fstat(fd).st_size > at:
        return  # somebody added to it meanwhile: next time
    os.unlink(os.path.join(folder, name))
    _sync(folder)  # before the cursor goes: a file that came back without it would be taken again
    os.unlink(os.path.join(folder, name + _CURSOR))


def _cursor(folder: str, name: str) -> int:
    """Bytes of a file that are taken. What a crash made of it is no number: then from the beginning, and
    the ids tell."""
    try:
        fd = os.open(os.path.join(folder, name + _CURSOR), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.pread(fd, 20, 0)
    finally:
        os.close(fd)
    return int(text) if len(text) == 20 and text.isdigit() else 0
