"""The daemon: what a socket adds to a call, 64 clients at once, too much at once, and an hour of turns.

One real `tacit serve` on a copy of the home with 10,000 notes and 200 topics. Everything stays on this
machine and lasts a bounded time.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from statistics import quantiles

from bench import corpus
from bench.pairs import Measured, paired
from bench.turn import KIND
from tacit.app import load_config, memory_of, now
from tacit.memory import Memory
from tacit.net.local import ask, socket_path
from tacit.store.home import Home

NOTES = 10_000
_CLIENTS = 64
_SECONDS = 20.0  # of each load
_RATE = 10  # turns a second that two cores can do
_SLOWER = 10  # times that rate is too much
_AGENTS = 8
_SAID = 5  # messages that each says in a second
_WRITTEN = 20  # notes
_HOUR = 1200  # turns of an hour in which somebody talks all the time
_PATIENT = 60_000  # milliseconds, where a turn is to be measured and not cut
_GROWN = 1.10


def measure(folder: Path) -> list[Measured]:
    home = _home(folder)
    with _served(home):
        pass  # a copy has other inodes, so its first start reads every file
    began = time.perf_counter()
    with _served(home) as daemon:
        print(f"\nup and following {NOTES} notes after {time.perf_counter() - began:.1f} s", end="; ")
        print(f"the first question took {daemon.turn('Who mended the old crane?', 0) * 1000:.0f} ms")
        found = [_overhead(home, daemon, "a message that needs no search", ["ok"])]
        questions = [question.text for question in corpus.questions(NOTES)]
        found.append(_overhead(home, daemon, "a question", questions))
        print("\n| load | asked | answered | cut by the deadline | refused | errors | p50 | p95 | p99 |")
        print("|---|---|---|---|---|---|---|---|---|")
        for load in (_together(daemon), *_in_time(daemon), _beside(daemon)):
            print(load.row())
        print()
        _replay(daemon)
        _written(home, daemon)
    return found


# ---------------------------------------------------------------- the daemon


@dataclass(frozen=True, slots=True)
class Daemon:
    process: subprocess.Popen[bytes]
    socket: str

    def turn(self, message: str, number: int, deadline_ms: int = _PATIENT) -> float:
        body = _body(message, number, deadline_ms)
        began = time.perf_counter()
        status, _ = ask(self.socket, "POST", "/v1/turn", body, 60)
        took = time.perf_counter() - began
        assert status == 200, status
        return took

    @property
    def memory_kb(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def _home(folder: Path) -> Path:
    root = folder / "home"
    shutil.copytree(corpus.indexed(NOTES, KIND), root, symlinks=True)
    for name in ("receipts", "gate"):
        shutil.rmtree(root / ".tacit" / name, ignore_errors=True)
    config = root / "memory-config.yaml"
    text = config.read_text().replace("owners: []", "owners: ['telegram:7']")
    # Questions come again here, as they do not in life.
    config.write_text(text.replace("\ninject:\n", "\ninject:\n  cache_seconds: 0\n"))
    return root


@contextmanager
def _served(home: Path) -> Iterator[Daemon]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "serve", "--home", str(home)], stdout=subprocess.PIPE
    )
    try:
        daemon = Daemon(process, socket_path(str(home)))
        _wait_until_warm(daemon)
        yield daemon
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def _wait_until_warm(daemon: Daemon) -> None:
    """Answering, and with every file followed: till then a turn looks at all of them."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        with suppress(OSError):
            status, answer = ask(daemon.socket, "GET", "/v1/health", b"", 5)
            if status == 200 and json.loads(answer).get("followed"):
                return
        time.sleep(0.1)
    raise AssertionError("the daemon did not come up")


def _body(message: str, number: int, deadline_ms: int) -> bytes:
    key = f"agent:main:telegram:direct:7:thread:{number}"
    return json.dumps({"message": message, "session_key": key, "deadline_ms": deadline_ms}).encode()


# ---------------------------------------------------------------- what the socket adds


def _overhead(home: Path, daemon: Daemon, what: str, messages: list[str]) -> Measured:
    config = load_config(Home(home)).config
    config = replace(config, inject=replace(config.inject, deadline_ms=_PATIENT))
    memory = memory_of(Home(home), config, now)
    memory.searcher.update()
    memory.turns.present.followed = True
    ours, theirs = cycle(messages), cycle(messages)
    numbers = iter(range(10**9))

    def in_process() -> float:
        return _called(memory, next(theirs), next(numbers))

    found = paired(
        f"serve: {what}",
        "the library in this process",
        in_process,
        lambda: daemon.turn(next(ours), next(numbers)),
        samples=200,
        warm=20,
    )
    memory.searcher.close()
    added = (found.ours - found.floor) * 1000
    return replace(found, remark=f"{added:+.2f} ms; aim under 1 ms")


def _called(memory: Memory, message: str, number: int) -> float:
    key = f"agent:main:telegram:direct:7:thread:p{number}"
    began = time.perf_counter()
    memory.turn(message, session_key=key)
    return time.perf_counter() - began


# ---------------------------------------------------------------- load


@dataclass(slots=True)
class Load:
    what: str
    seconds: float = _SECONDS
    took: list[float] = field(default_factory=list)  # of what was answered
    outcomes: Counter[str] = field(default_factory=Counter)

    def note(self, status: int, answer: bytes, took: float) -> None:
        if status == 503:
            self.outcomes["refused"] += 1
        elif status != 200:
            self.outcomes["errors"] += 1
        else:
            late = b'"deadline"' in answer
            self.outcomes["cut" if late else "answered"] += 1
            self.took.append(took)

    def row(self) -> str:
        asked = sum(self.outcomes.values())
        cuts = quantiles(self.took, n=100) if len(self.took) > 1 else [float("nan")] * 99
        shown = [f"{cuts[at] * 1000:.0f} ms" for at in (49, 94, 98)]
        parts = [
            self.what,
            f"{asked} ({asked / self.seconds:.0f}/s)",
            *(str(self.outcomes[name]) for name in ("answered", "cut", "refused", "errors")),
            *shown,
        ]
        return "| " + " | ".join(parts) + " |"


def _together(daemon: Daemon) -> Load:
    """64 clients, each with the next question as soon as it has an answer."""
    load = Load(f"{_CLIENTS} clients, each asks again at once")
    asyncio.run(_clients(daemon.socket, load))
    return load


async def _clients(path: str, load: Load) -> None:
    questions = cycle(corpus.questions(NOTES))
    numbers = iter(range(10**6, 10**9))
    until = time.monotonic() + load.seconds

    async def one() -> None:
        while time.monotonic() < until:
            status = await _asked(path, load, next(questions).text, next(numbers))
            if status == 503:
                await asyncio.sleep(0.05)  # as a host that was told to come back later

    await asyncio.gather(*(one() for _ in range(_CLIENTS)))


def _in_time(daemon: Daemon) -> list[Load]:
    """At a fixed rate, whether answers come or not: what the machine can do, far too much, and again what
    it can do."""
    loads = [
        Load(f"{_RATE} a second"),
        Load(f"{_RATE * _SLOWER} a second", seconds=_SECONDS / 2),
        Load(f"{_RATE} a second, right after"),
    ]
    for load, rate in zip(loads, (_RATE, _RATE * _SLOWER, _RATE), strict=True):
        asyncio.run(_stream(daemon.socket, load, rate))
    return loads


async def _stream(path: str, load: Load, rate: int) -> None:
    questions = cycle(corpus.questions(NOTES))
    began, waiting = time.monotonic(), []
    for number in range(int(load.seconds * rate)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        asked = _asked(path, load, next(questions).text, 10**7 + int(began * 1000) + number)
        waiting.append(asyncio.create_task(asked))
    await asyncio.gather(*waiting)


def _beside(daemon: Daemon) -> Load:
    """The same rate, while agents have kept what is said to them."""
    load = Load(f"{_RATE} a second, beside {_AGENTS} agents", seconds=_SECONDS / 2)

    async def both() -> None:
        done = asyncio.Event()
        talking = [asyncio.create_task(_talk(daemon.socket, number, done)) for number in range(_AGENTS)]
        await _stream(daemon.socket, load, _RATE)
        done.set()
        load.what += f" with {sum(await asyncio.gather(*talking)) / load.seconds:.0f} messages a second"

    asyncio.run(both())
    return load


async def _talk(path: str, number: int, done: asyncio.Event) -> int:
    kept = 0
    while not done.is_set():
        await asyncio.sleep(1 / _SAID)
        said = {"session_key": f"agent:main:webchat:direct:{number}", "role": "user", "text": f"Line {kept}."}
        status, _ = await _posted(path, "/v1/message", said)
        assert status == 200, status
        kept += 1
    return kept


async def _asked(path: str, load: Load, message: str, number: int) -> int:
    key = f"agent:main:telegram:direct:7:thread:{number}"
    began = time.perf_counter()
    try:
        status, answer = await _posted(path, "/v1/turn", {"message": message, "session_key": key})
    except (OSError, TimeoutError):
        load.outcomes["errors"] += 1
        return 0
    load.note(status, answer, time.perf_counter() - began)
    return status


async def _posted(path: str, to: str, asked: dict[str, str]) -> tuple[int, bytes]:
    body = json.dumps(asked).encode()
    head = f"POST {to} HTTP/1.1\r\nHost: tacit\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    async with asyncio.timeout(30), _line(path) as (reader, writer):
        writer.write(head.encode() + body)
        answer = await reader.read()
    return int(answer[9:12]) if answer[9:12].isdigit() else 0, answer


@asynccontextmanager
async def _line(path: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield reader, writer
    finally:
        writer.close()


# ---------------------------------------------------------------- written and found


def _written(home: Path, daemon: Daemon) -> None:
    """How long after a note was saved it is found."""
    took = []
    for number in range(_WRITTEN):
        word = f"kestrelwort{number:03}"
        file = home / "knowledge" / "reference" / f"{word}.md"
        file.write_text(f"# New\n\nThe {word} is on the top shelf.\n")
        began = time.perf_counter()
        while word not in _searched(daemon, word):
            time.sleep(0.005)
            assert time.perf_counter() - began < 60
        took.append(time.perf_counter() - began)
    cuts = quantiles(took, n=20)
    print(f"a note is found {cuts[9] * 1000:.0f} ms after it was saved (p95 {cuts[18] * 1000:.0f} ms)")


def _searched(daemon: Daemon, word: str) -> str:
    status, answer = ask(daemon.socket, "POST", "/v1/search", json.dumps({"query": word}).encode(), 60)
    assert status == 200, status
    return "\n".join(hit["text"] for hit in json.loads(answer)["hits"])


# ---------------------------------------------------------------- an hour


def _replay(daemon: Daemon) -> None:
    """The turns of an hour, one after the other, in sessions of twenty; after the first part memory must not
    grow any more."""
    questions = cycle(corpus.questions(NOTES))
    seen: list[int] = []
    for number in range(_HOUR):
        daemon.turn(next(questions).text, 2 * 10**9 + number // 20)
        if number in (_HOUR // 4, _HOUR - 1):
            seen.append(daemon.memory_kb)
    grown = seen[1] / seen[0]
    print(
        f"{_HOUR} turns in sessions of 20: memory {seen[0] // 1024} MB after a quarter,"
        f" {seen[1] // 1024} MB at the end, {(grown - 1) * 100:+.1f} %"
        f" (aim: at most {(_GROWN - 1) * 100:.0f} %), {daemon.open_files} open files"
    )
