"""One operation, a fault at each of its file calls in turn: kill -9, full disk, bad disk, half a write."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import tacit
from tests.faults import homes, inject, invariants
from tests.faults.inject import Call, Fault
from tests.faults.invariants import Kept
from tests.faults.machine import acknowledgements, workshop
from tests.faults.report import Figure, say
from tests.faults.said import NOTE, acknowledged, note_of

_MORE = 10  # calls that another run may make beyond those that were counted


@dataclass(frozen=True, slots=True)
class Scenario:
    """An operation, the home it starts from (None: no folder yet), and what mends what it left."""

    operation: str
    about: str
    prepare: Callable[[Path], None] | None = homes.furnish
    before_next: Callable[[Path], object] = tacit.open

    def arguments(self, home: Path, acks: Path) -> list[str]:
        return [self.operation, str(home), str(acks)]


@dataclass(frozen=True, slots=True)
class Point:
    """What one fault did."""

    fault: Fault
    call: Call | None = None  # None: the operation was over before the fault
    broken: tuple[str, ...] = ()
    unexplained: str = ""  # an error that was no TacitError
    litter: tuple[str, ...] = ()


def _changed_notes(home: Path) -> None:
    homes.furnish(home)
    (home / NOTE).write_text(note_of(2))
    (home / "knowledge/people/new.md").write_text("# New\n")
    (home / "knowledge/reference/glaze.md").write_text("# Glaze\n")


def _many_objects(home: Path) -> None:
    _changed_notes(home)
    homes.fill(home)


def _foreign_folder(home: Path) -> None:
    home.mkdir()
    homes.must(home, "init", "-q", "-b", "main")
    (home / "knowledge/people").mkdir(parents=True)
    homes.start_own_work(home)


def _adopt_again(home: Path) -> None:
    tacit.init(home, adopt=True)


def _end_if_open(home: Path) -> None:
    """A session of the command line belongs to no process: its host ends it."""
    memory = tacit.open(home)
    if memory.services.conversations.is_open("commands"):
        memory.session(session_id="commands").end()


TURN = Scenario("turn", "one turn")
STUBBORN = Scenario("stubborn", "one turn of a host that tries again")
COMMANDS = Scenario("commands", "one turn from the command line", before_next=_end_if_open)
WRITE = Scenario("write", "a note is written")
COMMIT = Scenario("commit", "tacit run commit", _changed_notes)
PACK = Scenario("commit", "tacit run commit that packs", _many_objects)
INIT = Scenario("init", "tacit init", None, tacit.init)
ADOPT = Scenario("adopt", "tacit init --adopt", _foreign_folder, _adopt_again)


@dataclass(frozen=True, slots=True)
class Bench:
    """A prepared home to copy for each point."""

    scenario: Scenario
    folder: Path
    kept: Kept

    @property
    def base(self) -> Path:
        return self.folder / "base"


def set_up(scenario: Scenario, folder: Path) -> Bench:
    bench = Bench(scenario, folder, Kept(past=()))
    if scenario.prepare is None:
        return bench
    scenario.prepare(bench.base)
    past = Kept().past if scenario.prepare is not _foreign_folder else ()
    return replace(bench, kept=Kept(own=homes.own_work(bench.base), past=past))


def count_calls(bench: Bench) -> int:
    """How many file calls the operation makes when nothing goes wrong. The number differs a little from run
    to run: git makes a folder for an object or finds it there, depending on a hash that holds the time."""
    home = _fresh(bench, "trial")
    with acknowledgements() as acks:
        ran = inject.run(bench.scenario.arguments(home, acks), home, Fault())
    if ran.code != 0:
        raise RuntimeError(f"{bench.scenario.operation} fails without any fault: {ran.error}")
    return len(ran.calls)


def _fresh(bench: Bench, name: str) -> Path:
    home = bench.folder / name / "home"
    home.parent.mkdir()
    if bench.base.exists():
        shutil.copytree(bench.base, home, symlinks=True)
    return home


def try_point(bench: Bench, fault: Fault) -> Point:
    """The operation with one fault, on a fresh copy; then the next command and all checks."""
    home = _fresh(bench, f"{fault.act}-{fault.sticky}-{fault.at}")
    try:
        with acknowledgements() as file:
            ran = inject.run(bench.scenario.arguments(home, file), home, fault)
            acks = tuple(acknowledged(file))
        if len(ran.calls) < fault.at or not _applies(fault.act, ran.calls[fault.at - 1]):
            return Point(fault)
        found = ["it hung"] if ran.code is None else []
        found += _after(bench, home, replace(bench.kept, acks=acks))
        unexplained = invariants.last_line(ran.error) if ran.code == 3 else ""
        litter = () if found else tuple(invariants.litter(home))
        return Point(fault, ran.calls[fault.at - 1], tuple(found), unexplained, litter)
    finally:
        shutil.rmtree(home.parent)


def _after(bench: Bench, home: Path, kept: Kept) -> list[str]:
    try:
        bench.scenario.before_next(home)
    except Exception as error:  # noqa: BLE001 - the command that should mend it failed
        return [f"running it again fails: {type(error).__name__}: {error}"]
    return invariants.broken(home, kept)


def scan(
    scenario: Scenario,
    act: str,
    part: str,
    *,
    sticky: bool = False,
    step: int = 1,
    first: int = 1,
    workers: int | None = None,
) -> Figure:
    """A fault at every `step`-th call, starting with call `first`."""
    what = f"{act} {'from' if sticky else 'at'} every file call: {scenario.about}"
    began = time.monotonic()
    with workshop() as folder:
        bench = set_up(scenario, folder)
        calls = count_calls(bench)
        faults = [Fault(act, number, sticky) for number in range(first, calls + _MORE, step)]
        say(f"{what}: about {calls} calls")
        points = list(_each(bench, faults, workers or os.cpu_count() or 1))
    return _figure(part, what, points, time.monotonic() - began)


def _applies(act: str, call: Call) -> bool:
    return call.writes if act in ("short", "torn") else True


def _each(bench: Bench, faults: Sequence[Fault], workers: int) -> Iterable[Point]:
    if workers == 1:
        yield from (try_point(bench, fault) for fault in faults)
        return
    with ProcessPoolExecutor(workers) as pool:
        for done, point in enumerate(pool.map(try_point, [bench] * len(faults), faults), 1):
            if done % 25 == 0:
                say(f"  {done} of {len(faults)}")
            yield point


def _figure(part: str, what: str, points: Sequence[Point], seconds: float) -> Figure:
    fired = [point for point in points if point.call]
    failures = [_describe(point) for point in fired if point.broken]
    details: dict[str, object] = {}
    if unexplained := Counter(point.unexplained for point in fired if point.unexplained):
        details["errors without explanation"] = sum(unexplained.values())
        details["for example"] = next(iter(unexplained))
    if littered := [point for point in fired if point.litter]:
        details["points with litter"] = f"{len(littered)} (such as {littered[0].litter[0]})"
    return Figure(part, what, "points", len(failures), len(fired), seconds, details, failures)


def _describe(point: Point) -> str:
    where = f"{point.call.name} {point.call.path}" if point.call else ""
    return f"{point.fault} ({where}): " + "; ".join(point.broken)
