"""Power cuts on a real journalled file system.

An image is mounted through a loop device and a writer works in it. After a random time the file system is
shut down without flushing its log (FS_IOC_SHUTDOWN, as the xfstests suite does): what no sync has put on the
device is gone. The image is mounted again, which replays the journal, and everything acknowledged before the
cut must be there. A disk that lies about having flushed is not covered.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tacit
from tests.faults import invariants
from tests.faults.inject import end_group, start
from tests.faults.invariants import Kept
from tests.faults.machine import Impossible, acknowledgements, need_program, need_root, workshop
from tests.faults.report import Figure, say
from tests.faults.said import acknowledged

_SHUTDOWN = 0x8004587D  # FS_IOC_SHUTDOWN
_NO_LOG_FLUSH = struct.pack("I", 2)
_SIZE = 320 * 1024 * 1024  # the least that xfs accepts is 300 MB
_FORCE = {"ext4": "-F", "xfs": "-f"}


def power_cuts(system: str, rounds: int, seed: int = 1) -> Figure:
    image = Image(system)
    chance = random.Random(seed)
    began = time.monotonic()
    failures: list[str] = []
    acked = in_init = 0
    with workshop() as folder:
        for number in range(1, rounds + 1):
            acks, found = _cut(image, folder, _moment(chance, number))
            failures += [f"cut {number}: {what}" for what in found]
            acked += len(Kept(acks, past=()).names)
            in_init += "init" not in acks
            if number % 5 == 0:
                say(f"  {system}: {number} of {rounds} cuts, {acked} acknowledged messages")
    bad = len({failure.split(":")[0] for failure in failures})
    details = {"acknowledged messages": acked, "cuts before init was done": in_init}
    what = f"power cut on {system}, whole turns"
    return Figure("power", what, "cuts", bad, rounds, time.monotonic() - began, details, failures)


def _moment(chance: random.Random, number: int) -> float:
    """When to cut; every fifth time early, while the home is being made."""
    return chance.uniform(0.2, 0.5) if number % 5 == 0 else chance.uniform(0.5, 3.0)


def _cut(image: Image, folder: Path, after: float) -> tuple[tuple[str, ...], list[str]]:
    """One life from `tacit init` to the cut, and what is broken after it."""
    disk = folder / "disk.img"
    image.make(disk)
    with acknowledgements() as file:
        with mounted(disk, folder / "mnt") as mount:
            process = start(["life", str(mount / "home"), str(file), "life"], folder)
            time.sleep(after)
            acks = tuple(acknowledged(file))  # before the cut: what races with it does not count
            _shut_down(mount)
            end_group(process)
        with mounted(disk, folder / "mnt") as mount:
            return acks, _after(mount / "home", acks)


def _after(home: Path, acks: tuple[str, ...]) -> list[str]:
    if "init" not in acks:
        try:
            tacit.init(home)
        except Exception as error:  # noqa: BLE001 - a second init must mend what the cut left of the first
            return [f"tacit init fails after the cut: {error}"]
    return invariants.broken(home, Kept(acks, past=()))


def _shut_down(mount: Path) -> None:
    fd = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _SHUTDOWN, _NO_LOG_FLUSH)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Image:
    system: str

    def __post_init__(self) -> None:
        need_root()
        need_program(f"mkfs.{self.system}", "apt-get install xfsprogs" if self.system == "xfs" else "")
        if not Path("/dev/loop-control").exists():
            raise Impossible("there are no loop devices")

    def make(self, disk: Path) -> None:
        disk.unlink(missing_ok=True)
        with disk.open("wb") as file:
            file.truncate(_SIZE)
        command = [need_program(f"mkfs.{self.system}"), "-q", _FORCE[self.system], str(disk)]
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(disk: Path, mount: Path) -> Iterator[Path]:
    mount.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-o", "loop", str(disk), str(mount)], capture_output=True, text=True)
    if done.returncode:
        raise Impossible(f"mounting an image is refused: {done.stderr.strip()}")
    try:
        yield mount
    finally:
        unmount(mount)


def unmount(mount: Path) -> None:
    """At once if possible; what still holds it is given five seconds, then it is taken away from it."""
    for _ in range(50):
        if subprocess.run(["umount", str(mount)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "--lazy", str(mount)], check=True)
