"""Following: the index learns of changes on disk while somebody waits for them.

Changes are told by the operating system; where that is silent (network disks, some containers), every file is
looked at now and then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from tacit.errors import TacitError
from tacit.search.searcher import Indexed, Searcher
from tacit.search.update import Report

_QUIET = 50  # milliseconds without a change before it is looked at
_LOOK_ANYWAY = 30.0  # seconds
_WAKE = 1000  # milliseconds: to see whether to stop, and whether there is a new folder


def follow(
    searcher: Searcher, root: str, folders: tuple[str, ...], stop: threading.Event
) -> Iterator[Indexed]:
    """What each change led to, until `stop` is set. The first one is what was missed before."""
    yield _updated(searcher)
    while not stop.is_set():
        present = _present(root, folders)
        looked = -_LOOK_ANYWAY  # what changed before anybody was told of changes is looked for first
        for changed in _changes(present, stop):
            if changed or time.monotonic() - looked >= _LOOK_ANYWAY:
                looked = time.monotonic()
                done = _updated(searcher)
                if done.report.read or done.report.gone or (changed and (done.report.failed or done.notes)):
                    yield done
            if stop.is_set() or present != _present(root, folders):
                break


def _updated(searcher: Searcher) -> Indexed:
    """A disk that is full, or a file that somebody holds, must not end the following: it is said, and tried
    again with the next change."""
    try:
        return searcher.update()
    except (TacitError, OSError) as error:
        return Indexed(Report(), notes=(str(error),))


def _present(root: str, folders: tuple[str, ...]) -> list[str]:
    return [f"{root}/{folder}" for folder in folders if os.path.isdir(f"{root}/{folder}")]


def _changes(paths: list[str], stop: threading.Event) -> Iterator[bool]:
    """True when something changed, False now and then when nothing did."""
    from watchfiles import watch  # 50 ms, and only a follower needs it

    told = watch(
        *paths, watch_filter=None, debounce=_QUIET * 4, step=_QUIET, stop_event=stop,
        rust_timeout=_WAKE, yield_on_timeout=True, raise_interrupt=False,
        ignore_permission_denied=True,
    )  # fmt: skip
    with suppress(OSError):  # a folder that is gone, or as many are followed already as there may be
        yield from (bool(changes) for changes in told) if paths else ()
    stop.wait(_WAKE / 1000)
    yield False
