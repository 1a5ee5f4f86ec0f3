"""Making the index of 10,000 notes, keeping it true, and what it takes in memory and on disk."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import corpus, homes
from bench.pairs import Measured, paired, timed
from tacit.app import open_home
from tacit.search.searcher import Searcher
from tacit.store.listing import INDEXED
from tacit.text.chunk import chunks

NOTES = 10_000
MANY = 44_000  # about 100,000 passages


def measure(folder: Path) -> list[Measured]:
    home = homes.copy(corpus.home(NOTES), folder / "index")
    found = [_full(home)]
    searcher = searcher_of(home)
    searcher.update()
    found += [_unchanged(home, searcher), _one_changed(home, searcher)]
    _print_size(home, searcher)
    return [*found, _growth()]


def searcher_of(home: Path) -> Searcher:
    return open_home(home, recover=False).searcher


def paths(home: Path) -> list[str]:
    """What is indexed, found by other means."""
    files = (file for folder in INDEXED for file in (home / folder).glob("**/*.md"))
    return sorted(str(file) for file in files)


# ---------------------------------------------------------------- from nothing


def _full(home: Path) -> Measured:
    listed = paths(home)
    used: list[float] = []
    least: list[float] = []

    def floor() -> None:
        began = processor()
        for path in listed:
            with open(path, encoding="utf-8") as file:
                chunks(file.read())
        least.append(processor() - began)

    def ours() -> None:
        searcher = searcher_of(home)
        began = processor()
        done = searcher.update(rebuild=True)
        used.append(processor() - began)
        searcher.close()
        assert done.report.read == len(listed)
        assert done.facts
        assert done.facts.embedded == done.facts.passages, done.notes

    what = f"index: {NOTES:,} notes from nothing, words and vectors"
    found = paired(what, "read + chunk", timed(floor), timed(ours), samples=3, aim=3.0, warm=0)
    ratio = median(mine / bare for mine, bare in zip(used, least, strict=True))
    per_second = len(listed) / median(used)
    return replace(found, remark=f"CPU {ratio:.2f} × floor; {per_second:.0f} files per CPU second, aim 1,000")


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---------------------------------------------------------------- kept true


def _unchanged(home: Path, searcher: Searcher) -> Measured:
    def floor() -> int:
        return sum(len(_stats(str(home / folder))) for folder in INDEXED)

    def ours() -> None:
        assert searcher.update().report.unchanged >= NOTES

    what = f"index: nothing changed among {NOTES:,}"
    found = paired(what, "scandir + stat", timed(floor), timed(ours), samples=25)
    return replace(found, remark="aim 300 ms")


def _stats(folder: str) -> list[os.stat_result]:
    found: list[os.stat_result] = []
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        if os.path.isdir(here):
            for entry in os.scandir(here):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found.append(entry.stat(follow_symlinks=False))
    return found


def _one_changed(home: Path, searcher: Searcher) -> Measured:
    change = changing(home)
    extra: list[float] = []
    scan = timed(searcher.update)

    def ours() -> float:
        change()
        began = perf_counter()
        done = searcher.update()
        took = perf_counter() - began
        assert done.report.read == 1
        assert done.embedded
        extra.append(took - scan())
        return took

    found = paired(f"index: one of {NOTES:,} changed", "nothing changed", scan, ours, samples=25)
    return replace(found, remark=f"{median(extra) * 1000:.0f} ms of work, aim 50")


def changing(home: Path) -> Callable[[], None]:
    """Each call gives one note another text, as of a day on which it had none yet."""
    numbers = count()

    def change() -> None:
        number = next(numbers)
        path, text = corpus.note(number)
        changed = text.replace("\n## ", f"\nThis is change number {number}.\n\n## ", 1)
        corpus.write(home, path, changed, date(2020, 1, 1))

    return change


# ---------------------------------------------------------------- size


def _print_size(home: Path, searcher: Searcher) -> None:
    searcher.close()  # what waits beside the file is taken in
    text = sum(os.path.getsize(path) for path in paths(home))
    size = searcher.file.stat().st_size
    print(f"\nindex: {size / 1e6:.1f} MB on disk for {text / 1e6:.1f} MB of text: {size / text:.1f} for 1\n")


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended well."""

    seconds: float
    processor: float
    peak: float  # MB, with the pages of files that it maps
    own: float  # MB of its own, the most that was seen


def watched(command: list[str]) -> Ended:
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    began = perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=null)
    peak = own = 0
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            break
        # Its ru_maxrss would begin with what this process had when it started the other one.
        seen = _memory(child)
        peak, own = max(peak, seen.get("VmHWM", 0)), max(own, seen.get("RssAnon", 0))
        time.sleep(0.01)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed: {status}")
    most = peak or used.ru_maxrss
    return Ended(perf_counter() - began, used.ru_utime + used.ru_stime, most / 1024, own / 1024)


def _memory(process: int) -> dict[str, int]:
    """KB by name, where the system tells."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines]
    return {row[0].rstrip(":"): int(row[1]) for row in rows if row[-1:] == ["kB"]}


def _growth() -> Measured:
    """The same command for one and for almost five times as many notes, each in a process of its own."""
    few, many = (corpus.rebuilt(notes, watched) for notes in (NOTES, MANY))
    ratio = many.seconds / few.seconds
    for notes, ended in ((NOTES, few), (MANY, many)):
        print(
            f"index: `tacit index --rebuild` of {notes:,} notes: {ended.seconds:.1f} s,"
            f" {notes / ended.processor:.0f} files per CPU second,"
            f" peak {ended.peak:.0f} MB, {ended.own:.0f} MB of it its own"
        )
    return Measured(
        what=f"index: `tacit index --rebuild`, {MANY:,} notes",
        against=f"{NOTES:,} notes",
        floor=few.seconds,
        ours=many.seconds,
        ratio=ratio,
        middle=(ratio, ratio),
        samples=1,
        remark=f"peak {many.peak:.0f} MB against {few.peak:.0f}, own {many.own:.0f} against {few.own:.0f}",
    )
