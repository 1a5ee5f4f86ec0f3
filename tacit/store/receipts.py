"""The receipt log: what every turn was given and why, one JSON line each, in `.tacit/receipts`.

What must stay true:
- a receipt is added by one write of one whole line, so processes that add at the same time never mix lines;
- a turn never waits for the disk (nothing is synced) and never fails because its receipt cannot be kept;
- the log stays small: files of at most 4 MB, 64 MB in all, the oldest go first;
- what cannot be read (a torn line, a line of some other program) is passed over.

Between the receipts stand lines about sessions: that one ended, or goes on under another id. Only
`store.given` reads them.

Files are numbered in the order they were begun, `000012-2026-11-02.jsonl`, and hold no receipt of a later day
than their name says. Newest first means last added first, whatever the clocks said.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from tacit.errors import DiskError, UsageError
from tacit.model.context import Receipt
from tacit.store import files
from tacit.store.files import explained
from tacit.store.home import Home
from tacit.text.receipts import line_of, receipt_of

FILE_LIMIT = 4_000_000
ALL_LIMIT = 64_000_000
_FILES = 1000  # days without much talk make small files; to list them is part of every turn
_BLOCK = 65_536
_NAME = re.compile(r"(\d{6})-(\d{4}-\d\d-\d\d)\.jsonl")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # no letter that looks like another; they sort as numbers
_TIME, _RANDOM = 9, 4  # digits of an id
_HEAD = re.compile(rb'\{"id":"([^"\\]*)"')


def new_id(now: datetime, token: int) -> str:
    """The millisecond and four random characters. Ids sort by time; the last four tell neighbours apart."""
    return _base32(int(now.timestamp() * 1000), _TIME) + _base32(token, _RANDOM)


def _base32(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(digits)))


# Adding


def append(home: Home, receipt: Receipt) -> str:
    """Empty, or why it could not be kept. Never raises: a turn goes on without its receipt."""
    try:
        with explained("keep the receipt"):
            _append(home, line_of(receipt), _day(receipt.at))
    except DiskError as error:
        return str(error)
    except OSError as error:
        return f"Could not keep the receipt: {error.strerror or error}. Look at .tacit/receipts in the home."
    return ""


def note_end(
    home: Home, session_key: str, at: datetime, session_id: str = "", *, sealed: bool = False
) -> None:
    """A line that is no receipt: what was given so far is not in the next conversation of this key. With an
    id, only what that session was given. `sealed`: the next one has another transcript too. Where no turn
    was ever taken, there is nothing to say."""
    if os.path.isdir(_folder(home)):
        _note(home, at, session_key, session_id, {"ended": True, **({"sealed": True} if sealed else {})})


def note_join(home: Home, session_key: str, at: datetime, session_id: str, before: str) -> None:
    """The turns that were taken under the id `before` belong to this session."""
    _note(home, at, session_key, session_id, {"joins": before})


def _note(home: Home, at: datetime, session_key: str, session_id: str, what: Mapping[str, object]) -> None:
    # In front what a receipt has in front; without an id, so that nobody finds it by one.
    head = {"id": "", "at": at.isoformat(), "session_key": session_key, "session_id": session_id}
    line = json.dumps({**head, **what}, separators=(",", ":")).encode("ascii") + b"\n"
    with suppress(DiskError, OSError):
        _append(home, line, _day(at.isoformat()))


def _append(home: Home, line: bytes, day: str) -> None:
    for folder in (home.private, _folder(home)):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    with opened(home) as directory:
        fd = os.open(_current(directory, day, len(line)), files.LOGGED, 0o600, dir_fd=directory)
        try:
            files.append_lines(fd, line)
        finally:
            os.close(fd)


def _current(directory: int, day: str, size: int) -> str:
    """The file to add to: the last one, or a new one for a new day or when the last is full."""
    names = names_of(directory)
    if not names:
        return f"000001-{day}.jsonl"
    last = names[-1]
    if day <= _day_of(last) and _size(directory, last) + size <= FILE_LIMIT:
        return last
    _make_room(directory, names)
    return f"{int(last[:6]) + 1:06}-{max(day, _day_of(last))}.jsonl"


def _make_room(directory: int, names: list[str]) -> None:
    """For one more file."""
    sizes = [_size(directory, name) for name in names]
    total = sum(sizes)
    for at, (name, size) in enumerate(zip(names, sizes, strict=True)):
        if total <= ALL_LIMIT - FILE_LIMIT and len(names) - at < _FILES:
            break
        with suppress(FileNotFoundError):  # another process makes room as well
            os.unlink(name, dir_fd=directory)
        total -= size


def _day(at: str) -> str:
    return at[:10] if _DAY.fullmatch(at[:10]) else "0001-01-01"


# Asking, newest first


def last(
    home: Home,
    *,
    session_key: str | None = None,
    trial: bool | None = None,
    since: datetime | None = None,
) -> Receipt | None:
    return next(of_session(home, session_key, trial=trial, since=since), None)


def recent(home: Home, n: int, session_key: str | None = None) -> list[Receipt]:
    return list(islice(of_session(home, session_key), n))


def of_session(
    home: Home,
    session_key: str | None,
    *,
    session_id: str | None = None,
    trial: bool | None = None,
    since: datetime | None = None,
) -> Iterator[Receipt]:
    """None stands for any. With `since`, files of earlier days are not opened: in a full log that is the
    difference between one and sixty milliseconds for a session that has no receipt."""
    for line in _lines(home, b"" if session_key is None else needle(session_key), since):
        receipt = receipt_of(line)
        if (
            receipt is not None
            and session_key in (None, receipt.session_key)
            and session_id in (None, receipt.session_id)
            and (trial is None or (trial == receipt.trial and receipt.lane != "bootstrap"))
            and (since is None or is_since(receipt.at, since))
        ):
            yield receipt


def by_id(home: Home, wanted: str) -> Receipt | None:
    """By its id, or by four or more characters with which it begins or ends, if no other one does."""
    wanted = wanted.strip().lower()
    if len(wanted) < 4:
        raise UsageError(f"{wanted!r} is too short for the id of a receipt. Give at least four characters.")
    found: dict[str, bytes] = {}
    for line in _lines(home, needle(wanted)):
        name = _id_of(line)
        if name == wanted:
            return receipt_of(line)
        if name.startswith(wanted) or name.endswith(wanted):
            found.setdefault(name, line)
    if len(found) > 1:
        some = ", ".join(list(found)[:5]) + (" …" if len(found) > 5 else "")
        raise UsageError(f"{wanted!r} may be any of {len(found)} receipts: {some}. Give more of it.")
    return next((receipt_of(line) for line in found.values()), None)


def _id_of(line: bytes) -> str:
    """Without reading the rest, where it stands in front."""
    if head := _HEAD.match(line):
        return head[1].decode("ascii", "replace")
    receipt = receipt_of(line)
    return receipt.id if receipt else ""


def needle(text: str) -> bytes:
    """The text as it stands in a line. A line without it need not be read."""
    return json.dumps(text)[1:-1].encode()


def _lines(home: Home, needle: bytes, since: datetime | None = None) -> Iterator[bytes]:
    with suppress(FileNotFoundError, NotADirectoryError), opened(home) as directory:
        for name in reversed(names_of(directory, since)):
            with suppress(FileNotFoundError), plain_file(directory, name) as fd:
                yield from (line for line in _backwards(fd) if line and needle in line)


def _backwards(fd: int) -> Iterator[bytes]:
    end, rest = os.fstat(fd).st_size, b""
    while end > 0:
        start = max(0, end - _BLOCK)
        first, *lines = (os.pread(fd, end - start, start) + rest).split(b"\n")
        yield from reversed(lines)
        end, rest = start, first
    yield rest


# What a host may know of it

_TOLD = ("audience", "agent", "unsafe")  # codes of what was left out because of who listens
_PLAIN = frozenset(
    {"deadline", "disabled", "excluded", "cache", "debounced", "not-owner", "several-senders", "unknown-key",
     "nobodys", "agents", "main-thread", "flush-ok", "flushed", "identity-shortened", "lane"}
)  # fmt: skip


def for_host(receipt: Receipt) -> Receipt:
    """Without the names of what a session may not see. The log has all of it, for the owner."""
    if receipt.audience in ("", "owner"):
        return receipt
    kept = tuple(one for one in receipt.dropped if one.code not in _TOLD)
    hidden = len(receipt.dropped) - len(kept)
    unlisted = {**receipt.unlisted, "hidden": hidden} if hidden else receipt.unlisted
    notices = tuple(
        notice if notice.code in _PLAIN else replace(notice, text=f"See: tacit why {receipt.id}")
        for notice in receipt.notices
    )
    return replace(receipt, dropped=kept, unlisted=unlisted, notices=notices)


def is_since(at: str, since: datetime) -> bool:
    try:
        return datetime.fromisoformat(at).astimezone() >= since.astimezone()
    except (ValueError, OverflowError):
        return False


# The folder


def _folder(home: Home) -> str:
    return os.fspath(home.private / "receipts")


@contextmanager
def opened(home: Home) -> Iterator[int]:
    fd = os.open(_folder(home), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def plain_file(directory: int, name: str) -> Iterator[int]:
    # O_NONBLOCK: opening a FIFO that somebody put there must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def names_of(directory: int, since: datetime | None = None) -> list[str]:
    # Receipts carry the day of their own offset, which may be the day before.
    first = "" if since is None else (since - timedelta(days=1)).date().isoformat()
    return sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name) and _day_of(name) >= first)


def _day_of(name: str) -> str:
    return name[7:17]


def _size(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0
