"""The daemon's metrics, in the text format of Prometheus (0.0.4).

What must stay true: a label has few values, and none of them is private. Session keys, messages, paths and
agents are never labels. A value from outside is used only if it looks like a code; otherwise, and once there
are too many series, it becomes `other`.
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
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MAX_SERIES = 200  # combinations of label values that one metric counts separately
_CODE_PATTERN = re.compile(r"[A-Za-z0-9_.:/-]{0,48}\Z")
_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]*\Z")

Labels: TypeAlias = tuple[str, ...]
# A number, or numbers by the value of the label; None if there is nothing to report.
Reading: TypeAlias = float | Mapping[str, float] | None


class Counter:
    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self.name, self.about, self.labels = _check_name(name), about, labels
        self._lock = Lock()
        self._counts: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        with self._lock:
            key = _series_key(values, self.labels, self._counts)
            self._counts[key] = self._counts.get(key, 0.0) + by

    def value(self, *values: str) -> float:
        with self._lock:
            return self._counts.get(values, 0.0)

    def lines(self) -> Iterator[str]:
        with self._lock:
            counts = sorted(self._counts.items())
        yield from _header_lines(self.name, self.about, "counter")
        for values, count in counts:
            yield f"{self.name}{_format_labels(self.labels, values)} {_format_number(count)}"


class Histogram:
    def __init__(
        self, name: str, about: str, labels: Labels = (), bounds: tuple[float, ...] = SECONDS_BUCKETS
    ) -> None:
        self.name, self.about, self.labels, self._bounds = _check_name(name), about, labels, bounds
        self._lock = Lock()
        self._buckets: dict[Labels, list[float]] = {}  # a count for each bound, one above all, and the sum

    def add(self, amount: float, *values: str) -> None:
        with self._lock:
            key = _series_key(values, self.labels, self._buckets)
            buckets = self._buckets.setdefault(key, [0.0] * (len(self._bounds) + 2))
            buckets[bisect_left(self._bounds, amount)] += 1
            buckets[-1] += amount

    def lines(self) -> Iterator[str]:
        with self._lock:
            snapshot = sorted((key, tuple(buckets)) for key, buckets in self._buckets.items())
        yield from _header_lines(self.name, self.about, "histogram")
        names = (*self.labels, "le")
        for values, (*counts, total) in snapshot:
            below = 0.0
            for bound, count in zip((*map(_format_number, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield f"{self.name}_bucket{_format_labels(names, (*values, bound))} {_format_number(below)}"
            yield f"{self.name}_sum{_format_labels(self.labels, values)} {_format_number(total)}"
            yield f"{self.name}_count{_format_labels(self.labels, values)} {_format_number(below)}"


class Gauge:
    """Read on each request. `label` names the keys of a reading."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], Reading],
        label: str = "",
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self.name, self.about, self._read, self._label, self._kind = (
            _check_name(name),
            about,
            read,
            label,
            kind,
        )

    def lines(self) -> Iterator[str]:
        try:
            reading = self._read()
        except Exception:  # noqa: BLE001 - a gauge that cannot be read must not hide the others
            return
        if reading is None:
            return
        values = reading if isinstance(reading, Mapping) else {"": reading}
        yield from _header_lines(self.name, self.about, self._kind)
        for key, value in sorted(values.items())[:MAX_SERIES]:
            labels = _format_labels((self._label,), (_code_or_other(key),)) if self._label else ""
            yield f"{self.name}{labels} {_format_number(value)}"


class Metrics:
    """All counters of the daemon. Thread-safe."""

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
        self.bugs = Counter("tacit_bugs_total", "Operations that failed unexpectedly.")
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
            metric.name: metric for metric in vars(self).values() if isinstance(metric, Counter | Histogram)
        }
        self._slow: set[str] = set()
        started = time.monotonic()
        self._register(
            "tacit_uptime_seconds", "Since the daemon was started.", lambda: time.monotonic() - started
        )
        for name, about, read in _PROCESS_GAUGES:
            self._register(name, about, read)
        self._register("process_cpu_seconds_total", "Time on a processor.", time.process_time, kind="counter")

    def gauge(
        self, name: str, about: str, read: Callable[[], Reading], *, label: str = "", quick: bool = False
    ) -> None:
        """Register a gauge; a later one of the same name replaces it. `read` is called in a thread and may
        take a second or two; with `quick` it must return at once."""
        if not quick:
            self._slow.add(name)
        self._parts[name] = Gauge(name, about, read, label)

    def counter(self, name: str, about: str, labels: Labels = ()) -> Counter:
        counter = Counter(name, about, labels)
        self._parts[name] = counter
        return counter

    def text(self, *, quick: bool = False) -> str:
        """`quick`: leave out the gauges that may take a while."""
        parts = [part for name, part in self._parts.copy().items() if not (quick and name in self._slow)]
        return "".join(f"{line}\n" for part in parts for line in part.lines())

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


def _read_memory() -> float | None:
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", "rb") as file:
        return float(int(file.read(256).split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return None


def _count_open_files() -> float | None:
    with suppress(OSError):
        return float(len(os.listdir("/proc/self/fd")) - 1)  # one of them is the listing itself
    return None


def _count_threads() -> float | None:
    with suppress(OSError):
        return float(len(os.listdir("/proc/self/task")))
    return None


_PROCESS_GAUGES = (
    ("process_resident_memory_bytes", "Memory of the process.", _read_memory),
    ("process_open_fds", "Files and sockets that are open.", _count_open_files),
    ("process_threads", "Threads of the process.", _count_threads),
)


# ---------------------------------------------------------------- the text form


def _check_name(name: str) -> str:
    if not _NAME_PATTERN.match(name):
        raise ValueError(f"{name!r} cannot be the name of a metric")
    return name


def _series_key(values: Labels, labels: Labels, existing: Mapping[Labels, object]) -> Labels:
    if len(values) != len(labels):
        raise ValueError(f"expected values for {labels}")
    key = tuple(map(_code_or_other, values))
    return key if key in existing or len(existing) < MAX_SERIES else ("other",) * len(labels)


def _code_or_other(value: str) -> str:
    return value if _CODE_PATTERN.match(value) else "other"


def _format_labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return (
        "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _header_lines(name: str, about: str, kind: str) -> tuple[str, str]:
    escaped = about.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {escaped}", f"# TYPE {name} {kind}"


def _format_number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if value != value else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
