"""Following: the index learns of changes on disk while somebody waits for them.

Changes are told by the operating system; where that is silent (network disks, some containers), every file is
looked at now and then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tacit.errors import TacitError
from tacit.search.searcher import Indexed, Searcher
from tacit.search.update import Report
from tacit.store.home import CONFIG
from tacit.store.workspaces import Workspaces

_QUIET = 50  # milliseconds without a change before it is looked at
_LOOK_ANYWAY = 30.0  # seconds
_BLIND = 5.0  # seconds between two looks where nobody tells us of changes
_MANY = 500  # changes at once
_REST = 2.0  # times as long as a look took nothing is looked at
_LONGEST_REST = 2.0  # seconds
_WAKE = 1000  # milliseconds: to see whether to stop, and whether there is a new folder


def follow(
    searcher: Searcher,
    root: str,
    folders: tuple[str, ...],
    stop: threading.Event,
    looked: Callable[[str], None] = lambda trouble: None,
    workspaces: Workspaces | None = None,
) -> Iterator[Indexed]:
    """What each change led to, until `stop` is set. The first one is what was missed before.

    `folders` are those of the home; those of `workspaces` are followed beside them. `looked` is told after
    every look whether the index can be relied on: empty when it holds all there is and the operating system
    tells of changes, else what is wrong."""
    yield _updated(searcher, root)
    places = _Places(root, folders, workspaces)
    while not stop.is_set():
        present = places.present()
        last, index = -_LOOK_ANYWAY, 0  # what changed before anybody was told of changes is looked for first
        for heard in _changes(list(present), places.name, stop):
            if heard.blind:
                looked(heard.blind)
            began = time.monotonic()
            is_time = began - last >= _LOOK_ANYWAY or searcher.is_purged_anew()
            if heard.paths or is_time:
                # Of an index that somebody made anew, and after more changes than may have been told, nobody
                # knows what it lacks; nor after trouble.
                whole = is_time or len(heard.paths) > _MANY or searcher.inode() != index
                done = _updated(searcher, root, None if whole else heard.paths)
                trouble = _trouble(done)
                looked(heard.blind or trouble)
                if whole:
                    last, index = began, searcher.inode()
                if trouble:
                    index = 0
                if done.report.read or done.report.gone or (heard.paths and _is_odd(done)):
                    yield done
                # While a lot is said and written, others need the machine more than the index does.
                stop.wait(min(_LONGEST_REST, _REST * (time.monotonic() - began)))
            if stop.is_set() or present != places.present():
                break


def _updated(searcher: Searcher, root: str, paths: Collection[str] | None = None) -> Indexed:
    """A disk that is full, or a file that somebody holds, must not end the following: it is said, and tried
    again with the next change. Nor must a home that is gone for a while be made anew."""
    if not os.path.isfile(f"{root}/{CONFIG}"):
        return Indexed(Report(), notes=(f"there is no home at {root}",))
    try:
        return searcher.update(paths=paths)
    except (TacitError, OSError) as error:
        return Indexed(Report(), notes=(str(error),))


def _is_odd(done: Indexed) -> bool:
    return bool(done.report.failed or done.notes)


def _trouble(done: Indexed) -> str:
    if done.facts is None:
        return " ".join(done.notes) or "the index could not be brought up to date"
    return f"{done.report.left} files are not in the index yet" if done.report.left else ""


class _Places:
    """The folders that are followed."""

    def __init__(self, root: str, folders: Sequence[str], workspaces: Workspaces | None) -> None:
        self._root, self._workspaces = root, workspaces
        self._own = [f"{root}/{folder}" for folder in folders]

    def present(self) -> dict[str, int]:
        """Those that are there, and which they are: another one may have taken a name."""
        found = {}
        for path in (*self._own, *(self._workspaces.folders() if self._workspaces else ())):
            if os.path.isdir(path):
                try:
                    found[path] = os.stat(path).st_ino
                except OSError:  # gone while we were looking
                    continue
        return found

    def name(self, path: str) -> str:
        """A path from the root, or by its workspace; empty for what nobody looks at."""
        if any(path == folder or path.startswith(f"{folder}/") for folder in self._own):
            return os.path.relpath(path, self._root)
        return self._workspaces.path_of(path) if self._workspaces else ""


class _Heard(NamedTuple):
    paths: frozenset[str] = frozenset()  # what changed, as paths name it
    blind: str = ""  # why nobody tells us of changes


def _changes(paths: list[str], name: Callable[[str], str], stop: threading.Event) -> Iterator[_Heard]:
    """What changed, or now and then that nothing did."""
    from watchfiles import watch  # 50 ms, and only a follower needs it

    told = watch(
        *paths, watch_filter=None, debounce=_QUIET * 4, step=_QUIET, stop_event=stop,
        rust_timeout=_WAKE, yield_on_timeout=True, raise_interrupt=False,
        ignore_permission_denied=True,
    )  # fmt: skip
    blind = ""
    try:
        for changes in told if paths else ():
            yield _Heard(frozenset(filter(None, (name(path) for _, path in changes))))
    except (OSError, RuntimeError) as error:  # as many are followed already as there may be, or one is gone
        blind = f"changes are not told by the system: {error}"
    stop.wait(_BLIND if blind else _WAKE / 1000)
    yield _Heard(blind=blind)
