"""An append-only log: a file with one JSON object per line.

A line is on disk before the writer goes on. The file is also the lock: a writer holds it while appending.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.git.index import require_checked_out
from tacit.home.files import LOG_FLAGS, Tree, acquire_flock, append_lines, explain_disk_errors

_LOCK_TIMEOUT_S = 10.0  # for other writers to finish


class JsonlLog:
    def __init__(self, root: Path, path: str) -> None:
        self._tree, self.path = Tree(root), path

    def lines(self) -> list[dict[str, Any]]:
        """All readable entries, oldest first. Skips a line that a full disk truncated."""
        try:
            data = self._tree.read(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry for line in data.split(b"\n") if (entry := _parse_object(line)) is not None]

    @contextmanager
    def adding(self) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        if not (self._tree.root / self.path).exists():
            require_checked_out(self._tree.root, self.path)
        with (
            explain_disk_errors(f"write {self.path}"),
            self._tree.folder(self.path, make=True) as (folder, name),
        ):
            fd = os.open(name, LOG_FLAGS, 0o600, dir_fd=folder)
            os.fsync(folder)
        try:
            message = f"Another process is working on {self.path}. Try again when it is done."
            acquire_flock(fd, _LOCK_TIMEOUT_S, message)

            def add(entry: Mapping[str, Any]) -> None:
                with explain_disk_errors(f"write {self.path}"):
                    append_lines(fd, json.dumps(entry, ensure_ascii=False).encode() + b"\n")
                    os.fsync(fd)

            yield add
        finally:
            os.close(fd)


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
