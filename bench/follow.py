"""How long a note that somebody writes is not found yet, while `tacit index --follow` runs."""

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

_FEW = 440
_PATIENCE = 30.0  # seconds until a note must be found


def measure(folder: Path) -> list[Measured]:
    return [_measure(folder, notes) for notes in (_FEW, NOTES)]


def _measure(folder: Path, notes: int) -> Measured:
    followed = homes.copy(corpus.indexed(notes), folder / f"follow-{notes}")
    alone = homes.copy(corpus.indexed(notes), folder / f"follow-{notes}-alone")
    with _following(followed):
        ours = _until_found(followed)
        found = paired(
            f"follow: until a note among {notes:,} is found", "write, `update()`", _at_once(alone), ours,
            samples=10, warm=2,
        )  # fmt: skip
    return replace(found, remark="from the write to the find")


@contextmanager
def _following(home: Path) -> Iterator[None]:
    command = [TACIT, "--home", str(home), "index", "--follow"]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert follower.stdout
        follower.stdout.readline()  # it has caught up, and watches from now on
        time.sleep(1.0)
        yield
    finally:
        follower.terminate()
        follower.communicate()


def _until_found(home: Path) -> Timed:
    searcher = searcher_of(home)
    bare = connected(searcher.file)
    numbers = count()

    def once() -> float:
        word = f"flagstone{next(numbers)}"
        began = perf_counter()
        path = _written(home, word)
        while not _holds(bare, word):
            assert perf_counter() - began < _PATIENCE, f"{path} is not found"
            time.sleep(0.001)
        took = perf_counter() - began
        assert searcher.find(word, catch_up=0).hits[0].path == path
        time.sleep(0.3)  # it has come to rest again
        return took

    return once


def _at_once(home: Path) -> Timed:
    searcher = searcher_of(home)
    numbers = count()

    def once() -> float:
        word = f"flagstone{next(numbers)}"
        began = perf_counter()
        _written(home, word)
        searcher.update()
        return perf_counter() - began

    return once


def _written(home: Path, word: str) -> str:
    path = f"knowledge/reference/{word}.md"
    (home / path).write_text(f"# {word}\n\nThe {word} of the Corvin quay lathe is new.\n")
    return path


def _holds(bare: apsw.Connection, word: str) -> bool:
    return any(bare.execute("SELECT rowid FROM knowledge_fts WHERE knowledge_fts MATCH ?", (f'"{word}"',)))
