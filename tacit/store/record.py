"""A record of what happened: a file of JSON objects, one to a line, only ever added to.

A line is on disk before anybody is told. The file is also the lock: who adds to it holds it meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.store.files import LOGGED, Tree, append_lines, explained, flock_within

_WAIT = 10.0  # seconds until others are done


class Record:
    def __init__(self, root: Path, path: str) -> None:
        self._tree, self.path = Tree(root), path

    def lines(self) -> list[dict[str, Any]]:
        """All that can be read, oldest first. A line that a full disk tore is passed over."""
        try:
            data = self._tree.read(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [said for line in data.split(b"\n") if (said := _object(line)) is not None]

    @contextmanager
    def adding(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        with explained(f"write {self.path}"), self._tree.folder(self.path, make=True) as (folder, name):
            fd = os.open(name, LOGGED, 0o600, dir_fd=folder)
            os.fsync(folder)
        try:
            told = f"Another process is working on {self.path}. Try again when it is done."
            flock_within(fd, _WAIT, told)

            def add(said: Mapping[str, Any]) -> None:
                with explained(f"write {self.path}"):
                    append_lines(fd, json.dumps(said, ensure_ascii=False).encode() + b"\n")
                    os.fsync(fd)

            yield add
        finally:
            os.close(fd)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None
