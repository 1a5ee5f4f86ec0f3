"""Following: the index learns of changes on disk while somebody waits for them.

Changes are told by the operating system; where that is silent (network disks, some containers), every file is
looked at now and then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from tacit.search.searcher import Indexed, Searcher

_QUIET = 50  # milliseconds without a change before it is looked at
_LOOK_ANYWAY = 30.0  # seconds
_WAKE = 1000  # milliseconds: to see whether to stop, and whether there is a new folder


def follow(
    searcher: Searcher, root: str, folders: tuple[str, ...], stop: threading.Event
) -> Iterator[Indexed]:
    """What each change led to, until `stop` is set. The first one is what was missed before."""
    yield searcher.update()
    looked = time.monotonic()
    while not stop.is_set():
        present = [f"{root}/{folder}" for folder in folders if os.path.isdir(f"{root}/{folder}")]
        for changed in _changes(present, stop):
            if changed or time.monotonic() - looked > _LOOK_ANYWAY:
                looked = time.monotonic()
                done = searcher.update()
                if changed or done.report.read or done.report.gone:
                    yield done
            if present != [f"{root}/{folder}" for folder in folders if os.path.isdir(f"{root}/{folder}")]:
                break


def _changes(paths: list[str], stop: threading.Event) -> Iterator[bool]:
    """True when something changed, False now and then when nothing did."""
    if not paths:
        yield not stop.wait(_WAKE / 1000)
        return
    from watchfiles import watch  # 50 ms, and only a follower needs it

    yield from (
        bool(changes)
        for changes in watch(
            *paths, watch_filter=None, debounce=_QUIET * 4, step=_QUIET, stop_event=stop,
            rust_timeout=_WAKE, yield_on_timeout=True, raise_interrupt=False,
        )
    )  # fmt: skip
