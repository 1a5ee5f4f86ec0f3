"""What /metrics tells, in the text form of Prometheus (0.0.4).

What must stay true: a label has few values, and none of them is private. Session keys, messages, paths and
agents are never labels; a value that came from outside is taken as it is only if it looks like a code, and
after a number of different ones it is `other`.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import isfinite
from threading import Lock
from typing import Literal, TypeAlias

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SERIES = 200  # most combinations of labels that one metric counts apart
_CODE = re.compile(r"[A-Za-z0-9_.:/-]{0,48}\Z")
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")

Labels: TypeAlias = tuple[str, ...]
# A number, or numbers by the value of the one label; None where there is nothing to tell.
Reading: TypeAlias = float | Mapping[str, float] | None


class Counter:
    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self.name, self.about, self.labels = _named(name), about, labels
        self._lock = Lock()
        self._counts: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        with self._lock:
            key = _key(values, self.labels, self._counts)
            self._counts[key] = self._counts.get(key, 0.0) + by

    def value(self, *values: str) -> float:
        with self._lock:
            return self._counts.get(values, 0.0)

    def lines(self) -> Iterator[str]:
        with self._lock:
            counts = sorted(self._counts.items())
        yield from _head(self.name, self.about, "counter")
        for values, count in counts:
            yield f"{self.name}{_labels(self.labels, values)} {_number(count)}"


class Histogram:
    def __init__(
        self, name: str, about: str, labels: Labels = (), bounds: tuple[float, ...] = SECONDS
    ) -> None:
        self.name, self.about, self.labels, self._bounds = _named(name), about, labels, bounds
        self._lock = Lock()
        self._seen: dict[Labels, list[float]] = {}  # a count for each bound, one above all, and the sum

    def add(self, amount: float, *values: str) -> None:
        with self._lock:
            key = _key(values, self.labels, self._seen)
            seen = self._seen.setdefault(key, [0.0] * (len(self._bounds) + 2))
            seen[bisect_left(self._bounds, amount)] += 1
            seen[-1] += amount

    def lines(self) -> Iterator[str]:
        with self._lock:
            taken = sorted((key, tuple(seen)) for key, seen in self._seen.items())
        yield from _head(self.name, self.about, "histogram")
        names = (*self.labels, "le")
        for values, (*counts, total) in taken:
            below = 0.0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_labels(names, (*values, bound))} {_number(below)}"
            yield f"{self.name}_sum{_labels(self.labels, values)} {_number(total)}"
            yield f"{self.name}_count{_labels(self.labels, values)} {_number(below)}"


class Gauge:
    """Read when somebody asks. `label` names what the keys of a reading are."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], Reading],
        label: str = "",
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self.name, self.about, self._read, self._label, self._kind = _named(name), about, read, label, kind

    def lines(self) -> Iterator[str]:
        try:
            reading = self._read()
        except Exception:  # noqa: BLE001 - one that cannot be read must not hide all the others
            return
        if reading is None:
            return
        values = reading if isinstance(reading, Mapping) else {"": reading}
        yield from _head(self.name, self.about, self._kind)
        for key, value in sorted(values.items())[:SERIES]:
            labels = _labels((self._label,), (_coded(key),)) if self._label else ""
            yield f"{self.name}{labels} {_number(value)}"


class Metrics:
    """All that the daemon counts. Safe to be used by all threads."""

    def __init__(self) -> None:
        self.requests = Counter(
            "tacit_requests_total", "Requests that were answered.", ("operation", "status")
        )
        self.seconds = Histogram(
            "tacit_request_seconds", "From the head of a request to its answer.", ("operation",)
        )
        self.refused = Counter("tacit_refused_total", "Requests that were not let in.", ("reason",))
        self.stuck = Counter("tacit_stuck_total", "Workers that were given up because they hung.")
        self.late = Counter("tacit_late_total", "Operations that ended after their caller was answered.")
        self.bugs = Counter("tacit_bugs_total", "Operations that failed in a way nobody foresaw.")
        self.turns = Counter(
            "tacit_turns_total", "Turns by why they got nothing; empty: they were made.", ("lane", "skipped")
        )
        self.notices = Counter("tacit_turn_notices_total", "What turns went on without.", ("code",))
        self.tokens = Counter("tacit_tokens_given_total", "Tokens that turns were given.")
        self.connections = Counter("tacit_connections_total", "Connections that were made.")
        self.closed = Counter(
            "tacit_connections_closed_total", "Connections that we closed before they were done.", ("reason",)
        )
        self._parts: dict[str, Counter | Histogram | Gauge] = {
            one.name: one for one in vars(self).values() if isinstance(one, Counter | Histogram)
        }
        self._slow: set[str] = set()
        started = time.monotonic()
        self._register(
            "tacit_uptime_seconds", "Since the daemon was started.", lambda: time.monotonic() - started
        )
        for name, about, read in _PROCESS:
            self._register(name, about, read)
        self._register("process_cpu_seconds_total", "Time on a processor.", time.process_time, kind="counter")

    def gauge(
        self, name: str, about: str, read: Callable[[], Reading], *, label: str = "", quick: bool = False
    ) -> None:
        """Have a number told whenever somebody asks; a later one of the same name replaces it. `read` is
        called in a thread that may wait for it for a second or two, not more; `quick`: not even that."""
        if not quick:
            self._slow.add(name)
        self._parts[name] = Gauge(name, about, read, label)

    def counter(self, name: str, about: str, labels: Labels = ()) -> Counter:
        made = Counter(name, about, labels)
        self._parts[name] = made
        return made

    def text(self, *, quick: bool = False) -> str:
        """`quick`: without what may have to wait for something."""
        shown = [part for name, part in self._parts.copy().items() if not (quick and name in self._slow)]
        return "".join(f"{line}\n" for part in shown for line in part.lines())

    def _register(
        self,
        name: str,
        about: str,
        read: Callable[[], Reading],
        *,
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self._parts[name] = Gauge(name, about, read, kind=kind)


# ---------------------------------------------------------------- this process


def _memory() -> float | None:
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", "rb") as file:
        return float(int(file.read(256).split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return None


def _files() -> float | None:
    with suppress(OSError):
        return float(len(os.listdir("/proc/self/fd")) - 1)  # one of them was for looking
    return None


def _threads() -> float | None:
    with suppress(OSError):
        return float(len(os.listdir("/proc/self/task")))
    return None


_PROCESS = (
    ("process_resident_memory_bytes", "Memory of the process.", _memory),
    ("process_open_fds", "Files and sockets that are open.", _files),
    ("process_threads", "Threads of the process.", _threads),
)


# ---------------------------------------------------------------- the text form


def _named(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} cannot be the name of a metric")
    return name


def _key(values: Labels, labels: Labels, known: Mapping[Labels, object]) -> Labels:
    if len(values) != len(labels):
        raise ValueError(f"expected values for {labels}")
    key = tuple(map(_coded, values))
    return key if key in known or len(known) < SERIES else ("other",) * len(labels)


def _coded(value: str) -> str:
    return value if _CODE.match(value) else "other"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return (
        "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _head(name: str, about: str, kind: str) -> tuple[str, str]:
    escaped = about.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {escaped}", f"# TYPE {name} {kind}"


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if value != value else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
