"""The long form: `python -m tests.faults [PART …] [--rounds N]`. Prints figures and keeps them in .cache."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator

from tests.faults import broken, clock, fulldisk, rerun, scan, userwork
from tests.faults import forget as forgetting
from tests.faults import lifecycle as living
from tests.faults import openclaw as beside
from tests.faults.cases import try_cases
from tests.faults.killloop import kill_loop
from tests.faults.machine import CACHE, Impossible, environment, workshop
from tests.faults.powercut import power_cuts
from tests.faults.report import Figure, markdown, save, say, skip, tell
from tests.faults.writers import write_together

Trial = Callable[[], Figure]


def kill(options: argparse.Namespace) -> Iterator[Trial]:
    """kill -9 at every file call"""
    for scenario in (scan.TURN, scan.COMMANDS, scan.WRITE, scan.COMMIT, scan.PACK, scan.INIT, scan.ADOPT):
        yield lambda scenario=scenario: scan.scan(scenario, "kill", "kill")  # type: ignore[misc]


def errors(options: argparse.Namespace) -> Iterator[Trial]:
    """full disk, failing disk, read-only disk, short and torn writes at every file call"""
    for scenario, act, sticky in (
        (scan.TURN, "ENOSPC", False),
        (scan.STUBBORN, "ENOSPC", False),
        (scan.TURN, "ENOSPC", True),
        (scan.TURN, "EIO", False),
        (scan.STUBBORN, "EIO", False),
        (scan.TURN, "EIO", True),
        (scan.TURN, "EROFS", True),
        (scan.STUBBORN, "short", False),
        (scan.TURN, "torn", False),
        (scan.WRITE, "ENOSPC", False),
        (scan.WRITE, "torn", False),
        (scan.COMMIT, "ENOSPC", True),
        (scan.COMMIT, "EIO", False),
    ):
        yield lambda s=scenario, a=act, k=sticky: scan.scan(s, a, "errors", sticky=k)  # type: ignore[misc]


def forget(options: argparse.Namespace) -> Iterator[Trial]:
    """kill -9 at every file call of `tacit forget`, then the same command again"""
    yield lambda: rerun.scan(forgetting.FORGET)


def lifecycle(options: argparse.Namespace) -> Iterator[Trial]:
    """kill -9 at every file call of learning, condensing, archiving and approving, then the same again"""
    for trial in living.TRIALS:
        yield lambda trial=trial: rerun.scan(trial)  # type: ignore[misc]


def loop(options: argparse.Namespace) -> Iterator[Trial]:
    """kill -9 at random moments on one home"""
    yield lambda: kill_loop(options.rounds or 300)


def writers(options: argparse.Namespace) -> Iterator[Trial]:
    """eight processes on one home"""
    yield lambda: write_together(8, 20)


def repositories(options: argparse.Namespace) -> Iterator[Trial]:
    """broken repositories"""
    yield lambda: try_cases("repositories", "broken repositories that are mended", broken.MENDED)
    yield lambda: try_cases("repositories", "broken repositories that are explained", broken.EXPLAINED)


def disk(options: argparse.Namespace) -> Iterator[Trial]:
    """a disk that is really full, out of inodes, read-only"""
    yield lambda: try_cases("disk", "full and read-only disks", fulldisk.CASES)


def person(options: argparse.Namespace) -> Iterator[Trial]:
    """a person works with git at the same time"""
    yield lambda: try_cases("person", "a person works at the same time", userwork.CASES)
    yield userwork.side_by_side


def clocks(options: argparse.Namespace) -> Iterator[Trial]:
    """clock jumps"""
    yield lambda: try_cases("clocks", "clock jumps", clock.CASES)


def power(options: argparse.Namespace) -> Iterator[Trial]:
    """power cuts on ext4 and xfs"""
    for system in ("ext4", "xfs"):
        yield lambda system=system: power_cuts(system, options.rounds or 25)  # type: ignore[misc]


def openclaw(options: argparse.Namespace) -> Iterator[Trial]:
    """the daemon dead, hung, answering nonsense, and a full disk, beside the real OpenClaw"""
    yield from beside.trials(options.rounds or 10)


PARTS = {
    part.__name__: part
    for part in (
        kill,
        errors,
        forget,
        lifecycle,
        loop,
        writers,
        repositories,
        disk,
        person,
        clocks,
        power,
        openclaw,
    )
}


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    # Being stopped must still unmount and clean up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    figures = []
    with workshop() as nobody:
        # The checks run in this process too, so it must not see the person's own home and git settings.
        os.environ.update(environment(nobody))
        for name in options.part or PARTS:
            say(f"{name}: {PARTS[name].__doc__}")
            figures += _all_of(name, options)
    save(figures, CACHE / "faults.json")
    print("\n" + markdown(figures))
    return 1 if any(figure.broken for figure in figures) else 0


def _all_of(part: str, options: argparse.Namespace) -> list[Figure]:
    try:
        return [tell(_try(part, trial)) for trial in PARTS[part](options)]
    except Impossible as why:
        return [tell(skip(part, str(why)))]


def _try(part: str, trial: Trial) -> Figure:
    try:
        return trial()
    except Impossible as why:
        return skip(part, str(why))


def _parser() -> argparse.ArgumentParser:
    about = "\n".join(f"  {name:<13} {part.__doc__}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=f"Break things and count what is broken afterwards.\n\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], metavar="PART", help="only these parts")
    parser.add_argument(
        "--rounds", type=int, help="power cuts per file system, rounds of the kill loop, turns per fault"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
