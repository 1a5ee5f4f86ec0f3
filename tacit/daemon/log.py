"""`.tacit/daemon.log`: what happened, one JSON object in a line.

What must stay true:
- saying something never raises and never waits for the disk to be safe;
- the file is its owner's alone and has a largest size; one older file is kept beside it;
- no secret and no private text gets into it, and no value is long.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Literal, TypeAlias

from tacit.store import files
from tacit.text.redact import clean

Level: TypeAlias = Literal["info", "warning", "error"]

LARGEST = 4 << 20
LONGEST = 300  # characters of a value
TRACE = 4000  # of a trace, its end
_REMEMBERED = 1000  # things that `once` said
_PAUSE = 10.0  # seconds in which `sometimes` says the same only once


class Log:
    """Safe to be used by all threads."""

    def __init__(
        self,
        path: Path,
        *,
        largest: int = LARGEST,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._largest = path, largest
        self._now, self._clock = now, clock
        self._lock = Lock()
        self._lost = 0  # lines that could not be written
        self._once: dict[str, None] = {}
        self._said: dict[str, tuple[float, int]] = {}  # when `sometimes` said it, how often it did not since

    def say(self, level: Level, event: str, **fields: object) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self._now()))
        line = {"at": moment, "level": level, "event": event, "pid": os.getpid()}
        line |= {name: _short(name, value) for name, value in fields.items()}
        with self._lock:
            if self._lost:
                line["lost"] = self._lost
            try:
                self._append(json.dumps(line).encode("ascii") + b"\n")
                self._lost = 0
            except OSError:  # a full disk, a home that is gone: the next line tells how many there were
                self._lost += 1

    def sometimes(self, level: Level, event: str, **fields: object) -> None:
        """For what can happen a thousand times in a second: once in a while, with how often it was."""
        now = self._clock()
        with self._lock:
            last, missed = self._said.get(event, (-_PAUSE, 0))
            quiet = now - last < _PAUSE
            self._said[event] = (last, missed + 1) if quiet else (now, 0)
        if not quiet:
            self.say(level, event, **fields, **({"times": missed + 1} if missed else {}))

    def once(self, level: Level, event: str, **fields: object) -> None:
        """For what is the same at every turn of a session: the first time only, as long as we remember."""
        key = f"{event} {sorted(fields.items())!r}"
        with self._lock:
            known = key in self._once
            self._once[key] = None
            if len(self._once) > _REMEMBERED:
                self._once.pop(next(iter(self._once)))
        if not known:
            self.say(level, event, **fields)

    def _append(self, data: bytes) -> None:
        fd = os.open(self._path, files.LOGGED, 0o600)
        try:
            if os.fstat(fd).st_mode & 0o077:
                os.fchmod(fd, 0o600)
            size = files.append_lines(fd, data)
        finally:
            os.close(fd)
        if size >= self._largest:
            os.replace(self._path, f"{self._path}.1")


def _short(name: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = clean(str(value)).text
    if name == "trace":
        return text[-TRACE:]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
