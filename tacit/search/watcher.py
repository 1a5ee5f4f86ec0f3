"""Watches the files of a home and updates the index when they change.

The operating system reports changes; where it does not (network disks, some containers), all files are
checked from time to time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tacit.errors import TacitError
from tacit.home.layout import CONFIG
from tacit.search.home_index import IndexResult, UpdateReport
from tacit.search.searcher import Searcher
from tacit.workspaces.folders import Workspaces

_DEBOUNCE_MS = 50  # without a change before an update
_FULL_CHECK_S = 30.0  # between two checks of all files
_POLL_S = 5.0  # between two checks where the system reports no changes
_MAX_CHANGES = 500  # changes at once, above which all files are checked
_REST_FACTOR = 2.0  # pause after an update, as a multiple of its duration
_MAX_REST_S = 2.0
_WAKE_MS = 1000  # how often to check whether to stop, and whether there is a new folder


def watch_home(
    searcher: Searcher,
    root: str,
    folders: tuple[str, ...],
    stop: threading.Event,
    looked: Callable[[str], None] = lambda problem: None,
    workspaces: Workspaces | None = None,
) -> Iterator[IndexResult]:
    """Yields the result of each update until `stop` is set. The first one catches up with earlier changes.

    `folders` are those of the home; those of `workspaces` are watched too. `looked` is called after every
    check: with an empty text if the index is complete and the operating system reports changes, else with
    what is wrong."""
    yield _update(searcher, root)
    watched = _WatchedFolders(root, folders, workspaces)
    while not stop.is_set():
        present = watched.present()
        last_full, inode = -_FULL_CHECK_S, 0  # first look for changes before the watch began
        for changes in _watch_changes(list(present), watched.name, stop):
            if changes.blind:
                looked(changes.blind)
            started = time.monotonic()
            is_due = (
                started - last_full >= _FULL_CHECK_S or searcher.is_purged_anew() or searcher.is_merged_anew()
            )
            if changes.paths or is_due:
                # Check all files if the index was rebuilt by another process, if there were so many changes
                # that some may be lost, and after a failure.
                is_full = is_due or len(changes.paths) > _MAX_CHANGES or searcher.inode() != inode
                result = _update(searcher, root, None if is_full else changes.paths)
                problem = _problem(result)
                looked(changes.blind or problem)
                if is_full:
                    last_full, inode = started, searcher.inode()
                if problem:
                    inode = 0
                if result.report.read or result.report.gone or (changes.paths and _has_warnings(result)):
                    yield result
                # While much is being written, other processes need the machine more than the index does.
                stop.wait(min(_MAX_REST_S, _REST_FACTOR * (time.monotonic() - started)))
            if stop.is_set() or present != watched.present():
                break


def _update(searcher: Searcher, root: str, paths: Collection[str] | None = None) -> IndexResult:
    """A full disk or a locked file must not end the watch: it is reported, and tried again with the next
    change. A home that is missing for a while must not be created again."""
    if not os.path.isfile(f"{root}/{CONFIG}"):
        return IndexResult(UpdateReport(), notes=(f"there is no home at {root}",))
    try:
        return searcher.update(paths=paths)
    except (TacitError, OSError) as error:
        return IndexResult(UpdateReport(), notes=(str(error),))


def _has_warnings(result: IndexResult) -> bool:
    return bool(result.report.failed or result.notes)


def _problem(result: IndexResult) -> str:
    if result.facts is None:
        return " ".join(result.notes) or "the index could not be brought up to date"
    return f"{result.report.left} files are not in the index yet" if result.report.left else ""


class _WatchedFolders:
    """The folders that are watched."""

    def __init__(self, root: str, folders: Sequence[str], workspaces: Workspaces | None) -> None:
        self._root, self._workspaces = root, workspaces
        self._own = [f"{root}/{folder}" for folder in folders]

    def present(self) -> dict[str, int]:
        """The existing folders with their inodes: a folder may have been replaced by another one."""
        inodes = {}
        for path in (*self._own, *(self._workspaces.folders() if self._workspaces else ())):
            if os.path.isdir(path):
                try:
                    inodes[path] = os.stat(path).st_ino
                except OSError:  # deleted meanwhile
                    continue
        return inodes

    def name(self, path: str) -> str:
        """A path relative to the root, or as named by its workspace; empty for paths that are not indexed."""
        if any(path == folder or path.startswith(f"{folder}/") for folder in self._own):
            return os.path.relpath(path, self._root)
        return self._workspaces.path_of(path) if self._workspaces else ""


class _Changes(NamedTuple):
    paths: frozenset[str] = frozenset()  # changed files, by their names in the index
    blind: str = ""  # why the system reports no changes


def _watch_changes(paths: list[str], name: Callable[[str], str], stop: threading.Event) -> Iterator[_Changes]:
    """Yields changes, or an empty one from time to time."""
    from watchfiles import watch  # takes 50 ms, and only a watcher needs it

    watcher = watch(
        *paths, watch_filter=None, debounce=_DEBOUNCE_MS * 4, step=_DEBOUNCE_MS, stop_event=stop,
        rust_timeout=_WAKE_MS, yield_on_timeout=True, raise_interrupt=False,
        ignore_permission_denied=True,
    )  # fmt: skip
    blind = ""
    try:
        for changes in watcher if paths else ():
            yield _Changes(frozenset(filter(None, (name(path) for _, path in changes))))
    except (OSError, RuntimeError) as error:  # the system's limit is reached, or a folder is gone
        blind = f"changes are not told by the system: {error}"
    stop.wait(_POLL_S if blind else _WAKE_MS / 1000)
    yield _Changes(blind=blind)
