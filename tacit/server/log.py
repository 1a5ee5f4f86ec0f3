"""`.tacit/daemon.log`: the daemon's events, one JSON object per line.

What must stay true:
- logging never raises and never waits for fsync;
- only the owner can read the file, its size is limited, and one older file is kept beside it;
- no secret and no private text gets into it, and long values are cut.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Literal, TypeAlias

from tacit.home import files
from tacit.privacy.redaction import clean

Level: TypeAlias = Literal["info", "warning", "error"]

MAX_LOG_BYTES = 4 << 20
MAX_VALUE_CHARS = 300  # characters of a value
MAX_TRACE_CHARS = 4000  # characters kept of a trace, from its end
_MAX_REMEMBERED = 1000  # entries that `once` remembers
_REPEAT_INTERVAL_S = 10.0  # seconds in which `sometimes` logs an event only once


class Log:
    """Safe to be used by all threads."""

    def __init__(
        self,
        path: Path,
        *,
        largest: int = MAX_LOG_BYTES,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._largest = path, largest
        self._now, self._clock = now, clock
        self._lock = Lock()
        self._lost_lines = 0  # lines that could not be written
        self._logged_once: dict[str, None] = {}
        self._last_logged: dict[
            str, tuple[float, int]
        ] = {}  # by event: when `sometimes` logged it, and how often it skipped it since

    def say(self, level: Level, event: str, **fields: object) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self._now()))
        line = {"at": moment, "level": level, "event": event, "pid": os.getpid()}
        line |= {name: _shorten(name, value) for name, value in fields.items()}
        with self._lock:
            if self._lost_lines:
                line["lost"] = self._lost_lines
            try:
                self._append(json.dumps(line).encode("ascii") + b"\n")
                self._lost_lines = 0
            except OSError:  # full disk or missing home: the next line tells how many lines were lost
                self._lost_lines += 1

    def sometimes(self, level: Level, event: str, **fields: object) -> None:
        """Log an event that may happen a thousand times a second: at intervals, with the number skipped."""
        now = self._clock()
        with self._lock:
            last_time, missed = self._last_logged.get(event, (-_REPEAT_INTERVAL_S, 0))
            is_quiet = now - last_time < _REPEAT_INTERVAL_S
            self._last_logged[event] = (last_time, missed + 1) if is_quiet else (now, 0)
        if not is_quiet:
            self.say(level, event, **fields, **({"times": missed + 1} if missed else {}))

    def once(self, level: Level, event: str, **fields: object) -> None:
        """Log an event that repeats at every turn of a session only the first time."""
        key = f"{event} {sorted(fields.items())!r}"
        with self._lock:
            is_known = key in self._logged_once
            self._logged_once[key] = None
            if len(self._logged_once) > _MAX_REMEMBERED:
                self._logged_once.pop(next(iter(self._logged_once)))
        if not is_known:
            self.say(level, event, **fields)

    def _append(self, data: bytes) -> None:
        fd = os.open(self._path, files.LOG_FLAGS, 0o600)
        try:
            if os.fstat(fd).st_mode & 0o077:
                os.fchmod(fd, 0o600)
            size = files.append_lines(fd, data)
        finally:
            os.close(fd)
        if size >= self._largest:
            os.replace(self._path, f"{self._path}.1")


def _shorten(name: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = clean(str(value)).text
    if name == "trace":
        return text[-MAX_TRACE_CHARS:]
    return text if len(text) <= MAX_VALUE_CHARS else text[: MAX_VALUE_CHARS - 1] + "…"
