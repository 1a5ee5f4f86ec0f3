"""Clocks that jump: records are ordered by their number, and nothing is lost or pruned."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tacit.app import load_config
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.transcripts.capture import Session
from tests.faults import homes, invariants
from tests.faults.cases import Case
from tests.faults.invariants import Kept
from tests.faults.machine import ROOT, environment, need_program
from tests.faults.said import text_of

JUMPS = {
    "back two days": timedelta(days=-2),
    "ten years ahead": timedelta(days=3653),
    "to 1970": datetime(1970, 1, 1, 0, 1, tzinfo=UTC) - datetime.now(UTC),
}


@dataclass(slots=True)
class Clock:
    ahead: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def _open(home: Path, clock: Clock) -> Memory:
    place = Home(home)
    return Memory(place, load_config(place).config, zone=None, now=clock)


def _in_a_session(jump: timedelta) -> Callable[[Path], Iterator[str]]:
    """The clock jumps between two messages and jumps back."""

    def run(folder: Path) -> Iterator[str]:
        home = folder / "home"
        homes.furnish(home)
        clock = Clock()
        session = _open(home, clock).session(session_id="jumps", channel="test")
        names = []
        for number, ahead in enumerate((timedelta(), jump, jump, timedelta())):
            clock.ahead = ahead
            names.append(f"jumps.{number}")
            session.message("user", text_of(names[-1]))
        sealed = session.end()
        assert sealed is not None
        yield from _in_order(home, sealed.path, names)
        yield from invariants.broken(home, Kept(tuple(names)))

    return run


def _say(memory: Memory, name: str) -> Session:
    session = memory.session(session_id=name, channel="test")
    session.message("user", text_of(f"{name}.question"))
    return session


def _in_a_process_that_dies(act: Callable[[], object]) -> None:
    """Run it in a child that ends without cleaning up anything, as after kill -9."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("the child failed before it died")


def _between_sessions(jump: timedelta) -> Callable[[Path], Iterator[str]]:
    """Three conversations; the one in the middle, and the work after it, with another clock. Its process
    dies, so it is sealed by recovery."""

    def run(folder: Path) -> Iterator[str]:
        home = folder / "home"
        homes.furnish(home)
        clock = Clock()
        memory = _open(home, clock)
        for name, ahead in (("before", timedelta()), ("during", jump), ("after", timedelta())):
            clock.ahead = ahead
            if name == "during":
                _in_a_process_that_dies(lambda: _say(memory, "during"))
            else:
                _say(memory, name).end()
            memory.commit()
        names = ("before.question", "during.question", "after.question")
        yield from invariants.broken(home, Kept(names))

    return run


def _in_order(home: Path, path: str, names: list[str]) -> Iterator[str]:
    messages = _open(home, Clock()).transcript(path).messages
    if [message.number for message in messages] != list(range(1, len(names) + 1)):
        yield f"numbers are not in order: {[message.number for message in messages]}"
    if [message.text for message in messages] != [text_of(name) for name in names]:
        yield "messages are not in the order they were said"


def _command_line(folder: Path) -> Iterator[str]:
    """Each command of one conversation under another clock (libfaketime). A jump ahead may make the session
    look idle; then its message is refused with words, and starting it again goes on with it."""
    need_program("faketime", "apt-get install faketime")
    home = folder / "home"
    homes.furnish(home)
    kept = []
    for number, ahead in enumerate(("+0d", "-2d", "+3653d", "+0d", "-2d")):
        if ahead != "+3653d":
            _tacit(home, ahead, "capture", "start", "--session-id", "cli")
        refused = _tacit(home, ahead, "capture", "message", "cli", "user", text_of(f"cli.{number}"))
        if not refused:
            kept.append(f"cli.{number}")
        elif "tacit capture start" not in refused or ahead != "+3653d":
            yield f"message {number} at {ahead}: {refused}"
    for ahead, arguments in (("-2d", ("capture", "end", "cli")), ("+3653d", ("run", "commit", "--quiet"))):
        if refused := _tacit(home, ahead, *arguments):
            yield f"tacit {arguments[0]} at {ahead}: {refused}"
    yield from invariants.broken(home, Kept(tuple(kept)))


def _tacit(home: Path, ahead: str, *arguments: str) -> str:
    """Run a command under another clock; what it complained about, or nothing."""
    command = ["faketime", "-f", ahead, sys.executable, "-m", "tacit", *arguments, "--home", str(home)]
    done = subprocess.run(command, env=environment(home.parent), cwd=ROOT, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


CASES = (
    *(Case(f"{name}, inside a conversation", _in_a_session(jump)) for name, jump in JUMPS.items()),
    *(Case(f"{name}, between conversations", _between_sessions(jump)) for name, jump in JUMPS.items()),
    Case("two days back and ten years ahead, from the command line", _command_line),
)
