"""What breaks beside a running host: the fault begins, turns go on, it ends, and what was said is there once.

How long a turn was held up is told twice: by the plugin, which adds up what it waited for, and by the time
until the model was asked. The reply leaves when the messenger's limit of one message a second lets it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

from tacit.transcripts import spool
from tests.conftest import eventually
from tests.e2e.conftest import Gateway
from tests.faults.fulldisk import fill
from tests.faults.machine import Impossible
from tests.integrations import bad

DEADLINE = 0.4  # seconds, of the plugin by default
ALLOWED = DEADLINE + 0.1
_HELD = re.compile(r"tacit: answers again; turns without it: (\d+), held up by (\d+) ms at most")
_UNSPOOLED = "the spool could not be written"
_LONG = (
    "It was a long day, and this is a long message about it. " * 100
)  # more than is left in a page on disk
_MOST_AFTER = 20  # turns within which tacit must be there again
_senders = count(7000)  # each has a session of its own


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    sign: str  # in the gateway's log, that it was met; empty: turns go without tacit
    begin: Callable[[Gateway], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Said:
    text: str
    reply: str
    asked: float  # seconds until the model was asked
    is_tiered: bool  # whether the files were chosen by tacit


@dataclass(frozen=True, slots=True)
class Round:
    """A fault, and turns before it, while it lasts, and until tacit is there again."""

    before: Sequence[Said]
    during: Sequence[Said]
    after: Sequence[Said]
    held: float  # seconds, at most, by the plugin's account
    problems: Sequence[str]

    @property
    def delays(self) -> Sequence[float]:
        """Seconds that each turn in the fault took longer than the median in health, the shortest first."""
        healthy = median(one.asked for one in self.before)
        return sorted(one.asked - healthy for one in self.during)

    @property
    def shortest(self) -> float:
        return self.delays[0]

    @property
    def is_in_time(self) -> bool:
        """No turn waited for tacit for longer, and nothing else makes every turn late. How late one of them
        was says as much about the machine as about us."""
        return max(self.held, self.shortest) <= ALLOWED


# ---------------------------------------------------------------- faults


def _about(gateway: Gateway) -> dict[str, object]:
    said: dict[str, object] = json.loads((gateway.home / ".tacit/daemon.json").read_text())
    return said


def _pid(gateway: Gateway) -> int:
    return int(str(_about(gateway)["pid"]))


@contextmanager
def _killed(gateway: Gateway) -> Iterator[None]:
    """The plugin starts another one."""
    os.kill(_pid(gateway), signal.SIGKILL)
    yield


@contextmanager
def _hung(gateway: Gateway) -> Iterator[None]:
    pid = _pid(gateway)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _answering(way: str) -> Callable[[Gateway], AbstractContextManager[None]]:
    """Somebody else at the daemon's address, and the daemon itself does nothing meanwhile."""

    @contextmanager
    def begin(gateway: Gateway) -> Iterator[None]:
        address = Path(str(_about(gateway)["socket"]))
        aside = address.with_suffix(".aside")
        with _hung(gateway):
            address.rename(aside)
            try:
                with bad.listening(address, way):
                    yield
            finally:
                aside.rename(address)

    return begin


@contextmanager
def _full(gateway: Gateway) -> Iterator[None]:
    if gateway.disk.why_not_small:
        raise Impossible(gateway.disk.why_not_small)
    ballast = gateway.disk.root / "ballast"
    fill(ballast)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def _full_and(other: Callable[[Gateway], AbstractContextManager[None]], gateway: Gateway) -> Iterator[None]:
    """The spool cannot be written either."""
    with _full(gateway), other(gateway):
        yield


FAULTS = (
    # Another one may be up before the next turn comes, and then no turn tells of it.
    Fault("daemon killed", "tacit: the daemon ended", _killed),
    Fault("daemon hangs", "", _hung),
    Fault("daemon answers garbage", "", _answering("garbage")),
    Fault("daemon answers 503", "", _answering("503")),
    Fault("daemon answers too late", "", _answering("slow")),
    Fault("disk full", _UNSPOOLED, _full),
    Fault("disk full, daemon killed", _UNSPOOLED, lambda gateway: _full_and(_killed, gateway)),
    Fault("disk full, daemon hangs", _UNSPOOLED, lambda gateway: _full_and(_hung, gateway)),
)


# ---------------------------------------------------------------- turns


def say(gateway: Gateway, more: str = "") -> Said:
    text = f"The word of this hour is finch{time.time_ns()}. {more}".strip()
    began = time.monotonic()
    turn = gateway.host.write(text, next(_senders))
    return Said(text, turn.reply, turn.first.at - began, "## Who does what" not in turn.first.system)


def say_often(gateway: Gateway, turns: int) -> list[Said]:
    return [say(gateway, _LONG) for _ in range(turns)]


def go_through(gateway: Gateway, fault: Fault, before: Sequence[Said]) -> Round:
    """As many turns as there were in health."""
    host = gateway.host
    assert host.process is not None
    pid, starts, log = host.process.pid, host.log.count("[gateway] ready"), len(host.log)
    with fault.begin(gateway):
        during = say_often(gateway, len(before))
    after = [say(gateway)]
    while not after[-1].is_tiered and len(after) < _MOST_AFTER:
        after.append(say(gateway))
    said = [*before, *during, *after]
    eventually(lambda: not list(_unkept(gateway, said)))
    problems = list(_unkept(gateway, said))
    if (
        host.process.poll() is not None
        or host.process.pid != pid
        or host.log.count("[gateway] ready") != starts
    ):
        problems.append("the gateway was started again")
    if not (fault.sign in host.log[log:] if fault.sign else any(not one.is_tiered for one in during)):
        problems.append("the fault was not met")
    if not after[-1].is_tiered:
        problems.append("tacit does not answer again")
    if waiting := spool.count_waiting(gateway.home):
        problems.append(f"{waiting} records are still in the spool")
    held = [int(found[2]) / 1000 for found in _HELD.finditer(host.log[log:])]
    return Round(before, during, after, max(held, default=0.0), problems)


def _unkept(gateway: Gateway, said: Sequence[Said]) -> Iterator[str]:
    kept = "\n".join(file.read_text() for file in sorted(gateway.home.glob("raw/conversations/**/*.md")))
    for one in said:
        for text in (one.text, one.reply):
            if (times := kept.count(f"\n{text}\n")) != 1:
                yield f"{times} times in the transcripts: {text[:60]!r}"
