"""Ending a session (seal and commit) against git's own add and commit, made as durable."""

from __future__ import annotations

import os
import subprocess
from itertools import islice
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired

# What tacit asks of git: everything synced, nothing else run.
_SETTINGS = (
    "core.fsync=all",
    "core.fsyncMethod=fsync",
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "user.name=bench",
    "user.email=bench@localhost",
)
_GIT = ("git", *(part for setting in _SETTINGS for part in ("-c", setting)))


def measure(folder: Path) -> list[Measured]:
    earlier = homes.with_transcripts(1000)
    memory = tacit.open(homes.copy(earlier, folder / "seal"))
    bare = homes.copy(earlier, folder / "seal-bare")
    what = "seal: `session.end()`, 20 messages, 1,000 transcripts before it"
    against = "durable `git add` + `git commit`"
    return [paired(what, against, _floor(bare, memory), _ours(memory), samples=100, aim=1.5, warm=3)]


def _ours(memory: tacit.Memory) -> Timed:
    def once() -> float:
        session = talk(memory, 20)
        began = perf_counter()
        sealed = session.end()
        took = perf_counter() - began
        assert sealed is not None
        assert sealed.commit is not None, sealed.waiting
        return took

    return once


def talk(memory: tacit.Memory, messages: int) -> tacit.Session:
    """A session that is still open, after this many messages of 400 characters."""
    session = memory.session(channel="bench", model="none")
    for number, text in enumerate(islice(homes.words(400), messages)):
        session.message("agent" if number % 2 else "user", text)
    return session


def _floor(root: Path, like: tacit.Memory) -> Timed:
    """The same bytes below another name of the same depth; they lie on disk before the clock starts."""
    session = talk(like, 20)
    path, data = str(session.path), (like.home.root / str(session.path)).read_bytes()
    session.end()
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    made = 0

    def once() -> float:
        nonlocal made
        made += 1
        name = f"{path.removesuffix('.md')}-{made}.md"
        _write(root / name, data + f"{made}\n".encode())
        began = perf_counter()
        add_and_commit(root, name)
        return perf_counter() - began

    return once


def add_and_commit(root: Path, *names: str) -> None:
    """git alone, with its files synced by its own settings and its directories by us."""
    for command in (("add", "--", *names), ("commit", "--quiet", "--no-verify", "--message=bench")):
        subprocess.run([*_GIT, *command], cwd=root, check=True)
    for folder in ("refs/heads", "objects", ""):
        _sync(root / ".git" / folder)


def _write(file: Path, data: bytes) -> None:
    with file.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    _sync(file.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
