"""Disks that really are full, out of inodes or read-only, and that get better later.

Reading goes on, the error says what to do, nothing acknowledged is lost, and the same process resumes by
itself when there is room again.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import tacit
from tacit.cli.main import main as command_line
from tests.faults import homes, invariants
from tests.faults.cases import Case, differences, picture
from tests.faults.invariants import Kept
from tests.faults.machine import Impossible, need_root
from tests.faults.powercut import unmount
from tests.faults.said import NOTE, note_of, text_of, version_of


@contextmanager
def tmpfs(mount: Path, options: str) -> Iterator[Path]:
    need_root()
    mount.mkdir()
    _mount("-t", "tmpfs", "-o", options, "tmpfs", str(mount))
    try:
        yield mount
    finally:
        unmount(mount)


def fill(ballast: Path) -> None:
    """To the last byte of the disk that it is on."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        for size in (1 << 20, 1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Impossible(f"mounting is refused: {done.stderr.strip()}")


def _full(folder: Path) -> Iterator[str]:
    with tmpfs(folder / "small", "size=6m") as disk:
        (disk / "ballast").mkdir()
        (disk / "ballast/big").write_bytes(bytes(512 * 1024))
        yield from _until_full(disk)


def _no_inodes(folder: Path) -> Iterator[str]:
    with tmpfs(folder / "small", "size=64m,nr_inodes=700") as disk:
        (disk / "ballast").mkdir()
        for number in range(160):
            (disk / f"ballast/{number}").touch()
        yield from _until_full(disk)


def _until_full(disk: Path) -> Iterator[str]:
    home = disk / "home"
    homes.furnish(home)
    own = homes.own_work(home)
    memory = tacit.open(home)
    talk = Talk(memory)
    for number in range(500):
        talk.turn(f"t{number}")
        if talk.errors:
            break
    for number in range(3):
        talk.turn(f"full{number}")
    yield from talk.complaints("full")
    yield from _reading(home)
    yield from _note_is_whole(memory)
    shutil.rmtree(disk / "ballast")
    talk.resume()
    yield from invariants.broken(home, Kept(tuple(talk.acks), own))


class Talk:
    """Turns by a host that keeps its session and goes on when a message is refused."""

    def __init__(self, memory: tacit.Memory) -> None:
        self.memory = memory
        self.acks: list[str] = []
        self.errors: list[BaseException] = []
        self.refused: list[tuple[tacit.Session, str]] = []

    def turn(self, name: str) -> None:
        session = self.memory.session(session_id=name, channel="test")
        try:
            for part in ("question", "answer"):
                self._say(session, f"{name}.{part}")
            self._end(session)
        except (tacit.TacitError, OSError) as error:
            self.errors.append(error)

    def _say(self, session: tacit.Session, name: str) -> None:
        try:
            session.message("user", text_of(name))
        except (tacit.TacitError, OSError):
            self.refused.append((session, name))
            raise
        self.acks.append(name)

    def _end(self, session: tacit.Session) -> None:
        sealed = session.end()
        if sealed is not None and sealed.waiting:
            self.errors.append(tacit.TacitError(sealed.waiting))

    def resume(self) -> None:
        """The same sessions in the same process say again what was refused."""
        for session, name in self.refused:
            session.message("user", text_of(name))
            self.acks.append(name)
            session.end()

    def complaints(self, word: str) -> Iterator[str]:
        if not self.errors:
            yield "the disk never became full"
        for error in self.errors:
            if not isinstance(error, tacit.TacitError):
                yield f"an error without explanation: {type(error).__name__}: {error}"
            elif word not in str(error) and "No space left" not in str(error):  # as git says it
                yield f"the error does not say that the disk is {word}: {error}"


def _reading(home: Path) -> Iterator[str]:
    memory = tacit.open(home)
    past = next((home / "raw").rglob("*-past-*.md"))
    if memory.transcript(str(past.relative_to(home))).messages[0].text != text_of("past.question"):
        yield "an old transcript cannot be read"
    for command in (["status"], ["verify", "--quiet"], ["history", "tags"]):
        told = io.StringIO()
        with redirect_stdout(told), redirect_stderr(told):
            code = command_line([*command, "--home", str(home)])
        if code:
            yield f"tacit {command[0]} ends with {code}: {invariants.last_line(told.getvalue())}"


def _note_is_whole(memory: tacit.Memory) -> Iterator[str]:
    """A note is replaced or refused; either way it is whole."""
    note = memory.read(NOTE)
    with suppress(tacit.TacitError):
        memory.write(NOTE, note_of(2), replacing=note)
    if version_of(memory.read(NOTE).text) is None:
        yield f"TORN: {NOTE}"


def _read_only(folder: Path) -> Iterator[str]:
    need_root()
    home = folder / "home"
    homes.furnish(home)
    own = homes.own_work(home)
    talk = Talk(tacit.open(home))
    _mount("--bind", str(home), str(home))
    try:
        _mount("-o", "remount,bind,ro", str(home))
        before = picture(home)
        talk.turn("closed")
        yield from _reading(home)
        yield from (f"changed: {path}" for path in differences(before, picture(home)))
        yield from talk.complaints("read-only")
    finally:
        unmount(home)
    talk.resume()
    yield from invariants.broken(home, Kept(tuple(talk.acks), own))


CASES = (
    Case("disk full, then freed", _full),
    Case("out of inodes, then freed", _no_inodes),
    Case("read-only, then writable", _read_only),
)
