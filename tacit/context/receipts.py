"""The receipt log: what every turn got and why, one JSON line each, in `.tacit/receipts`.

What must stay true:
- a receipt is appended by one write of one whole line, so concurrent processes never mix lines;
- a turn never waits for the disk (nothing is synced) and never fails because its receipt cannot be written;
- the log stays small: files of at most 4 MB, 64 MB in all, the oldest are removed first;
- lines that cannot be read (truncated, or of another program) are skipped.

The log also has lines about sessions: that a session ended, or continues under another id. Only
`context.injection_log` reads them.

Files are numbered in the order of creation, `000012-2026-11-02.jsonl`, and hold no receipt of a later day
than their name says. Newest first means last appended first, regardless of clocks.
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

from tacit.context.model import Receipt
from tacit.context.receipt_codec import decode_line, encode_line
from tacit.errors import DiskError, UsageError
from tacit.home import files
from tacit.home.files import explain_disk_errors
from tacit.home.layout import Home

MAX_FILE_BYTES = 4_000_000
MAX_LOG_BYTES = 64_000_000
_MAX_FILES = 1000  # quiet days make small files, and every turn lists them
_MAX_SESSION_RECEIPTS = 500  # that are looked through for the files of one session
_BLOCK_BYTES = 65_536
_FILE_NAME = re.compile(r"(\d{6})-(\d{4}-\d\d-\d\d)\.jsonl")
_DAY_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # no letters that look alike; they sort as numbers
_TIME_DIGITS, _RANDOM_DIGITS = 9, 4  # digits of an id
_ID_HEAD = re.compile(rb'\{"id":"([^"\\]*)"')


def new_id(now: datetime, token: int) -> str:
    """The millisecond and four random characters: ids sort by time, and the random part makes them unique."""
    return _base32(int(now.timestamp() * 1000), _TIME_DIGITS) + _base32(token, _RANDOM_DIGITS)


def _base32(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(digits)))


# Writing


def append(home: Home, receipt: Receipt) -> str:
    """Return empty, or why it could not be written. Never raises: a turn goes on without its receipt."""
    try:
        with explain_disk_errors("keep the receipt"):
            _append_line(home, encode_line(receipt), _read_day(receipt.at))
    except DiskError as error:
        return str(error)
    except OSError as error:
        return f"Could not keep the receipt: {error.strerror or error}. Look at .tacit/receipts in the home."
    return ""


def note_end(
    home: Home, session_key: str, at: datetime, session_id: str = "", *, sealed: bool = False
) -> None:
    """Append a line that ends the sessions of this key, or the one with this id: the next conversation does
    not contain what was injected before. `sealed`: it has another transcript too. Without any receipts, this
    does nothing."""
    if os.path.isdir(_folder(home)):
        _append_note(
            home, at, session_key, session_id, {"ended": True, **({"sealed": True} if sealed else {})}
        )


def note_join(home: Home, session_key: str, at: datetime, session_id: str, before: str) -> None:
    """Append a line: the turns under the id `before` belong to this session."""
    _append_note(home, at, session_key, session_id, {"joins": before})


def _append_note(
    home: Home, at: datetime, session_key: str, session_id: str, fields: Mapping[str, object]
) -> None:
    # The same fields in front as a receipt; the id is empty, so that it cannot be found by id.
    head = {"id": "", "at": at.isoformat(), "session_key": session_key, "session_id": session_id}
    line = json.dumps({**head, **fields}, separators=(",", ":")).encode("ascii") + b"\n"
    with suppress(DiskError, OSError):
        _append_line(home, line, _read_day(at.isoformat()))


def _append_line(home: Home, line: bytes, day: str) -> None:
    for folder in (home.private, _folder(home)):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    with open_folder(home) as directory:
        fd = os.open(_current_file(directory, day, len(line)), files.LOG_FLAGS, 0o600, dir_fd=directory)
        try:
            files.append_lines(fd, line)
        finally:
            os.close(fd)


def _current_file(directory: int, day: str, size: int) -> str:
    """The file to append to: the last one, or a new one on a new day or if the last is full."""
    names = log_file_names(directory)
    if not names:
        return f"000001-{day}.jsonl"
    last = names[-1]
    if day <= _file_day(last) and _file_size(directory, last) + size <= MAX_FILE_BYTES:
        return last
    _remove_oldest(directory, names)
    return f"{int(last[:6]) + 1:06}-{max(day, _file_day(last))}.jsonl"


def _remove_oldest(directory: int, names: list[str]) -> None:
    """Make room for one more file."""
    sizes = [_file_size(directory, name) for name in names]
    total = sum(sizes)
    for index, (name, size) in enumerate(zip(names, sizes, strict=True)):
        if total <= MAX_LOG_BYTES - MAX_FILE_BYTES and len(names) - index < _MAX_FILES:
            break
        with suppress(FileNotFoundError):  # another process removed it
            os.unlink(name, dir_fd=directory)
        total -= size


def _read_day(moment: str) -> str:
    return moment[:10] if _DAY_PATTERN.fullmatch(moment[:10]) else "0001-01-01"


# Reading, newest first


def last(
    home: Home,
    *,
    session_key: str | None = None,
    trial: bool | None = None,
    since: datetime | None = None,
) -> Receipt | None:
    return next(read_receipts(home, session_key, trial=trial, since=since), None)


def recent(home: Home, n: int, session_key: str | None = None) -> list[Receipt]:
    return list(islice(read_receipts(home, session_key), n))


def read_receipts(
    home: Home,
    session_key: str | None,
    *,
    session_id: str | None = None,
    trial: bool | None = None,
    since: datetime | None = None,
) -> Iterator[Receipt]:
    """None matches any value. With `since`, files of earlier days are not opened: in a full log this takes
    one millisecond instead of sixty for a session without receipts."""
    for line in _read_lines(home, b"" if session_key is None else json_needle(session_key), since):
        receipt = decode_line(line)
        if (
            receipt is not None
            and session_key in (None, receipt.session_key)
            and session_id in (None, receipt.session_id)
            and (trial is None or (trial == receipt.trial and receipt.lane != "bootstrap"))
            and (since is None or is_since(receipt.at, since))
        ):
            yield receipt


def list_source_files(home: Home, session_key: str, start: datetime, end: datetime) -> list[str]:
    """The notes and files that were in the prompts of a session between these times, each once."""
    minute = timedelta(minutes=1)
    in_time = (
        receipt
        for receipt in read_receipts(home, session_key, since=start - minute)
        if not receipt.trial and _parse_time(receipt.at, end) <= end + minute
    )
    sources = (
        section.source for receipt in islice(in_time, _MAX_SESSION_RECEIPTS) for section in receipt.sections
    )
    return list(dict.fromkeys(path for source in sources if (path := _file_of_source(source))))


def _parse_time(text: str, fallback: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return fallback


def _file_of_source(source: str) -> str:
    """The file of a source such as `knowledge/people/noor.md:12`; empty if the source is not a note."""
    path = source.rpartition(":")[0] if source.rpartition(":")[2].isdecimal() else source
    return path if path.endswith(".md") else ""


def find_by_id(home: Home, wanted: str) -> Receipt | None:
    """Find a receipt by its id, or by a unique prefix or suffix of four or more characters."""
    wanted = wanted.strip().lower()
    if len(wanted) < 4:
        raise UsageError(f"{wanted!r} is too short for the id of a receipt. Give at least four characters.")
    matches: dict[str, bytes] = {}
    for line in _read_lines(home, json_needle(wanted)):
        id_ = _read_id(line)
        if id_ == wanted:
            return decode_line(line)
        if id_.startswith(wanted) or id_.endswith(wanted):
            matches.setdefault(id_, line)
    if len(matches) > 1:
        listing = ", ".join(list(matches)[:5]) + (" …" if len(matches) > 5 else "")
        raise UsageError(f"{wanted!r} may be any of {len(matches)} receipts: {listing}. Give more of it.")
    return next((decode_line(line) for line in matches.values()), None)


def _read_id(line: bytes) -> str:
    """The id, without parsing the rest if it stands in front."""
    if head := _ID_HEAD.match(line):
        return head[1].decode("ascii", "replace")
    receipt = decode_line(line)
    return receipt.id if receipt else ""


def json_needle(text: str) -> bytes:
    """The text as JSON encodes it. A line without it need not be parsed."""
    return json.dumps(text)[1:-1].encode()


def _read_lines(home: Home, needle: bytes, since: datetime | None = None) -> Iterator[bytes]:
    with suppress(FileNotFoundError, NotADirectoryError), open_folder(home) as directory:
        for name in reversed(log_file_names(directory, since)):
            with suppress(FileNotFoundError), open_log_file(directory, name) as fd:
                yield from (line for line in _read_backwards(fd) if line and needle in line)


def _read_backwards(fd: int) -> Iterator[bytes]:
    end, rest = os.fstat(fd).st_size, b""
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        first, *lines = (os.pread(fd, end - start, start) + rest).split(b"\n")
        yield from reversed(lines)
        end, rest = start, first
    yield rest


# What a host may see

_AUDIENCE_CODES = ("audience", "agent", "unsafe")  # codes of blocks that were dropped because of the listener
_PUBLIC_NOTICE_CODES = frozenset(
    {"deadline", "disabled", "excluded", "cache", "debounced", "not-owner", "several-senders", "unknown-key",
     "nobodys", "agents", "main-thread", "flush-ok", "flushed", "identity-shortened", "lane"}
)  # fmt: skip


def redact_for_host(receipt: Receipt) -> Receipt:
    """Redact names that the session may not see. The log has the whole receipt, for the owner."""
    if receipt.audience in ("", "owner"):
        return receipt
    visible = tuple(block for block in receipt.dropped if block.code not in _AUDIENCE_CODES)
    hidden = len(receipt.dropped) - len(visible)
    unlisted = {**receipt.unlisted, "hidden": hidden} if hidden else receipt.unlisted
    notices = tuple(
        notice
        if notice.code in _PUBLIC_NOTICE_CODES
        else replace(notice, text=f"See: tacit why {receipt.id}")
        for notice in receipt.notices
    )
    return replace(receipt, dropped=visible, unlisted=unlisted, notices=notices)


def is_since(at: str, since: datetime) -> bool:
    try:
        return datetime.fromisoformat(at).astimezone() >= since.astimezone()
    except (ValueError, OverflowError):
        return False


# The folder


def _folder(home: Home) -> str:
    return os.fspath(home.private / "receipts")


@contextmanager
def open_folder(home: Home) -> Iterator[int]:
    fd = os.open(_folder(home), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def open_log_file(directory: int, name: str) -> Iterator[int]:
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def log_file_names(directory: int, since: datetime | None = None) -> list[str]:
    # Receipts use the day of their own UTC offset, which may be the day before.
    first = "" if since is None else (since - timedelta(days=1)).date().isoformat()
    return sorted(
        name for name in os.listdir(directory) if _FILE_NAME.fullmatch(name) and _file_day(name) >= first
    )


def _file_day(name: str) -> str:
    return name[7:17]


def _file_size(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0
