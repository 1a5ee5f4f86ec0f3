"""Every call of a model: `.tacit/ledger/YYYY-MM-DD.jsonl`, one file for each day, one line for each event.

What must stay true:
- a call is written before it is made, with its maximum cost, under a lock: if two processes would exceed a
  limit together, one is refused;
- when it is done a second line with the same id has the actual cost; if its process died the first line
  counts, so that possible spending is included;
- sums are of whole days, and a day's file is deleted as a whole, after more than a year;
- a line that cannot be read is skipped.

A call that cannot be counted is not made, and a turn goes on without its model. A turn waits less for the
lock than a run, and not for the disk (`hurried`).

The cost of a model without a price is unknown, and unknown never counts as zero."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tacit.errors import Busy, LimitReached, StoreError
from tacit.home import files
from tacit.home.layout import Home

_MILLION = 1_000_000
RETENTION_DAYS = 400
_LOCK_TIMEOUT_S = 10.0  # the lock is held for the time of one line
_TURN_LOCK_TIMEOUT_S = 0.2  # where a turn waits
_MAX_REFUSED_LINES = 200  # lines of a day; that a limit is reached need not be told more often
_MAX_REASON_CHARS = 300  # characters


class Price(NamedTuple):
    """Dollars per million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / _MILLION


FREE = Price(0.0, 0.0)


class SpendingLimits(NamedTuple):
    """Of one day; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


class Call(NamedTuple):
    """One call of a model, as the ledger keeps it."""

    id: str
    at: str  # ISO, with its offset
    task: str
    model: str
    outcome: str  # begun, ok, failed, refused, bad
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0  # None: unknown
    ms: int = 0
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether a call was made. A bad answer is a line of its own beside its call."""
        return self.outcome in ("begun", "ok", "failed")


class SpendTotal(NamedTuple):
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0  # calls of unknown cost
    failed: int = 0
    refused: int = 0
    bad: int = 0
    ms: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def and_(self, call: Call) -> SpendTotal:
        counts = call.counts
        return SpendTotal(
            self.calls + counts,
            self.tokens_in + call.tokens_in,
            self.tokens_out + call.tokens_out,
            self.usd + (call.usd or 0.0),
            self.unpriced + (counts and call.usd is None),
            self.failed + (call.outcome == "failed"),
            self.refused + (call.outcome == "refused"),
            self.bad + (call.outcome == "bad"),
            self.ms + call.ms,
        )


def sum_calls(calls: Iterable[Call]) -> SpendTotal:
    spent = SpendTotal()
    for call in calls:
        spent = spent.and_(call)
    return spent


def check_limits(
    limits: SpendingLimits, spent: SpendTotal, model: str, tokens: int, usd: float | None
) -> str:
    """Why a call of so many tokens would exceed a limit; empty if it fits."""
    if limits.calls is not None and spent.calls + 1 > limits.calls:
        return _limit_message("daily_calls", f"{limits.calls} calls", f"{spent.calls} were made")
    if limits.tokens is not None and spent.tokens + tokens > limits.tokens:
        used = f"{spent.tokens} are used and this call may take {tokens}"
        return _limit_message("daily_tokens", f"{limits.tokens} tokens", used)
    if limits.usd is None:
        return ""
    if usd is None:
        return (
            f"{model} has no price, so the limit of ${limits.usd:g} a day cannot be kept. Say what it costs "
            f'in models.prices: ["{model} INPUT OUTPUT"], dollars per million tokens; '
            "or set models.daily_usd to null."
        )
    if spent.usd + usd > limits.usd and usd > 0:
        used = f"${spent.usd:.4f} is spent and this call may cost ${usd:.4f}"
        return _limit_message("daily_usd", f"${limits.usd:g}", used)
    return ""


def _limit_message(key: str, limit: str, used: str) -> str:
    return (
        f"The limit of {limit} a day is reached: {used}. Raise models.{key} in memory-config.yaml, or wait."
    )


class Meter(Protocol):
    """Counts the calls of one model for one task."""

    def begin(self, tokens_in: int, tokens_out: int) -> str:
        """Call it before asking, with the maximum number of tokens. Returns an id or raises LimitReached."""

    def end(self, call: str, outcome: str, tokens_in: int, tokens_out: int, why: str = "") -> None: ...

    def bad(self, why: str) -> None:
        """Count an answer that was paid for and could not be used."""


# Recording calls


class Ledger:
    def __init__(
        self,
        home: Home,
        now: Callable[[], datetime],
        limits: SpendingLimits = SpendingLimits(),  # noqa: B008 - a value
    ) -> None:
        self._folder, self._now, self._limits = home.private / "ledger", now, limits
        self._cache = _DayCache(date.min, 0, {})

    def meter(self, task: str, model: str, price: Price | None, *, hurried: bool = False) -> LedgerMeter:
        """`hurried`: a turn is waiting."""
        return LedgerMeter(self, task, model, price, hurried)

    def begin(self, call: Call, *, hurried: bool = False) -> Call:
        """The call as it was counted. Raises LimitReached if it exceeds a limit, OSError or StoreError if
        it cannot be written. Unless `hurried` it is on disk before the call is made."""
        with (
            files.explain_disk_errors("write the ledger of model calls"),
            self._hold_lock(_TURN_LOCK_TIMEOUT_S if hurried else _LOCK_TIMEOUT_S),
        ):
            now = self._now()
            call = call._replace(id=os.urandom(6).hex(), at=now.isoformat(timespec="milliseconds"))
            spent = sum_calls(self._catch_up(now.date()).values())
            tokens = call.tokens_in + call.tokens_out
            if reason := check_limits(self._limits, spent, call.model, tokens, call.usd):
                if spent.refused < _MAX_REFUSED_LINES:
                    refused = call._replace(outcome="refused", tokens_in=0, tokens_out=0, usd=0.0)
                    self._write(refused._replace(why=reason[:_MAX_REASON_CHARS]))
                raise LimitReached(reason)
            self._write(call, sync=not hurried)
        return call

    def add(self, call: Call) -> None:
        """Append one line. No lock: the cost is hardly ever more than was counted before."""
        with files.explain_disk_errors("write the ledger of model calls"):
            self._write(call)

    def days(self, count: int) -> dict[date, list[Call]]:
        """The calls of the last days, today among them; days without any are left out."""
        today = self._now().date()
        by_day = {
            day: list(self._read_calls(day))
            for day in (today - timedelta(days_ago) for days_ago in range(count))
        }
        return {day: calls for day, calls in by_day.items() if calls}

    def today(self) -> SpendTotal:
        return sum_calls(self._read_calls(self._now().date()))

    def _read_calls(self, day: date) -> Iterator[Call]:
        """The last line of each call of a day."""
        return iter(_add_calls({}, _read_from(self._file(day))).values())

    def _catch_up(self, day: date) -> dict[str, Call]:
        """The same, reading only the lines added since the last time. Under the lock."""
        file, cache = self._file(day), self._cache
        if cache.day != day or _file_size(file) < cache.size:
            cache = _DayCache(day, 0, {})
        added = _read_from(file, cache.size)
        added = added[: added.rfind(b"\n") + 1]  # the rest is being written, or torn
        self._cache = _DayCache(day, cache.size + len(added), _add_calls(cache.calls, added))
        return self._cache.calls

    def _write(self, call: Call, *, sync: bool = False) -> None:
        file = self._file(datetime.fromisoformat(call.at).date())
        is_new = not file.exists()
        fd = os.open(file, files.LOG_FLAGS, 0o600)
        try:
            files.append_lines(fd, json.dumps(call._asdict()).encode("ascii") + b"\n")
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        if is_new:
            self._prune()

    def _prune(self) -> None:
        oldest = self._file(self._now().date() - timedelta(RETENTION_DAYS)).name
        for file in self._folder.glob("????-??-??.jsonl"):
            if file.name < oldest:
                with suppress(OSError):
                    file.unlink()

    def _file(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def _hold_lock(self, wait: float) -> Any:
        return files.hold_lock(self._folder / "lock", wait)


class _DayCache(NamedTuple):
    day: date
    size: int  # bytes of its file that were read
    calls: dict[str, Call]


class _OpenCall(NamedTuple):
    call: Call
    since: float


class LedgerMeter:
    """Safe to use from several threads. After `begin` nothing fails: the call is already made."""

    def __init__(self, ledger: Ledger, task: str, model: str, price: Price | None, hurried: bool) -> None:
        self._ledger, self._price, self._hurried = ledger, price, hurried
        self._template = Call("", "", task, model, "begun")
        self._open: dict[str, _OpenCall] = {}

    def begin(self, tokens_in: int, tokens_out: int) -> str:
        call = self._template._replace(
            tokens_in=tokens_in, tokens_out=tokens_out, usd=self._usd(tokens_in, tokens_out)
        )
        try:
            recorded = self._ledger.begin(call, hurried=self._hurried)
        except (OSError, StoreError) as error:
            raise LimitReached(
                f"The ledger of model calls cannot be written ({_describe(error)}), so nothing is asked: "
                "the cost would be unknown. Make .tacit/ledger writable."
            ) from None
        self._open[recorded.id] = _OpenCall(recorded, time.monotonic())
        return recorded.id

    def end(self, call: str, outcome: str, tokens_in: int, tokens_out: int, why: str = "") -> None:
        open_call = self._open.pop(call, None)
        if open_call is None:
            return
        finished = open_call.call._replace(
            outcome=outcome,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=self._usd(tokens_in, tokens_out),
            ms=round((time.monotonic() - open_call.since) * 1000),
            why=why[:_MAX_REASON_CHARS],
        )
        with suppress(OSError, StoreError):
            self._ledger.add(finished)

    def bad(self, why: str) -> None:
        now = self._ledger._now().isoformat(timespec="milliseconds")  # noqa: SLF001 - one module
        line = self._template._replace(
            id=os.urandom(6).hex(), at=now, outcome="bad", why=why[:_MAX_REASON_CHARS]
        )
        with suppress(OSError, StoreError):
            self._ledger.add(line)

    def _usd(self, tokens_in: int, tokens_out: int) -> float | None:
        return None if self._price is None else round(self._price.of(tokens_in, tokens_out), 8)


def _describe(error: OSError | StoreError) -> str:
    if isinstance(error, Busy):
        return "another process holds it"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _read_from(file: Path, begin: int = 0) -> bytes:
    try:
        with open(file, "rb") as stream:
            stream.seek(begin)
            return stream.read()
    except OSError:
        return b""


def _add_calls(calls: dict[str, Call], data: bytes) -> dict[str, Call]:
    for line in data.split(b"\n"):
        if (call := _parse_call(line)) is not None:
            calls[call.id] = call
    return calls


_NUMBER_FIELDS = ("tokens_in", "tokens_out", "ms")


def _parse_call(line: bytes) -> Call | None:
    try:
        call = Call(**json.loads(line))
        for name in _NUMBER_FIELDS:
            if type(getattr(call, name)) is not int:
                return None
        usd = call.usd
        if not isinstance(call.id, str) or not (usd is None or type(usd) in (int, float)):
            return None
    except (ValueError, TypeError, RecursionError):
        return None
    return call
