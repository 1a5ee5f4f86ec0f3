"""The daemon: the overhead of the socket, 64 clients at once, overload, and an hour of turns.

It runs one real `tacit serve` on a copy of the home with 10,000 notes and 200 topics. Everything stays on
this machine and takes a bounded time.
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
from tacit.app import create_memory, load_config, utc_now
from tacit.daemon_socket import send_request, socket_path
from tacit.home.layout import Home
from tacit.memory import Memory

NOTES = 10_000
_CLIENT_COUNT = 64
_LOAD_S = 20.0  # duration of each load
_TURNS_PER_S = 10  # turns per second that two cores can handle
_OVERLOAD_FACTOR = 10  # times that rate is overload
_AGENTS = 8
_MESSAGES_PER_S = 5  # messages per second of each agent
_NOTES_WRITTEN = 20  # notes
_TURNS_PER_HOUR = 1200  # turns in an hour of continuous conversation
_LONG_DEADLINE_MS = 60_000  # long enough that a measured turn is not cut off
_MAX_GROWTH = 1.10


def measure(folder: Path) -> list[Measured]:
    home = _prepare_home(folder)
    with _run_daemon(home):
        pass  # a copy has other inodes, so its first start reads every file
    began = time.perf_counter()
    with _run_daemon(home) as daemon:
        print(f"\nup and following {NOTES} notes after {time.perf_counter() - began:.1f} s", end="; ")
        print(f"the first question took {daemon.turn('Who mended the old crane?', 0) * 1000:.0f} ms")
        results = [_measure_overhead(home, daemon, "a message that needs no search", ["ok"])]
        questions = [question.text for question in corpus.questions(NOTES)]
        results.append(_measure_overhead(home, daemon, "a question", questions))
        print("\n| load | asked | answered | cut by the deadline | refused | errors | p50 | p95 | p99 |")
        print("|---|---|---|---|---|---|---|---|---|")
        for load in (_load_by_clients(daemon), *_load_by_rate(daemon), _load_with_agents(daemon)):
            print(load.row())
        print()
        _replay_hour(daemon)
        _print_find_delay(home, daemon)
    return results


# ---------------------------------------------------------------- the daemon


@dataclass(frozen=True, slots=True)
class Daemon:
    process: subprocess.Popen[bytes]
    socket: str

    def turn(self, message: str, number: int, deadline_ms: int = _LONG_DEADLINE_MS) -> float:
        body = _turn_body(message, number, deadline_ms)
        began = time.perf_counter()
        status, _ = send_request(self.socket, "POST", "/v1/turn", body, 60)
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


def _prepare_home(folder: Path) -> Path:
    root = folder / "home"
    shutil.copytree(corpus.indexed(NOTES, KIND), root, symlinks=True)
    for name in ("receipts", "gate"):
        shutil.rmtree(root / ".tacit" / name, ignore_errors=True)
    config = root / "memory-config.yaml"
    text = config.read_text().replace("owners: []", "owners: ['telegram:7']")
    # Questions repeat here, unlike in real use.
    config.write_text(text.replace("\ninject:\n", "\ninject:\n  cache_seconds: 0\n"))
    return root


@contextmanager
def _run_daemon(home: Path) -> Iterator[Daemon]:
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
    """Wait until the daemon answers and follows all files: before that, each turn checks all of them."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with suppress(OSError):
            status, answer = send_request(daemon.socket, "GET", "/v1/health", b"", 5)
            if status == 200 and json.loads(answer).get("followed"):
                return
        time.sleep(0.1)
    raise AssertionError("the daemon did not come up")


def _turn_body(message: str, number: int, deadline_ms: int) -> bytes:
    key = f"agent:main:telegram:direct:7:thread:{number}"
    return json.dumps({"message": message, "session_key": key, "deadline_ms": deadline_ms}).encode()


# ---------------------------------------------------------------- overhead of the socket


def _measure_overhead(home: Path, daemon: Daemon, label: str, messages: list[str]) -> Measured:
    config = load_config(Home(home)).config
    config = replace(config, inject=replace(config.inject, deadline_ms=_LONG_DEADLINE_MS))
    memory = create_memory(Home(home), config, utc_now)
    memory.services.searcher.update()
    memory.services.turns.present.is_watched = True
    daemon_messages, library_messages = cycle(messages), cycle(messages)
    numbers = iter(range(10**9))

    def in_process() -> float:
        return _time_turn(memory, next(library_messages), next(numbers))

    result = paired(
        f"serve: {label}",
        "the library in this process",
        in_process,
        lambda: daemon.turn(next(daemon_messages), next(numbers)),
        samples=200,
        warm=20,
    )
    memory.services.searcher.close()
    added = (result.ours - result.floor) * 1000
    return replace(result, remark=f"{added:+.2f} ms; aim under 1 ms")


def _time_turn(memory: Memory, message: str, number: int) -> float:
    key = f"agent:main:telegram:direct:7:thread:p{number}"
    began = time.perf_counter()
    memory.turn(message, session_key=key)
    return time.perf_counter() - began


# ---------------------------------------------------------------- load


@dataclass(slots=True)
class Load:
    what: str
    seconds: float = _LOAD_S
    took: list[float] = field(default_factory=list)  # seconds of the answered turns
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
        total = sum(self.outcomes.values())
        cuts = quantiles(self.took, n=100) if len(self.took) > 1 else [float("nan")] * 99
        percentiles = [f"{cuts[percent] * 1000:.0f} ms" for percent in (49, 94, 98)]
        parts = [
            self.what,
            f"{total} ({total / self.seconds:.0f}/s)",
            *(str(self.outcomes[name]) for name in ("answered", "cut", "refused", "errors")),
            *percentiles,
        ]
        return "| " + " | ".join(parts) + " |"


def _load_by_clients(daemon: Daemon) -> Load:
    """64 clients, each of which asks the next question as soon as it has an answer."""
    load = Load(f"{_CLIENT_COUNT} clients, each asks again at once")
    asyncio.run(_run_clients(daemon.socket, load))
    return load


async def _run_clients(path: str, load: Load) -> None:
    questions = cycle(corpus.questions(NOTES))
    numbers = iter(range(10**6, 10**9))
    deadline = time.monotonic() + load.seconds

    async def ask_questions() -> None:
        while time.monotonic() < deadline:
            status = await _send_turn(path, load, next(questions).text, next(numbers))
            if status == 503:
                await asyncio.sleep(0.05)  # like a host that was told to try again later

    await asyncio.gather(*(ask_questions() for _ in range(_CLIENT_COUNT)))


def _load_by_rate(daemon: Daemon) -> list[Load]:
    """At a fixed rate, even if answers are late: what the machine can handle, far too much, and the first
    rate again."""
    loads = [
        Load(f"{_TURNS_PER_S} a second"),
        Load(f"{_TURNS_PER_S * _OVERLOAD_FACTOR} a second", seconds=_LOAD_S / 2),
        Load(f"{_TURNS_PER_S} a second, right after"),
    ]
    for load, rate in zip(loads, (_TURNS_PER_S, _TURNS_PER_S * _OVERLOAD_FACTOR, _TURNS_PER_S), strict=True):
        asyncio.run(_send_at_rate(daemon.socket, load, rate))
    return loads


async def _send_at_rate(path: str, load: Load, rate: int) -> None:
    questions = cycle(corpus.questions(NOTES))
    began, tasks = time.monotonic(), []
    for number in range(int(load.seconds * rate)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        turn = _send_turn(path, load, next(questions).text, 10**7 + int(began * 1000) + number)
        tasks.append(asyncio.create_task(turn))
    await asyncio.gather(*tasks)


def _load_with_agents(daemon: Daemon) -> Load:
    """The same rate, while agents send messages to be kept."""
    load = Load(f"{_TURNS_PER_S} a second, beside {_AGENTS} agents", seconds=_LOAD_S / 2)

    async def run() -> None:
        is_done = asyncio.Event()
        talking = [
            asyncio.create_task(_send_messages(daemon.socket, number, is_done)) for number in range(_AGENTS)
        ]
        await _send_at_rate(daemon.socket, load, _TURNS_PER_S)
        is_done.set()
        load.what += f" with {sum(await asyncio.gather(*talking)) / load.seconds:.0f} messages a second"

    asyncio.run(run())
    return load


async def _send_messages(path: str, number: int, is_done: asyncio.Event) -> int:
    count = 0
    while not is_done.is_set():
        await asyncio.sleep(1 / _MESSAGES_PER_S)
        message = {
            "session_key": f"agent:main:webchat:direct:{number}",
            "role": "user",
            "text": f"Line {count}.",
        }
        status, _ = await _post(path, "/v1/message", message)
        assert status == 200, status
        count += 1
    return count


async def _send_turn(path: str, load: Load, message: str, number: int) -> int:
    key = f"agent:main:telegram:direct:7:thread:{number}"
    began = time.perf_counter()
    try:
        status, answer = await _post(path, "/v1/turn", {"message": message, "session_key": key})
    except (OSError, TimeoutError):
        load.outcomes["errors"] += 1
        return 0
    load.note(status, answer, time.perf_counter() - began)
    return status


async def _post(path: str, target: str, fields: dict[str, str]) -> tuple[int, bytes]:
    body = json.dumps(fields).encode()
    head = (
        f"POST {target} HTTP/1.1\r\nHost: tacit\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    async with asyncio.timeout(30), _open_connection(path) as (reader, writer):
        writer.write(head.encode() + body)
        answer = await reader.read()
    return int(answer[9:12]) if answer[9:12].isdigit() else 0, answer


@asynccontextmanager
async def _open_connection(path: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield reader, writer
    finally:
        writer.close()


# ---------------------------------------------------------------- delay until a note is found


def _print_find_delay(home: Path, daemon: Daemon) -> None:
    """How long it takes until a saved note is found."""
    took = []
    for number in range(_NOTES_WRITTEN):
        word = f"kestrelwort{number:03}"
        file = home / "knowledge" / "reference" / f"{word}.md"
        file.write_text(f"# New\n\nThe {word} is on the top shelf.\n")
        began = time.perf_counter()
        while word not in _search(daemon, word):
            time.sleep(0.005)
            assert time.perf_counter() - began < 60
        took.append(time.perf_counter() - began)
    cuts = quantiles(took, n=20)
    print(f"a note is found {cuts[9] * 1000:.0f} ms after it was saved (p95 {cuts[18] * 1000:.0f} ms)")


def _search(daemon: Daemon, word: str) -> str:
    status, answer = send_request(
        daemon.socket, "POST", "/v1/search", json.dumps({"query": word}).encode(), 60
    )
    assert status == 200, status
    return "\n".join(hit["text"] for hit in json.loads(answer)["hits"])


# ---------------------------------------------------------------- an hour


def _replay_hour(daemon: Daemon) -> None:
    """The turns of an hour, one after the other, in sessions of twenty; after the first quarter memory must
    not grow."""
    questions = cycle(corpus.questions(NOTES))
    memory_kb: list[int] = []
    for number in range(_TURNS_PER_HOUR):
        daemon.turn(next(questions).text, 2 * 10**9 + number // 20)
        if number in (_TURNS_PER_HOUR // 4, _TURNS_PER_HOUR - 1):
            memory_kb.append(daemon.memory_kb)
    growth = memory_kb[1] / memory_kb[0]
    print(
        f"{_TURNS_PER_HOUR} turns in sessions of 20: memory {memory_kb[0] // 1024} MB after a quarter,"
        f" {memory_kb[1] // 1024} MB at the end, {(growth - 1) * 100:+.1f} %"
        f" (aim: at most {(_MAX_GROWTH - 1) * 100:.0f} %), {daemon.open_files} open files"
    )
