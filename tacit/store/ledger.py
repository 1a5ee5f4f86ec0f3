"""Every call of a model: `.tacit/ledger/YYYY-MM-DD.jsonl`, one file for each day, one line for each event.

What must stay true:
- a call is written before it is made, at the most that it may take, under a lock: of two processes that would
  pass a limit together one is refused;
- when it is done a second line of the same id says what it took; of a call whose process died the first line
  stands, so what may have been spent is counted;
- sums are of whole days, and a day's file is deleted as a whole, after more than a year;
- a line that cannot be read is passed over.

What cannot be counted is not asked: a turn goes on without its model then. A turn does not wait for the lock
as long as a run does, nor for the disk (`hurried`)."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import Busy, LimitReached, StoreError
from tacit.model.spending import Call, Limits, Price, Spent, over, total
from tacit.store import files
from tacit.store.home import Home

KEPT_DAYS = 400
_WAIT = 10.0  # seconds for the lock; whoever holds it does so for the time of one line
_HURRY = 0.2  # where a turn waits
_MOST_REFUSED = 200  # lines of a day; that a limit is reached need not be told more often
_WHY = 300  # characters


class Ledger:
    def __init__(self, home: Home, now: Callable[[], datetime], limits: Limits = Limits()) -> None:  # noqa: B008
        self._folder, self._now, self._limits = home.private / "ledger", now, limits
        self._seen = _Seen(date.min, 0, {})

    def meter(self, task: str, model: str, price: Price | None, *, hurried: bool = False) -> LedgerMeter:
        """`hurried`: a turn waits."""
        return LedgerMeter(self, task, model, price, hurried)

    def begin(self, call: Call, *, hurried: bool = False) -> Call:
        """The call as it was counted; LimitReached where it would be too much, OSError or StoreError where it
        cannot be kept. Unless `hurried` it is on the disk before it is made."""
        with files.explained("write the ledger of model calls"), self._locked(_HURRY if hurried else _WAIT):
            now = self._now()
            call = call._replace(id=secrets.token_hex(6), at=now.isoformat(timespec="milliseconds"))
            spent = total(self._caught_up(now.date()).values())
            tokens = call.tokens_in + call.tokens_out
            if why := over(self._limits, spent, call.model, tokens, call.usd):
                if spent.refused < _MOST_REFUSED:
                    refused = call._replace(outcome="refused", tokens_in=0, tokens_out=0, usd=0.0)
                    self._add(refused._replace(why=why[:_WHY]))
                raise LimitReached(why)
            self._add(call, sync=not hurried)
        return call

    def add(self, call: Call) -> None:
        """One more line. No lock: it is hardly ever more than what was counted before."""
        with files.explained("write the ledger of model calls"):
            self._add(call)

    def days(self, count: int) -> dict[date, list[Call]]:
        """The calls of the last days, today among them; days without any are left out."""
        today = self._now().date()
        found = {day: list(self._calls(day)) for day in (today - timedelta(n) for n in range(count))}
        return {day: calls for day, calls in found.items() if calls}

    def today(self) -> Spent:
        return total(self._calls(self._now().date()))

    def _calls(self, day: date) -> Iterator[Call]:
        """The last word of each call of a day."""
        return iter(_taken({}, _read(self._file(day))).values())

    def _caught_up(self, day: date) -> dict[str, Call]:
        """The same, by reading only what was added since the last time. Under the lock."""
        file, seen = self._file(day), self._seen
        if seen.day != day or _size(file) < seen.size:
            seen = _Seen(day, 0, {})
        new = _read(file, seen.size)
        new = new[: new.rfind(b"\n") + 1]  # the rest is being written, or torn
        self._seen = _Seen(day, seen.size + len(new), _taken(seen.calls, new))
        return self._seen.calls

    def _add(self, call: Call, *, sync: bool = False) -> None:
        file = self._file(datetime.fromisoformat(call.at).date())
        is_new = not file.exists()
        fd = os.open(file, files.LOGGED, 0o600)
        try:
            files.append_lines(fd, json.dumps(call._asdict()).encode("ascii") + b"\n")
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        if is_new:
            self._prune()

    def _prune(self) -> None:
        oldest = self._file(self._now().date() - timedelta(KEPT_DAYS)).name
        for file in self._folder.glob("????-??-??.jsonl"):
            if file.name < oldest:
                with suppress(OSError):
                    file.unlink()

    def _file(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def _locked(self, wait: float) -> Any:
        return files.locked(self._folder / "lock", wait)


class _Seen(NamedTuple):
    day: date
    size: int  # bytes of its file that were read
    calls: dict[str, Call]


class _Begun(NamedTuple):
    call: Call
    since: float


class LedgerMeter:
    """For any number of threads. What it is asked for after `begin` never fails: the call is made already."""

    def __init__(self, ledger: Ledger, task: str, model: str, price: Price | None, hurried: bool) -> None:
        self._ledger, self._price, self._hurried = ledger, price, hurried
        self._blank = Call("", "", task, model, "begun")
        self._open: dict[str, _Begun] = {}

    def begin(self, tokens_in: int, tokens_out: int) -> str:
        call = self._blank._replace(
            tokens_in=tokens_in, tokens_out=tokens_out, usd=self._usd(tokens_in, tokens_out)
        )
        try:
            begun = self._ledger.begin(call, hurried=self._hurried)
        except (OSError, StoreError) as error:
            raise LimitReached(
                f"The ledger of model calls cannot be written ({_said(error)}), so nothing is asked: "
                "nobody could say what was spent. Make .tacit/ledger writable."
            ) from None
        self._open[begun.id] = _Begun(begun, time.monotonic())
        return begun.id

    def end(self, call: str, outcome: str, tokens_in: int, tokens_out: int, why: str = "") -> None:
        begun = self._open.pop(call, None)
        if begun is None:
            return
        done = begun.call._replace(
            outcome=outcome,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=self._usd(tokens_in, tokens_out),
            ms=round((time.monotonic() - begun.since) * 1000),
            why=why[:_WHY],
        )
        with suppress(OSError, StoreError):
            self._ledger.add(done)

    def bad(self, why: str) -> None:
        now = self._ledger._now().isoformat(timespec="milliseconds")  # noqa: SLF001 - one module
        line = self._blank._replace(id=secrets.token_hex(6), at=now, outcome="bad", why=why[:_WHY])
        with suppress(OSError, StoreError):
            self._ledger.add(line)

    def _usd(self, tokens_in: int, tokens_out: int) -> float | None:
        return None if self._price is None else round(self._price.of(tokens_in, tokens_out), 8)


def _said(error: OSError | StoreError) -> str:
    if isinstance(error, Busy):
        return "another process holds it"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _read(file: Path, begin: int = 0) -> bytes:
    try:
        with open(file, "rb") as opened:
            opened.seek(begin)
            return opened.read()
    except OSError:
        return b""


def _taken(calls: dict[str, Call], data: bytes) -> dict[str, Call]:
    for line in data.split(b"\n"):
        if (call := _call(line)) is not None:
            calls[call.id] = call
    return calls


_NUMBERS = ("tokens_in", "tokens_out", "ms")


def _call(line: bytes) -> Call | None:
    try:
        call = Call(**json.loads(line))
        for name in _NUMBERS:
            if type(getattr(call, name)) is not int:
                return None
        usd = call.usd
        if not isinstance(call.id, str) or not (usd is None or type(usd) in (int, float)):
            return None
    except (ValueError, TypeError, RecursionError):
        return None
    return call
