"""How long it takes until a new note is found, while `tacit index --follow` runs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import perf_counter

import apsw

from bench import corpus, homes
from bench.index import NOTES, searcher_of
from bench.pairs import Measured, Timed, paired
from bench.processes import TACIT
from bench.query import connected

_SMALL_HOME_NOTES = 440
_FIND_TIMEOUT_S = 30.0  # seconds until a note must be found


def measure(folder: Path) -> list[Measured]:
    return [_measure_home(folder, notes) for notes in (_SMALL_HOME_NOTES, NOTES)]


def _measure_home(folder: Path, notes: int) -> Measured:
    followed = homes.copy(corpus.indexed(notes), folder / f"follow-{notes}")
    alone = homes.copy(corpus.indexed(notes), folder / f"follow-{notes}-alone")
    with _run_follower(followed):
        ours = _time_follower(followed)
        result = paired(
            f"follow: until a note among {notes:,} is found", "write, `update()`", _time_update(alone), ours,
            samples=10, warm=2,
        )  # fmt: skip
    return replace(result, remark="from the write to the find")


@contextmanager
def _run_follower(home: Path) -> Iterator[None]:
    command = [TACIT, "--home", str(home), "index", "--follow"]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert follower.stdout
        follower.stdout.readline()  # it has caught up and watches now
        time.sleep(1.0)
        yield
    finally:
        follower.terminate()
        follower.communicate()


def _time_follower(home: Path) -> Timed:
    searcher = searcher_of(home)
    bare = connected(searcher.file)
    numbers = count()

    def once() -> float:
        word = f"flagstone{next(numbers)}"
        began = perf_counter()
        path = _write_note(home, word)
        while not _is_indexed(bare, word):
            assert perf_counter() - began < _FIND_TIMEOUT_S, f"{path} is not found"
            time.sleep(0.001)
        took = perf_counter() - began
        assert searcher.find(word, catch_up=0).hits[0].path == path
        time.sleep(0.3)  # until the follower is idle again
        return took

    return once


def _time_update(home: Path) -> Timed:
    searcher = searcher_of(home)
    numbers = count()

    def once() -> float:
        word = f"flagstone{next(numbers)}"
        began = perf_counter()
        _write_note(home, word)
        searcher.update()
        return perf_counter() - began

    return once


def _write_note(home: Path, word: str) -> str:
    path = f"knowledge/reference/{word}.md"
    (home / path).write_text(f"# {word}\n\nThe {word} of the Corvin quay lathe is new.\n")
    return path


def _is_indexed(bare: apsw.Connection, word: str) -> bool:
    return any(bare.execute("SELECT rowid FROM knowledge_fts WHERE knowledge_fts MATCH ?", (f'"{word}"',)))
