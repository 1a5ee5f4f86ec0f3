"""Several processes at one index, and processes that die while they write it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tacit.home.layout import Home
from tacit.search.model import Found
from tacit.search.sqlite.index import open_index, quarantine_index
from tests.search.sqlite.homes import (
    NAMES,
    make_home,
    path_of,
    question,
    require_right,
    require_true,
    require_whole,
    searcher,
    write,
)

Require = Callable[[Home, Found, str], None]

_BEGIN = """
import sys
from pathlib import Path
from tacit.search import home_index as update
from tests.search.sqlite.homes import Home, question, require_right, searcher
from tests.search.sqlite.samples import note, put

def tell(*what):
    print(*what, flush=True)

tell("ready")
sys.stdin.readline()
home = Home(Path(sys.argv[1]))
"""


class Child:
    """Python in a process of its own. It says when it is ready, and then waits for `go`."""

    def __init__(self, code: str, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert self.next_line() == "ready"

    def next_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def end(self) -> str:
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out
        return out


@contextmanager
def children(count: int, code: str, *arguments: str | Path) -> Iterator[list[Child]]:
    made = [Child(code, *arguments, str(number)) for number in range(count)]
    try:
        for child in made:
            child.go()
        yield made
    finally:
        for child in made:
            if child.runs:
                child.kill()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """With enough in it that indexing takes a while."""
    made = make_home(tmp_path_factory.mktemp("processes") / "home")
    for number in range(120):
        paragraphs = [f"Entry {number} of part {part}. " + "Nothing to tell. " * 30 for part in range(6)]
        write(made.root / f"knowledge/journal/day-{number:03}.md", "\n\n".join(["# Day", *paragraphs]))
    return made


def _without_index(home: Home) -> None:
    for file in home.private.glob("memory.db*"):
        file.unlink()


def _asked_while(home: Home, running: Sequence[Child], require: Require = require_right) -> None:
    """Searches until all are done; every answer must be right."""
    one = searcher(home)
    for name in cycle(NAMES):
        require(home, one.find(question(name)), name)
        if not any(child.runs for child in running):
            break
    one.close()


def test_two_index_at_once_and_one_searches_meanwhile(home: Home) -> None:
    _without_index(home)
    with children(2, "one = searcher(home); one.update(); one.close()", home.root) as running:
        _asked_while(home, running)
        for child in running:
            child.end()
    assert not (home.private / "memory.db.aside").exists()
    require_whole(home)


def test_they_build_it_anew_under_each_others_feet(home: Home) -> None:
    code = """
one = searcher(home)
for number in range(3):
    one.update(rebuild=True)
one.close()
"""
    with children(2, code, home.root) as running:
        _asked_while(home, running, lambda home, found, name: require_true(home, found))
        for child in running:
            child.end()
    require_whole(home)


def test_an_answer_comes_from_the_index_that_was_brought_up_to_date(home: Home) -> None:
    """Another process begins to build it anew in the middle of a question."""
    one = searcher(home)
    one.update()
    embed = one._index.embed

    def meanwhile(until: float | None) -> int:
        quarantine_index(one.file)
        open_index(one.file).close()
        return embed(until)

    one._index.embed = meanwhile  # type: ignore[method-assign, assignment]
    found = one.find(question(NAMES[0]))
    one.close()
    require_right(home, found, NAMES[0])


def test_nothing_is_lost_when_several_make_the_same_index(tmp_path: Path) -> None:
    code = """
import multiprocessing
from tacit.search.sqlite.index import open_index

def make(name, together):
    try:
        for number in range(30):
            together.wait()
            index = open_index(home.root / f"{number}.db")
            put(index, note(name, "clay"))
            index.close()
    finally:
        together.abort()  # nobody waits for one that failed

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    together = context.Barrier(4)
    makers = [context.Process(target=make, args=(f"{at}.md", together)) for at in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    sys.exit(any(maker.exitcode for maker in makers))
"""
    with children(1, code, tmp_path) as running:
        running[0].end()
    for number in range(30):
        index = open_index(tmp_path / f"{number}.db")
        assert sorted(index.stamps()) == [f"{child}.md" for child in range(4)]
        index.close()


_SLOW = """
update._CHUNKS_PER_BATCH, update._TEXTS_PER_CALL = 20, 16  # many moments to die in
one = searcher(home)
one.update(tick=lambda done, total: tell("read", done), embed_tick=lambda done: tell("embedded", done))
tell("done")
"""


@pytest.mark.parametrize("seed", range(2))
def test_a_process_that_is_killed_leaves_nothing_that_matters(home: Home, seed: int) -> None:
    chance = random.Random(seed)
    _without_index(home)
    whole = Child(_SLOW, home.root)
    whole.go()
    steps = len(whole.end().split("\n"))
    assert steps > 40
    _without_index(home)
    for _ in range(3):  # each goes on where the last one died
        child = Child(_SLOW, home.root)
        child.go()
        for _ in range(chance.randrange(steps // 3)):
            child.next_line()
        child.kill()
    one = searcher(home)
    found = one.find(question(NAMES[9]))
    require_right(home, found, NAMES[9])
    one.close()
    require_whole(home)


def test_a_process_is_killed_while_another_one_searches(home: Home) -> None:
    one = searcher(home)
    one.update()
    for number in range(3):
        for name in NAMES[:20]:  # something to do
            os.utime(home.root / path_of(name), (1_700_000_100 + number, 1_700_000_100 + number))
        child = Child(_SLOW, home.root)
        child.go()
        child.next_line()
        child.kill()
        require_right(home, one.find(question(NAMES[number])), NAMES[number])
    one.close()
    require_whole(home)
