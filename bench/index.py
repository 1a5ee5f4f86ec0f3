"""Building the index of 10,000 notes, updating it, and its size in memory and on disk."""

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
from tacit.home.listing import INDEXED
from tacit.markdown.chunker import split_chunks
from tacit.search.searcher import Searcher

NOTES = 10_000
MANY = 44_000  # about 100,000 passages


def measure(folder: Path) -> list[Measured]:
    home = homes.copy(corpus.home(NOTES), folder / "index")
    results = [_measure_rebuild(home)]
    searcher = searcher_of(home)
    searcher.update()
    results += [_measure_unchanged(home, searcher), _measure_one_change(home, searcher)]
    _print_size(home, searcher)
    return [*results, _measure_growth()]


def searcher_of(home: Path) -> Searcher:
    return open_home(home, recover=False).services.searcher


def paths(home: Path) -> list[str]:
    """The indexed files, listed independently."""
    files = (file for folder in INDEXED for file in (home / folder).glob("**/*.md"))
    return sorted(str(file) for file in files)


# ---------------------------------------------------------------- rebuild


def _measure_rebuild(home: Path) -> Measured:
    files = paths(home)
    ours_cpu: list[float] = []
    floor_cpu: list[float] = []

    def floor() -> None:
        began = processor()
        for path in files:
            with open(path, encoding="utf-8") as file:
                split_chunks(file.read())
        floor_cpu.append(processor() - began)

    def ours() -> None:
        searcher = searcher_of(home)
        began = processor()
        update = searcher.update(rebuild=True)
        ours_cpu.append(processor() - began)
        searcher.close()
        assert update.report.read == len(files)
        assert update.facts
        assert update.facts.embedded == update.facts.chunks, update.notes

    what = f"index: {NOTES:,} notes from nothing, words and vectors"
    result = paired(what, "read + chunk", timed(floor), timed(ours), samples=3, aim=3.0, warm=0)
    ratio = median(
        ours_seconds / floor_seconds for ours_seconds, floor_seconds in zip(ours_cpu, floor_cpu, strict=True)
    )
    per_second = len(files) / median(ours_cpu)
    return replace(
        result, remark=f"CPU {ratio:.2f} × floor; {per_second:.0f} files per CPU second, aim 1,000"
    )


def processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# ---------------------------------------------------------------- update


def _measure_unchanged(home: Path, searcher: Searcher) -> Measured:
    def floor() -> int:
        return sum(len(_list_stats(str(home / folder))) for folder in INDEXED)

    def ours() -> None:
        assert searcher.update().report.unchanged >= NOTES

    what = f"index: nothing changed among {NOTES:,}"
    result = paired(what, "scandir + stat", timed(floor), timed(ours), samples=25)
    return replace(result, remark="aim 300 ms")


def _list_stats(folder: str) -> list[os.stat_result]:
    stats: list[os.stat_result] = []
    folders = [folder]
    while folders:
        current = folders.pop()
        if os.path.isdir(current):
            for entry in os.scandir(current):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    stats.append(entry.stat(follow_symlinks=False))
    return stats


def _measure_one_change(home: Path, searcher: Searcher) -> Measured:
    change = changing(home)
    extra: list[float] = []
    scan = timed(searcher.update)

    def ours() -> float:
        change()
        began = perf_counter()
        update = searcher.update()
        took = perf_counter() - began
        assert update.report.read == 1
        assert update.embedded
        extra.append(took - scan())
        return took

    result = paired(f"index: one of {NOTES:,} changed", "nothing changed", scan, ours, samples=25)
    return replace(result, remark=f"{median(extra) * 1000:.0f} ms of work, aim 50")


def changing(home: Path) -> Callable[[], None]:
    """Each call changes the text of one note and sets a file date that it never had."""
    numbers = count()

    def change() -> None:
        number = next(numbers)
        path, text = corpus.note(number)
        changed = text.replace("\n## ", f"\nThis is change number {number}.\n\n## ", 1)
        corpus.write(home, path, changed, date(2020, 1, 1))

    return change


# ---------------------------------------------------------------- size


def _print_size(home: Path, searcher: Searcher) -> None:
    searcher.close()  # merges the write-ahead log
    text = sum(os.path.getsize(path) for path in paths(home))
    size = searcher.file.stat().st_size
    print(f"\nindex: {size / 1e6:.1f} MB on disk for {text / 1e6:.1f} MB of text: {size / text:.1f} for 1\n")


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that ended without an error."""

    seconds: float
    processor: float
    peak: float  # MB, with the pages of files that it maps
    own: float  # MB of its own, at peak


def watched(command: list[str]) -> Ended:
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
    began = perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=null)
    peak = own_peak = 0
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        # Its ru_maxrss would start at the size that this process had at the spawn.
        memory = _read_memory(child)
        peak, own_peak = max(peak, memory.get("VmHWM", 0)), max(own_peak, memory.get("RssAnon", 0))
        time.sleep(0.01)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed: {status}")
    max_kb = peak or usage.ru_maxrss
    return Ended(perf_counter() - began, usage.ru_utime + usage.ru_stime, max_kb / 1024, own_peak / 1024)


def _read_memory(process: int) -> dict[str, int]:
    """KB by name, if the system tells."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in lines]
    return {row[0].rstrip(":"): int(row[1]) for row in rows if row[-1:] == ["kB"]}


def _measure_growth() -> Measured:
    """The same command for a home and for one with almost five times as many notes, in processes."""
    small, large = (corpus.rebuilt(notes, watched) for notes in (NOTES, MANY))
    ratio = large.seconds / small.seconds
    for notes, ended in ((NOTES, small), (MANY, large)):
        print(
            f"index: `tacit index --rebuild` of {notes:,} notes: {ended.seconds:.1f} s,"
            f" {notes / ended.processor:.0f} files per CPU second,"
            f" peak {ended.peak:.0f} MB, {ended.own:.0f} MB of it its own"
        )
    return Measured(
        what=f"index: `tacit index --rebuild`, {MANY:,} notes",
        against=f"{NOTES:,} notes",
        floor=small.seconds,
        ours=large.seconds,
        ratio=ratio,
        middle=(ratio, ratio),
        samples=1,
        remark=f"peak {large.peak:.0f} MB against {small.peak:.0f}, "
        f"own {large.own:.0f} against {small.own:.0f}",
    )
