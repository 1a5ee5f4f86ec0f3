"""Run an operation in a process tree of its own and make its n-th file call go wrong."""

from __future__ import annotations

import hashlib
import mmap
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.machine import CACHE, ROOT, environment, need_program

SOURCE = Path(__file__).with_name("crashpoint.c")
_PATIENCE = 90.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at which call; `at` 0 only counts."""

    act: str = "none"
    at: int = 0
    sticky: bool = False

    def __str__(self) -> str:
        return f"{self.act} {'from' if self.sticky else 'at'} call {self.at}"


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    path: str

    @property
    def writes(self) -> bool:
        return "write" in self.name


@dataclass(frozen=True, slots=True)
class Ran:
    code: int | None  # None: it hung and was ended; negative: a signal
    error: str
    calls: tuple[Call, ...]  # every file call below the root, in order


def library() -> Path:
    """The preloaded library, compiled once for each state of its source."""
    compiler = need_program("cc", "a C compiler")
    CACHE.mkdir(exist_ok=True)
    version = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    built = CACHE / f"crashpoint-{version}.so"
    if not built.exists():
        fresh = built.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O1", "-Wall", "-shared", "-fPIC", "-o", str(fresh), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        fresh.rename(built)  # two test processes may build at once
    return built


def run(operation: list[str], root: Path, fault: Fault) -> Ran:
    """Run `python -m tests.faults.actor OPERATION…` with a fault below `root`."""
    return run_module(["tests.faults.actor", *operation], root, fault)


def run_module(arguments: list[str], root: Path, fault: Fault) -> Ran:
    """Run `python -m ARGUMENTS…` with a fault below `root`."""
    desk = root.with_name(f"{root.name}.desk")
    desk.mkdir(exist_ok=True)
    counter = desk / "counter"
    counter.write_bytes(bytes(mmap.PAGESIZE))
    log = desk / "calls"
    log.unlink(missing_ok=True)
    settings = _settings(root, counter, fault, log)
    _wrap_git(desk, settings)
    given = {**environment(desk), **settings}
    given["PATH"] = f"{desk}:{given['PATH']}"
    code, error = _watch(_start(arguments, given))
    return Ran(code, error, tuple(_calls(log, root)))


def _calls(log: Path, root: Path) -> Iterator[Call]:
    for line in log.read_text().splitlines() if log.exists() else ():
        _, _, name, path = line.split(" ", 3)
        yield Call(name, os.path.relpath(path, root))


def _settings(root: Path, counter: Path, fault: Fault, log: Path) -> dict[str, str]:
    settings = {
        "LD_PRELOAD": str(library()),
        "FAULT_COUNTER": str(counter),
        "FAULT_ROOT": str(root),
        "FAULT_ACT": fault.act,
        "FAULT_AT": str(fault.at),
        "FAULT_LOG": str(log),
    }
    if fault.sticky:
        settings["FAULT_STICKY"] = "1"
    return settings


def _wrap_git(desk: Path, settings: dict[str, str]) -> None:
    """The product gives git a clean environment, so a `git` of ours, found first, puts the fault back in."""
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
    wrapper = desk / "git"
    wrapper.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(need_program("git"))} "$@"\n')
    wrapper.chmod(0o755)


def start(operation: list[str], nobody: Path) -> subprocess.Popen[bytes]:
    """An actor in a process group of its own."""
    return _start(["tests.faults.actor", *operation], environment(nobody))


def _start(arguments: list[str], given: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=given,
        cwd=ROOT,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _watch(process: subprocess.Popen[bytes]) -> tuple[int | None, str]:
    try:
        _, error = process.communicate(timeout=_PATIENCE)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        code, error = None, b"it hung"
    end_group(process)
    return code, error.decode("utf-8", "replace")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group and wait until none of it runs any more."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stderr is not None:
        process.stderr.close()
    deadline = time.monotonic() + 10
    while _group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.002)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return any(_is_running(pid, group) for pid in os.listdir("/proc") if pid.isdigit())


def _is_running(pid: str, group: int) -> bool:
    """In this group and not a zombie whose parent does not look."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[2]) == group and fields[0] != "Z"
